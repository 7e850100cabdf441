"""What every decoder promises. A new decoder adds its lines to CASES in `decoder_cases.py`.

What only those promise that write, and only those that choose, is in `test_writers.py` and `test_choosers.py`.
"""

from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sixjars.flow.contracts import Decoder, Generator
from sixjars.flow.values import Encoded, Padded
from sixjars.loss import token_loss
from sixjars.model.decoders import DECODERS

from .decoder_cases import (
    CASES,
    EVERY_SEQUENCE,
    HEARING,
    Make,
    asks_above,
    heard,
    hears_summary,
    looks,
    mixes,
    truth_for,
    weight_on_source,
)
from .promises import alone, gradients, held, nameless, only, reloaded, stretched_source, unlearned


@pytest.fixture(params=CASES)
def make(request: pytest.FixtureRequest) -> Make:
    return CASES[request.param]


@pytest.fixture
def decoder(make: Make) -> Decoder:
    return make().eval()


@pytest.fixture
def source() -> Encoded:
    return heard()


@pytest.fixture
def target(decoder: Decoder) -> Padded:
    return truth_for(decoder)


def loss(decoder: Decoder, source: Encoded, target: Padded) -> Tensor:
    return token_loss(decoder.teach(source, target).scores, target).sum()


def test_every_decoder_has_a_case_with_every_bridge() -> None:
    made = [make() for make in CASES.values()]
    assert {(type(one), type(one.bridge)) for one in made} == set(product(DECODERS.values(), HEARING.values()))
    assert all(isinstance(one, Generator) != isinstance(one, Decoder) for one in made)
    assert len(EVERY_SEQUENCE) == 3 * 2 * 6 * 2


def test_sizes_are_as_promised(decoder: Decoder, source: Encoded, target: Padded) -> None:
    taught = decoder.teach(source, target)
    assert taught.scores.shape[:2] == target.mask.shape
    assert (taught.weights is not None) == looks(decoder)
    if taught.weights is not None:
        assert taught.weights.shape == (*target.mask.shape, source.mask.shape[1])


def test_padding_of_the_source_is_invisible(decoder: Decoder, source: Encoded, target: Padded) -> None:
    longer = stretched_source(source, 3)
    taught, again = decoder.teach(source, target), decoder.teach(longer, target)
    torch.testing.assert_close(again.scores[..., : taught.scores.shape[-1]], taught.scores)
    if taught.weights is not None:
        assert again.weights is not None
        torch.testing.assert_close(again.weights[..., :4], taught.weights)
    before, after = (gradients(decoder, loss(decoder, one, target)) for one in (source, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)
    assert longer.above is not None
    for level in (longer, longer.above):
        assert level.memory.grad is None or not level.memory.grad[~level.mask].any()


def test_rows_do_not_see_each_other(decoder: Decoder, source: Encoded, target: Padded) -> None:
    together = decoder.teach(source, target)
    for row in range(3):
        own = decoder.teach(alone(source, row), only(target, row))
        in_company = together.scores[row][target.mask[row]]
        torch.testing.assert_close(own.scores[0], in_company[:, : own.scores.shape[-1]])


def test_every_weight_learns_and_so_does_the_encoder(decoder: Decoder, source: Encoded, target: Padded) -> None:
    found = gradients(decoder.train(), loss(decoder, source, target))
    assert found
    assert not unlearned(found)
    assert (source.summary.grad is not None) == hears_summary(decoder)
    if source.summary.grad is not None:
        assert source.summary.grad.any(dim=1).all()
    assert source.above is not None
    assert (source.memory.grad is not None) == mixes(decoder)
    assert (source.above.memory.grad is not None) == asks_above(decoder)
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()
    if source.above.memory.grad is not None:  # a part without others is weighed 1 whatever is in it
        several = source.above.mask & (source.above.mask.sum(1, keepdim=True) > 1)
        assert source.above.memory.grad[several].any(dim=1).all()


def test_saving_keeps_every_bit(decoder: Decoder, make: Make, source: Encoded, target: Padded, tmp_path: Path) -> None:
    before, after = decoder.teach(source, target), reloaded(decoder, make, tmp_path).teach(source, target)
    assert torch.equal(after.scores, before.scores)


def test_weights_are_a_distribution_over_real_positions(decoder: Decoder, source: Encoded, target: Padded) -> None:
    taught = decoder.teach(source, target)
    weights = taught.weights
    if weights is not None:
        nowhere_BTS = (~source.mask).unsqueeze(1).expand_as(weights)
        assert (weights >= 0).all()
        assert not weights[nowhere_BTS].any()
        torch.testing.assert_close(weights.sum(-1), weight_on_source(decoder, taught))


def test_a_row_of_padding_harms_nobody(decoder: Decoder, target: Padded) -> None:
    source = heard(lengths=(4, 0, 3))
    taught = decoder.teach(source, target)
    assert taught.scores.isfinite().all()
    if taught.weights is not None:
        assert not taught.weights[1].any()
    assert all(gradient.isfinite().all() for gradient in gradients(decoder, loss(decoder, source, target)).values())


def test_deterministic_when_not_training(decoder: Decoder, source: Encoded, target: Padded) -> None:
    assert torch.equal(decoder.teach(source, target).scores, decoder.teach(source, target).scores)


def test_nothing_is_kept_between_calls(decoder: Decoder, source: Encoded, target: Padded) -> None:
    before, first = held(decoder), decoder.teach(source, target)
    decoder.teach(heard(lengths=(2, 4, 4)), target)
    assert held(decoder) == before
    assert torch.equal(decoder.teach(source, target).scores, first.scores)


def test_every_weight_has_a_letter_and_the_part_its_equations(decoder: Decoder) -> None:
    assert not nameless(decoder)
    assert decoder.equations()
