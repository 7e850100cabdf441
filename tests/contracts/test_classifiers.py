"""The contract of every decoder that chooses labels of a closed list."""

from collections.abc import Callable
from typing import final

import pytest
import torch
from torch import Tensor, nn

from sixjars.decoding import Searcher
from sixjars.flow.values import Encoded, Padded, SegmentLevel
from sixjars.loss import token_loss
from sixjars.model.decoders.label import LabelDecoder
from sixjars.recipe.sections import SearchSettings

from .checks import exported, gradients, held
from .decoder_cases import CLASSES, LABELS, source_for, truth_for
from .pairwise import params

pytestmark = pytest.mark.usefixtures("in_64_bits")


@pytest.fixture(params=LABELS)
def make(request: pytest.FixtureRequest, in_64_bits: None) -> Callable[[], LabelDecoder]:
    return LABELS[request.param]


@pytest.fixture
def decoder(make: Callable[[], LabelDecoder]) -> LabelDecoder:
    return make().eval()


@pytest.fixture
def source(in_64_bits: None) -> Encoded:
    return source_for()


def test_teaching_equals_choosing(decoder: LabelDecoder, source: Encoded) -> None:
    output, chosen = decoder.teach(source, truth_for(decoder)), decoder.choose(source)
    assert output.logits.shape == (3, 1, CLASSES)
    logits = output.logits[:, 0]
    wanted = logits.sigmoid().log() if decoder.multi_label else logits.log_softmax(-1)
    torch.testing.assert_close(wanted, chosen.log_probabilities, atol=1e-12, rtol=0)
    assert (chosen.weights is not None) == decoder.has_attention
    if chosen.weights is not None:
        assert output.weights is not None
        assert torch.equal(output.weights[:, 0], chosen.weights)


def test_probabilities_of_one_label_sum_to_1(decoder: LabelDecoder, source: Encoded) -> None:
    total = decoder.choose(source).log_probabilities.exp().sum(1)
    assert torch.allclose(total, torch.ones(3)) != decoder.multi_label


def test_the_truth_is_no_input(decoder: LabelDecoder, source: Encoded) -> None:
    one, two = (
        decoder.teach(source, Padded.of(labels)).logits for labels in ([[1]] * 3, [[4]] * 3)
    )
    assert torch.equal(one, two)


def test_a_label_that_is_not_in_the_list_teaches_nothing(
    decoder: LabelDecoder, source: Encoded
) -> None:
    """Its row has the same loss and gradient as no row at all."""
    label = Padded(torch.tensor([[3], [0], [5]]), torch.tensor([[True], [False], [True]]))
    loss_BT = token_loss(decoder.teach(source, label).logits, label)
    assert loss_BT[1].item() == 0
    with_it = gradients(decoder, loss_BT.sum())
    others = torch.tensor([0, 2])
    rest = label.pick(others)
    without = gradients(
        decoder, token_loss(decoder.teach(source.pick(others), rest).logits, rest).sum()
    )
    for name, gradient in without.items():
        torch.testing.assert_close(with_it[name], gradient)


def test_picked_and_repeated_rows_are_the_same_rows(decoder: LabelDecoder, source: Encoded) -> None:
    rows = torch.tensor([2, 0, 2, 1])
    whole = decoder.choose(source)
    torch.testing.assert_close(
        decoder.choose(source.pick(rows)).log_probabilities, whole.log_probabilities[rows]
    )
    torch.testing.assert_close(
        decoder.choose(source.repeat(2)).log_probabilities,
        whole.log_probabilities.repeat_interleave(2, 0),
    )


def test_choosing_keeps_nothing(decoder: LabelDecoder, source: Encoded) -> None:
    before, first = held(decoder), decoder.choose(source).log_probabilities
    decoder.choose(source_for(lengths=(2, 4, 4)))
    assert held(decoder) == before
    assert torch.equal(decoder.choose(source).log_probabilities, first)


@final
class FlatChoice(nn.Module):
    """A choice from plain tensors, as exporters need it."""

    def __init__(self, decoder: LabelDecoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        memory, mask, summary, *level = inputs
        output = self.decoder.choose(Encoded(memory, mask, summary, segments=SegmentLevel(*level)))
        return tuple(
            tensor for tensor in (output.log_probabilities, output.weights) if tensor is not None
        )


@pytest.mark.parametrize(
    "make", params(LABELS, set(LABELS) - {"label-every_step", "label-two_level"}), indirect=True
)
def test_choosing_exports_for_any_number_of_rows(decoder: LabelDecoder, source: Encoded) -> None:
    def plain(source: Encoded) -> tuple[Tensor, ...]:
        assert source.segments is not None
        level = (
            source.segments.memory.detach(),
            source.segments.mask,
            source.segments.segment_of,
            source.segments.weights,
        )
        return (
            source.memory.detach(),
            source.mask,
            source.summary.detach(),
            *(one for one in level if one is not None),
        )

    flat = FlatChoice(decoder)
    program = exported(flat, plain(source))
    for rows in (torch.tensor([0, 2, 1, 1, 0, 2]), torch.tensor([2])):
        given = plain(source.pick(rows))
        for got, wanted in zip(program(*given), flat(*given), strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("shift", [-50.0, 0.0, 50.0])
@torch.no_grad()
def test_of_several_labels_all_likely_ones_are_chosen_and_one_in_any_case(
    shift: float, source: Encoded
) -> None:
    decoder = LABELS["label-multi"]().eval()
    decoder.output.bias.add_(shift)
    likely = decoder.choose(source).log_probabilities.exp() >= 0.5
    for row, [chosen] in enumerate(decoder.answer(source, Searcher(SearchSettings()))):
        assert len(chosen.tokens) == max(1, int(likely[row].sum()))
        assert likely[row, list(chosen.tokens)].all() or not likely[row].any()
