"""The contract of every bridge. A new bridge adds its lines to CASES.

Sizes: a memory of 6 features and a summary of 5 for a state of 4 where a bridge can fit them
together; where it copies one of them, or multiplies the state by it, that one has 4 as well. The
upper level has 3 features, or 4 where copied.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.bridges import BRIDGES
from sixjars.model.bridges.attention import Attention, TwoLevelAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.location import LocationAttention
from sixjars.model.bridges.pooling import AttentionPooling

from .checks import gradients, held, nameless, reloaded, unlearned, weighed
from .decoder_cases import attends_to_segments, reads_memory
from .examples import LENGTHS, alone, encoded, stretched_source, unweighed

pytestmark = pytest.mark.usefixtures("in_64_bits")
STATE = 4


@dataclass(frozen=True)
class Case:
    """A bridge, and the sizes of what the encoder gives it."""

    memory: int
    summary: int
    make: Callable[[], Bridge]
    segment: int = 3
    """The size of the upper level; bridges of one level are not given it."""
    weighed: bool = True
    """Whether the encoder has weights of the positions in segments."""

    def source(self, lengths: tuple[int, ...] = LENGTHS) -> Encoded:
        """What an encoder gives it."""
        found = encoded(self.memory, lengths, summary=self.summary, segment=self.segment)
        return found if self.weighed else unweighed(found)


def case_of(
    kind: type[Bridge],
    memory: int,
    summary: int,
    *,
    upper: int = 0,
    weighed: bool = True,
    **more: Any,
) -> Case:
    """A bridge with those of the sizes that it takes; `upper` where it reads the upper level."""
    sizes = {"source_size": memory, "summary_size": summary, "state_size": STATE}
    sizes |= {"segment_size": upper} if upper else {}
    taken = {name: size for name, size in sizes.items() if name in signature(kind).parameters}
    return Case(memory, summary, lambda: kind(**{**taken, **more}), upper or 3, weighed)


CASES: dict[str, Case] = {
    "initial-linear": case_of(InitialState, 6, 5, state_count=2),
    "initial-copy": case_of(InitialState, 6, 4, state_count=2, start="copy"),
    "every-step-linear": case_of(EveryStep, 6, 5, state_count=2),
    "every-step-copy": case_of(EveryStep, 6, 4, state_count=2, start="copy"),
    "additive-linear": case_of(Attention, 6, 5, size=3),
    "additive-copy": case_of(Attention, 6, 4, size=3, start="copy"),
    "additive-one-size": case_of(Attention, 6, 6, size=3, summary_size=None),
    "dot-linear": case_of(Attention, 4, 5, score="dot"),
    "dot-copy": case_of(Attention, 4, 4, score="dot", start="copy", summary_size=None),
    "general-linear": case_of(Attention, 6, 5, score="general"),
    "general-copy": case_of(Attention, 6, 4, score="general", start="copy"),
    "pooling-linear": case_of(AttentionPooling, 6, 5, size=3, state_count=2),
    "pooling-copy": case_of(AttentionPooling, 4, 5, size=3, start="copy"),
    "pooling-join-linear": case_of(
        AttentionPooling, 6, 5, size=3, state_count=2, join_summary=True
    ),
    "pooling-join-copy": case_of(AttentionPooling, 3, 1, size=3, start="copy", join_summary=True),
    "pooling-join-segments": case_of(AttentionPooling, 6, 5, upper=3, size=3, join_summary=True),
    "pooling-segments": case_of(AttentionPooling, 6, 5, upper=3, size=3, state_count=2),
    "pooling-segments-evenly": case_of(
        AttentionPooling, 6, 5, upper=4, weighed=False, size=3, start="copy"
    ),
    "two-level-linear": case_of(TwoLevelAttention, 6, 5, upper=3, size=3, state_count=2),
    "two-level-copy": case_of(
        TwoLevelAttention, 6, 4, upper=4, size=3, start="copy", summary_size=None
    ),
    "location-linear": case_of(LocationAttention, 6, 5, size=3),
    "location-copy": case_of(LocationAttention, 6, 4, size=3, radius=1, start="copy"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, in_64_bits: None) -> Case:
    return CASES[request.param]


@pytest.fixture
def bridge(case: Case) -> Bridge:
    return case.make().eval()


@pytest.fixture
def source(case: Case) -> Encoded:
    return case.source()


@pytest.fixture
def query(in_64_bits: None) -> Tensor:
    return torch.randn(3, STATE, requires_grad=True)


def output(bridge: Bridge, source: Encoded, query: Tensor) -> tuple[Tensor, Context]:
    """The initial state and one context, the second where steps receive where attention was."""
    prepared = bridge.start(source)
    context = bridge.step(query, prepared)
    if context.attended is not None:
        context = bridge.step_from(query, prepared, context.attended)
    return prepared.first_state, context


def levels(
    source: Encoded, longer: Encoded, bridge: Bridge
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Of each level that a bridge reads: the vectors of a source, of a longer one, and its mask."""
    if reads_memory(bridge):
        yield source.memory, longer.memory, longer.mask
    if attends_to_segments(bridge):
        assert source.segments is not None
        assert longer.segments is not None
        yield source.segments.memory, longer.segments.memory, longer.segments.mask


def test_every_bridge_has_a_case() -> None:
    covered = {type(case.make()) for case in CASES.values()}
    assert covered == set(BRIDGES.values())


