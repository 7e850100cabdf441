"""The fast path computes what the reference does: outputs, losses and the gradients of everything
that learns.

The reference is written step by step, and torch's autograd goes back through it. Run by
`in_64_bits` tests against bounds of rounding, and once in 32 bits against the bound that users are
promised.
"""

import pytest
import torch
from torch import nn

from sixjars import loss as output_layer
from sixjars.flow.values import Encoded, LinearLogits
from sixjars.loss import output_loss, truth_loss
from sixjars.model import layers, recurrent
from sixjars.model.fast import contracts, steps

from .decoder_cases import CASES as DECODERS
from .decoder_cases import RARE as RARE_DECODERS
from .decoder_cases import source_for, truth_for
from .encoder_cases import CASES as ENCODERS
from .encoder_cases import RARE as RARE_ENCODERS
from .encoder_cases import Case
from .fast_paths import Result, compared, learnable, of_decoder
from .pairwise import params

SEVERAL = (
    "sequence-gru-2-two_level-own",
    "conditional-lstm-2-additive-own",
    "conditional-gru-1-general-own",
)
"""Attention at two levels, and attention between two cells."""


def of_encoder(case: Case, within: float) -> None:
    encoder = case.make().train()

    def made() -> Result:
        encoded: Encoded = encoder(**case.inputs())
        return {"memory": encoded.memory, "summary": encoded.summary}

    compared(encoder, {}, made, within=within)


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", params(DECODERS, RARE_DECODERS))
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_every_decoder(name: str, mode: str) -> None:
    of_decoder(DECODERS[name]().train(mode == "train"), within=1e-10)


@pytest.mark.parametrize(
    "name", [name for name in DECODERS if "additive" in name and name not in RARE_DECODERS]
)
def test_decoders_with_attention_in_32_bits(name: str) -> None:
    torch.manual_seed(2)
    of_decoder(DECODERS[name]().eval(), within=1e-4)


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", params(ENCODERS, RARE_ENCODERS))
def test_every_encoder(name: str) -> None:
    of_encoder(ENCODERS[name], within=1e-10)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", "sequence-dot", *SEVERAL])
def test_packed_matrices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only large ones are packed, which no case here has; and only in 32 bits."""
    monkeypatch.setattr(layers, "FEWEST_ONCE", 1)
    monkeypatch.setattr(steps, "FEWEST_STEPS", 1)
    torch.manual_seed(2)
    of_decoder(DECODERS[name]().eval(), within=1e-4)


def test_packed_matrices_of_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "FEWEST_ONCE", 1)
    monkeypatch.setattr(steps, "FEWEST_STEPS", 1)
    torch.manual_seed(3)
    of_encoder(ENCODERS["text-gru-both-2"], within=1e-4)


@pytest.mark.parametrize("shape", [(6, 5), (1, 6, 5), (2, 6, 5)])
@pytest.mark.parametrize("fewest", [1, 1000])
def test_rows_times_a_matrix_and_back(
    shape: tuple[int, ...], fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "FEWEST_STEPS", fewest)
    weight = torch.randn(shape)
    factor = steps.Factor(weight)
    rows = torch.randn(*shape[:-2], 3, 5)
    others = torch.randn(*shape[:-2], 3, 6)
    assert factor.packs is (fewest == 1)
    room = torch.empty_like(others)
    torch.testing.assert_close(factor.times(rows), rows @ weight.mT)
    torch.testing.assert_close(factor.times(rows, out=room), room)
    torch.testing.assert_close(room, rows @ weight.mT)
    torch.testing.assert_close(factor.back(others), others @ weight)
    if weight.dim() == 2:
        torch.testing.assert_close(sum(factor.plus(others, rows)), rows @ weight.mT + others)
    if weight.dim() == 2 or factor.packs:
        bias = torch.randn(*shape[:-1])
        torch.testing.assert_close(
            factor.times(rows, bias=bias), rows @ weight.mT + bias.unsqueeze(-2)
        )


def test_no_rows_times_packed_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "FEWEST_STEPS", 1)
    for shape in [(6, 5), (2, 6, 5)]:
        factor = steps.Factor(torch.randn(shape))
        assert factor.times(torch.zeros(*shape[:-2], 0, 5)).shape == (*shape[:-2], 0, 6)
        assert factor.back(torch.zeros(*shape[:-2], 0, 6)).shape == (*shape[:-2], 0, 5)


def test_attention_in_16_bits_is_as_exact_as_they_are() -> None:
    """Also where V_att is far from 0 on average: what no softmax sees must not cost digits."""
    torch.manual_seed(4)
    given = (
        torch.randn(3, 7, 256),
        torch.randn(3, 7, 5),
        0.3 + 0.1 * torch.randn(256),
        torch.randn(3, 256),
    )
    keys, memory, score, query = (tensor.bfloat16() for tensor in given)
    weights = []
    for dtype in (torch.bfloat16, torch.float64):
        mask = torch.ones(3, 7, dtype=torch.bool)
        attending = steps.AdditiveAttention(
            contracts.AttentionSources(keys.to(dtype), memory.to(dtype), mask, score.to(dtype)), 1
        )
        attending.forward(0, query.to(dtype))
        weights.append(attending.weights[0])
    apart = (weights[0] - weights[1]).abs().sum(1).mean()
    assert apart < 0.015  # 0.002 to 0.006 with six seeds; with ΣV_att among the scores 0.05 to 0.09


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 30, 1000])
def test_the_loss_in_chunks_is_the_cross_entropy(
    smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(output_layer.CHUNK, "cpu", chunk)
    states, weight, bias = torch.randn(2, 3, 4), torch.randn(7, 4), torch.randn(7)
    learned = [tensor.requires_grad_() for tensor in (states, weight, bias)]
    truth = torch.tensor([[1, 6, 0], [3, 3, 2]])
    factor = torch.tensor([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]])
    logits = nn.functional.linear(states, weight, bias)
    each = nn.functional.cross_entropy(
        logits.flatten(0, 1), truth.flatten(), reduction="none", label_smoothing=smoothing
    )
    plain = nn.functional.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none")
    expected = (each * factor.flatten()).sum()
    total, told = output_loss(LinearLogits(states, weight, bias), truth, factor, smoothing)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(told, (plain * (factor.flatten() > 0)).sum())
    ours, theirs = (torch.autograd.grad(loss * 3.0, learned) for loss in (total, expected))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
def test_a_second_backward_pass_gives_the_same(name: str, in_64_bits: None) -> None:
    decoder = DECODERS[name]().eval()
    loss = truth_loss(decoder.teach(source_for(), truth_for(decoder)), truth_for(decoder)).sum()
    weights = [weight for weight in decoder.parameters() if weight.requires_grad]
    once = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    again = torch.autograd.grad(loss, weights, allow_unused=True)
    assert all(
        torch.equal(one, other) for one, other in zip(once, again, strict=True) if one is not None
    )


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
def test_a_loss_of_the_weights_alone(name: str, in_64_bits: None) -> None:
    """No gradient comes through the states then."""
    decoder = DECODERS[name]().eval()
    source, inputs = learnable(source_for())

    def made() -> Result:
        weights = decoder.teach(source, truth_for(decoder)).weights
        assert weights is not None
        return {"weights": weights}

    compared(decoder, inputs, made, within=1e-10)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
def test_nothing_is_kept_for_a_backward_pass_that_does_not_come(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = DECODERS[name]().eval()
    monkeypatch.setattr(recurrent, "unrolled", lambda *_: pytest.fail("the fast path"))
    with torch.no_grad():
        decoder.teach(source_for(), truth_for(decoder))
