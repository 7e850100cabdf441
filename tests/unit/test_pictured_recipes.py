"""Recipes of systems that see: every fault is a sentence, and what is written down is read again."""

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


def seeing(task: str, data: dict[str, Any] | None = None, **jars: Any) -> dict[str, Any]:
    own = {"image_captioning": ("image",), "image_question_answering": ("image", "question", "label")}
    fields: dict[str, Any] = {name: {} for name in own.get(task, ("video", "label"))}
    return {"task": task, "data": {"train": "a.tsv", **fields, **(data or {})}, **jars}


CAPTIONS, ANSWERS, FILMS = "image_captioning", "image_question_answering", "video_classification"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": CAPTIONS, "data": {"sample": {}}}, "data: key 'image' is missing; image_captioning needs it."),
        (
            {"task": FILMS, "data": {"train": "a", "video": {}}},
            "data: key 'label' is missing; video_classification nee",
        ),
        (
            seeing(ANSWERS, {"target": {"column": "said"}}),
            "data: key 'target' has no place here; image_question_answering reads image and question and says a label.",
        ),
        (
            seeing(FILMS, {"boxes": "b"}),
            "data: key 'boxes' has no place here; video_classification reads video and says",
        ),
        (seeing(CAPTIONS, {"alignment": "a"}), "data: key 'alignment' has no place here; image_captioning reads image"),
        (
            seeing(CAPTIONS, {"image": {"column": "text"}}),
            "data: 'image' and 'target' are both column 'text'; name two",
        ),
        (
            seeing(CAPTIONS, {"image": {"fit": "squash"}}),
            "data.image.fit: should be 'crop', 'pad' or 'stretch', but is",
        ),
        (seeing(FILMS, {"video": {"frames": 0}}), "data.video.frames: should be greater than or equal to 1, but is 0."),
        (seeing(ANSWERS, {"label": {"tokens": "words"}}), "data.label: key 'tokens' is unknown. Known: column, lowerc"),
        (
            seeing(CAPTIONS, model={"encoder": {"kind": "text"}}),
            "model.encoder: kind 'text' does not fit; image_captioning reads image. Use image.",
        ),
        (
            seeing(FILMS, model={"decoder": {"kind": "sequence"}}),
            "model.decoder: kind 'sequence' does not fit video_cl",
        ),
        (seeing(CAPTIONS, model={"encoder": {"backbone": {"sise": 3}}}), "model.encoder.backbone: key 'sise' is unkn"),
        (
            seeing(ANSWERS, model={"encoder": {"question": {"embedding": {"tuned": False}}}}),
            "model.encoder.question.embedding.tuned: false keeps vectors as they are, but data.question.vectors names",
        ),
        (
            seeing(CAPTIONS, model={"bridge": {"kind": "pooling"}}, evaluation={"search": {"coverage_penalty": 1}}),
            "evaluation.search.coverage_penalty: needs a bridge of kind attention, but it is pooling.",
        ),
        (
            seeing(CAPTIONS, evaluation={"metrics": ["object_focus"]}),
            "evaluation.metrics: object_focus needs true boxes, but data.boxes names no column.",
        ),
        (
            seeing(CAPTIONS, {"boxes": "b"}, model={"bridge": {"kind": "initial"}}, expect={"object_focus": 2}),
            "expect: object_focus needs a bridge of kind attention, but it is initial.",
        ),
        (
            seeing(FILMS, {"train": None, "sample": {}}, model={"bridge": {"kind": "attention"}}, loss={"guide": 1}),
            "loss.guide: needs true alignments, but the made-up corpus of video_classification has none.",
        ),
    ],
)
def test_faults_of_what_sees(values: dict[str, Any], message: str) -> None:
    assert one_fault(values).startswith(message)


def test_a_word_is_a_backbone_and_a_target_may_be_left_out() -> None:
    found = recipe_of(seeing(CAPTIONS, model={"encoder": {"backbone": "efficientnet_lite0"}}), "test")
    assert found.model.encoder["backbone"]["name"] == "efficientnet_lite0"
    assert found.data.target is not None
    assert found.data.target.column == "text"
    again = recipe_of(values_of(found.to_yaml(), "test"), "test")
    assert again == found


@pytest.mark.parametrize("task", [CAPTIONS, ANSWERS, FILMS])
def test_what_is_written_down_is_read_again(task: str) -> None:
    found = recipe_of(seeing(task), "test")
    assert recipe_of(values_of(found.to_yaml(), "test"), "test") == found
