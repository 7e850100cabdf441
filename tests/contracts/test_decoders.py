"""The contract of every decoder. A new decoder adds its lines to CASES in `decoder_cases.py`.

That of generators alone is in `test_generators.py`, that of classifiers in `test_classifiers.py`.
"""

from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sixjars.flow.contracts import Decoder, Generator
from sixjars.flow.values import Encoded, Padded
from sixjars.loss import token_loss
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.decoders.pointer import PointerDecoder

from .checks import gradients, held, nameless, reloaded, unlearned
from .decoder_cases import (
    ALIKE,
    CASES,
    MADE,
    RARE,
    SEQUENCES,
    Make,
    attends_to_segments,
    reads_memory,
    source_for,
    truth_for,
    weight_on_source,
)
from .examples import alone, only, stretched_source
from .pairwise import params

pytestmark = pytest.mark.usefixtures("in_64_bits")


@pytest.fixture(params=params(CASES, RARE))
def make(request: pytest.FixtureRequest, in_64_bits: None) -> Make:
    return CASES[request.param]


@pytest.fixture
def decoder(make: Make) -> Decoder:
    return make().eval()


@pytest.fixture
def source(in_64_bits: None) -> Encoded:
    return source_for()


@pytest.fixture
def target(decoder: Decoder) -> Padded:
    return truth_for(decoder)


def loss(decoder: Decoder, source: Encoded, target: Padded) -> Tensor:
    return token_loss(decoder.teach(source, target).logits, target).sum()


def test_every_decoder_has_a_case_with_every_bridge() -> None:
    made = [make() for name, make in CASES.items() if name not in RARE]
    # a label has one step, before which there is none
    unfit = {(DECODERS["label"], BRIDGES["location"])}
    pairs = set(product(DECODERS.values(), BRIDGES.values())) - unfit
    assert {(type(one), type(one.bridge)) for one in made} == pairs
    assert all(isinstance(one, Generator) == one.searches for one in made)
    assert len(SEQUENCES) == 3 * 2 * (len(MADE) - len(ALIKE)) * 2


def test_sizes_are_as_announced(decoder: Decoder, source: Encoded, target: Padded) -> None:
    output = decoder.teach(source, target)
    assert output.logits.shape[:2] == target.mask.shape
    assert (output.weights is not None) == decoder.has_attention
    if output.weights is not None:
        assert output.weights.shape == (*target.mask.shape, source.mask.shape[1])


def test_padding_of_the_source_has_no_influence(
    decoder: Decoder, source: Encoded, target: Padded
) -> None:
    longer = stretched_source(source, 3)
    output, again = decoder.teach(source, target), decoder.teach(longer, target)
    torch.testing.assert_close(again.logits[..., : output.logits.shape[-1]], output.logits)
    if output.weights is not None:
        assert again.weights is not None
        torch.testing.assert_close(again.weights[..., :4], output.weights)
    before, after = (gradients(decoder, loss(decoder, one, target)) for one in (source, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)
    assert longer.segments is not None
    for level in (longer, longer.segments):
        assert level.memory.grad is None or not level.memory.grad[~level.mask].any()


def test_rows_have_no_influence_on_each_other(
    decoder: Decoder, source: Encoded, target: Padded
) -> None:
    together = decoder.teach(source, target)
    for row in range(3):
        own = decoder.teach(alone(source, row), only(target, row))
        together_with_others = together.logits[row][target.mask[row]]
        torch.testing.assert_close(own.logits[0], together_with_others[:, : own.logits.shape[-1]])


def test_every_weight_learns_and_so_does_the_encoder(
    decoder: Decoder, source: Encoded, target: Padded
) -> None:
    found = gradients(decoder.train(), loss(decoder, source, target))
    assert found
    assert not unlearned(found)
    assert (source.summary.grad is not None) == decoder.bridge.reads_summary
    if source.summary.grad is not None:
        assert source.summary.grad.any(dim=1).all()
    assert source.segments is not None
    reads = isinstance(decoder, PointerDecoder) or reads_memory(decoder.bridge)
    assert (source.memory.grad is not None) == reads
    assert (source.segments.memory.grad is not None) == attends_to_segments(decoder.bridge)
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()
    # the only segment of a text has the weight 1 whatever is in it
    if source.segments.memory.grad is not None:
        several = source.segments.mask & (source.segments.mask.sum(1, keepdim=True) > 1)
        assert source.segments.memory.grad[several].any(dim=1).all()


def test_saving_keeps_every_bit(
    decoder: Decoder, make: Make, source: Encoded, target: Padded, tmp_path: Path
) -> None:
    before = decoder.teach(source, target)
    after = reloaded(decoder, make, tmp_path).teach(source, target)
    assert torch.equal(after.logits, before.logits)


def test_weights_are_a_distribution_over_real_positions(
    decoder: Decoder, source: Encoded, target: Padded
) -> None:
    output = decoder.teach(source, target)
    weights = output.weights
    if weights is not None:
        nowhere_BTS = (~source.mask).unsqueeze(1).expand_as(weights)
        assert (weights >= 0).all()
        assert not weights[nowhere_BTS].any()
        torch.testing.assert_close(weights.sum(-1), weight_on_source(decoder, output))


def test_a_row_of_padding_gives_finite_numbers(decoder: Decoder, target: Padded) -> None:
    source = source_for(lengths=(4, 0, 3))
    output = decoder.teach(source, target)
    assert output.logits.isfinite().all()
    if output.weights is not None:
        assert not output.weights[1].any()
    assert all(
        gradient.isfinite().all()
        for gradient in gradients(decoder, loss(decoder, source, target)).values()
    )


def test_deterministic_when_not_training(decoder: Decoder, source: Encoded, target: Padded) -> None:
    assert torch.equal(decoder.teach(source, target).logits, decoder.teach(source, target).logits)


def test_nothing_is_kept_between_calls(decoder: Decoder, source: Encoded, target: Padded) -> None:
    before, first = held(decoder), decoder.teach(source, target)
    decoder.teach(source_for(lengths=(2, 4, 4)), target)
    assert held(decoder) == before
    assert torch.equal(decoder.teach(source, target).logits, first.logits)


def test_every_weight_has_a_letter_and_the_decoder_its_equations(decoder: Decoder) -> None:
    assert not nameless(decoder)
    assert decoder.equations()
