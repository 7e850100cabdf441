"""The learning section of starter recipes: enough updates, in small batches, ended by early stopping."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sixjars.recipe.sections import LearningSettings
from sixjars.runs.recipes import read_recipe
from sixjars.starter.facts import DataFacts, usual_columns
from sixjars.starter.sections import Plan, learning_lines, learning_of
from sixjars.starter.write import new
from sixjars.tasks import TASKS

LABELS = TASKS["document_classification"]
PAIRS = TASKS["translation"]


def settings(
    task: str, rows: int, text: str = "a short sentence of ten words or so, no more"
) -> LearningSettings:
    slots = TASKS[task].slots
    found = DataFacts(
        usual_columns(TASKS[task]), rows=rows, texts={slot.name: [text] * 50 for slot in slots}
    )
    return LearningSettings.model_validate(learning_of(Plan(TASKS[task], found)))


def test_translations_get_enough_updates() -> None:
    """10,000 were needed for 20,000 pairs; 1,260 were made, and training ended while it improved."""
    learning = settings("translation", 20_000)
    assert learning.batch_tokens == 1000
    assert learning.updates(per_epoch=126) == 21_000 >= 15_000
    assert (learning.schedule, learning.patience, learning.average) == ("plateau", 8, 3)
    assert learning.metric is None  # the first of the evaluation


@pytest.mark.parametrize(
    ("rows", "batch", "updates"),
    [
        (99, 8, 1_000),
        (100, 16, 1_000),
        (499, 16, 1_000),
        (500, 32, 1_000),
        (5_638, 32, 5_300),
        (50_000, 64, 20_000),
        (500_000, 256, 20_000),
    ],
)
def test_labels_get_small_batches(rows: int, batch: int, updates: int) -> None:
    learning = settings("document_classification", rows)
    assert (learning.batch_examples, learning.updates(10**9), learning.average) == (
        batch,
        updates,
        3,
    )
    assert learning.schedule == "constant"


@pytest.mark.parametrize(
    "task", ["document_classification", "sentence_pair", "translation", "pointing"]
)
@pytest.mark.parametrize("rows", [50, 500, 20_000, 3_000_000])
def test_validations_are_neither_hundreds_nor_few(task: str, rows: int) -> None:
    learning = settings(task, rows)
    assert learning.validate_every is not None
    assert 25 <= learning.updates(10**9) / learning.validate_every <= 35
    assert (learning.patience or 0) < 16


def test_few_validation_rows_are_scored_by_the_loss() -> None:
    """Accuracy on 280 rows is noise; on 1,250 it is not."""
    assert settings("document_classification", 5_638).metric == "loss"
    assert settings("document_classification", 25_000).metric is None
    lines = learning_lines(
        Plan(LABELS, DataFacts(usual_columns(LABELS), rows=6_500)), {}
    ).splitlines()
    assert lines[1].startswith(
        "# `metric: loss` chooses the checkpoint: on about 325 validation rows"
    )
    split = DataFacts(usual_columns(LABELS), rows=12_000, splits={"train": "train", "valid": "dev"})
    assert (
        learning_of(Plan(LABELS, split)).get("metric") is None
    )  # 1,200 rows, in a split of the file


def test_several_labels_a_row_are_scored_by_them() -> None:
    """Each counts, so that few rows are no noise; and they improve where the loss does not any more."""
    several = DataFacts(
        usual_columns(LABELS), rows=3_000, settings={"label": {"multi_label": True}}
    )
    assert learning_of(Plan(LABELS, several)).get("metric") is None
    assert learning_of(Plan(LABELS, replace(several, settings={})))["metric"] == "loss"


def test_batches_of_long_texts_hold_several() -> None:
    """A batch of 1,000 tokens would be two articles, and its gradient noise."""
    assert settings("summarization", 5_000, "word " * 100).batch_tokens == 4_200
    assert settings("summarization", 5_000, "word " * 1000).batch_tokens == 8_000
    assert settings("transliteration", 5_000, "a" * 40).batch_tokens == 1_300


def test_folds_are_scored_by_the_loss() -> None:
    learning = learning_of(Plan(LABELS, DataFacts(usual_columns(LABELS), rows=40)))
    assert (learning["folds"], learning["metric"], learning["batch_examples"]) == (5, "loss", 8)


def test_the_line_is_in_the_recipe(tmp_path: Path) -> None:
    data = tmp_path / "a.tsv"
    data.write_text(
        "".join(f"a nice text {n}\t{'no' if n % 3 else 'yes'}\n" for n in range(300)),
        encoding="utf-8",
    )
    new(tmp_path / "a.yaml", task="document_classification", data=data)
    text = (tmp_path / "a.yaml").read_text(encoding="utf-8")
    assert re.search(
        r"^# at most so many updates \(steps\); ends when 6 validations have not improved$",
        text,
        re.M,
    )
    learning = read_recipe(str(tmp_path / "a.yaml")).learning
    assert (learning.steps, learning.epochs, learning.batch_examples, learning.metric) == (
        1000,
        None,
        16,
        "loss",
    )


def test_an_end_in_updates_needs_no_epochs() -> None:
    """Before, ten epochs ended a training whatever `steps` said."""
    assert LearningSettings(steps=500).updates(per_epoch=7) == 500
    assert LearningSettings().epochs == 10
    assert LearningSettings(epochs=None).updates(per_epoch=7) == 70
    assert LearningSettings(steps=500, epochs=3).updates(per_epoch=7) == 21
    assert LearningSettings(steps=5, epochs=3).updates(per_epoch=7) == 5
