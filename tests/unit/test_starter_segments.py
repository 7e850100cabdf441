"""`sixjars new` on documents, conversations and points; what it writes is trained on as it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sixjars
from sixjars.progress import Reporter
from sixjars.runs.data.prepare import generate_sample

from .starters import LABELS, Start, Starter
from .starters import start as start

TALK, POINTS = "conversation", "pointing"
FEW = ["learning.steps=2", "data.valid=0.2", "learning.folds=null", "evaluation.batch_examples=4"]
Trained = Callable[..., Starter]


@pytest.fixture
def trained(start: Start, tmp_path: Path) -> Trained:
    """The recipe for some data; it trains as it is."""

    def run(*arguments: Any) -> Starter:
        starter = start(*arguments)
        assert sixjars.train(starter.path, FEW, out=tmp_path / f"run_{starter.path.stem}").scores
        return starter

    return run


@pytest.mark.parametrize(
    ("task", "segments", "points"),
    [
        (LABELS, "none", ()),
        (TALK, "turns", ()),
        ("summarization/articles", "none", ()),
        (POINTS, None, (2, "all")),
        ("pointing/hull", None, (2, "some")),
        ("pointing/sorting", None, (1, "all")),
    ],
)
def test_synthetic_corpora_as_files(
    task: str, segments: str | None, points: tuple[Any, ...], trained: Trained, tmp_path: Path
) -> None:
    generate_sample(task, tmp_path / "made", size=20, seed=0, reporter=Reporter())
    starter = trained(task.split("/")[0], tmp_path / "made" / "train.jsonl")
    if segments is not None:
        assert starter.setting("source", "segments") == segments
    else:
        visits = starter.recipe.model.decoder["visits"]
        assert (starter.setting("points", "dimensions"), visits) == points


@pytest.mark.parametrize(
    ("row", "segments", "several"),
    [
        ({"sentences": ["It was good.", "So good."], "label": "good"}, "lines", False),
        ({"text": "It was good. So good.", "label": "good"}, "none", False),
        ({"text": "It was good. So good. " * 2, "label": "good"}, "none", False),
        ({"document": "It was good.\nSo good.\n" * 2, "label": "good"}, "none", False),
        ({"paragraphs": ["Wheat rose."], "topics": ["wheat", "grain"], "id": 7}, "lines", True),
    ],
)
def test_documents(row: dict[str, Any], segments: str, several: bool, trained: Trained) -> None:
    text, label = list(row)[:2]
    rows = []
    for number in range(10):
        whole = row[text]
        whole = [*whole, f"{number}"] if isinstance(whole, list) else f"{whole} {number}"
        other = ["oil"] if several else "bad"
        rows.append({**row, text: whole, label: other if number % 2 else row[label]})
    starter = trained(LABELS, rows)
    recipe = starter.recipe
    assert starter.setting("source", "segments") == segments
    assert starter.setting("label", "multi_label") == several
    assert starter.setting("source", "lowercase")
    assert starter.columns == [text, label]
    assert (recipe.model.encoder["kind"], recipe.loss.smoothing) == ("bag", 0.0)
    assert ("labels_micro_f1" in recipe.evaluation.metrics) == several


def test_conversations_with_answers(trained: Trained) -> None:
    row = {"responses": ["It is Ann.", "Who?"]}
    starter = trained(TALK, [{"context": [str(n)], **row} for n in range(10)])
    assert (starter.recipe.data.format, starter.columns) == ("table", ["context", "responses"])
    assert starter.setting("source", "segments") == "turns"


@pytest.mark.parametrize("speakers", [True, False])
def test_whole_conversations(speakers: bool, trained: Trained) -> None:
    row: dict[str, Any] = {"id": "1", "services": ["a"]}
    row["dialogue"] = ["Hello?", "Yes?", "It is Ann."]
    row |= {"speakers": ["a", "b", "a"]} if speakers else {}
    starter = trained(TALK, [row] * 10)
    data = starter.recipe.data
    assert (data.format, starter.columns[0]) == ("dialogs", "dialogue")
    assert data.speakers == ("speakers" if speakers else None)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.tsv"])
def test_points_as_lists_as_texts_and_in_parquet(
    name: str, trained: Trained, tmp_path: Path
) -> None:
    rows: Any = [
        {"id": "x", "where": [[n + 0.5, 1.0, 2.0], [0.1, 0.0, 1.0]], "how": [1, 0]}
        for n in range(10)
    ]
    if name == "a.parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
        rows = tmp_path / name
    elif name == "a.tsv":
        rows = [(f"{n}.5,1,2 0.1,0,1", "1 0") for n in range(10)]
    starter = trained(POINTS, rows, name)
    assert starter.columns == ([1, 2] if name == "a.tsv" else ["where", "how"])
    assert starter.setting("points", "dimensions") == 3


def test_numbers_are_points_too(start: Start) -> None:
    row = {"points": list(range(150)), "order": list(range(150))}
    assert start(POINTS, [row] * 4).setting("points", "dimensions") == 1


def test_a_list_of_sentences_to_summarise(trained: Trained) -> None:
    row = {"summary": "They won."}
    starter = trained(
        "summarization", [{"document": [str(n), "They won."], **row} for n in range(10)]
    )
    kind = starter.recipe.model.encoder["kind"]
    assert (starter.setting("source", "segments"), kind) == ("lines", "text")


def test_it_says_what_a_whole_conversation_is_read_as(start: Start) -> None:
    """There are no columns to choose; so it says where source and target come from."""
    told = "each line is a whole conversation; every turn but the first is a target, those before it its source."
    talks = [{"turns": ["hello", f"hello {n}", "who is there"]} for n in range(30)]
    assert f"# Columns {told}\n" in start(TALK, talks).text