def test_sizes_are_as_announced(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = output(bridge, source, query)
    assert first.shape[0] == 3
    assert first.shape[1] % STATE == 0
    assert context.vector.shape == (3, bridge.context_size)
    assert (context.weights is not None) == bridge.has_attention


def test_padding_has_no_influence(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = output(bridge, source, query)
    first_again, context_again = output(bridge, stretched_source(source, 3), query)
    torch.testing.assert_close(first_again, first)
    torch.testing.assert_close(context_again.vector, context.vector)
    if context.weights is not None:
        assert context_again.weights is not None
        torch.testing.assert_close(context_again.weights[:, :4], context.weights)
        assert not context_again.weights[:, 4:].any()


def test_padding_has_no_influence_on_gradients(
    bridge: Bridge, source: Encoded, query: Tensor
) -> None:
    first, context = output(bridge, source, query)
    before = gradients(bridge, weighed(first, context.vector))
    longer = stretched_source(source, 3)
    first, context = output(bridge, longer, query)
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


def test_rows_have_no_influence_on_each_other(
    bridge: Bridge, source: Encoded, query: Tensor
) -> None:
    first, context = output(bridge, source, query)
    for row in range(3):
        own_first, own = output(bridge, alone(source, row), query[row : row + 1])
        torch.testing.assert_close(own_first[0], first[row])
        torch.testing.assert_close(own.vector[0], context.vector[row])


def test_every_weight_learns(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = output(bridge.train(), source, query)
    assert not unlearned(gradients(bridge, weighed(first, context.vector)))


def test_the_encoder_learns_through_it(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    first, context = output(bridge, source, query)
    weighed(first, context.vector).backward()  # type: ignore[no-untyped-call]
    assert (source.summary.grad is not None) == bridge.reads_summary
    if source.summary.grad is not None:
        assert source.summary.grad.any(dim=1).all()
    assert (query.grad is not None) == bridge.follows_state
    assert source.segments is not None
    assert (source.memory.grad is not None) == reads_memory(bridge)
    assert (source.segments.memory.grad is not None) == attends_to_segments(bridge)
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()
    # the only segment of a text has the weight 1 whatever is in it
    if source.segments.memory.grad is not None:
        several = source.segments.mask & (source.segments.mask.sum(1, keepdim=True) > 1)
        assert source.segments.memory.grad[several].any(dim=1).all()


def test_saving_keeps_every_bit(
    bridge: Bridge, case: Case, source: Encoded, query: Tensor, tmp_path: Path
) -> None:
    first, context = output(bridge, source, query)
    first_again, again = output(reloaded(bridge, case.make, tmp_path), source, query)
    assert torch.equal(first_again, first)
    assert torch.equal(again.vector, context.vector)


def test_weights_are_a_distribution_over_real_positions(
    bridge: Bridge, source: Encoded, query: Tensor
) -> None:
    weights = output(bridge, source, 10 * query)[1].weights
    assert (weights is not None) == bridge.has_attention
    if weights is not None:
        assert (weights >= 0).all()
        assert torch.equal(weights[~source.mask], torch.zeros(int((~source.mask).sum())))
        torch.testing.assert_close(weights.sum(1), torch.ones(3))


def test_a_row_of_padding_gives_zeros(bridge: Bridge, case: Case, query: Tensor) -> None:
    source = stretched_source(case.source(lengths=(3, 0, 2)), 1)
    first, context = output(bridge, source, query)
    if bridge.has_attention:
        assert context.weights is not None
        assert not context.weights[1].any()
        assert not context.vector[1].any()
    found = gradients(bridge, weighed(first, context.vector))
    assert source.segments is not None
    leaves = (source.memory, source.segments.memory, query)
    learned = [*found.values(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]
    assert all(tensor.isfinite().all() for tensor in [first, context.vector, *learned])


def test_two_sources_never_mix(bridge: Bridge, case: Case, source: Encoded, query: Tensor) -> None:
    wanted = bridge.step(query, bridge.start(source)).vector
    opened = bridge.start(source)
    other = bridge.start(case.source(lengths=(2, 4, 4)))
    bridge.step(query, other)
    assert torch.equal(bridge.step(query, opened).vector, wanted)


@pytest.mark.parametrize("change", ["pick", "repeat"])
def test_picked_and_repeated_rows_are_the_same_rows(
    bridge: Bridge, source: Encoded, query: Tensor, change: str
) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    prepared = bridge.start(source)
    chosen: Prepared = prepared.pick(rows) if change == "pick" else prepared.repeat(2)
    wanted, got = bridge.step(query, prepared), bridge.step(query[rows], chosen)
    torch.testing.assert_close(chosen.first_state, prepared.first_state[rows])
    torch.testing.assert_close(got.vector, wanted.vector[rows])
    assert (got.weights is None) == (wanted.weights is None)
    if got.weights is not None and wanted.weights is not None:
        torch.testing.assert_close(got.weights, wanted.weights[rows])


def test_deterministic_when_not_training(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    one, two = output(bridge, source, query), output(bridge, source, query)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1].vector, two[1].vector)


def test_nothing_is_kept_between_calls(bridge: Bridge, source: Encoded, query: Tensor) -> None:
    before = held(bridge)
    output(bridge, source, query)
    assert held(bridge) == before


def test_what_follows_the_state_depends_on_it_and_nothing_else_does(
    bridge: Bridge, source: Encoded
) -> None:
    prepared = bridge.start(source)
    one, two = (bridge.step(query, prepared) for query in torch.randn(2, 3, STATE))
    assert torch.equal(one.vector, two.vector) != bridge.follows_state
    if one.weights is not None and two.weights is not None:
        assert torch.equal(one.weights, two.weights) != bridge.follows_state


def test_every_weight_has_a_letter_and_the_bridge_its_equations(bridge: Bridge) -> None:
    assert not nameless(bridge)
    assert bridge.equations()
