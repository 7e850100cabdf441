"""The contract of every decoder that generates one token after the other."""

from collections.abc import Callable
from typing import final

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Generator
from sixjars.flow.values import DecoderOutput, Encoded, Padded, Prepared, Rows, StepOutput
from sixjars.loss import token_loss

from .checks import exported, gradients, held
from .decoder_cases import EXPORTED, GENERATORS, RARE, source_for, truth_for
from .examples import stretched
from .pairwise import params

pytestmark = pytest.mark.usefixtures("in_64_bits")
TOKEN = torch.tensor([5, 9, 4])


@pytest.fixture(params=params(GENERATORS, RARE))
def make(request: pytest.FixtureRequest, in_64_bits: None) -> Callable[[], Generator]:
    return GENERATORS[request.param]


@pytest.fixture
def decoder(make: Callable[[], Generator]) -> Generator:
    return make().eval()


@pytest.fixture
def source(in_64_bits: None) -> Encoded:
    return source_for()


@pytest.fixture
def target(decoder: Generator) -> Padded:
    return truth_for(decoder)


def loss(decoder: Generator, source: Encoded, target: Padded) -> Tensor:
    return token_loss(decoder.teach(source, target).logits, target).sum()


def stepped(decoder: Generator, source: Encoded, target: Padded) -> DecoderOutput:
    """The target token by token, as in search: log probabilities and weights of every step."""
    state, prepared = decoder.start(source)
    token, outputs = torch.full((target.rows,), decoder.special.go), []
    for following in target.values.unbind(1):
        output, state = decoder.step(token, state, prepared)
        outputs.append(output)
        token = following
    weights = [output.weights for output in outputs if output.weights is not None]
    # what may not come is -inf for search, a number for the loss
    lowest = torch.finfo(torch.get_default_dtype()).min
    logits_BTV = torch.stack([output.log_probabilities for output in outputs], 1).clamp(min=lowest)
    return DecoderOutput(logits_BTV, torch.stack(weights, 1) if weights else None)


def test_teaching_equals_stepping(decoder: Generator, source: Encoded, target: Padded) -> None:
    at_once, by_steps = decoder.teach(source, target), stepped(decoder, source, target)
    torch.testing.assert_close(at_once.logits.log_softmax(-1), by_steps.logits, atol=1e-12, rtol=0)
    assert (at_once.weights is None) == (by_steps.weights is None)
    if at_once.weights is not None:
        torch.testing.assert_close(at_once.weights, by_steps.weights, atol=1e-12, rtol=0)


def test_padding_of_the_target_has_no_influence(
    decoder: Generator, source: Encoded, target: Padded
) -> None:
    longer = stretched(target, 3)
    output, again = decoder.teach(source, target), decoder.teach(source, longer)
    torch.testing.assert_close(again.logits[longer.mask], output.logits[target.mask])
    before, after = (gradients(decoder, loss(decoder, source, one)) for one in (target, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)


def test_the_future_has_no_influence(decoder: Generator, source: Encoded, target: Padded) -> None:
    changed = target.values.clone()
    changed[:, 2:] = 10
    before, after = (
        decoder.teach(source, Padded(values, target.mask)).logits
        for values in (target.values, changed)
    )
    # the third step is given the second token, not the third
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3], before[:, 3])


def test_two_sources_never_mix(decoder: Generator, source: Encoded) -> None:
    wanted = decoder.step(TOKEN, *decoder.start(source))[0].log_probabilities
    before, (state, prepared) = held(decoder), decoder.start(source)
    decoder.step(TOKEN, *decoder.start(source_for(lengths=(2, 4, 4))))
    assert torch.equal(decoder.step(TOKEN, state, prepared)[0].log_probabilities, wanted)
    assert held(decoder) == before


@pytest.mark.parametrize("change", ["pick", "repeat"])
def test_picked_and_repeated_rows_are_the_same_rows(
    decoder: Generator, source: Encoded, change: str
) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    state, prepared = decoder.start(source)
    state = decoder.step(torch.full((3,), decoder.special.go), state, prepared)[1]
    moved = (
        (state.pick(rows), prepared.pick(rows))
        if change == "pick"
        else (state.repeat(2), prepared.repeat(2))
    )
    wanted, wanted_state = decoder.step(TOKEN, state, prepared)
    got, got_state = decoder.step(TOKEN[rows], *moved)
    torch.testing.assert_close(got.log_probabilities, wanted.log_probabilities[rows])
    for one, other in zip(
        FlatStep.flat(TOKEN, got_state), FlatStep.flat(TOKEN, wanted_state.pick(rows)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_step_outputs_log_probabilities(decoder: Generator, source: Encoded) -> None:
    output: StepOutput = decoder.step(TOKEN, *decoder.start(source))[0]
    torch.testing.assert_close(output.log_probabilities.exp().sum(1), torch.ones(3))


def test_steps_are_deterministic_when_not_training(
    decoder: Generator, source: Encoded, target: Padded
) -> None:
    assert torch.equal(
        stepped(decoder, source, target).logits, stepped(decoder, source, target).logits
    )


@final
class FlatStep(nn.Module):
    """One step of a decoder between plain tensors, as exporters need it."""

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
        output, after = self.decoder.step(inputs[0], state, prepared)
        weights = () if output.weights is None else (output.weights,)
        return (output.log_probabilities, *weights, *self.flat(inputs[0], after)[1:])


@pytest.mark.parametrize("make", params(GENERATORS, set(GENERATORS) - set(EXPORTED)), indirect=True)
def test_step_exports_for_any_number_of_rows(decoder: Generator, source: Encoded) -> None:
    state, prepared = decoder.start(source)
    flat = FlatStep(decoder, state, prepared)
    program = exported(flat, flat.flat(TOKEN, state, prepared))
    for rows in (torch.tensor([0, 2, 1, 1, 0, 2]), torch.tensor([2])):
        given = flat.flat(4 + rows, state.pick(rows), prepared.pick(rows))
        for got, wanted in zip(program(*given), flat(*given), strict=True):
            torch.testing.assert_close(got, wanted)
