"""The lines that `explain` prints of the loss, against the loss of training."""

import re
from typing import Any

import numpy as np
import pytest
import torch

from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Batch, Padded
from sixjars.inspection.explanation import explanation_of
from sixjars.loss import Objective, Sealed
from sixjars.model.bridges.attention import Attention
from sixjars.model.build import Network
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.runs.recipes import read_recipe

from .examples import TARGETS, texts, words

pytestmark = pytest.mark.usefixtures("in_64_bits")
NUMBER = r"([\d.]+)"
TOKENS = "L = -Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens"
ONE = "L = -log P(y = ℓ | x), divided by the number of labels"
SEVERAL = "L = -Σ_{y ∈ ℓ} log P(y | x) - Σ_{y ∉ ℓ} log(1 - P(y | x)), divided by the number of labels"


def printed_loss(lines: list[str], chances: Any, weights: Any, truth: list[int], true_weights: Any) -> float:
    """The sum that the lines describe, of one row: chances (T, V), weights (T, S); the division is left out."""
    first, *more = lines
    if first == SEVERAL:
        of_each = [np.log(p if label in truth else 1 - p) for label, p in enumerate(chances[0])]
        total = -sum(of_each)
    else:
        assert first in (TOKENS, ONE)
        total = -sum(np.log(chances[t, label]) for t, label in enumerate(truth))
    for line in more:
        if smoothed := re.fullmatch(rf"label smoothing: the truth is {NUMBER} at ℓ(_t)?, {NUMBER} over all \w+", line):
            right, spread = float(smoothed[1]), float(smoothed[3])
            total *= right
            total -= sum(spread * np.log(chances[t]).mean() for t in range(len(truth)))
        elif guided := re.fullmatch(rf"- {NUMBER} Σ_t Σ_j α\*_jt log α_jt: guided attention, where .*", line):
            total -= float(guided[1]) * (true_weights * np.log(weights)).sum()
        elif covered := re.fullmatch(rf"\+ {NUMBER} Σ_t Σ_j min\(α_jt, Σ_{{τ<t}} α_jτ\): coverage", line):
            for t in range(len(truth)):
                total += float(covered[1]) * np.minimum(weights[t], weights[:t].sum(0)).sum()
        else:
            raise AssertionError(line)
    return float(total)


def loss_of(decoder: str, target: Padded, overrides: list[str], *, multi_label: bool = False) -> None:
    encoder = TextEncoder(embedding=words(), size=4)
    bridge = Attention(source_size=4, state_size=4)
    made: Decoder = LabelDecoder(bridge=bridge, classes=6, size=4, multi_label=multi_label)
    if decoder == "sequence":
        made = SequenceDecoder(bridge=bridge, embedding=words(), size=4)
    network = Network(encoder, made).eval()
    recipe = read_recipe("translation/sample_guided", overrides)
    lines = list(explanation_of(recipe, network, title="", data=[]).sections[5].lines)
    assert len(lines) == 1 + len([one for one in overrides if not one.endswith("=0")])
    source = texts()
    true_weights = torch.zeros(3, target.mask.shape[1], 4)
    true_weights[:, 0, 0] = 1.0
    batch = Batch({"source": source}, target, torch.arange(3), true_weights if recipe.loss.guide else None)
    found = Objective(network, recipe.loss)(Sealed(batch))[0]
    output = network(batch.inputs, target)
    chances = output.logits.sigmoid() if multi_label else output.logits.softmax(-1)
    wanted = 0.0
    for row in range(3):
        length, real = int(target.mask[row].sum()), int(source.mask[row].sum())
        attention = output.weights[row, :length, :real]
        wanted += printed_loss(
            lines,
            chances[row].detach().numpy(),
            attention.detach().numpy(),
            target.values[row, :length].tolist(),
            true_weights[row, :length, :real].numpy(),
        )
    # The loss is computed in 32 bits, and a true weight times log(α + 1e-9) is not that of α to the last digit.
    assert float(found.detach()) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    "overrides",
    [
        ["loss.guide=0"],
        ["loss.guide=0.5"],
        ["loss.guide=0", "loss.smoothing=0.1"],
        ["loss.guide=0.25", "loss.smoothing=0.2", "loss.coverage=0.5"],
    ],
)
def test_of_tokens(overrides: list[str]) -> None:
    loss_of("sequence", Padded.of(list(TARGETS)), overrides)


def test_of_one_label() -> None:
    loss_of("label", Padded.of([[1], [5], [0]]), ["loss.guide=0"])


def test_of_several_labels() -> None:
    loss_of("label", Padded.of([[1, 3], [5], [0, 2, 4]]), ["loss.guide=0"], multi_label=True)
