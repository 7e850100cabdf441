"""The pointer decoder: what may come when, and search with it against every possible order."""

import math
from itertools import permutations
from typing import Literal

import pytest
import torch
from torch import nn

from sixjars.decoding import Searcher
from sixjars.flow.contracts import Bridge
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Encoded, Padded
from sixjars.loss import token_loss
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.initial import InitialState
from sixjars.model.build import Network
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.special_tokens import GO, PAD, STOP, UNK

pytestmark = pytest.mark.usefixtures("in_64_bits")

SIZE, STATE = 4, 6
Visits = Literal["all", "some"]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def pointer(visits: Visits = "all", *, follows: bool = False, sharp: float = 4.0) -> PointerDecoder:
    """A decoder that prefers some orders clearly to others."""
    bridge: Bridge = InitialState(summary_size=SIZE, state_size=STATE)
    if follows:
        bridge = Attention(source_size=SIZE, state_size=STATE)
    made = PointerDecoder(
        bridge=bridge, source_size=SIZE, cell="rnn", size=STATE, attention=5, visits=visits
    )
    with torch.no_grad():
        made.score.weight.mul_(sharp)
    return made.eval()


def source(*lengths: int) -> Encoded:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Encoded(
        torch.randn(*mask.shape, SIZE) * mask[..., None], mask, torch.randn(len(lengths), SIZE)
    )


def found(
    decoder: PointerDecoder, read: Encoded, settings: SearchSettings
) -> list[list[Hypothesis]]:
    return decoder.answer(read, Searcher(settings))


def orders(points: int, visits: Visits) -> list[tuple[int, ...]]:
    """Every order that a pointer may output, as tokens without `<stop>`."""
    lengths = [points] if visits == "all" else range(1, points + 1)
    return [order for length in lengths for order in permutations(range(4, 4 + points), length)]


def log_probability(decoder: PointerDecoder, read: Encoded, order: tuple[int, ...]) -> float:
    target = Padded.of([[*order, STOP]])
    with torch.no_grad():
        return -float(token_loss(decoder.teach(read, target).logits, target).sum())


# What may come


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("visits", ["all", "some"])
@pytest.mark.parametrize("points", [1, 2, 4])
def test_the_probabilities_of_all_orders_add_up_to_one(
    points: int, visits: Visits, follows: bool
) -> None:
    decoder, read = pointer(visits, follows=follows), source(points)
    total = math.fsum(
        math.exp(log_probability(decoder, read, order)) for order in orders(points, visits)
    )
    assert total == pytest.approx(1.0, abs=1e-12)


def test_stop_is_certain_when_nothing_is_left_and_impossible_before() -> None:
    logits = pointer().teach(source(3), Padded.of([[5, 4, 6, STOP]])).logits
    assert torch.equal(logits.softmax(-1)[0, :, STOP], torch.tensor([0.0, 0.0, 0.0, 1.0]))
    some = (
        pointer("some")
        .teach(source(3), Padded.of([[5, 4, 6, STOP]]))
        .logits.softmax(-1)[0, :, STOP]
    )
    assert some[0] == 0
    assert 0 < some[1] < 1
    assert 0 < some[2] < 1
    assert some[3] == 1


@pytest.mark.parametrize("visits", ["all", "some"])
@pytest.mark.parametrize("row", [[4, 4, 4, STOP], [PAD, GO, UNK, 99], [STOP, STOP, 5, 5]])
def test_a_target_that_cannot_be_is_still_a_number(visits: Visits, row: list[int]) -> None:
    decoder, read = pointer(visits).train(), source(3)
    target = Padded(torch.tensor([row, [5, 4, 6, STOP]]), torch.tensor([[False] * 4, [True] * 4]))
    read = read.repeat(2)
    output = decoder.teach(read, target)
    reachable = Padded(target.values.clamp(max=6), target.mask)
    token_loss(output.logits, reachable).sum().backward()  # type: ignore[no-untyped-call]
    assert output.logits.isfinite().all()
    assert output.weights is not None
    assert output.weights.isfinite().all()
    assert all(
        weight.grad is not None and weight.grad.isfinite().all() for weight in decoder.parameters()
    )


def test_what_may_not_come_has_no_chance_in_half_precision() -> None:
    torch.set_default_dtype(torch.float32)  # what autocast turns into 16 bits
    decoder, read = pointer("some"), source(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = decoder.teach(read, Padded.of([[5, 4, STOP]]))
        stepped, _ = decoder.step(torch.tensor([GO]), *decoder.start(read))
    assert output.logits.isfinite().all()
    assert output.logits.float().softmax(-1)[0, 2, 4:].gt(0).tolist() == [False, False, True]
    assert stepped.log_probabilities.isinf()[0].tolist() == [True] * 4 + [False] * 3


# Search


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("follows", [False, True])
def test_every_order_that_is_found_visits_all_once(
    kind: Literal["greedy", "sample", "beam"], follows: bool
) -> None:
    settings = SearchSettings(kind=kind, nbest=1 if kind == "greedy" else 4, width=4)
    lengths = (5, 1, 3)
    for length, several in zip(
        lengths, found(pointer(follows=follows), source(*lengths), settings), strict=True
    ):
        assert several
        for one in several:
            assert one.finished
            assert sorted(one.tokens) == list(range(4, 4 + length))


@pytest.mark.parametrize("visits", ["all", "some"])
def test_a_wide_beam_finds_the_best_orders_of_all(visits: Visits) -> None:
    decoder, read = pointer(visits, follows=True), source(4)
    settings = SearchSettings(kind="beam", width=80, nbest=80, length_penalty=0)
    [several] = found(decoder, read, settings)
    by_hand = {order: log_probability(decoder, read, order) for order in orders(4, visits)}
    wanted = sorted(by_hand, key=by_hand.__getitem__, reverse=True)
    # and none besides, though the beam has room for more
    assert [one.tokens for one in several] == wanted
    for one in several:
        assert one.log_probability == pytest.approx(by_hand[one.tokens], abs=1e-9)


def test_weights_are_where_it_points() -> None:
    [[one]] = found(pointer(), source(4), SearchSettings())
    for token, weights in zip(one.tokens, one.weights, strict=False):
        assert token - 4 == max(range(4), key=weights.__getitem__)
    assert sum(one.weights[-1]) == 0  # at <stop> there is nothing left to point at


# Learning


def test_it_learns_to_sort() -> None:
    bridge = InitialState(summary_size=24, state_size=24)
    network = Network(
        PointsEncoder(dimensions=1, embedding=16, size=24),
        PointerDecoder(bridge=bridge, source_size=24, size=24, attention=24),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(150):
        points, target = numbers(64)
        loss = token_loss(network({"points": points}, target).logits, target).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    points, target = numbers(200)
    with torch.no_grad():
        decoder = network.eval().decoder
        hypotheses = decoder.answer(network.encode({"points": points}), Searcher(SearchSettings()))
    right = [
        [*one.tokens, STOP] == truth.tolist()
        for [one], truth in zip(hypotheses, target.values, strict=True)
    ]
    assert sum(right) > 140  # by chance 33


def numbers(rows: int) -> tuple[Padded, Padded]:
    """Three numbers to be sorted, and the order that does it."""
    values = torch.rand(rows, 3)
    order = torch.cat([values.argsort(1) + 4, torch.full((rows, 1), STOP)], dim=1)
    return Padded(values[..., None], torch.ones(rows, 3).bool()), Padded(
        order, torch.ones(rows, 4).bool()
    )
