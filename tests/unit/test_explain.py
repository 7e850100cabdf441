"""Explanations of recipes: every parameter with its letter, shape and count."""

from math import prod

import pytest

from sixjars.model.build import build
from sixjars.recipe.files import packaged
from sixjars.runs.explanation.explain import explain
from sixjars.runs.recipes import Blueprint, read_recipe

FEW = ["data.sample.size=64", "data.sample.valid=4", "data.sample.test=12"]
CELLS = {"encoder.cells.weight", "encoder.cells.bias"}
WHOLE = {"encoder.whole.weight", "encoder.whole.bias"}
UNUSED = {
    "image_captioning/sample_initial": CELLS,
    "image_captioning/sample_every_step": CELLS,
    "image_classification/sample_plain": CELLS,
    "image_classification/sample_attention": WHOLE
    | {
        f"encoder.backbone.backbone.{layer}.{part}"
        for layer in ("vector", "even")
        for part in ("weight", "bias")
    },
    "image_question_answering/sample_plain": {
        "encoder.image.cells.weight",
        "encoder.image.cells.bias",
    },
    "image_question_answering/sample_attention": {
        "encoder.image.whole.weight",
        "encoder.image.whole.bias",
    },
}
"""What no output depends on: the cells of an image without attention, the whole image with it."""


@pytest.mark.parametrize("name", [name for name in packaged() if "sample" in name])
def test_every_parameter_has_its_letter_shape_and_count(name: str) -> None:
    blueprint = Blueprint.of(read_recipe(name))
    network = build(
        blueprint.plan, blueprint.fields.mapped(lambda field: field.assumed()).facts(), fresh=False
    )
    truth = {key: weight for key, weight in network.named_parameters() if weight.requires_grad}
    found = explain(name, FEW)
    weights = {weight.name: weight for section in found.sections for weight in section.weights}
    assert {key for key, weight in weights.items() if weight.trainable} == set(truth) - UNUSED.get(
        name, set()
    )
    assert {weight.letter for weight in weights.values() if weight.trainable}.isdisjoint({"", "–"})
    assert all(len(weights[key].shape) == truth[key].dim() for key in truth)
    assert all(weight.count == prod(weight.shape) for weight in weights.values())
    assert found.count == sum(weight.count for weight in weights.values() if weight.trainable)
    assert all(section.lines for section in found.sections)


def test_a_recipe_without_its_data_is_explained_all_the_same() -> None:
    found = explain("translation/multi30k_attention")
    data = next(section for section in found.sections if section.name == "data")
    assert any("the data is not here" in line for line in data.lines)
    assert found.count > 1_000_000


@pytest.mark.parametrize("name", [name for name in packaged() if name.startswith("pointing/")])
def test_a_pointer_is_explained_without_generating_its_data(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def generated(*_: object, **__: object) -> None:
        raise AssertionError("tours are being solved")

    monkeypatch.setattr("sixjars.runs.data.splits.raw_examples", generated)
    monkeypatch.setattr("sixjars.runs.explanation.explain.raw_examples", generated)
    monkeypatch.setattr("sixjars.samples.generate", generated)
    found = explain(name)
    blueprint = Blueprint.of(read_recipe(name))
    network = build(blueprint.plan, blueprint.fields.facts(), fresh=False)
    assert found.count == sum(weight.numel() for weight in network.parameters())
    [data] = [section for section in found.sections if section.name == "data"]
    assert not any("the data is not here" in line for line in data.lines)
