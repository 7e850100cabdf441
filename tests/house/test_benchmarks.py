"""The benchmarks run with the names that the package has now; mypy reads them too."""

import gzip
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recipes.stand_ins import stand_in
from tests.recipes.test_real_recipes import smaller

from sixjars.runs.recipes import read_recipe

BENCHMARKS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


def test_there_are_some() -> None:
    assert len(BENCHMARKS) >= 4


def ran(path: Path, *words: str) -> None:
    """A benchmark as a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(path), *words])
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_each_imports_what_it_needs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        ran(path, "--help")
    assert "usage: " in capsys.readouterr().out


def test_padding_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Packed rectangles have the least, one block the most."""
    [path] = [path for path in BENCHMARKS if path.stem == "padding"]
    few = ["data.sample.size=64", "data.sample.valid=8", "data.sample.test=8"]
    ran(path, "document_classification/sample_attention", *few)
    ways = [line.split()[-2] for line in capsys.readouterr().out.splitlines() if line.endswith("padding")]
    shares = [float(share.rstrip("%")) for share in ways]
    assert 0.0 < shares[0] < shares[1] < shares[2] < 100.0
    ran(path, "transliteration/sample_attention", *few)
    assert capsys.readouterr().out == "No text of this recipe is in segments.\n"


@pytest.mark.slow
def test_fine_tuning_is_measured(tmp_path: Path) -> None:
    """The command of docs/fine_tuning.md, on stand-ins for both corpora, with fewer rows, seeds and updates."""
    page = (BENCHMARKS[0].parents[1] / "docs" / "fine_tuning.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^python (benchmarks/fine_tuning.py .*)$", page, re.MULTILINE)
    words = shlex.split(line.replace("--multi30k FOLDER", "--multi30k captions").replace("FOLDER", "tatoeba"))
    stand_in(read_recipe("translation/multi30k_attention"), tmp_path / "captions")
    (tmp_path / "tatoeba").mkdir()
    for split in ("train", "dev"):
        rows = [f"sentence {number} of {split}\tSatz {number} von {split}" for number in range(40)]
        (tmp_path / "tatoeba" / f"eng-deu.{split}.tsv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    few = ["--sizes", "20", "--seeds", "0", "--updates", "2", "--held", "5", "--device", "cpu", "--picture", "x.png"]
    small = ["--parent", "learning.steps=2", *smaller("translation/multi30k_attention")]
    command = [sys.executable, str(BENCHMARKS[0].parents[1] / words[0]), *words[1:], *few, *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.png").is_file()
