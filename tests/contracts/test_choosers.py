"""What every decoder promises that chooses one of a closed list."""

from collections.abc import Callable
from typing import final

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Encoded, Padded, SegmentLevel
from sixjars.loss import token_loss

from .decoder_cases import CHOOSERS, CLASSES, heard, looks, truth_for
from .promises import exported, gradients, held


@pytest.fixture(params=CHOOSERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Decoder]:
    return CHOOSERS[request.param]


@pytest.fixture
def decoder(make: Callable[[], Decoder]) -> Decoder:
    return make().eval()


@pytest.fixture
def source() -> Encoded:
    return heard()


def test_teaching_equals_choosing(decoder: Decoder, source: Encoded) -> None:
    taught, chosen = decoder.teach(source, truth_for(decoder)), decoder.choose(source)
    assert taught.scores.shape == (3, 1, CLASSES)
    torch.testing.assert_close(taught.scores[:, 0].log_softmax(-1), chosen.log_probabilities, atol=1e-6, rtol=0)
    assert (chosen.weights is not None) == looks(decoder)
    if chosen.weights is not None:
        assert taught.weights is not None
        assert torch.equal(taught.weights[:, 0], chosen.weights)


def test_what_is_chosen_is_log_probabilities(decoder: Decoder, source: Encoded) -> None:
    torch.testing.assert_close(decoder.choose(source).log_probabilities.exp().sum(1), torch.ones(3))


def test_the_truth_is_not_heard(decoder: Decoder, source: Encoded) -> None:
    one, two = (decoder.teach(source, Padded.of(labels)).scores for labels in ([[1]] * 3, [[4]] * 3))
    assert torch.equal(one, two)


def test_a_label_that_is_not_in_the_list_teaches_nothing(decoder: Decoder, source: Encoded) -> None:
    """Its row has the same loss and gradient as no row at all."""
    label = Padded(torch.tensor([[3], [0], [5]]), torch.tensor([[True], [False], [True]]))
    loss_BT = token_loss(decoder.teach(source, label).scores, label)
    assert loss_BT[1].item() == 0
    with_it = gradients(decoder, loss_BT.sum())
    others = torch.tensor([0, 2])
    without = gradients(
        decoder, token_loss(decoder.teach(source.pick(others), label.pick(others)).scores, label.pick(others)).sum()
    )
    for name, gradient in without.items():
        torch.testing.assert_close(with_it[name], gradient)


def test_picking_and_spreading_keep_their_meaning(decoder: Decoder, source: Encoded) -> None:
    rows = torch.tensor([2, 0, 2, 1])
    whole = decoder.choose(source)
    torch.testing.assert_close(decoder.choose(source.pick(rows)).log_probabilities, whole.log_probabilities[rows])
    torch.testing.assert_close(
        decoder.choose(source.repeat(2)).log_probabilities, whole.log_probabilities.repeat_interleave(2, 0)
    )


def test_choosing_keeps_nothing(decoder: Decoder, source: Encoded) -> None:
    before, first = held(decoder), decoder.choose(source).log_probabilities
    decoder.choose(heard(lengths=(2, 4, 4)))
    assert held(decoder) == before
    assert torch.equal(decoder.choose(source).log_probabilities, first)


@final
class FlatChoice(nn.Module):
    """A choice between plain tensors, as exporters want it."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        memory, mask, summary, *level = inputs
        scored = self.decoder.choose(Encoded(memory, mask, summary, above=SegmentLevel(*level)))
        return tuple(tensor for tensor in (scored.log_probabilities, scored.weights) if tensor is not None)


def test_choosing_exports_for_any_number_of_rows(decoder: Decoder, source: Encoded) -> None:
    def plain(source: Encoded) -> tuple[Tensor, ...]:
        assert source.above is not None
        level = (source.above.memory.detach(), source.above.mask, source.above.of, source.above.within)
        return source.memory.detach(), source.mask, source.summary.detach(), *(one for one in level if one is not None)

    flat = FlatChoice(decoder)
    program = exported(flat, plain(source))
    for rows in (torch.tensor([0, 2, 1, 1, 0, 2]), torch.tensor([2])):
        given = plain(source.pick(rows))
        for got, wanted in zip(program(*given), flat(*given), strict=True):
            torch.testing.assert_close(got, wanted)
