"""What every bridge promises. A new bridge adds its lines to CASES.

Sizes: a source of 6 features for a state of 4 where a bridge can fit them together, 4 and 4 where it cannot.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.bridges.attention import AdditiveAttention, DotAttention, GeneralAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState

from .promises import alone, encoded, gradients, nameless, reloaded, stretched_source, unlearned, weighed

STATE = 4

CASES: dict[str, tuple[int, Callable[[], Bridge]]] = {
    "initial-linear": (6, lambda: InitialState(summary_size=6, state_size=4, copies=2)),
    "initial-copy": (4, lambda: InitialState(summary_size=4, state_size=4, copies=2, start="copy")),
    "every-step-linear": (6, lambda: EveryStep(summary_size=6, state_size=4, copies=2)),
    "every-step-copy": (4, lambda: EveryStep(summary_size=4, state_size=4, copies=2, start="copy")),
    "additive-linear": (6, lambda: AdditiveAttention(source_size=6, state_size=4, size=5)),
    "additive-copy": (4, lambda: AdditiveAttention(source_size=4, state_size=4, size=5, start="copy")),
    "dot-linear": (4, lambda: DotAttention(source_size=4, state_size=4)),
    "dot-copy": (4, lambda: DotAttention(source_size=4, state_size=4, start="copy")),
    "general-linear": (6, lambda: GeneralAttention(source_size=6, state_size=4)),
    "general-copy": (4, lambda: GeneralAttention(source_size=4, state_size=4, start="copy")),
}
"""The size of the source, and how the bridge is made."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def bridge(case: str) -> Bridge:
    return CASES[case][1]().eval()


@pytest.fixture
def source(case: str) -> Encoded:
    return encoded(CASES[case][0])


@pytest.fixture
def query() -> Tensor:
    return torch.randn(3, STATE, requires_grad=True)


def heard(bridge: Bridge, source: Encoded, query: Tensor) -> tuple[Tensor, Context]:
    """The first state and one context: all that a decoder ever hears."""
    carried = bridge.start(source)
    return carried.first, bridge.step(query, carried)


def test_every_bridge_has_a_case() -> None:
    covered = {type(make()) for _, make in CASES.values()}
    assert covered == {*BRIDGES.values(), *ATTENTIONS.values()}


def test_sizes_are_as_announced(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    assert first.shape[0] == 3
    assert first.shape[1] % STATE == 0
    assert context.vector.shape == (3, bridge.context_size)
    assert (context.weights is not None) == bridge.follows


def test_padding_is_invisible(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    first_again, context_again = heard(bridge, stretched_source(source, 3), query)
    torch.testing.assert_close(first_again, first)
    torch.testing.assert_close(context_again.vector, context.vector)
    if context.weights is not None:
        assert context_again.weights is not None
        torch.testing.assert_close(context_again.weights[:, :4], context.weights)
        assert not context_again.weights[:, 4:].any()


def test_padding_is_invisible_to_gradients(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    before = gradients(bridge, weighed(first, context.vector))
    longer = stretched_source(source, 3)
    first, context = heard(bridge, longer, query)
    after = gradients(bridge, weighed(first, context.vector))
    assert before.keys() == after.keys()
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)
    if bridge.follows:
        assert source.memory.grad is not None
        assert longer.memory.grad is not None
        real = source.mask
        torch.testing.assert_close(longer.memory.grad[:, :4][real], source.memory.grad[real])
        assert not longer.memory.grad[~longer.mask].any()


def test_rows_do_not_see_each_other(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    for row in range(3):
        own_first, own = heard(bridge, alone(source, row), query[row : row + 1])
        torch.testing.assert_close(own_first[0], first[row])
        torch.testing.assert_close(own.vector[0], context.vector[row])


def test_every_weight_learns(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge.train(), source, query)
    assert not unlearned(gradients(bridge, weighed(first, context.vector)))


def test_the_encoder_learns_through_it(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    weighed(first, context.vector).backward()  # type: ignore[no-untyped-call]
    assert source.summary.grad is not None
    assert source.summary.grad.any(dim=1).all()
    assert (source.memory.grad is not None) == bridge.follows
    assert (query.grad is not None) == bridge.follows
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()


def test_saving_keeps_every_bit(bridge: Bridge, case: str, source: Encoded, query: Tensor, tmp_path: Path) -> None:
    first, context = heard(bridge, source, query)
    first_again, again = heard(reloaded(bridge, CASES[case][1], tmp_path), source, query)
    assert torch.equal(first_again, first)
    assert torch.equal(again.vector, context.vector)


def test_weights_are_a_distribution_over_real_positions(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    weights = heard(bridge, source, 10 * query)[1].weights
    assert (weights is not None) == bridge.follows
    if weights is not None:
        assert (weights >= 0).all()
        assert torch.equal(weights[~source.mask], torch.zeros(int((~source.mask).sum())))
        torch.testing.assert_close(weights.sum(1), torch.ones(3))


def test_a_row_of_padding_gives_zeros(bridge: Bridge, case: str, query: Tensor) -> None:
    source = encoded(CASES[case][0], lengths=(3, 0, 2))
    source = stretched_source(source, 1)
    first, context = heard(bridge, source, query)
    if bridge.follows:
        assert context.weights is not None
        assert not context.weights[1].any()
        assert not context.vector[1].any()
    found = gradients(bridge, weighed(first, context.vector))
    learned = [*found.values(), *(leaf.grad for leaf in (source.memory, query) if leaf.grad is not None)]
    assert all(tensor.isfinite().all() for tensor in [first, context.vector, *learned])


def test_two_sources_never_mix(bridge: Bridge, case: str, source: Encoded, query: Tensor) -> None:
    wanted = bridge.step(query, bridge.start(source)).vector
    opened = bridge.start(source)
    other = bridge.start(encoded(CASES[case][0], lengths=(2, 4, 4)))
    bridge.step(query, other)
    assert torch.equal(bridge.step(query, opened).vector, wanted)


@pytest.mark.parametrize("change", ["pick", "spread"])
def test_picking_and_spreading_keep_their_meaning(bridge: Bridge, source: Encoded, query: Tensor, change: str) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    carried = bridge.start(source)
    chosen: Carried = carried.pick(rows) if change == "pick" else carried.spread(2)
    wanted, got = bridge.step(query, carried), bridge.step(query[rows], chosen)
    torch.testing.assert_close(chosen.first, carried.first[rows])
    torch.testing.assert_close(got.vector, wanted.vector[rows])
    assert (got.weights is None) == (wanted.weights is None)
    if got.weights is not None and wanted.weights is not None:
        torch.testing.assert_close(got.weights, wanted.weights[rows])


def test_deterministic_when_not_training(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    one, two = heard(bridge, source, query), heard(bridge, source, query)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1].vector, two[1].vector)


def test_every_weight_has_a_letter_and_the_part_its_equations(bridge: Bridge) -> None:
    assert not nameless(bridge)
    assert bridge.equations()
