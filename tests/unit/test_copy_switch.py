"""The copy switch against a loop over positions, and where numbers get small.

Dims: B batch, T target positions, S source positions, V vocabulary, W = V + S all that can be written, I features.
"""

import math

import pytest
import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.flow.values import Padded
from sixjars.loss import token_loss
from sixjars.model.decoders.sequence import CopyGate

VOCABULARY, FEATURES = 6, 3
SAID = torch.tensor([[4, 7, 5, 7, 4], [6, 7, 6, 0, 0]])
"""The second source has three words; a word that is not in the vocabulary is V plus its first position."""
WEIGHTS = torch.tensor(
    [
        [[0.25, 0.5, 0.125, 0.0625, 0.0625], [0.0, 0.0, 0.0, 1.0, 0.0]],
        [[0.5, 0.25, 0.25, 0.0, 0.0], [0.125, 0.75, 0.125, 0.0, 0.0]],
    ]
)
"""Sums of powers of 2, which no precision rounds."""


def given() -> tuple[CopyGate, Tensor, Tensor]:
    """A switch, scores of the vocabulary, and what it hears."""
    return CopyGate(inputs=FEATURES), 3 * torch.randn(2, 2, VOCABULARY), torch.randn(2, 2, FEATURES)


def by_hand(switch: CopyGate, scores: Tensor, heard: Tensor, weights: Tensor, said: Tensor) -> list[float]:
    """P of every number at one step, position by position."""
    [bias] = switch.gate.bias.tolist()
    gate = bias + sum(one * other for one, other in zip(switch.gate.weight[0].tolist(), heard.tolist(), strict=True))
    writes = 1 / (1 + math.exp(-gate))
    raised = [math.exp(score) for score in scores.tolist()]
    found = [writes * one / sum(raised) for one in raised] + [0.0] * len(weights)
    for number, weight in zip(said.tolist(), weights.tolist(), strict=True):
        found[number] += (1 - writes) * weight
    return found


@pytest.mark.parametrize(("precision", "rounding"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_what_is_written_and_what_is_copied_add_up(precision: torch.dtype, rounding: float) -> None:
    switch, scores, heard = given()
    switch, scores, heard = switch.to(precision), scores.to(precision), heard.to(precision)
    probabilities_BTW = switch(scores, heard, WEIGHTS.to(precision), SAID).exp()
    assert probabilities_BTW.dtype == torch.float32
    assert probabilities_BTW.shape == (2, 2, VOCABULARY + 5)
    torch.testing.assert_close(probabilities_BTW.sum(-1), torch.ones(2, 2))
    for row in range(2):
        for step in range(2):
            wanted = by_hand(switch, scores[row, step], heard[row, step], WEIGHTS[row, step], SAID[row])
            assert probabilities_BTW[row, step].tolist() == pytest.approx(wanted, abs=rounding)


def test_padding_is_not_copied() -> None:
    """Neither is its number (0) more likely than the vocabulary alone makes it, nor can its place be pointed at."""
    switch, scores, heard = given()
    probabilities_BTW = switch(scores, heard, WEIGHTS, SAID).exp()
    writes_BT = torch.sigmoid(switch.gate(heard)).squeeze(-1)
    torch.testing.assert_close(probabilities_BTW[1, :, 0], (writes_BT * scores.softmax(-1)[:, :, 0])[1])
    assert probabilities_BTW[1, :, VOCABULARY + 3 :].max() < 1e-37


@pytest.mark.parametrize(("gate", "truth"), [(30.0, VOCABULARY + 1), (60.0, VOCABULARY + 1), (-30.0, 2)])
def test_a_gate_that_is_sure_and_wrong_learns(gate: float, truth: int) -> None:
    """-log σ(-x) is nearly x, and its slope nearly 1: the other way round where the truth had to be written."""
    switch, scores, heard = given()
    torch.nn.init.zeros_(switch.gate.weight)
    torch.nn.init.constant_(switch.gate.bias, gate)
    loss = token_loss(switch(scores[:1, :1], heard[:1, :1], WEIGHTS[:1, :1], SAID[:1]), Padded.of([[truth]])).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    share = 0.5625 if truth >= VOCABULARY else float(scores[0, 0].softmax(-1)[truth])
    assert float(loss.detach()) == pytest.approx(abs(gate) - math.log(share), rel=1e-4)
    assert switch.gate.bias.grad is not None
    assert float(switch.gate.bias.grad) == pytest.approx(math.copysign(1.0, gate), abs=1e-3)


def test_a_number_that_cannot_come_costs_no_more_than_a_lot() -> None:
    switch, scores, heard = given()
    assert switch(scores, heard, WEIGHTS, SAID).isfinite().all()


@pytest.mark.parametrize(("weights", "said"), [(None, SAID), (WEIGHTS, None), (None, None)])
def test_without_attention_or_words_nothing_is_copied(weights: Tensor | None, said: Tensor | None) -> None:
    switch, scores, heard = given()
    with pytest.raises(ShapeError) as error:
        switch(scores, heard, weights, said)
    assert str(error.value) == "copying: true needs attention and a source whose words the decoder could write."
