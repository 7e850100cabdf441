"""Untidy files through the command line: `new` chooses the columns that a person would, or asks; and they train."""

import os
from pathlib import Path

import pytest

from sixjars.runs.recipes import read_recipe
from sixjars.tasks import TASKS, own_name
from tests.conftest import Call

from .cases import CASES
from .files import Case

FEW = """learning.steps=2 data.valid=0.2 learning.batch_examples=8 learning.batch_tokens=null
learning.folds=null""".split()
SEARCH = ["evaluation.search.kind=greedy", "evaluation.search.max_length=4"]
SIZES = {
    "bag": ["model.encoder.ngrams.buckets=64"],
    "pair": ["model.encoder.sentence.size=8", "model.decoder.size=8"],
    "none": ["model.decoder.size=8", "model.decoder.embedding.size=8"],  # of tied outputs
    "text": ["model.encoder.size=8", "model.decoder.size=8", "model.decoder.embedding.size=8"],
}
"""A small model, by the encoder that the starter recipe has."""
RIGHT = [case for case in CASES if case.columns]
QUICK = {
    "an index of pandas",
    "blanks around the names of a header",
    "Excel's semicolons and mark",
    "UTF-16, little end",
    "a JSON list, indented",
    "ragged rows",
    "columns of SICK",
    "pairs without a header",
}


def started(case: Case, call: Call, folder: Path) -> str:
    (folder / case.file).write_bytes(case.content)
    os.chdir(folder)
    said = call("new", "new.yaml", "--task", case.task, "--data", case.file, *case.options)
    assert said.out == ""
    if not case.columns:
        assert said.code == 2, said
        assert not Path("new.yaml").exists()
        assert len(said.err.splitlines()) == 1
    else:
        assert said.code == 0, said
    return said.err


@pytest.fixture(autouse=True)
def back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_columns_that_a_person_would_choose(case: Case, call: Call, tmp_path: Path) -> None:
    told = started(case, call, tmp_path)
    for words in (*case.asks, *case.says):
        assert words in told
    if case.columns:
        data = read_recipe("new.yaml").data
        assert {name: settings.column for name, settings in data.fields.items()} == case.columns
        usual: dict[str, object] = {
            "delimiter": None,
            "quotes": None,
            "header": None,
            "on_bad_row": "error",
            "filter": {},
        }
        assert {key: getattr(data, key) for key in usual} == {**usual, **case.keys}
        first = told.splitlines()[0]
        assert all(f"{name} = " in first for name in case.columns)


@pytest.mark.parametrize(
    "case",
    [case if case.name in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in RIGHT],
    ids=lambda case: case.name,
)
def test_they_are_trained_on_scored_and_predicted(case: Case, call: Call, tmp_path: Path) -> None:
    started(case, call, tmp_path)
    few = [*FEW, *SIZES[read_recipe("new.yaml").model.encoder["kind"]]]
    few += [] if "label" in case.columns else SEARCH
    trained = call("train", "new.yaml", *few, "--out", "run", "--device", "cpu")
    assert trained.code == 0, trained
    assert "looks like a header" not in trained.err
    assert call("evaluate", "run").code == 0
    text = ["the cat is in the garden"] * len(TASKS[own_name(case.task)].inputs)
    predicted = call("predict", "run", *text)
    assert predicted.code == 0, predicted
    assert len(predicted.out.splitlines()) == 1


def test_there_are_many() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
