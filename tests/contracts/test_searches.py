"""One contract over both searches, torch's and the runtime's: equal problems, equal answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray

import sixjars
from sixjars import Padded, SearchSettings, SpecialTokens, State, StepOutput
from sixjars_runtime.exported import search as light
from sixjars_runtime.exported.search_options import SearchOptions
from sixjars_runtime.special_tokens import SpecialTokens as LightTokens

GO, STOP, PAD, UNK = 1, 2, 0, 3
SETTINGS: list[dict[str, Any]] = [
    {},
    {"kind": "beam", "width": 4, "nbest": 3},
    {"kind": "beam", "width": 3, "nbest": 3, "length_penalty": 0.0},
    {"kind": "beam", "width": 5, "min_length": 4, "no_repeat_ngram": 2},
    {"kind": "beam", "width": 3, "nbest": 2, "coverage_penalty": 0.4, "unknown": "allow"},
    {"coverage_penalty": 0.3, "no_repeat_ngram": 1},
    {"kind": "sample", "nbest": 3, "seed": 5},
    {"kind": "sample", "nbest": 2, "temperature": 0.6, "top_k": 4},
    {"kind": "sample", "nbest": 2, "top_p": 0.8, "min_length": 2},
]
Floats = NDArray[np.float32]
Found = list[list[tuple[tuple[int, ...], float, float, bool, list[list[float]]]]]


@dataclass(frozen=True)
class Toy:
    """A model of random numbers that depend on all that was output, and on the source."""

    seed: int
    sources: int
    words: int = 11
    positions: int = 4
    size: int = 6

    def numbers(self, *shape: int, at: int) -> Floats:
        return np.random.default_rng([self.seed, at]).normal(size=shape).astype(np.float32) * 2

    @property
    def state(self) -> Floats:
        return self.numbers(self.sources, self.size, at=0)

    @property
    def mask(self) -> NDArray[np.bool_]:
        return np.arange(self.positions) < np.random.default_rng(self.seed).integers(
            1, 5, (self.sources, 1)
        )

    @property
    def prefix(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        words = np.random.default_rng(self.seed).integers(4, self.words, (self.sources, 2))
        return words, np.arange(2) < np.arange(self.sources)[:, None] % 3

    def step(
        self, token: NDArray[Any], state: Floats, mask: NDArray[Any]
    ) -> tuple[Floats, Floats, Floats]:
        words = self.numbers(self.words, self.size, at=2)
        after = np.tanh(state @ self.numbers(self.size, self.size, at=1) + words[token])
        logits = after @ self.numbers(self.size, self.words, at=3)
        attention = np.where(mask, np.exp(after @ self.numbers(self.size, self.positions, at=4)), 0)
        scores = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        return scores, attention / attention.sum(1, keepdims=True), after


def by_torch(toy: Toy, how: dict[str, Any], seeds: list[int], *, prefixed: bool) -> Found:
    whole = SearchSettings(**{"max_length": 8, **how})
    rows = sixjars.beam_rows(whole)
    mask = np.repeat(toy.mask, rows, axis=0)

    def step(token: torch.Tensor, state: State) -> tuple[StepOutput, State]:
        scores, weights, after = toy.step(token.numpy(), state.hidden.numpy(), mask)
        return StepOutput(torch.from_numpy(scores), torch.from_numpy(weights)), State(
            torch.from_numpy(after)
        )

    values, real = toy.prefix
    prefix = (
        Padded(torch.from_numpy(values), torch.from_numpy(real)).repeat(rows) if prefixed else None
    )
    state = State(torch.from_numpy(toy.state)).repeat(rows)
    special = SpecialTokens(GO, STOP, (PAD,), UNK)
    found = sixjars.search(
        step, state, whole, special, prefix=prefix, mask=torch.from_numpy(mask), seeds=seeds
    )
    return [
        [
            (
                one.tokens,
                one.score,
                one.log_probability,
                one.finished,
                [list(row) for row in one.weights],
            )
            for one in few
        ]
        for few in found
    ]


def by_runtime(toy: Toy, how: dict[str, Any], seeds: list[int], *, prefixed: bool) -> Found:
    whole = SearchOptions(**SearchSettings(**{"max_length": 8, **how}).model_dump())

    def step(token: NDArray[Any], state: Any, prepared: Any) -> tuple[Any, Any, Any]:
        scores, weights, after = toy.step(token, state["hidden"], prepared["mask"])
        return scores, weights, {"hidden": after}

    found = light.search(
        step,
        {"hidden": toy.state},
        {"mask": toy.mask},
        whole,
        LightTokens(GO, STOP, (PAD,), UNK),
        mask=toy.mask,
        prefix=toy.prefix if prefixed else None,
        seeds=seeds,
    )
    return [
        [
            (
                one.tokens,
                one.score,
                one.log_probability,
                one.finished,
                np.array(one.weights).tolist(),
            )
            for one in few
        ]
        for few in found
    ]


def compare(one: Found, other: Found) -> None:
    assert [[(each[0], each[3]) for each in few] for few in one] == [
        [(each[0], each[3]) for each in few] for few in other
    ]
    for few, others in zip(one, other, strict=True):
        for own, theirs in zip(few, others, strict=True):
            assert own[1:3] == pytest.approx(theirs[1:3], abs=1e-5)
            assert np.allclose(own[4], theirs[4], atol=1e-6)


@pytest.mark.parametrize("how", SETTINGS, ids=str)
@pytest.mark.parametrize("prefixed", [False, True], ids=["free", "prefixed"])
def test_both_searches_find_the_same(how: dict[str, Any], prefixed: bool) -> None:
    for seed in range(4):
        toy, seeds = Toy(seed, sources=7), list(range(10, 17))
        compare(
            by_torch(toy, how, seeds, prefixed=prefixed),
            by_runtime(toy, how, seeds, prefixed=prefixed),
        )


@given(
    some.integers(0, 10**6),
    some.integers(1, 5),
    some.sampled_from(SETTINGS),
    some.integers(40, 200),
)
@settings(max_examples=25, deadline=None)
def test_also_with_longer_vocabularies(
    seed: int, sources: int, how: dict[str, Any], words: int
) -> None:
    toy = Toy(seed, sources, words=words)
    compare(*(by(toy, how, list(range(sources)), prefixed=False) for by in (by_torch, by_runtime)))


def test_nothing_to_search_finds_nothing() -> None:
    assert by_runtime(Toy(0, sources=0), {}, [], prefixed=False) == []


def test_a_penalty_that_needs_attention_says_so() -> None:
    whole = SearchOptions(**SearchSettings(coverage_penalty=0.5).model_dump())
    scores, mask = np.zeros((1, 5), dtype=np.float32), np.ones((1, 2), dtype=bool)
    told = "coverage_penalty needs attention weights, but this model gives none"
    with pytest.raises(Exception, match=told):
        light.search(lambda *_: (scores, None, {}), {}, {}, whole, LightTokens(GO, STOP), mask=mask)
