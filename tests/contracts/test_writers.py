"""What every decoder promises that writes one token after the other."""

from collections.abc import Callable
from typing import final

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Generator
from sixjars.flow.values import DecoderOutput, Encoded, Padded, Prepared, Rows, StepOutput
from sixjars.loss import token_loss

from .decoder_cases import WRITERS, heard, truth_for
from .promises import exported, gradients, held, stretched

TOKEN = torch.tensor([5, 9, 4])


@pytest.fixture(params=WRITERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Generator]:
    return WRITERS[request.param]


@pytest.fixture
def decoder(make: Callable[[], Generator]) -> Generator:
    return make().eval()


@pytest.fixture
def source() -> Encoded:
    return heard()


@pytest.fixture
def target(decoder: Generator) -> Padded:
    return truth_for(decoder)


def loss(decoder: Generator, source: Encoded, target: Padded) -> Tensor:
    return token_loss(decoder.teach(source, target).scores, target).sum()


def walked(decoder: Generator, source: Encoded, target: Padded) -> DecoderOutput:
    """The target fed token by token, as search would: log probabilities and weights of every step."""
    state, prepared = decoder.start(source)
    token, said = torch.full((target.rows,), decoder.marks.go), []
    for following in target.values.unbind(1):
        scored, state = decoder.step(token, state, prepared)
        said.append(scored)
        token = following
    weights = [scored.weights for scored in said if scored.weights is not None]
    lowest = torch.finfo(torch.float32).min  # what may not come is -inf for search, and a number for the loss
    scores_BTV = torch.stack([scored.log_probabilities for scored in said], 1).clamp(min=lowest)
    return DecoderOutput(scores_BTV, torch.stack(weights, 1) if weights else None)


def test_teaching_equals_stepping(decoder: Generator, source: Encoded, target: Padded) -> None:
    taught, stepped = decoder.teach(source, target), walked(decoder, source, target)
    torch.testing.assert_close(taught.scores.log_softmax(-1), stepped.scores, atol=1e-5, rtol=0)
    assert (taught.weights is None) == (stepped.weights is None)
    if taught.weights is not None:
        torch.testing.assert_close(taught.weights, stepped.weights, atol=1e-5, rtol=0)


def test_padding_of_the_target_is_invisible(decoder: Generator, source: Encoded, target: Padded) -> None:
    longer = stretched(target, 3)
    taught, again = decoder.teach(source, target), decoder.teach(source, longer)
    torch.testing.assert_close(again.scores[longer.mask], taught.scores[target.mask])
    before, after = (gradients(decoder, loss(decoder, source, one)) for one in (target, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)


def test_the_future_is_invisible(decoder: Generator, source: Encoded, target: Padded) -> None:
    changed = target.values.clone()
    changed[:, 2:] = 10
    told, again = decoder.teach(source, target).scores, decoder.teach(source, Padded(changed, target.mask)).scores
    torch.testing.assert_close(again[:, :3], told[:, :3])  # the third score was told the second token, not the third
    assert not torch.allclose(again[:, 3], told[:, 3])


def test_two_sources_never_mix(decoder: Generator, source: Encoded) -> None:
    wanted = decoder.step(TOKEN, *decoder.start(source))[0].log_probabilities
    before, (state, prepared) = held(decoder), decoder.start(source)
    decoder.step(TOKEN, *decoder.start(heard(lengths=(2, 4, 4))))
    assert torch.equal(decoder.step(TOKEN, state, prepared)[0].log_probabilities, wanted)
    assert held(decoder) == before


@pytest.mark.parametrize("change", ["pick", "spread"])
def test_picking_and_spreading_keep_their_meaning(decoder: Generator, source: Encoded, change: str) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    state, prepared = decoder.start(source)
    state = decoder.step(torch.full((3,), decoder.marks.go), state, prepared)[1]
    moved = (state.pick(rows), prepared.pick(rows)) if change == "pick" else (state.repeat(2), prepared.repeat(2))
    wanted, wanted_state = decoder.step(TOKEN, state, prepared)
    got, got_state = decoder.step(TOKEN[rows], *moved)
    torch.testing.assert_close(got.log_probabilities, wanted.log_probabilities[rows])
    for one, other in zip(FlatStep.flat(TOKEN, got_state), FlatStep.flat(TOKEN, wanted_state.pick(rows)), strict=True):
        torch.testing.assert_close(one, other)


def test_scores_of_a_step_are_log_probabilities(decoder: Generator, source: Encoded) -> None:
    scored: StepOutput = decoder.step(TOKEN, *decoder.start(source))[0]
    torch.testing.assert_close(scored.log_probabilities.exp().sum(1), torch.ones(3))


def test_steps_are_deterministic_when_not_training(decoder: Generator, source: Encoded, target: Padded) -> None:
    assert torch.equal(walked(decoder, source, target).scores, walked(decoder, source, target).scores)


@final
class FlatStep(nn.Module):
    """One step of a decoder between plain tensors, as exporters want it; whatever holds them is made again inside."""

    def __init__(self, decoder: Generator, state: Rows, prepared: Prepared) -> None:
        super().__init__()
        self.decoder = decoder
        self.state = state
        self.prepared = prepared

    @staticmethod
    def flat(token: Tensor, *values: Rows) -> tuple[Tensor, ...]:
        found = [token]
        for value in values:
            value.mapped(lambda tensor: found.append(tensor.detach()) or tensor)  # type: ignore[func-returns-value]
        return tuple(found)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        rest = iter(inputs[1:])
        state = self.state.mapped(lambda _: next(rest))
        prepared = self.prepared.mapped(lambda _: next(rest))
        scored, after = self.decoder.step(inputs[0], state, prepared)
        weights = () if scored.weights is None else (scored.weights,)
        return (scored.log_probabilities, *weights, *self.flat(inputs[0], after)[1:])


def test_step_exports_for_any_number_of_rows(decoder: Generator, source: Encoded) -> None:
    state, prepared = decoder.start(source)
    flat = FlatStep(decoder, state, prepared)
    program = exported(flat, flat.flat(TOKEN, state, prepared))
    for rows in (torch.tensor([0, 2, 1, 1, 0, 2]), torch.tensor([2])):
        given = flat.flat(4 + rows, state.pick(rows), prepared.pick(rows))
        for got, wanted in zip(program(*given), flat(*given), strict=True):
            torch.testing.assert_close(got, wanted)
