"""Images of a dataset: each reaches its rows, bad ones are told, true boxes are read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from sixjars.errors import DataError
from sixjars.evaluation import score
from sixjars.evaluation.metrics import metric_named
from sixjars.evaluation.metrics.outcome import Outcome
from sixjars.evaluation.score import hypotheses_of, judged, true_boxes
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Encoded
from sixjars.model.build import Network
from sixjars.recipe.sections import EvaluationSettings, Recipe, SearchSettings
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.runs.training.network import fresh_network

WIDTH, HEIGHT = 12, 8
COLOURS = ("red", "green", "blue", "white")


def with_images(folder: Path, lines: Sequence[dict[str, Any]], **data: object) -> Recipe:
    """Captions of images of one colour each, in JSON lines."""
    for name in COLOURS:
        Image.new("RGB", (WIDTH, HEIGHT), name).save(folder / f"{name}.png")
    (folder / "captions.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    files = {"folder": str(folder), "train": "captions.jsonl", "valid": "captions.jsonl"}
    fields = {"image": {"size": 8}, "target": {"column": "caption"}}
    model = {
        "encoder": {"backbone": {"widths": [4]}},
        "bridge": {"size": 3},
        "decoder": {"size": 5},
    }
    return recipe_of(
        {"task": "image_captioning", "data": {**files, **fields, **data}, "model": model}, "a test"
    )


def data_of(recipe: Recipe) -> Splits:
    return splits_of(Blueprint.of(recipe))


def outcomes(recipe: Recipe, settings: EvaluationSettings, metric: str) -> list[Outcome]:
    """What a new network makes of the training set."""
    blueprint = Blueprint.of(recipe)
    splits = splits_of(blueprint)
    found = judged(fresh_network(blueprint, splits), splits.train, settings, [metric_named(metric)])
    return found.outcomes[min(found.outcomes)]


def captions(*names: str) -> list[dict[str, Any]]:
    return [
        {"image": f"{name}.png", "caption": f"all is {name}", "boxes": "2:0,0,0.5,0.5"}
        for name in names
    ]


def test_images_reach_the_rows_that_name_them(tmp_path: Path) -> None:
    splits = data_of(with_images(tmp_path, captions("red", "blue", "red", "white")))
    batch = splits.train.batches().collate(torch.tensor([3, 0, 2]))
    assert splits.train.inputs[3] == {"image": "white.png"}
    pixels = batch.inputs["image"].values.view(3, 3, 8, 8)
    assert batch.inputs["image"].mask.tolist() == [[True]] * 3
    expected = [[255, 255, 255], [255, 0, 0], [255, 0, 0]]
    assert [pixels[row, :, 4, 4].tolist() for row in range(3)] == expected


def test_all_questions_about_an_image_are_held_out_together(tmp_path: Path) -> None:
    questions = {"is it red ?": "yes", "what colour is it ?": "red", "is it dark ?": "no"}
    for name in COLOURS:
        Image.new("RGB", (WIDTH, HEIGHT), name).save(tmp_path / f"{name}.png")
    lines = [
        {"image": f"{name}.png", "question": asked, "label": said}
        for asked, said in questions.items()
        for name in COLOURS
    ]
    (tmp_path / "asked.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    fields = {"image": {"size": 8}, "question": {"column": "question"}, "label": {}}
    data = {"folder": str(tmp_path), "train": "asked.jsonl", "valid": 0.5, **fields}
    splits = data_of(recipe_of({"task": "image_question_answering", "data": data}, "a test"))
    held, learned = (
        {given["image"] for given in split.inputs} for split in (splits.valid, splits.train)
    )
    assert (len(held), len(learned), len(held | learned)) == (2, 2, 4)
    for split in (splits.valid, splits.train):
        assert (
            len({(given["image"], given["question"]) for given in split.inputs}) == len(split) == 6
        )


def test_a_bad_image_is_an_error_unless_it_may_be_skipped(tmp_path: Path) -> None:
    lines = captions("red", "broken", "blue", "gone", "broken", "green")
    (tmp_path / "broken.png").write_bytes(b"no image")
    told = r"captions\.jsonl, line 2: the image: broken\.png is not an image, or "
    with pytest.raises(DataError, match=told):
        data_of(with_images(tmp_path, lines))
    told = r"captions\.jsonl, line 3: the image: There is no file 'gone\.png' in "
    with pytest.raises(DataError, match=told):
        data_of(with_images(tmp_path, [line for line in lines if line["image"] != "broken.png"]))
    splits = data_of(with_images(tmp_path, lines, on_bad_row="skip"))
    assert [given["image"] for given in splits.train.inputs] == ["red.png", "blue.png", "green.png"]
    assert splits.train.targets == ["all is red", "all is blue", "all is green"]
    assert (splits.train.skipped, splits.skipped) == (3, 6)
    assert splits.train.table.line(2) == 6
    [note] = splits.train.notes
    start = f"{tmp_path / 'captions.jsonl'}: 3 bad rows were skipped. Line 2: the image: broken.png is not an image, or "
    assert note.startswith(start)
    assert " Line 4: the image: There is no file 'gone.png' in " in note
    assert note.count("broken.png") == 1


def test_a_bad_image_is_counted_once_where_all_rows_are_validated_on(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    lines = captions("red", "broken", "blue", "white", "broken")
    made = with_images(tmp_path, lines, on_bad_row="skip", valid=None)
    learning = made.learning.model_copy(update={"folds": 2, "steps": 1})
    splits = data_of(made.model_copy(update={"learning": learning}))
    assert (len(splits.train), len(splits.valid), splits.skipped) == (3, 3, 2)
    [note] = splits.train.notes
    told = f"{tmp_path / 'captions.jsonl'}: 2 bad rows were skipped. Line 2: the image: broken.png "
    assert note.startswith(told)


def test_boxes_are_read(tmp_path: Path) -> None:
    lines = captions("red", "blue", "green")
    lines[1]["boxes"] = ""
    lines[2]["boxes"] = "0:0,0,1,1 2:-0.5,0.25,0.5,1.5"
    splits = data_of(with_images(tmp_path, lines, boxes="boxes"))
    assert true_boxes(splits.train) == [
        ((2, 0.0, 0.0, 0.5, 0.5),),
        (),
        ((0, 0.0, 0.0, 1.0, 1.0), (2, -0.5, 0.25, 0.5, 1.5)),
    ]
    assert true_boxes(data_of(with_images(tmp_path, lines)).train) is None


FORM = "must be like `2:0.1,0.1,0.4,0.3`: word, left, top, right, bottom."
MALFORMED = (
    *("2", "2:1,2,3", "2:0,0,1,1,1", "x:0,0,1,1", "2:0,0,a,1", "2:nan,0,1,1"),
    *("2:0.5,0,0.5,1", "2:0,1,1,0", "2:1,0,1.5,1", "2:0,-1,1,0"),
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, f"boxes {text!r} {FORM}") for text in MALFORMED),
        *(
            (
                f"{word}:0,0,1,1",
                f"a box belongs to word {word}, but the target has 3 (counted from 0).",
            )
            for word in (3, -1)
        ),
    ],
)
def test_boxes_that_are_none(text: str, told: str, tmp_path: Path) -> None:
    lines = captions("red", "blue")
    lines[1]["boxes"] = text
    split = data_of(with_images(tmp_path, lines, boxes="boxes")).train
    with pytest.raises(DataError) as error:
        true_boxes(split)
    assert str(error.value) == f"{tmp_path / 'captions.jsonl'}, line 2: {told}"


def test_boxes_of_long_captions_count_too(tmp_path: Path) -> None:
    """What is too long to be learned from is scored whole."""
    settings = EvaluationSettings()
    for limit in (2, 99):
        target = {"column": "caption", "max_length": limit, "on_long": "cut"}
        made = with_images(tmp_path, captions("red", "blue"), boxes="boxes", target=target)
        assert true_boxes(data_of(made).train) == [((2, 0.0, 0.0, 0.5, 0.5),)] * 2
        for outcome in outcomes(made, settings, "object_focus"):
            assert outcome.focus is not None
            assert outcome.focus > 0


def test_an_image_with_several_captions_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {
            "image": f"{name}.png",
            "caption": [f"all is {name}", f"{name} everywhere", f"all is {name}"],
        }
        for name in COLOURS
    ]
    made = with_images(tmp_path, lines)
    assert len(data_of(made).train) == 12
    searched: list[int] = []

    def counting(
        network: Network, encoded: Encoded, *rest: Any, **more: Any
    ) -> list[list[Hypothesis]]:
        searched.append(encoded.rows)
        return hypotheses_of(network, encoded, *rest, **more)

    monkeypatch.setattr(score, "hypotheses_of", counting)
    settings = EvaluationSettings(search=SearchSettings(max_length=4), group=True, batch_examples=3)
    together = outcomes(made, settings, "bleu4")
    assert searched == [3, 1]
    assert [outcome.references for outcome in together] == [
        (f"all is {n}", f"{n} everywhere") for n in COLOURS
    ]
    apart = outcomes(made, settings.model_copy(update={"group": False}), "bleu4")
    assert sum(searched) == 4 + 12
    assert [outcome.candidates for outcome in together] == [
        outcome.candidates for outcome in apart[::3]
    ]


def test_a_bad_image_in_folders_is_named_without_a_line(tmp_path: Path) -> None:
    for name in COLOURS:
        (tmp_path / "album" / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (WIDTH, HEIGHT), name).save(
                tmp_path / "album" / name / f"{number}.png"
            )
    (tmp_path / "album" / "red" / "x.png").write_bytes(b"no image")
    files = {"folder": str(tmp_path), "train": "album", "valid": "album", "format": "folders"}
    data = {**files, "image": {"size": 8}, "label": {}}
    with pytest.raises(DataError) as error:
        data_of(recipe_of({"task": "image_classification", "data": data}, "a test"))
    told = f"{tmp_path / 'album'}: the image: red/x.png is not an image, or damaged from"
    assert str(error.value).startswith(told)
    told = ". Mend or remove it, or train with data.on_bad_row=skip, which leaves such files out."
    assert str(error.value).endswith(told)
    data["on_bad_row"] = "skip"
    [note] = data_of(
        recipe_of({"task": "image_classification", "data": data}, "a test")
    ).train.notes
    told = f"{tmp_path / 'album'}: 1 bad row was skipped. The image: red/x.png is not an image, or "
    assert note.startswith(told)
