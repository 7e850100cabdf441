"""Odd documents, conversations and points: each has an answer or a sentence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.data.bad_rows import LEAVE_ROWS_OUT

WORDS = {"size": 5, "direction": "both", "embedding": {"size": 4}}
HIERARCHY = {"kind": "hierarchy", "words": WORDS, "size": 5}
SMALL: dict[str, dict[str, Any]] = {
    "document_classification": {
        "encoder": {**HIERARCHY, "pool": "attention"},
        "decoder": {"size": 5},
    },
    "conversation": {"encoder": HIERARCHY, "bridge": {"size": 5}, "decoder": {"size": 5}},
    "summarization": {
        "encoder": HIERARCHY,
        "bridge": {"kind": "two_level", "size": 5},
        "decoder": {"size": 5, "copying": True},
    },
    "pointing": {"encoder": {"size": 5, "embedding": 4}, "decoder": {"size": 5, "attention": 5}},
}
TEXTS = ("document_classification", "conversation", "summarization")
ODD: dict[str, Any] = {
    "one word": "word",
    "a sentence of 500 words": "many words " * 250,
    "400 sentences": ["This is a sentence."] * 400,
    "2000 words": ["all of these words are in one document"] * 250,
    "lines without a word": ["yes", "", " ", "no"],
    "signs alone": "...",
    "a character of no width": "\u200b",
    "other line ends": "one\u2028two\x85three",
}
EMPTY = ["", " \n\t ", ["", " "], "\x1c"]


def fields(task: str, **source: Any) -> dict[str, Any]:
    segments = "turns" if task == "conversation" else "lines"
    said: dict[str, Any] = (
        {"label": {}} if task == "document_classification" else {"target": {"column": "said"}}
    )
    if task == "document_classification":
        said["label"]["column"] = "said"
    return {
        "source": {"column": "read", "segments": segments, "max_length": 3000, **source},
        **said,
    }


def recipe(folder: Path, task: str, rows: Sequence[Any], **data: Any) -> Path:
    """A small recipe that learns from these rows, and is scored on the same."""
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = {
        "task": task,
        "data": {"train": str(file), "valid": str(file), **data},
        "model": SMALL[task],
        "learning": {"steps": 2, "batch_examples": 64},
        "evaluation": {"search": {"max_length": 4}},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(values))
    return folder / "recipe.yaml"


@pytest.mark.parametrize("task", TEXTS)
def test_odd_texts_are_learned_from_scored_and_answered(
    task: str, call: Any, tmp_path: Path
) -> None:
    """All of them in one batch."""
    rows = [
        {"read": text, "said": "yes" if at % 2 else "no"} for at, text in enumerate(ODD.values())
    ]
    said = call("train", recipe(tmp_path, task, rows, **fields(task)), "--out", tmp_path / "run")
    assert said.code == 0, said
    assert "Traceback" not in said.err
    told = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert told["examples"] == len(ODD)
    given = [text if isinstance(text, str) else json.dumps(text) for text in ODD.values()]
    asked = ["\n".join(text) if isinstance(text, list) else text for text in ODD.values()]
    together = call("predict", tmp_path / "run", *given, "--json")
    answers = [json.loads(line) for line in together.out.split("\n")[:-1]]
    predictor = sixjars.load(tmp_path / "run")
    for answer, text, one in zip(answers, asked, predictor.predict(asked), strict=True):
        alone = predictor.predict([text])[0]
        assert answer["text"] == one.text == alone.text
        assert answer["log_probability"] == pytest.approx(alone.log_probability, abs=1e-4)
        # each weight is written with six digits
        rounding = 1e-4 + 0.5e-6 * len(answer["weights"][0])
        assert sum(answer["weights"][0]) == pytest.approx(1.0, abs=rounding)
    lengths = {name: len(answer["source"]) for name, answer in zip(ODD, answers, strict=True)}
    marks = int(task == "conversation")  # a turn opens with who speaks
    assert lengths["one word"] == 1 + marks
    assert lengths["a sentence of 500 words"] == 500 + marks
    assert lengths["2000 words"] == 2000 + 250 * marks
    assert len(set(answers[2]["segments"])) == 400
    assert len(set(answers[4]["segments"])) == 2
    assert len(set(answers[7]["segments"])) == 3


@pytest.mark.parametrize("task", TEXTS)
def test_an_empty_text_is_named_by_its_line_or_left_out(
    task: str, call: Any, tmp_path: Path
) -> None:
    rows = [{"read": text, "said": said} for text, said in (("so it is", "yes"), ("so", "no"))]
    bad = [{"read": empty, "said": "no"} for empty in EMPTY]
    for one in bad:
        path = recipe(tmp_path, task, [*rows, one], **fields(task))
        said = call("train", path, "--out", tmp_path / "run")
        where = f"{tmp_path / 'rows.jsonl'}, line 3"
        assert said.sentence == f"{where}: column 'read' is empty.{LEAVE_ROWS_OUT}"
    path = recipe(tmp_path, task, [*rows, *bad], **fields(task))
    said = call("train", path, "data.on_bad_row=skip", "--out", tmp_path / "run")
    assert said.code == 0
    # of the training and the validation set
    assert f"{2 * len(bad)} bad rows of the data were skipped" in said.out
    for empty in EMPTY:
        asked = json.dumps(empty) if isinstance(empty, list) else empty
        assert call("predict", tmp_path / "run", asked).sentence == "input 1: the source is empty."


def test_a_conversation_of_one_turn(call: Any, tmp_path: Path) -> None:
    """As a row it is a turn and its answer; as a whole conversation there is nothing to answer."""
    rows = [{"read": ["hello"], "said": "hello"}, {"read": "who", "said": "I"}]
    path = recipe(tmp_path, "conversation", rows, **fields("conversation"))
    assert call("train", path, "--out", tmp_path / "run").code == 0
    assert json.loads(call("predict", tmp_path / "run", "hello", "--json").out)["source"] == [
        ">",
        "hello",
    ]
    whole = [{"turns": ["hello"]}, {"turns": ["hello", "you"]}]
    columns = {
        "source": {"column": "turns", "segments": "turns"},
        "target": {"column": "turns"},
        "format": "dialogs",
    }
    path = recipe(tmp_path, "conversation", whole, **columns)
    said = call("train", path, "--out", tmp_path / "whole")
    assert said.code == 0, said
    assert "1 example of" in said.out
    path = recipe(tmp_path, "conversation", whole[:1], **columns)
    told = f"{tmp_path / 'rows.jsonl'}"
    assert call("train", path, "--out", tmp_path / "none").sentence.startswith(told)


@pytest.mark.parametrize("task", TEXTS)
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_a_limit_cuts_in_training_and_in_use(
    task: str, limit: int, call: Any, tmp_path: Path
) -> None:
    rows = [
        {"read": text, "said": "yes" if at % 2 else "no"} for at, text in enumerate(ODD.values())
    ]
    path = recipe(tmp_path, task, rows, **fields(task, max_length=limit))
    assert call("train", path, "--out", tmp_path / "run").code == 0
    said = call("predict", tmp_path / "run", "a b c d e f g h", "--json")
    first, *more = said.err.splitlines()
    assert first == "note: input 1 was cut, because it is longer than the run reads (max_length)."
    assert all("of the input tokens are unknown to the run" in line for line in more)
    answer = json.loads(said.out)
    assert (len(answer["source"]), answer["truncated"]) == (limit, True)


# Multiple labels


def test_multiple_labels(call: Any, tmp_path: Path) -> None:
    """Lists are learned from, scored as sets and told in order; no confusion."""
    topics = [["grain"], ["grain", "wheat"], ["oil"], ["oil", "grain"]]
    rows = [{"read": f"{' '.join(found)} rose", "said": found} for found in topics * 4]
    data = fields("document_classification") | {"label": {"column": "said", "multi_label": True}}
    path = recipe(tmp_path, "document_classification", rows, **data)
    more = [
        "evaluation.metrics=[labels_micro_f1, labels_exact]",
        "learning.steps=150",
        "learning.epochs=150",
        "learning.validate_every=50",
        "learning.rate=0.03",
    ]
    said = call("train", path, *more, "--out", tmp_path / "run")
    assert said.code == 0, said
    told = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert told["scores"]["labels_exact"]["value"] == 1.0
    expected = [("grain", 12, 1.0), ("oil", 8, 1.0), ("wheat", 4, 1.0)]
    assert [(row["label"], row["count"], row["f1"]) for row in told["classes"]] == expected
    assert "confusion" not in told
    table = call("evaluate", tmp_path / "run").out
    assert "grain" in table
    assert "precision" in table
    assert "predicted →" not in table
    answer = call("predict", tmp_path / "run", "oil grain rose").out.split("\t")
    assert answer[0] == "grain, oil"
    assert 0.5 < float(answer[1]) <= 1.0
    line = "--metrics: perplexity tells"
    assert line in call("evaluate", tmp_path / "run", "--metrics", "perplexity").sentence
    line = "this run chooses all labels that apply to an input, so nbest does not apply."
    assert call("predict", tmp_path / "run", "oil", "--nbest", "2").sentence == line
    (tmp_path / "other.jsonl").write_text(
        json.dumps({"read": "oil rose", "said": ["oil", "gold"]}) + "\n"
    )
    told = json.loads(
        call("evaluate", tmp_path / "run", "--data", tmp_path / "other.jsonl", "--json").out
    )
    assert told["scores"]["labels_exact"]["value"] == 0.0
    assert told["scores"]["labels_micro_f1"]["value"] == pytest.approx(2 / 3)
    (tmp_path / "other.jsonl").write_text(json.dumps({"read": "oil rose", "said": ["gold"]}) + "\n")
    assert call("evaluate", tmp_path / "run", "--data", tmp_path / "other.jsonl").sentence == (
        f"{tmp_path / 'other.jsonl'}: none of its labels ('gold', ...) is among those that were "
        "learned."
    )


def test_what_is_no_list_of_labels_is_named_by_its_line(call: Any, tmp_path: Path) -> None:
    rows = [{"read": "a b", "said": found} for found in (["x"], ["y"], ["a, b"])]
    data = fields("document_classification") | {"label": {"column": "said", "multi_label": True}}
    path = recipe(tmp_path, "document_classification", rows, **data)
    said = call("train", path, "--out", tmp_path / "run")
    told = "column 'said' holds the label 'a, b', but a comma stands between labels; write it "
    where = f"{tmp_path / 'rows.jsonl'}, line 3"
    assert said.sentence == f"{where}: {told}without.{LEAVE_ROWS_OUT}"


# Points


ONE_LEFT = "the order has 1 of 2 points, but model.decoder.visits is all; say visits: some."
ODD_POINT = "the points: a point has 1 coordinate and the first has 2 coordinates; all must have"
NO_NUMBER = "the points: 'x' of point '3,x' is not a number; write points like 0.12,0.7"


@pytest.mark.parametrize(
    ("points", "order", "told"),
    [
        ("1,2 3,4", "1", ONE_LEFT),
        ("1 2", "0 1", "a point has 1 coordinate, but data.points.dimensions is 2."),
        ("1,2 3,4", "0 0", "the order: position 0 comes 2 times; each may come once."),
        ("1,2 3", "0 1", ODD_POINT),
        ([[1, 2], [3, "x"]], [0, 1], NO_NUMBER),
    ],
)
def test_bad_points_are_named_by_their_line_or_left_out(
    points: Any, order: Any, told: str, call: Any, tmp_path: Path
) -> None:
    rows = [{"points": "1,2 3,4", "order": "0 1"}, {"points": points, "order": order}]
    path = recipe(tmp_path, "pointing", rows, points={}, order={})
    said = call("train", path, "--out", tmp_path / "run")
    assert said.sentence.startswith(f"{tmp_path / 'rows.jsonl'}, line 2: {told}")
    said = call("train", path, "data.on_bad_row=skip", "--out", tmp_path / "run")
    assert said.code == 0, said
    assert "2 bad rows of the data were skipped" in said.out


def test_points_left_out_and_a_single_one(call: Any, tmp_path: Path) -> None:
    rows = [{"points": [[1, 2], [3, 4]], "order": [1]}, {"points": "5,6", "order": "0"}]
    path = recipe(tmp_path, "pointing", rows, points={}, order={})
    said = call("train", path, "model.decoder.visits=some", "--out", tmp_path / "run")
    assert said.code == 0, said
    assert call("predict", tmp_path / "run", "7,8").out == "0\n"
    path = recipe(tmp_path, "pointing", rows[:1], points={}, order={})
    said = call("train", path, "data.on_bad_row=skip", "--out", tmp_path / "none")
    assert said.sentence == (
        f"{tmp_path / 'rows.jsonl'}: no row is left of 1; all were bad: the order has 1 of 2 "
        "points, but "
        "model.decoder.visits is all; say visits: some."
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("model.decoder.visits=all", "points, but model.decoder.visits is all; say visits: some."),
        (
            "data.points.dimensions=1",
            "line 1: a point has 2 coordinates, but data.points.dimensions",
        ),
    ],
)
def test_a_synthetic_corpus_of_other_points(
    change: str, told: str, call: Any, tmp_path: Path
) -> None:
    few = ["data.sample.size=50", "data.sample.valid=5", "data.sample.test=5"]
    said = call("train", "pointing/sample_hull", *few, change, "--out", tmp_path / "run")
    assert told in said.sentence
