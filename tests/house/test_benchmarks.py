"""The benchmarks run with the names that the package has now; mypy reads them too."""

import gzip
import importlib
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml
from tests.recipes.stand_ins import stand_in
from tests.recipes.test_real_recipes import smaller

from sixjars.runs.recipes import read_recipe
from sixjars.starter.training_time import QUARTER_COSTS

kept, measure, table = map(
    importlib.import_module,
    ("benchmarks.kept", "benchmarks.starters.measure", "benchmarks.starters.table"),
)
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


def starter_row(**changes: Any) -> str:
    row = {"set": "sick", "rows": 200, "seed": 0, "metric": "accuracy@1", "score": 0.5, "dev": 500}
    row |= {
        "cpu_s": 60.0,
        "gb": 0.5,
        "quarter_costs": 1.5,
        "baseline": 0.48,
        "by": "linear model",
    }
    return json.dumps(row | changes) + "\n"


def test_rows_of_starters_are_kept_in_place_of_older_ones(tmp_path: Path) -> None:
    """Seeds are one row with their range; rows of other sizes and sets stay; what failed is not kept."""
    kept_rows, first, second = tmp_path / "kept.yaml", tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text(starter_row() + starter_row(rows=1000, score=0.6) + starter_row(set="snli"))
    table.keep([first], kept_rows, "two cores")
    second.write_text(
        starter_row(score=0.7) + starter_row(seed=1, score=0.8) + '{"set": "snli", "rows": 200, '
        '"seed": 0, "error": "no memory"}\n'
    )
    table.keep([second], kept_rows, "two cores")
    rows = yaml.safe_load(kept_rows.read_text())["tables"]["scores"]["rows"]
    expected = [["sick", "200"], ["sick", "1,000"], ["snli", "200"]]
    assert [row["cells"][:2] for row in rows] == expected
    assert rows[0]["cells"][3:7] == ["0.750 (0.700–0.800)", "0.480", "linear model", "+0.270"]
    assert rows[0]["seeds"] == "0, 1"
    kept.read(kept_rows.read_text())  # every row says where it comes from


def test_the_cost_of_a_quarter_is_read_from_the_log(tmp_path: Path) -> None:
    """Accuracy of the checkpoint with the least loss so far, not the best accuracy."""
    recipe, run = tmp_path / "mine.yaml", tmp_path / "run"
    recipe.write_text("learning: {steps: 400, metric: loss}")
    run.mkdir()
    scores = [(50, 0.9, 0.60), (100, 0.8, 0.65), (200, 0.5, 0.80), (400, 0.7, 0.90)]
    lines = [
        json.dumps({"step": step, "loss": loss, "accuracy@1": score})
        for step, loss, score in scores
    ]
    (run / "log.jsonl").write_text("\n".join(['{"step": 10, "train_loss": 2.0}', *lines]) + "\n")
    assert measure.quarter_costs(run, recipe, "accuracy@1") == pytest.approx(15.0)
    recipe.write_text("learning: {steps: 100}")
    # nothing was validated so early
    assert measure.quarter_costs(run, recipe, "accuracy@1") is None


def test_padding_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Packed rectangles have the least, one block the most."""
    [path] = [path for path in BENCHMARKS if path.stem == "padding"]
    few = ["data.sample.size=64", "data.sample.valid=8", "data.sample.test=8"]
    ran(path, "document_classification/sample_attention", *few)
    ways = [
        line.split()[-2]
        for line in capsys.readouterr().out.splitlines()
        if line.endswith("padding")
    ]
    shares = [float(share.rstrip("%")) for share in ways]
    assert 0.0 < shares[0] < shares[1] < shares[2] < 100.0
    ran(path, "transliteration/sample_attention", *few)
    assert capsys.readouterr().out == "No text of this recipe is in segments.\n"


@pytest.mark.slow
def test_fine_tuning_is_measured(tmp_path: Path) -> None:
    """The command of docs/fine_tuning.md, on stand-ins for both corpora, with fewer rows, seeds and updates."""
    page = (BENCHMARKS[0].parents[1] / "docs" / "fine_tuning.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^python (benchmarks/fine_tuning.py .*)$", page, re.MULTILINE)
    words = shlex.split(
        line.replace("--multi30k FOLDER", "--multi30k captions").replace("FOLDER", "tatoeba")
    )
    stand_in(read_recipe("translation/multi30k_attention"), tmp_path / "captions")
    (tmp_path / "tatoeba").mkdir()
    for split in ("train", "dev"):
        rows = [f"sentence {number} of {split}\tSatz {number} von {split}" for number in range(40)]
        (tmp_path / "tatoeba" / f"eng-deu.{split}.tsv.gz").write_bytes(
            gzip.compress("\n".join(rows).encode())
        )
    few = [
        "--sizes",
        "20",
        "--seeds",
        "0",
        "--updates",
        "2",
        "--held",
        "5",
        "--device",
        "cpu",
        "--picture",
        "x.png",
    ]
    small = ["--parent", "learning.steps=2", *smaller("translation/multi30k_attention")]
    command = [sys.executable, str(BENCHMARKS[0].parents[1] / words[0]), *words[1:], *few, *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.png").is_file()


def test_what_a_shorter_training_costs_is_the_mean_of_the_kept_table() -> None:
    rows = yaml.safe_load(table.KEPT.read_text(encoding="utf-8"))["tables"]["scores"]["rows"]
    costs = [float(row["cells"][-1]) for row in rows if row["cells"][-1] != "–"]
    assert len(costs) > 8
    assert round(mean(costs), 1) == QUARTER_COSTS
