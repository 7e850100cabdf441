"""What a training tells of itself: the block before it, its loggers, and its curves."""

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lightning_fabric.loggers.csv_logs import CSVLogger

import sixjars
from sixjars.errors import MissingExtra
from sixjars.learning import loggers as module
from sixjars.learning.loggers import loggers_for
from sixjars.progress import Reporter, Summary
from sixjars.runs.folder.run_folder import best_of, first_score
from sixjars.runs.training.learning_curves import draw_learning

FEW = [
    "data.sample.size=64",
    "data.sample.valid=4",
    "data.sample.test=12",
    "evaluation.search.max_length=4",
]


class Kept(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.block: Summary | None = None
        self.records: list[Mapping[str, float]] = []

    def summary(self, found: Summary) -> None:
        self.block = found

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        self.records.append(record)


def trained(
    folder: Path, *overrides: str, recipe: str = "transliteration/sample_attention"
) -> Kept:
    kept = Kept()
    sixjars.train(recipe, [*FEW, *overrides], out=folder, device="cpu", reporter=kept)
    return kept


@pytest.mark.usefixtures("drawn_curves")
def test_the_block_the_curves_and_the_csv_logger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ended = tmp_path / "run", []
    monkeypatch.setattr(CSVLogger, "finalize", lambda self, status: ended.append(status))
    beam = ["learning.epochs=3", "learning.loggers=[csv]", "evaluation.search.kind=beam"]
    kept = trained(folder, *beam, "learning.batch_examples=4")
    assert kept.block is not None
    facts = kept.block.facts
    expected = ["device", "rows", "source", "target", "parameters", "steps", "path", "search"]
    assert list(facts) == expected
    assert facts["device"] == "cpu, 32-bit"
    assert facts["rows"] == "64 training, 4 validation, 12 test"
    assert facts["source"].startswith("characters, a vocabulary of ")
    assert facts["source"].endswith("% of the validation tokens are known")
    assert facts["steps"] == "48 at most, 16 an epoch (3 epochs)"
    told = "greedy search after each epoch, beam search of width 5 for the final score"
    assert facts["search"] == told
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "logs" / "csv" / "version_0" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    scored = [row for row in rows if row["loss"]]
    assert [(int(row["step"]), float(row["loss"])) for row in scored] == [
        (r["step"], r["loss"]) for r in log
    ]
    assert [int(row["step"]) for row in rows if row["step_loss"]] == [10, 20, 30, 40]
    assert ended == ["success"]


@pytest.mark.usefixtures("drawn_curves")
def test_labels_have_no_search_and_one_validation_no_curve(tmp_path: Path) -> None:
    kept = trained(
        tmp_path / "run", "learning.steps=2", recipe="document_classification/sample_attention"
    )
    assert kept.block is not None
    assert "search" not in kept.block.facts
    assert kept.block.search == ""
    assert not (tmp_path / "run" / "curves.png").exists()


@pytest.mark.parametrize("metric", [None, "bleu", "gain"])
def test_curves_with_a_metric_without_one_and_below_zero(
    metric: str | None, tmp_path: Path
) -> None:
    records = [
        {"step": n, "train_loss": 2.0 / n, "loss": 3.0 / n, "bleu": 0.1 * n, "gain": n - 1.5}
        for n in (1, 2, 3)
    ]
    draw_learning(tmp_path / "curves.png", records, metric=metric, best=2, title="Kept: step 2")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_logger_whose_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    for name in ("tensorboard", "wandb", "mlflow"):
        with pytest.raises(MissingExtra) as caught:
            trained(tmp_path / "run", f"learning.loggers=[{name}]")
        assert str(caught.value) == f"{name} is not installed. Run: pip install 'sixjars[{name}]'"
    assert not (tmp_path / "run").exists()


def test_the_other_loggers_are_made_for_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []

    class Logger:
        def __init__(self, **options: Any) -> None:
            made.append(options)

    library = ModuleType("pytorch_lightning.loggers")
    library.__dict__.update(WandbLogger=Logger, MLFlowLogger=Logger)
    monkeypatch.setitem(sys.modules, "pytorch_lightning.loggers", library)
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    loggers_for(["wandb", "mlflow", "wandb"], tmp_path / "x")
    logs = tmp_path / "x" / "logs"
    assert made == [
        {"project": "sixjars", "name": "x", "save_dir": str(logs)},
        {"experiment_name": "sixjars", "run_name": "x", "save_dir": str(logs / "mlflow")},
    ]


def test_of_equally_good_validations_the_one_with_the_lowest_loss_is_kept() -> None:
    rows = [(1.0, 3.0, 1.0), (2.0, 4.0, 0.7), (3.0, 4.0, 0.5), (4.0, 4.0, 0.6)]
    records = [{"step": step, "bleu": bleu, "loss": loss} for step, bleu, loss in rows]
    assert best_of(records, "bleu", better="higher")["step"] == 3
    assert best_of(records, "bleu", better="lower")["step"] == 1


def test_only_a_score_that_every_validation_has_is_drawn() -> None:
    """A metric that waits for the end of training is in the older records of a run that goes on."""
    records = [
        {"step": 1, "loss": 2.0, "ter": 90.0, "bleu": 1.0},
        {"step": 2, "loss": 1.0, "bleu": 2.0},
    ]
    assert first_score(records) == "bleu"
