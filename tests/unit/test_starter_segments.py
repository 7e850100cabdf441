"""`sixjars new` on documents, conversations and points; what it writes is trained on as it is."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sixjars
from sixjars.progress import Reporter
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.prepare import generate_sample
from sixjars.runs.recipes import read_recipe
from sixjars.starter.write import new

DOCUMENTS, TALK, POINTS = "document_classification", "conversation", "pointing"
FEW = ["learning.steps=2", "data.valid=0.2", "learning.folds=null", "evaluation.batch_examples=4"]


def lined(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def setting(recipe: Recipe, field: str, key: str) -> Any:
    return recipe.data.fields[field].model_dump()[key]


def started(folder: Path, task: str, data: Path, *, trained: bool = True) -> Recipe:
    """The recipe for this data; it trains as it is."""
    new(folder / "new.yaml", task=task, data=data)
    found = read_recipe(str(folder / "new.yaml"))
    if trained:
        assert sixjars.train(folder / "new.yaml", FEW, out=folder / "run").scores
    return found


@pytest.mark.parametrize(
    "task", [DOCUMENTS, TALK, "summarization/articles", POINTS, "pointing/hull", "pointing/sorting"]
)
def test_synthetic_corpora_as_files(task: str, tmp_path: Path) -> None:
    generate_sample(task, tmp_path / "made", size=20, seed=0, reporter=Reporter())
    found = started(tmp_path, task.split("/")[0], tmp_path / "made" / "train.jsonl")
    segments = setting(found, "source", "segments") if "source" in found.data.fields else None
    assert segments == {DOCUMENTS: "none", TALK: "turns", "summarization/articles": "none"}.get(
        task
    )
    if "points" in found.data.fields:
        assert setting(found, "points", "dimensions") == (1 if task == "pointing/sorting" else 2)
        assert found.model.decoder["visits"] == ("some" if task == "pointing/hull" else "all")


@pytest.mark.parametrize(
    ("row", "segments", "several"),
    [
        ({"label": "good", "sentences": ["It was good.", "So good."]}, "lines", False),
        ({"label": "good", "text": "It was good. So good."}, "none", False),
        ({"label": "good", "text": "It was good. So good. " * 2}, "none", False),
        ({"label": "good", "document": "It was good.\nSo good.\n" * 2}, "none", False),
        ({"id": 7, "paragraphs": ["Wheat rose."], "topics": ["wheat", "grain"]}, "lines", True),
    ],
)
def test_documents(row: dict[str, Any], segments: str, several: bool, tmp_path: Path) -> None:
    [read] = {"sentences", "text", "document", "paragraphs"} & set(row)
    [said] = {"label", "topics"} & set(row)
    rows = []
    for number in range(10):
        text = [*row[read], f"{number}"] if isinstance(row[read], list) else f"{row[read]} {number}"
        other = ["oil"] if several else "bad"
        rows.append({**row, read: text, said: other if number % 2 else row[said]})
    found = started(tmp_path, DOCUMENTS, lined(tmp_path / "a.jsonl", *rows))
    assert (setting(found, "source", "segments"), setting(found, "label", "multi_label")) == (
        segments,
        several,
    )
    assert found.model.encoder["kind"] == "bag"
    assert setting(found, "source", "lowercase")
    assert (found.data.fields["source"].column, found.data.fields["label"].column) == (read, said)
    assert ("labels_micro_f1" in found.evaluation.metrics) == several
    assert found.loss.smoothing == 0.0


def test_conversations_with_answers(tmp_path: Path) -> None:
    row = {"context": ["Hello?", "Yes?"], "responses": ["It is Ann.", "Who?"]}
    found = started(
        tmp_path,
        TALK,
        lined(tmp_path / "a.jsonl", *[{**row, "context": [str(n)]} for n in range(10)]),
    )
    assert (
        found.data.format,
        found.data.fields["source"].column,
        found.data.fields["target"].column,
    ) == (
        "table",
        "context",
        "responses",
    )
    assert setting(found, "source", "segments") == "turns"


@pytest.mark.parametrize("speakers", [True, False])
def test_whole_conversations(speakers: bool, tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "id": "1",
        "services": ["a"],
        "dialogue": ["Hello?", "Yes?", "It is Ann."],
    }
    row |= {"speakers": ["a", "b", "a"]} if speakers else {}
    found = started(tmp_path, TALK, lined(tmp_path / "a.jsonl", *[row] * 10))
    assert (found.data.format, found.data.fields["source"].column) == ("dialogs", "dialogue")
    assert found.data.speakers == ("speakers" if speakers else None)


def test_points_as_lists_as_texts_and_in_parquet(tmp_path: Path) -> None:
    rows = [
        {"id": "x", "where": [[number + 0.5, 1.0, 2.0], [0.1, 0.0, 1.0]], "how": [1, 0]}
        for number in range(10)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    lined(tmp_path / "a.jsonl", *rows)
    (tmp_path / "a.tsv").write_text(
        "".join(f"{number}.5,1,2 0.1,0,1\t1 0\n" for number in range(10))
    )
    for number, name in enumerate(("a.parquet", "a.jsonl", "a.tsv")):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = started(folder, POINTS, tmp_path / name)
        columns = (found.data.fields["points"].column, found.data.fields["order"].column)
        assert columns == ((1, 2) if name == "a.tsv" else ("where", "how"))
        assert setting(found, "points", "dimensions") == 3


def test_numbers_are_points_too(tmp_path: Path) -> None:
    row = {"points": list(range(150)), "order": list(range(150))}
    found = started(tmp_path, POINTS, lined(tmp_path / "a.jsonl", *[row] * 4), trained=False)
    assert setting(found, "points", "dimensions") == 1


def test_a_list_of_sentences_to_summarise(tmp_path: Path) -> None:
    row = {"document": ["It was late.", "They won."], "summary": "They won."}
    rows = [{**row, "document": [str(n), "They won."]} for n in range(10)]
    found = started(tmp_path, "summarization", lined(tmp_path / "a.jsonl", *rows))
    assert (setting(found, "source", "segments"), found.model.encoder["kind"]) == ("lines", "text")


def test_it_says_what_a_whole_conversation_is_read_as(tmp_path: Path) -> None:
    """There are no columns to choose; so it says where source and target come from."""
    file = lined(
        tmp_path / "talk.jsonl",
        *({"turns": ["hello", f"hello {n}", "who is there"]} for n in range(30)),
    )
    path = new(tmp_path / "talk.yaml", task=TALK, data=file)
    told = "each line is a whole conversation; every turn but the first is a target, those before it its source."
    assert f"# Columns {told}\n" in path.read_text(encoding="utf-8")
