"""The benchmarks run with the names that the package has now; mypy reads them too."""

import runpy
import sys
from pathlib import Path

import pytest

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
