"""The copy gate against a loop over positions, and where numbers get small.

Dims: B batch, T target positions, S source positions, V vocabulary, W = V + S all that can be
output, I features.
"""

import math

import pytest
import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.flow.values import Encoded, Padded
from sixjars.loss import token_loss
from sixjars.model.bridges.attention import Attention
from sixjars.model.decoders.sequence import CopyGate, SequenceDecoder
from sixjars.model.layers import WordEmbedding
from sixjars_runtime.special_tokens import UNK

VOCABULARY, FEATURES = 6, 3
COPY_IDS = torch.tensor([[4, 7, 5, 7, 4], [6, 7, 6, 0, 0]])
"""The second source has three words; an unknown word is V plus its first position."""
WEIGHTS = torch.tensor(
    [
        [[0.25, 0.5, 0.125, 0.0625, 0.0625], [0.0, 0.0, 0.0, 1.0, 0.0]],
        [[0.5, 0.25, 0.25, 0.0, 0.0], [0.125, 0.75, 0.125, 0.0, 0.0]],
    ]
)
"""Sums of powers of 2, which no precision rounds."""


def given() -> tuple[CopyGate, Tensor, Tensor]:
    """A gate, logits of the vocabulary, and its inputs."""
    return CopyGate(inputs=FEATURES), 3 * torch.randn(2, 2, VOCABULARY), torch.randn(2, 2, FEATURES)


def by_hand(
    copy: CopyGate, logits: Tensor, inputs: Tensor, weights: Tensor, copy_ids: Tensor
) -> list[float]:
    """P of every number at one step, position by position."""
    [bias] = copy.gate.bias.tolist()
    gate = bias + sum(
        one * other
        for one, other in zip(copy.gate.weight[0].tolist(), inputs.tolist(), strict=True)
    )
    generates = 1 / (1 + math.exp(-gate))
    raised = [math.exp(logit) for logit in logits.tolist()]
    found = [generates * one / sum(raised) for one in raised] + [0.0] * len(weights)
    for number, weight in zip(copy_ids.tolist(), weights.tolist(), strict=True):
        found[number] += (1 - generates) * weight
    return found


@pytest.mark.parametrize(
    ("precision", "rounding"),
    [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 1e-2)],
)
def test_what_is_generated_and_what_is_copied_add_up(
    precision: torch.dtype, rounding: float
) -> None:
    """Bounds are a few roundings of numbers below 1: 2^-53, 2^-24 and 2^-8."""
    copy, logits, inputs = given()
    copy, logits, inputs = copy.to(precision), logits.to(precision), inputs.to(precision)
    probabilities_BTW = copy(logits, inputs, WEIGHTS.to(precision), COPY_IDS).exp()
    assert probabilities_BTW.dtype == torch.promote_types(precision, torch.float32)
    assert probabilities_BTW.shape == (2, 2, VOCABULARY + 5)
    torch.testing.assert_close(
        probabilities_BTW.sum(-1), torch.ones(2, 2, dtype=probabilities_BTW.dtype)
    )
    for row in range(2):
        for step in range(2):
            wanted = by_hand(
                copy, logits[row, step], inputs[row, step], WEIGHTS[row, step], COPY_IDS[row]
            )
            assert probabilities_BTW[row, step].tolist() == pytest.approx(wanted, abs=rounding)


def test_padding_is_not_copied() -> None:
    """Neither is its number (0) more likely than the vocabulary alone makes it, nor its place."""
    copy, logits, inputs = given()
    probabilities_BTW = copy(logits, inputs, WEIGHTS, COPY_IDS).exp()
    generates_BT = torch.sigmoid(copy.gate(inputs)).squeeze(-1)
    torch.testing.assert_close(
        probabilities_BTW[1, :, 0], (generates_BT * logits.softmax(-1)[:, :, 0])[1]
    )
    assert probabilities_BTW[1, :, VOCABULARY + 3 :].max() < 1e-37


@pytest.mark.parametrize(
    ("gate", "truth"), [(30.0, VOCABULARY + 1), (60.0, VOCABULARY + 1), (-30.0, 2)]
)
def test_a_gate_that_is_sure_and_wrong_learns(gate: float, truth: int) -> None:
    """-log σ(-x) is nearly x, its slope nearly 1: and the other way round for what is generated."""
    copy, logits, inputs = given()
    torch.nn.init.zeros_(copy.gate.weight)
    torch.nn.init.constant_(copy.gate.bias, gate)
    loss = token_loss(
        copy(logits[:1, :1], inputs[:1, :1], WEIGHTS[:1, :1], COPY_IDS[:1]), Padded.of([[truth]])
    ).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    share = 0.5625 if truth >= VOCABULARY else float(logits[0, 0].softmax(-1)[truth])
    assert float(loss.detach()) == pytest.approx(abs(gate) - math.log(share), rel=1e-4)
    assert copy.gate.bias.grad is not None
    assert float(copy.gate.bias.grad) == pytest.approx(math.copysign(1.0, gate), abs=1e-3)


def test_what_cannot_be_output_has_a_finite_cost() -> None:
    copy, logits, inputs = given()
    assert copy(logits, inputs, WEIGHTS, COPY_IDS).isfinite().all()


@pytest.mark.parametrize(("weights", "copy_ids"), [(None, COPY_IDS), (WEIGHTS, None), (None, None)])
def test_without_attention_or_words_nothing_is_copied(
    weights: Tensor | None, copy_ids: Tensor | None
) -> None:
    copy, logits, inputs = given()
    with pytest.raises(ShapeError) as error:
        copy(logits, inputs, weights, copy_ids)
    told = "copying: true needs attention and a source whose words the decoder could output."
    assert str(error.value) == told


@pytest.mark.parametrize("number", [VOCABULARY, VOCABULARY + 3])
def test_a_copied_word_is_read_as_an_unknown_one(number: int) -> None:
    """Also the first word of a source, whose number is the size of the vocabulary."""
    bridge = Attention(source_size=4, state_size=6, size=3)
    words = WordEmbedding(vocabulary=VOCABULARY, size=5)
    decoder = SequenceDecoder(bridge=bridge, embedding=words, size=6, copying=True)
    memory, mask = torch.randn(1, 4, 4), torch.ones(1, 4, dtype=torch.bool)
    copies = torch.tensor([[VOCABULARY, 4, 5, VOCABULARY + 3]])
    source = Encoded(memory, mask, torch.randn(1, 4), copy_ids=copies)
    state, prepared = decoder.start(source)
    read, unknown = (
        decoder.step(torch.tensor([token]), state, prepared)[0].scores for token in (number, UNK)
    )
    assert torch.equal(read, unknown)
