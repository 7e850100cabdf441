"""What every bridge promises. A new bridge adds its lines to CASES.

Sizes: a memory of 6 features and a summary of 5 for a state of 4 where a bridge can fit them together; where it copies
one of them, or multiplies the state by it, that one has 4 as well. A level above has 3 features, or 4 where copied.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.bridges.attention import AdditiveAttention, DotAttention, GeneralAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.bridges.two_level import TwoLevelAttention
from sixjars.tasks import LOOKING

from .promises import (
    LENGTHS,
    alone,
    encoded,
    gradients,
    held,
    nameless,
    reloaded,
    stretched_source,
    unlearned,
    unweighed,
    weighed,
)

STATE = 4


@dataclass(frozen=True)
class Case:
    """A bridge, and the sizes of what it hears."""

    memory: int
    summary: int
    make: Callable[[], Bridge]
    above: int = 3
    """The size of the level above: what does not ask for it is not told that it is there."""
    weighed: bool = True
    """Whether the encoder weighed the positions of parts."""

    def source(self, lengths: tuple[int, ...] = LENGTHS) -> Encoded:
        """What an encoder says to it."""
        said = encoded(self.memory, lengths, summary=self.summary, above=self.above)
        return said if self.weighed else unweighed(said)


CASES: dict[str, Case] = {
    "initial-linear": Case(6, 5, lambda: InitialState(summary_size=5, state_size=4, copies=2)),
    "initial-copy": Case(6, 4, lambda: InitialState(summary_size=4, state_size=4, copies=2, start="copy")),
    "every-step-linear": Case(6, 5, lambda: EveryStep(summary_size=5, state_size=4, copies=2)),
    "every-step-copy": Case(6, 4, lambda: EveryStep(summary_size=4, state_size=4, copies=2, start="copy")),
    "additive-linear": Case(6, 5, lambda: AdditiveAttention(source_size=6, summary_size=5, state_size=4, size=3)),
    "additive-copy": Case(
        6, 4, lambda: AdditiveAttention(source_size=6, summary_size=4, state_size=4, size=3, start="copy")
    ),
    "additive-one-size": Case(6, 6, lambda: AdditiveAttention(source_size=6, state_size=4, size=3)),
    "dot-linear": Case(4, 5, lambda: DotAttention(source_size=4, summary_size=5, state_size=4)),
    "dot-copy": Case(4, 4, lambda: DotAttention(source_size=4, state_size=4, start="copy")),
    "general-linear": Case(6, 5, lambda: GeneralAttention(source_size=6, summary_size=5, state_size=4)),
    "general-copy": Case(6, 4, lambda: GeneralAttention(source_size=6, summary_size=4, state_size=4, start="copy")),
    "pooling-linear": Case(6, 5, lambda: AttentionPooling(source_size=6, state_size=4, size=3, copies=2)),
    "pooling-copy": Case(4, 5, lambda: AttentionPooling(source_size=4, state_size=4, size=3, start="copy")),
    "pooling-parts": Case(
        6, 5, lambda: AttentionPooling(source_size=6, segment_size=3, state_size=4, size=3, copies=2)
    ),
    "pooling-parts-evenly": Case(
        6,
        5,
        lambda: AttentionPooling(source_size=6, segment_size=4, state_size=4, size=3, start="copy"),
        above=4,
        weighed=False,
    ),
    "two-level-linear": Case(
        6, 5, lambda: TwoLevelAttention(source_size=6, segment_size=3, summary_size=5, state_size=4, size=3, copies=2)
    ),
    "two-level-copy": Case(
        6, 4, lambda: TwoLevelAttention(source_size=6, segment_size=4, state_size=4, size=3, start="copy"), above=4
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def bridge(case: Case) -> Bridge:
    return case.make().eval()


@pytest.fixture
def source(case: Case) -> Encoded:
    return case.source()


@pytest.fixture
def query() -> Tensor:
    return torch.randn(3, STATE, requires_grad=True)


def heard(bridge: Bridge, source: Encoded, query: Tensor) -> tuple[Tensor, Context]:
    """The first state and one context: all that a decoder ever hears."""
    prepared = bridge.start(source)
    return prepared.first, bridge.step(query, prepared)


def looks(bridge: Bridge) -> bool:
    """Whether it weighs the positions of the memory."""
    return isinstance(bridge, tuple({*ATTENTIONS.values(), *(BRIDGES[kind] for kind in LOOKING)}))


def asks_above(bridge: Bridge) -> bool:
    """Whether it weighs the parts of a level above."""
    return bool(getattr(bridge, "segment_size", isinstance(bridge, TwoLevelAttention)))


def mixes(bridge: Bridge) -> bool:
    """Whether it mixes the memory: pooling mixes the level above where there is one."""
    return looks(bridge) and (bridge.follows or not asks_above(bridge))


def hears_summary(bridge: Bridge) -> bool:
    """Pooling makes a summary of its own."""
    return not isinstance(bridge, AttentionPooling)


def levels(source: Encoded, longer: Encoded, bridge: Bridge) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The vectors of each level that a bridge mixes or weighs: of a source and of a longer one, and where those are."""
    if mixes(bridge):
        yield source.memory, longer.memory, longer.mask
    if asks_above(bridge):
        assert source.above is not None
        assert longer.above is not None
        yield source.above.memory, longer.above.memory, longer.above.mask


