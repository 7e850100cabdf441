"""Recipes for images and videos: every fault is a sentence, and what is written is read again."""

from typing import Any

import pytest

from sixjars.errors import RecipeError
from sixjars.recipe.files import values_of
from sixjars.runs.recipes import recipe_of


def one_fault(values: dict[str, Any]) -> str:
    with pytest.raises(RecipeError) as caught:
        recipe_of(values, "test")
    (found,) = caught.value.faults
    return found


def visual(task: str, data: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    own = {
        "image_captioning": ("image",),
        "image_question_answering": ("image", "question", "label"),
    }
    fields: dict[str, Any] = {name: {} for name in own.get(task, ("video", "label"))}
    return {"task": task, "data": {"train": "a.tsv", **fields, **(data or {})}, **sections}


CAPTIONS, ANSWERS, VIDEOS = "image_captioning", "image_question_answering", "video_classification"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"task": CAPTIONS, "data": {"sample": {}}},
            "data: key 'image' is missing; image_captioning needs it.",
        ),
        (
            {"task": VIDEOS, "data": {"train": "a", "label": {}}},
            "data: key 'video' is missing; video_classification needs it.",
        ),
        (
            visual(ANSWERS, {"target": {"column": "said"}}),
            "data: key 'target' has no place here; image_question_answering reads image and question and ou",
        ),
        (
            visual(VIDEOS, {"boxes": "b"}),
            "data: key 'boxes' has no place here; video_classification reads video and outputs a label.",
        ),
        (
            visual(CAPTIONS, {"alignment": "a"}),
            "data: key 'alignment' has no place here; image_captioning reads image",
        ),
        (
            visual(CAPTIONS, {"image": {"column": "text"}}),
            "data: 'image' and 'target' are both column 'text'; name two",
        ),
        (
            visual(CAPTIONS, {"image": {"fit": "squash"}}),
            "data.image.fit: should be 'crop', 'pad' or 'stretch', but is",
        ),
        (
            visual(VIDEOS, {"video": {"frames": 0}}),
            "data.video.frames: should be greater than or equal to 1, but is",
        ),
        (
            visual(ANSWERS, {"label": {"tokens": "words"}}),
            "data.label: key 'tokens' is unknown. Known: column,",
        ),
        (
            visual(CAPTIONS, model={"encoder": {"kind": "text"}}),
            "model.encoder: kind 'text' does not fit; image_captioning reads image and outputs a target.",
        ),
        (
            visual(VIDEOS, model={"decoder": {"kind": "sequence"}}),
            "model.decoder: kind 'sequence' does not fit video_cl",
        ),
        (
            visual(CAPTIONS, model={"encoder": {"backbone": {"sise": 3}}}),
            "model.encoder.backbone: key 'sise' is unkn",
        ),
        (
            visual(ANSWERS, model={"encoder": {"question": {"embedding": {"frozen": True}}}}),
            "model.encoder.question.embedding.frozen: true keeps pretrained vectors as they are, but ",
        ),
        (
            visual(
                CAPTIONS,
                model={"bridge": {"kind": "pooling"}},
                evaluation={"search": {"coverage_penalty": 1}},
            ),
            "evaluation.search.coverage_penalty: needs a bridge of kind attention, location or two_level, "
            "but it is pooling.",
        ),
        (
            visual(CAPTIONS, evaluation={"metrics": ["object_focus"]}),
            "evaluation.metrics: object_focus needs true boxes, but data.boxes names no column.",
        ),
        (
            visual(
                CAPTIONS,
                {"boxes": "b"},
                model={"bridge": {"kind": "initial"}},
                expect={"object_focus": 2},
            ),
            "expect: object_focus needs a bridge of kind attention, location or two_level, but it is initial.",
        ),
        (
            visual(
                VIDEOS,
                {"train": None, "sample": {}},
                model={"bridge": {"kind": "attention"}},
                loss={"guide": 1},
            ),
            "loss.guide: needs an output of words, each with its own attention, but video_classification outputs a",
        ),
    ],
)
def test_faults(values: dict[str, Any], message: str) -> None:
    assert one_fault(values).startswith(message)


def test_a_word_is_a_backbone_and_a_target_may_be_left_out() -> None:
    found = recipe_of(
        visual(CAPTIONS, model={"encoder": {"backbone": "efficientnet_lite0"}}), "test"
    )
    assert found.model.encoder["backbone"]["name"] == "efficientnet_lite0"
    assert found.data.fields["target"].column == "text"
    again = recipe_of(values_of(found.to_yaml(), "test"), "test")
    assert again == found


@pytest.mark.parametrize("task", [CAPTIONS, ANSWERS, VIDEOS])
def test_what_is_written_is_read_again(task: str) -> None:
    found = recipe_of(visual(task), "test")
    assert recipe_of(values_of(found.to_yaml(), "test"), "test") == found


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            {"bridge": {"kind": "pooling"}},
            "pooling ignores the summary, which alone holds the question; use attention, with ",
        ),
        (
            {"encoder": {"summary": "question"}},
            "question needs a bridge of kind attention, but it is initial.",
        ),
    ],
)
def test_a_model_that_ignores_an_input_is_refused(model: dict[str, object], sentence: str) -> None:
    assert sentence in one_fault(visual(ANSWERS, model=model))
