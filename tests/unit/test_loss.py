"""Losses against torch's mean and by hand; contracts check their equations."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from sixjars.errors import RecipeError
from sixjars.flow.values import Batch, DecoderOutput, LinearLogits, Padded
from sixjars.kernels.backends import TorchBackend
from sixjars.loss import (
    Objective,
    SealedBatch,
    coverage_loss,
    guided_loss,
    labels_loss,
    token_loss,
    truth_loss,
)
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.initial import InitialState
from sixjars.model.build import Network
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.reference import REFERENCE
from sixjars.recipe.sections import LossSettings

TARGET = Padded.of([[3, 5, 2], [2], [6, 2]])


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_token_loss_over_the_tokens_is_torchs_mean(smoothing: float) -> None:
    logits = noise(3, 3, 7)
    ours = token_loss(logits, TARGET, smoothing=smoothing).sum() / TARGET.mask.sum()
    ids = TARGET.values.masked_fill(~TARGET.mask, -100)
    torch.testing.assert_close(
        ours, F.cross_entropy(logits.flatten(0, 1), ids.flatten(), label_smoothing=smoothing)
    )


def test_guided_loss_by_hand() -> None:
    weights = torch.tensor(
        [[[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64
    )
    truth = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]], dtype=torch.float64)
    wanted = [-math.log(0.5), -0.5 * math.log(0.1) - 0.5 * math.log(0.9), 0.0]
    # 1e-9 keeps the log finite
    assert guided_loss(weights, truth)[0].tolist() == pytest.approx(wanted, abs=1e-7)


def test_guided_loss_with_a_weight_of_zero_is_finite() -> None:
    weights = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    loss = guided_loss(weights, torch.tensor([[[1.0, 0.0]]]))
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite().all()
    assert float(loss.detach()) > 10
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_labels_loss_equals_a_loop() -> None:
    """Also where a label comes twice or a row has none: what pads the rows, 0, is a label too."""
    labels = [[0, 3], [2], [], [1, 1, 4]]
    logits = 3 * noise(4, 5)
    loss = labels_loss(logits, Padded.of(labels))
    assert loss.shape == (4,)
    for row, so in enumerate(labels):
        chances = [1 / (1 + math.exp(-score)) for score in logits[row].tolist()]
        wanted = -sum(
            math.log(chance if label in so else 1 - chance) for label, chance in enumerate(chances)
        )
        assert float(loss[row]) == pytest.approx(wanted, rel=1e-12)


def test_labels_loss_of_logits_that_are_sure_and_wrong_is_finite() -> None:
    assert float(labels_loss(torch.tensor([[200.0, -200.0]]), Padded.of([[1]]))) == pytest.approx(
        400.0
    )


def test_the_output_decides_which_loss_it_has() -> None:
    one, labels = torch.randn(2, 1, 5), Padded.of([[3], [1]])
    assert torch.equal(truth_loss(DecoderOutput(one), labels), token_loss(one, labels))
    several = DecoderOutput(one, multi_label=True)
    assert torch.equal(truth_loss(several, labels)[:, 0], labels_loss(one[:, 0], labels))
    halves = truth_loss(DecoderOutput(one.bfloat16()), labels)
    assert halves.dtype == torch.float32  # half precision would lose the sum over many tokens


def network(*, attends: bool) -> Network:
    encoder = TextEncoder(embedding=WordEmbedding(vocabulary=9, size=4), size=4)
    attention = Attention(source_size=4, state_size=4)
    initial = InitialState(summary_size=4, state_size=4)
    bridge = attention if attends else initial
    return Network(
        encoder,
        SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=7, size=4), size=4),
    )


def batch() -> Batch:
    truth = torch.zeros(3, 3, 2)
    truth[0, 0, 1] = truth[0, 1, 0] = truth[2, 0, 0] = 1.0
    return Batch({"source": Padded.of([[5, 6], [7], [8, 4]])}, TARGET, torch.arange(3), truth)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("guide", [0.0, 0.7])
@pytest.mark.parametrize("coverage", [0.0, 0.4])
def test_objective_is_the_sum_of_its_losses(
    smoothing: float, guide: float, coverage: float
) -> None:
    whole, given = network(attends=True), batch()
    settings = LossSettings(smoothing=smoothing, guide=guide, coverage=coverage)
    total, plain = Objective(whole, settings)(SealedBatch(given))
    output = whole(given.inputs, given.target)
    assert output.weights is not None
    assert given.alignment is not None
    guided = guided_loss(output.weights, given.alignment).sum()
    torch.testing.assert_close(plain, token_loss(output.logits, TARGET).sum())
    covered = coverage_loss(output.weights, TARGET.mask).sum()
    surprise = token_loss(output.logits, TARGET, smoothing=smoothing).sum()
    torch.testing.assert_close(total, surprise + guide * guided + coverage * covered)
    assert total.requires_grad
    assert float(guided.detach()) > 0
    assert float(covered.detach()) > 0


def test_guiding_without_an_alignment_is_the_plain_loss() -> None:
    total, plain = Objective(network(attends=True), LossSettings(guide=0.7))(
        SealedBatch(replace(batch(), alignment=None))
    )
    assert torch.equal(total, plain)


@pytest.mark.parametrize("key", ["guide", "coverage"])
def test_a_loss_of_attention_needs_attention(key: str) -> None:
    with pytest.raises(RecipeError) as error:
        Objective(network(attends=False), LossSettings.model_validate({key: 0.7}))(
            SealedBatch(batch())
        )
    assert str(error.value) == f"this recipe: loss.{key} needs a bridge with attention."


def test_tokens_that_do_not_count_have_no_loss() -> None:
    linear = LinearLogits(torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5))
    for backend in (TorchBackend(), REFERENCE):
        nothing = torch.zeros(2, 3).long(), torch.zeros(2, 3), 0.1
        total, plain = backend.output_loss(linear, *nothing)
        assert (float(total), float(plain)) == (0.0, 0.0)