def test_every_bridge_has_a_case() -> None:
    covered = {type(case.make()) for case in CASES.values()}
    assert covered == {*BRIDGES.values(), *ATTENTIONS.values()}


def test_sizes_are_as_announced(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = heard(bridge, source, query)
    assert first.shape[0] == 3
    assert first.shape[1] % STATE == 0
    assert context.vector.shape == (3, bridge.context_size)
    assert (context.weights is not None) == looks(bridge)


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
    for short, long, mask in levels(source, longer, bridge):
        assert short.grad is not None
        assert long.grad is not None
        real = mask[:, : short.shape[1]]
        torch.testing.assert_close(long.grad[:, : short.shape[1]][real], short.grad[real])
        assert not long.grad[~mask].any()


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
    assert (source.summary.grad is not None) == hears_summary(bridge)
    if source.summary.grad is not None:
        assert source.summary.grad.any(dim=1).all()
    assert (query.grad is not None) == bridge.follows
    assert source.above is not None
    assert (source.memory.grad is not None) == mixes(bridge)
    assert (source.above.memory.grad is not None) == asks_above(bridge)
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()
    if source.above.memory.grad is not None:  # a part without others is weighed 1 whatever is in it
        several = source.above.mask & (source.above.mask.sum(1, keepdim=True) > 1)
        assert source.above.memory.grad[several].any(dim=1).all()


def test_saving_keeps_every_bit(bridge: Bridge, case: Case, source: Encoded, query: Tensor, tmp_path: Path) -> None:
    first, context = heard(bridge, source, query)
    first_again, again = heard(reloaded(bridge, case.make, tmp_path), source, query)
    assert torch.equal(first_again, first)
    assert torch.equal(again.vector, context.vector)


def test_weights_are_a_distribution_over_real_positions(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    weights = heard(bridge, source, 10 * query)[1].weights
    assert (weights is not None) == looks(bridge)
    if weights is not None:
        assert (weights >= 0).all()
        assert torch.equal(weights[~source.mask], torch.zeros(int((~source.mask).sum())))
        torch.testing.assert_close(weights.sum(1), torch.ones(3))


def test_a_row_of_padding_gives_zeros(bridge: Bridge, case: Case, query: Tensor) -> None:
    source = stretched_source(case.source(lengths=(3, 0, 2)), 1)
    first, context = heard(bridge, source, query)
    if looks(bridge):
        assert context.weights is not None
        assert not context.weights[1].any()
        assert not context.vector[1].any()
    found = gradients(bridge, weighed(first, context.vector))
    assert source.above is not None
    leaves = (source.memory, source.above.memory, query)
    learned = [*found.values(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]
    assert all(tensor.isfinite().all() for tensor in [first, context.vector, *learned])


def test_two_sources_never_mix(bridge: Bridge, case: Case, source: Encoded, query: Tensor) -> None:
    wanted = bridge.step(query, bridge.start(source)).vector
    opened = bridge.start(source)
    other = bridge.start(case.source(lengths=(2, 4, 4)))
    bridge.step(query, other)
    assert torch.equal(bridge.step(query, opened).vector, wanted)


@pytest.mark.parametrize("change", ["pick", "spread"])
def test_picking_and_spreading_keep_their_meaning(bridge: Bridge, source: Encoded, query: Tensor, change: str) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    prepared = bridge.start(source)
    chosen: Prepared = prepared.pick(rows) if change == "pick" else prepared.repeat(2)
    wanted, got = bridge.step(query, prepared), bridge.step(query[rows], chosen)
    torch.testing.assert_close(chosen.first, prepared.first[rows])
    torch.testing.assert_close(got.vector, wanted.vector[rows])
    assert (got.weights is None) == (wanted.weights is None)
    if got.weights is not None and wanted.weights is not None:
        torch.testing.assert_close(got.weights, wanted.weights[rows])


def test_deterministic_when_not_training(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    one, two = heard(bridge, source, query), heard(bridge, source, query)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1].vector, two[1].vector)


def test_nothing_is_kept_between_calls(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    before = held(bridge)
    heard(bridge, source, query)
    assert held(bridge) == before


def test_what_follows_the_state_depends_on_it_and_nothing_else_does(bridge: Bridge, source: Encoded) -> None:
    prepared = bridge.start(source)
    one, two = (bridge.step(query, prepared) for query in torch.randn(2, 3, STATE))
    assert torch.equal(one.vector, two.vector) != bridge.follows
    if one.weights is not None and two.weights is not None:
        assert torch.equal(one.weights, two.weights) != bridge.follows


def test_every_weight_has_a_letter_and_the_part_its_equations(bridge: Bridge) -> None:
    assert not nameless(bridge)
    assert bridge.equations()
