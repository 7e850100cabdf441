"""Weights that no output depends on are frozen, not counted, and not waited for."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed import barrier, destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel

import sixjars
from sixjars.flow.values import Batch, Padded
from sixjars.loss import Objective, SealedBatch
from sixjars.model.bridges.initial import InitialState
from sixjars.model.build import Network, freeze_unused
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.image import ImageEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.visual import VisualInput
from sixjars.recipe.files import packaged
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training.network import fresh_network

UNUSED = {
    "image_captioning/sample_initial": ({"encoder.cells.weight", "encoder.cells.bias"}, 128),
    "image_question_answering/sample_attention": (
        {"encoder.image.whole.weight", "encoder.image.whole.bias"},
        2560,
    ),
}


@pytest.mark.parametrize("recipe", UNUSED)
def test_weights_that_never_learn_are_not_trainable(recipe: str) -> None:
    names, count = UNUSED[recipe]
    found = sixjars.explain(recipe)
    weights = [weight for section in found.sections for weight in section.weights]
    assert {weight.name for weight in weights if not weight.trainable} == names
    assert sum(weight.count for weight in weights) - found.count == count


SAMPLES = [name for name in packaged() if name.partition("/")[2].startswith("sample")]
FROZEN = {"translation/sample_vectors_frozen": {"encoder.embedding.table.weight"}}
"""Words without a pretrained vector learn theirs; in the synthetic corpus every word has one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_in_every_sample_what_is_trainable_learns_and_the_rest_does_not(name: str) -> None:
    few = [f"data.sample.{key}={size}" for key, size in (("size", 12), ("valid", 1), ("test", 1))]
    blueprint = Blueprint.of(read_recipe(name, few))
    splits = splits_of(blueprint)
    network = fresh_network(blueprint, splits)
    batches = splits.train.batches(batch_examples=12, guided=blueprint.recipe.loss.guide > 0)
    Objective(network, blueprint.recipe.loss)(SealedBatch(batches.collate(torch.arange(12))))[
        0
    ].backward()
    still = {
        one
        for one, weight in network.named_parameters()
        if weight.grad is None or not weight.grad.any()
    }
    assert still - FROZEN.get(name, set()) == {
        one for one, weight in network.named_parameters() if not weight.requires_grad
    }


def image_network() -> tuple[Network, Batch]:
    """A caption from the whole image, while its cells are computed too."""
    encoder = ImageEncoder(backbone=VisualInput(pixels=16, widths=(4, 6)))
    bridge = InitialState(summary_size=encoder.summary_size, state_size=8)
    whole = Network(
        encoder,
        SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=7, size=5), size=8),
    )
    pixels = torch.randint(0, 256, (2, 1, 3 * 16 * 16), dtype=torch.uint8)
    image = Padded(pixels, torch.ones(2, 1, dtype=torch.bool))
    return whole, Batch({"image": image}, Padded.of([[4, 2], [5, 6]]), torch.arange(2))


def test_only_weights_that_no_output_depends_on_are_frozen() -> None:
    whole, batch = image_network()
    assert all(weight.requires_grad for weight in whole.parameters())
    freeze_unused(whole, batch)
    frozen = {name for name, weight in whole.named_parameters() if not weight.requires_grad}
    assert frozen == {"encoder.cells.weight", "encoder.cells.bias"}
    assert all(weight.grad is None for weight in whole.parameters())
    whole(batch.inputs, batch.target).logits.sum().backward()
    assert all((weight.grad is not None) == weight.requires_grad for weight in whole.parameters())


@pytest.mark.parametrize("freezes", [True, False])
def test_several_processes_wait_for_no_gradient(freezes: bool, tmp_path: Path) -> None:
    """Two steps as with `--devices`: torch refuses the second if a gradient did not come."""
    whole, batch = image_network()
    if freezes:
        freeze_unused(whole, batch)
    init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        together: nn.Module = DistributedDataParallel(whole)
        together(batch.inputs, batch.target).logits.sum().backward()
        if freezes:
            together(batch.inputs, batch.target).logits.sum().backward()
        else:
            told = r"did not receive grad|used in producing loss|finished reduction"
            with pytest.raises(RuntimeError, match=told):
                together(batch.inputs, batch.target).logits.sum().backward()
    finally:
        barrier()  # of what a step left undone, so that no thread of the group needs Python while Python waits for it
        destroy_process_group()
