"""Losses against loops, against torch's mean, and by hand."""

import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from sixjars.errors import RecipeError
from sixjars.flow.values import Batch, Padded
from sixjars.loss import Objective, coverage_loss, guided_loss, labels_loss, token_loss
from sixjars.model.bridges.attention import AdditiveAttention
from sixjars.model.bridges.initial import InitialState
from sixjars.model.build import Network
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.recipe.sections import LossSettings

TARGET = Padded.of([[3, 5, 2], [2], [6, 2]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_token_loss_equals_a_loop(smoothing: float) -> None:
    scores = 3 * torch.randn(3, 3, 7)
    loss = token_loss(scores, TARGET, smoothing=smoothing)
    for row in range(3):
        for step in range(3):
            raised = [math.exp(score) for score in scores[row, step].tolist()]
            surprise = [-math.log(value / sum(raised)) for value in raised]
            truth = int(TARGET.values[row, step])
            wanted = (1 - smoothing) * surprise[truth] + sum(smoothing / 7 * value for value in surprise)
            assert float(loss[row, step]) == pytest.approx(wanted * bool(TARGET.mask[row, step]), abs=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_token_loss_over_the_tokens_is_torchs_mean(smoothing: float) -> None:
    scores = torch.randn(3, 3, 7)
    ours = token_loss(scores, TARGET, smoothing=smoothing).sum() / TARGET.mask.sum()
    ids = TARGET.values.masked_fill(~TARGET.mask, -100)
    torch.testing.assert_close(ours, F.cross_entropy(scores.flatten(0, 1), ids.flatten(), label_smoothing=smoothing))


def test_guided_loss_by_hand() -> None:
    weights = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]])
    truth = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]])
    wanted = [-math.log(0.5), -0.5 * math.log(0.1) - 0.5 * math.log(0.9), 0.0]
    assert guided_loss(weights, truth)[0].tolist() == pytest.approx(wanted, abs=1e-6)


def test_guided_loss_bears_a_weight_of_zero() -> None:
    weights = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    loss = guided_loss(weights, torch.tensor([[[1.0, 0.0]]]))
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite().all()
    assert float(loss.detach()) > 10
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_coverage_equals_a_loop() -> None:
    weights = torch.randn(3, 3, 4).softmax(-1)
    loss = coverage_loss(weights, TARGET.mask)
    for row in range(3):
        seen = [0.0] * 4
        for step in range(3):
            now = weights[row, step].tolist()
            twice = sum(min(one, before) for one, before in zip(now, seen, strict=True))
            assert float(loss[row, step]) == pytest.approx(twice * bool(TARGET.mask[row, step]), abs=1e-6)
            seen = [before + one for one, before in zip(now, seen, strict=True)]
    assert float(loss[0, 1]) > 0


def test_labels_loss_equals_a_loop() -> None:
    """Also where a label comes twice or a row has none: what pads the rows, 0, is a label too."""
    labels = [[0, 3], [2], [], [1, 1, 4]]
    scores = 3 * torch.randn(4, 5)
    loss = labels_loss(scores, Padded.of(labels))
    assert loss.shape == (4,)
    for row, so in enumerate(labels):
        chances = [1 / (1 + math.exp(-score)) for score in scores[row].tolist()]
        wanted = -sum(math.log(chance if label in so else 1 - chance) for label, chance in enumerate(chances))
        assert float(loss[row]) == pytest.approx(wanted, abs=1e-4)


def test_labels_loss_bears_scores_that_are_sure_and_wrong() -> None:
    assert float(labels_loss(torch.tensor([[200.0, -200.0]]), Padded.of([[1]]))) == pytest.approx(400.0)


def network(*, attends: bool) -> Network:
    encoder = TextEncoder(embedding=WordEmbedding(vocabulary=9, size=4), size=4)
    attention, initial = AdditiveAttention(source_size=4, state_size=4), InitialState(summary_size=4, state_size=4)
    bridge = attention if attends else initial
    return Network(encoder, SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=7, size=4), size=4))


def batch() -> Batch:
    truth = torch.zeros(3, 3, 2)
    truth[0, 0, 1] = truth[0, 1, 0] = truth[2, 0, 0] = 1.0
    return Batch({"source": Padded.of([[5, 6], [7], [8, 4]])}, TARGET, torch.arange(3), truth)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("guide", [0.0, 0.7])
@pytest.mark.parametrize("coverage", [0.0, 0.4])
def test_objective_adds_up_its_parts(smoothing: float, guide: float, coverage: float) -> None:
    whole, given = network(attends=True), batch()
    settings = LossSettings(smoothing=smoothing, guide=guide, coverage=coverage)
    total, plain = Objective(whole, settings)(given.tensors())
    taught = whole(given.inputs, given.target)
    assert taught.weights is not None
    assert given.alignment is not None
    guided = guided_loss(taught.weights, given.alignment).sum()
    torch.testing.assert_close(plain, token_loss(taught.scores, TARGET).sum())
    covered = coverage_loss(taught.weights, TARGET.mask).sum()
    surprise = token_loss(taught.scores, TARGET, smoothing=smoothing).sum()
    torch.testing.assert_close(total, surprise + guide * guided + coverage * covered)
    assert total.requires_grad
    assert float(guided.detach()) > 0
    assert float(covered.detach()) > 0


def test_guiding_without_an_alignment_is_the_plain_loss() -> None:
    whole, given = network(attends=True), batch()
    flat = {name: tensor for name, tensor in given.tensors().items() if name != "alignment"}
    total, plain = Objective(whole, LossSettings(guide=0.7))(flat)
    assert torch.equal(total, plain)


@pytest.mark.parametrize("key", ["guide", "coverage"])
def test_what_costs_attention_needs_attention(key: str) -> None:
    with pytest.raises(RecipeError) as error:
        Objective(network(attends=False), LossSettings.model_validate({key: 0.7}))(batch().tensors())
    assert str(error.value) == f"this recipe: loss.{key} needs a bridge with attention."
