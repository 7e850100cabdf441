"""Pictures of a corpus: each reaches its rows, bad ones are told or skipped, true boxes are read and checked."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from sixjars.errors import DataError
from sixjars.evaluation.score import found_by
from sixjars.flow.values import Encoded, Hypothesis
from sixjars.model.build import Network, build
from sixjars.recipe import Recipe
from sixjars.recipe.sections import EvaluationSettings, SearchSettings
from sixjars.runs.data import corpus_of, facts_of
from sixjars.runs.recipes import recipe_of
from sixjars.tasks import scoring

WIDTH, HEIGHT = 12, 8
COLOURS = ("red", "green", "blue", "white")


def pictured(folder: Path, lines: Sequence[dict[str, Any]], **data: object) -> Recipe:
    """Captions of pictures of one colour each, in JSON lines."""
    for name in COLOURS:
        Image.new("RGB", (WIDTH, HEIGHT), name).save(folder / f"{name}.png")
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = {"folder": str(folder), "train": "captions.jsonl", "valid": "captions.jsonl"}
    fields = {"image": {"size": 8}, "target": {"column": "caption"}}
    model = {"encoder": {"backbone": {"widths": [4]}}, "bridge": {"size": 3}, "decoder": {"size": 5}}
    return recipe_of({"task": "image_captioning", "data": {**files, **fields, **data}, "model": model}, "a test")


def captions(*names: str) -> list[dict[str, Any]]:
    return [{"image": f"{name}.png", "caption": f"all is {name}", "boxes": "2:0,0,0.5,0.5"} for name in names]


def test_pictures_reach_the_rows_that_name_them(tmp_path: Path) -> None:
    corpus = corpus_of(pictured(tmp_path, captions("red", "blue", "red", "white")))
    batch = corpus.train.batches().collate(torch.tensor([3, 0, 2]))
    assert corpus.train.inputs[3] == {"image": "white.png"}
    pixels = batch.inputs["image"].values.view(3, 3, 8, 8)
    assert batch.inputs["image"].mask.tolist() == [[True]] * 3
    assert [pixels[row, :, 4, 4].tolist() for row in range(3)] == [[255, 255, 255], [255, 0, 0], [255, 0, 0]]


def test_all_questions_about_a_picture_are_held_out_together(tmp_path: Path) -> None:
    questions = {"is it red ?": "yes", "what colour is it ?": "red", "is it dark ?": "no"}
    for name in COLOURS:
        Image.new("RGB", (WIDTH, HEIGHT), name).save(tmp_path / f"{name}.png")
    lines = [
        {"image": f"{name}.png", "question": asked, "label": said}
        for asked, said in questions.items()
        for name in COLOURS
    ]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    fields = {"image": {"size": 8}, "question": {"column": "question"}, "label": {}}
    data = {"folder": str(tmp_path), "train": "asked.jsonl", "valid": 0.5, **fields}
    made = recipe_of({"task": "image_question_answering", "data": data}, "a test")
    corpus = corpus_of(made)
    held, learned = ({given["image"] for given in part.inputs} for part in (corpus.valid, corpus.train))
    assert (len(held), len(learned), len(held | learned)) == (2, 2, 4)
    for part in (corpus.valid, corpus.train):
        assert len({(given["image"], given["question"]) for given in part.inputs}) == len(part) == 6


def test_a_bad_picture_is_an_error_unless_it_may_be_skipped(tmp_path: Path) -> None:
    lines = captions("red", "broken", "blue", "gone", "broken", "green")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"^There is no file 'gone\.png' in "):
        corpus_of(pictured(tmp_path, lines))
    with pytest.raises(DataError, match=r"^broken\.png is not a picture, or damaged from its first bytes"):
        corpus_of(pictured(tmp_path, [line for line in lines if line["image"] != "gone.png"]))
    corpus = corpus_of(pictured(tmp_path, lines, on_bad_row="skip"))
    assert [given["image"] for given in corpus.train.inputs] == ["red.png", "blue.png", "green.png"]
    assert corpus.train.targets == ["all is red", "all is blue", "all is green"]
    assert (corpus.train.skipped, corpus.skipped) == (3, 6)
    assert corpus.train.table.line(2) == 6


def test_no_picture_is_left(tmp_path: Path) -> None:
    made = pictured(tmp_path, captions("gone", "lost"), on_bad_row="skip")
    with pytest.raises(DataError, match=r"captions\.jsonl: no image file is left; There is no file 'gone\.png' in "):
        corpus_of(made)


def test_boxes_are_read(tmp_path: Path) -> None:
    lines = captions("red", "blue", "green")
    lines[1]["boxes"] = ""
    lines[2]["boxes"] = "0:0,0,1,1 2:-0.5,0.25,0.5,1.5"
    corpus = corpus_of(pictured(tmp_path, lines, boxes="boxes"))
    assert corpus.train.boxes == [
        ((2, 0.0, 0.0, 0.5, 0.5),),
        (),
        ((0, 0.0, 0.0, 1.0, 1.0), (2, -0.5, 0.25, 0.5, 1.5)),
    ]
    assert corpus_of(pictured(tmp_path, lines)).train.boxes is None


@pytest.mark.parametrize(
    "text",
    [
        *("2", "2:1,2,3", "2:0,0,1,1,1", "x:0,0,1,1", "2:0,0,a,1", "2:nan,0,1,1"),
        *("2:0.5,0,0.5,1", "2:0,1,1,0", "2:1,0,1.5,1", "2:0,-1,1,0"),
    ],
)
def test_boxes_that_are_none(text: str, tmp_path: Path) -> None:
    lines = captions("red", "blue")
    lines[1]["boxes"] = text
    part = corpus_of(pictured(tmp_path, lines, boxes="boxes")).train
    with pytest.raises(DataError) as error:
        _ = part.boxes
    assert str(error.value) == (
        f"{tmp_path / 'captions.jsonl'}, line 2: boxes {text!r} must be like `2:0.1,0.1,0.4,0.3`: "
        "word, left, top, right, bottom."
    )


@pytest.mark.parametrize("word", [3, -1])
def test_a_box_of_a_word_that_is_not_there(word: int, tmp_path: Path) -> None:
    lines = captions("red", "blue")
    lines[0]["boxes"] = f"{word}:0,0,1,1"
    part = corpus_of(pictured(tmp_path, lines, boxes="boxes")).train
    with pytest.raises(DataError) as error:
        _ = part.boxes
    assert str(error.value) == (
        f"{tmp_path / 'captions.jsonl'}, line 1: a box belongs to word {word}, but the target has 3 (counted from 0)."
    )


def network_for(made: Recipe) -> Network:
    return build(made.model, facts_of(made, corpus_of(made).tokens))


def test_boxes_of_words_that_were_cut_off_do_not_count(tmp_path: Path) -> None:
    short = {"target": {"column": "caption", "max_length": 2}}
    made = pictured(tmp_path, captions("red", "blue"), boxes="boxes", **short)
    part = corpus_of(made).train
    assert part.boxes == [((2, 0.0, 0.0, 0.5, 0.5),)] * 2
    outcomes = scoring.outcomes_of(network_for(made), part, EvaluationSettings(), ["object_focus"])
    assert [outcome.focus for outcome in outcomes] == [None, None]
    whole = pictured(tmp_path, captions("red", "blue"), boxes="boxes")
    outcomes = scoring.outcomes_of(network_for(whole), corpus_of(whole).train, EvaluationSettings(), ["object_focus"])
    assert all(outcome.focus is not None and outcome.focus > 0 for outcome in outcomes)


def test_a_picture_with_several_captions_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"image": f"{name}.png", "caption": [f"all is {name}", f"{name} everywhere", f"all is {name}"]}
        for name in COLOURS
    ]
    made = pictured(tmp_path, lines)
    part, network = corpus_of(made).train, network_for(made)
    assert len(part) == 12
    searched: list[int] = []

    def counting(network: Network, encoded: Encoded, *rest: Any, **more: Any) -> list[list[Hypothesis]]:
        searched.append(encoded.rows)
        return found_by(network, encoded, *rest, **more)

    monkeypatch.setattr(scoring, "found_by", counting)
    settings = EvaluationSettings(search=SearchSettings(max_length=4), group=True, batch_examples=3)
    together = scoring.outcomes_of(network, part, settings, ["bleu4"])
    assert searched == [3, 1]
    assert [outcome.references for outcome in together] == [(f"all is {n}", f"{n} everywhere") for n in COLOURS]
    apart = scoring.outcomes_of(network, part, settings.model_copy(update={"group": False}), ["bleu4"])
    assert sum(searched) == 4 + 12
    assert [outcome.candidates for outcome in together] == [outcome.candidates for outcome in apart[::3]]
