"""Documents, conversations and points: lists, long tours, empty answers; rationales."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.cli.chat import hold_conversation
from sixjars.errors import DataError, RecipeError
from sixjars.evaluation.by_length import scores_by_length
from sixjars.evaluation.metrics import Outcome, RationaleWeight, metric_named
from sixjars.runs.explanation.explain import explain
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.recipes import read_recipe

SMALL = {"size": 6, "embedding": {"size": 5}}
TINY = {"steps": 2, "batch_examples": 16}


def trained(
    folder: Path, task: str, data: dict[str, Any], model: dict[str, Any], **sections: Any
) -> Predictor:
    values = {"task": task, "data": data, "model": model, "learning": TINY, **sections}
    (folder / "small.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(values))))  # no aliases
    return sixjars.load(sixjars.train(folder / "small.yaml", out=folder / "run").folder)


@pytest.fixture(scope="module")
def pointer(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    sample = {"kind": "tours", "size": 32, "valid": 4, "test": 4}
    data: dict[str, Any] = {"sample": sample, "points": {}, "order": {}}
    model = {"encoder": {"size": 6, "embedding": 4}, "decoder": {"size": 6, "attention": 6}}
    search = {"search": {"kind": "beam", "width": 3, "max_length": 4}}
    return trained(tmp_path_factory.mktemp("pointing"), "pointing", data, model, evaluation=search)


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    data = {"sample": {"size": 32, "valid": 4, "test": 4}, "source": {"segments": "turns"}}
    model = {"encoder": {"words": SMALL, "size": 6}, "bridge": {"size": 6}, "decoder": SMALL}
    return trained(tmp_path_factory.mktemp("conversation"), "conversation", data, model)


@pytest.mark.parametrize("cities", [1, 3, 9, 40, 150])
def test_a_tour_is_whole_whatever_the_search_allows(cities: int, pointer: Predictor) -> None:
    points = [[0.01 * at, 0.5 - 0.01 * (at % 7)] for at in range(cities)]
    found = pointer.predict([points])[0]
    assert sorted(map(int, found.text.split())) == list(range(cities))
    assert found.finished


def test_lists_from_python(pointer: Predictor, talker: Predictor) -> None:
    points = [[0.1, 0.2], [0.5, 0.6]]
    asked = ["0.1,0.2 0.5,0.6", points, {"points": points}]
    assert len({found.text for found in pointer.predict(asked)}) == 1
    listed, text = talker.predict([["hello .", "how are you ?"], "hello .\nhow are you ?"])
    assert listed.source == text.source


def test_lists_that_are_none(pointer: Predictor, talker: Predictor) -> None:
    [found] = pointer.predict([[[0.1, None]]])
    assert found.error == (
        "input 1: the points must be a list of points like [[0.12, 0.7], [0.3, 0.25]], or of "
        "numbers, "
        "but has None in it."
    )
    good, bad = talker.predict(["hello .", []])
    assert (good.error, bad.error) == (None, "input 2: the source holds an empty list.")


def test_a_list_where_a_text_is_read(tmp_path: Path) -> None:
    data = {"sample": {"size": 16, "valid": 4, "test": 4}, "source": {}}
    plain = trained(tmp_path, "translation", data, {"encoder": SMALL, "decoder": SMALL})
    assert plain.predict([["a"]])[0].error == "input 1: the source must be a text, but is ['a']."


def test_an_empty_answer_does_not_change_who_speaks(
    talker: Predictor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    answers = iter(["", "fine ."])

    def chat(answer: Any) -> None:
        turns: list[str] = []
        for line in ("hello .", "how are you ?"):
            turns += [line, answer([*turns, line])]

    def predict(asked: list[str], **_: Any) -> list[Any]:
        told.extend(asked)
        return [Prediction(next(answers))]

    monkeypatch.setattr("sixjars.cli.chat.chat", chat)
    monkeypatch.setattr(talker, "predict", predict)
    hold_conversation(talker, talker.recipe.evaluation.search)
    assert told == ["> hello .", "> hello .\n> how are you ?"]


def test_what_is_explained_of_several_labels_and_of_coverage(tmp_path: Path) -> None:
    rows = [{"text": "a b", "label": ["x"]}, {"text": "b c", "label": ["x", "y"]}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"train": str(tmp_path / "rows.jsonl"), "source": {"segments": "lines"}}
    several = {"task": "document_classification", "data": data | {"label": {"multi_label": True}}}

    def lines_of(recipe: Any) -> dict[str, str]:
        return {section.name: " ".join(section.lines) for section in explain(recipe).sections}

    lines = lines_of(several)
    assert "log(1 - P(y | x))" in lines["loss"]
    assert "all labels y with P(y | x) ≥ 1/2" in lines["evaluation"]
    coverage = "+ 0.1 Σ_t Σ_j min(α_jt, Σ_{τ<t} α_jτ): coverage"
    assert coverage in lines_of("summarization/sample_copy")["loss"]


def test_lengths_at_which_no_rationale_is_known() -> None:
    known = Outcome(("a",), rationale=RationaleWeight(0.5, 0.5, 0.5))
    metric, edges = metric_named("rationale_sentence"), [(3, 6), (7, 10)]
    found = scores_by_length([known, Outcome(("a",))], [3, 9], metric=metric, edges=edges)
    assert [(bucket.count, bucket.value) for bucket in found] == [(1, 0.5), (1, None)]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "document_classification/sample_flat_attention",
            ["data.source.segments=none"],
            "rationale_sentence needs sentences; say data.source.segments: sentences or lines",
        ),
        (
            "summarization/sample_copy",
            ["loss.smoothing=0.1"],
            "loss.smoothing: a decoder that copies cannot output every word of every source; "
            "remove it",
        ),
    ],
)
def test_recipes_that_cannot_be(name: str, changes: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        read_recipe(name, changes)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("1 0", r"line 2: rationale names sentence 1, but the source has 1 \(counted from 0\)"),
        ("first", r"line 2: rationale 'first' must be like `2 5`: sentence, word"),
        ("0 -1", r"line 2: rationale '0 -1' must be like `2 5`: sentence, word"),
    ],
)
def test_rationales_that_are_none(key: str, message: str, tmp_path: Path) -> None:
    rows = [
        {"text": "a b\nc", "label": "x", "key": "0 1"},
        {"text": "b c", "label": "y", "key": key},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file, source = str(tmp_path / "rows.jsonl"), {"segments": "lines"}
    data = {"train": file, "valid": file, "source": source, "label": {}, "rationale": "key"}
    model = {"encoder": {"words": SMALL, "size": 6}, "decoder": {"size": 6}}
    metrics = {"metrics": ["rationale_word"]}
    with pytest.raises(DataError, match=message):
        trained(tmp_path, "document_classification", data, model, evaluation=metrics)
