"""Beam search against every sequence there is.

The table model's next token depends on the source, on the token before the last (which only its
state knows) and on the last one: a state in the wrong row, or a row that strays to another source,
changes what is found.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from sixjars.decoding import beam_rows, search
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Padded, State, StepOutput
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.special_tokens import SpecialTokens

GO, STOP, A, B, C = range(5)
SIZE, POSITIONS = 5, 4
SPECIAL = SpecialTokens(go=GO, stop=STOP)
Allowed = Callable[[tuple[int, ...]], set[int]]
ROUNDING = 1e-5
"""Log probabilities have 32 bits, so seven digits, of which sums lose one."""


@dataclass(frozen=True)
class Table:
    """log P and attention for each (source, token before the last, last token)."""

    log_probabilities: Tensor
    weights: Tensor
    mask: Tensor

    @classmethod
    def random(cls, seed: int, sources: int = 1, sharpness: float = 1.5) -> "Table":
        chance = torch.Generator().manual_seed(seed)
        scores = torch.randn(sources, SIZE, SIZE, SIZE, generator=chance) * sharpness
        weights = torch.randn(sources, SIZE, SIZE, POSITIONS, generator=chance) * 2
        mask = torch.arange(POSITIONS) < torch.randint(
            2, POSITIONS + 1, (sources, 1), generator=chance
        )
        weights = weights.masked_fill(~mask[:, None, None], -torch.inf)
        return cls(scores.log_softmax(-1), weights.softmax(-1), mask)

    def only(self, source: int) -> "Table":
        rows = slice(source, source + 1)
        return Table(self.log_probabilities[rows], self.weights[rows], self.mask[rows])

    def search(
        self, settings: SearchSettings, prefixes: list[list[int]] | None = None
    ) -> list[list[Hypothesis]]:
        copies = beam_rows(settings)
        # stays where it is, as keys do
        source = torch.arange(len(self.mask)).repeat_interleave(copies)

        def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
            before = state.hidden[:, 0, 0].long()
            seen = source, before, token
            return StepOutput(self.log_probabilities[seen], self.weights[seen]), State(
                token[:, None, None].float()
            )

        start = State(torch.full((len(self.mask), 1, 1), float(GO))).repeat(copies)
        prefix = None if prefixes is None else Padded.of(prefixes).repeat(copies)
        return search(step, start, settings, SPECIAL, prefix=prefix, mask=self.mask[source])

    def replayed(self, source: int, tokens: tuple[int, ...]) -> tuple[float, list[list[float]]]:
        """log P and the weights at each step, one Python number at a time."""
        before, last, total, weights = GO, GO, 0.0, []
        for token in tokens:
            total += self.log_probabilities[source, before, last, token].item()
            weights.append(self.weights[source, before, last].tolist())
            before, last = last, token
        return total, weights

    def score(self, source: int, tokens: tuple[int, ...], settings: SearchSettings) -> float:
        total, weights = self.replayed(source, tokens)
        real = [at for at in range(POSITIONS) if self.mask[source, at]]
        covered = sum(math.log(min(sum(row[at] for row in weights), 1.0)) for at in real)
        return (
            total / math.pow(len(tokens), settings.length_penalty)
            + settings.coverage_penalty * covered
        )

    def everything(
        self, source: int, settings: SearchSettings, allowed: Allowed
    ) -> list[tuple[int, ...]]:
        """All there is, the best first, then what is unfinished; `<stop>` included."""

        def longer(written: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            for token in allowed(written):
                now = (*written, token)
                if token == STOP or len(now) == settings.max_length:
                    yield now
                else:
                    yield from longer(now)

        found = [each for each in longer(()) if self.replayed(source, each)[0] > -math.inf]
        return sorted(
            found, key=lambda each: (each[-1] != STOP, -self.score(source, each, settings))
        )


def free(written: tuple[int, ...]) -> set[int]:
    return {STOP, A, B, C}


def by_rules(settings: SearchSettings, prefix: tuple[int, ...]) -> Allowed:
    size = settings.no_repeat_ngram

    def allowed(written: tuple[int, ...]) -> set[int]:
        if len(written) < len(prefix):
            return {prefix[len(written)]}
        tokens = {
            token for token in free(written) if size == 0 or not repeats((*written, token), size)
        }
        early = len(written) < settings.min_length and tokens != {STOP}
        return tokens - {STOP} if early else tokens

    return allowed


def repeats(tokens: tuple[int, ...], size: int) -> bool:
    """Whether the last n-gram was there before."""
    ngrams = [tokens[at : at + size] for at in range(len(tokens) - size + 1)]
    return bool(ngrams) and ngrams[-1] in ngrams[:-1]


def whole(found: Hypothesis) -> tuple[int, ...]:
    return (*found.tokens, STOP) if found.finished else found.tokens


# there are 3^4 beginnings and 1 + 3 + 9 + 27 ends
WIDE = SearchSettings(kind="beam", width=200, max_length=4)
CASES = [
    WIDE.model_copy(update={"length_penalty": alpha, "coverage_penalty": beta, "nbest": nbest})
    for alpha in (0.0, 0.6, 1.0)
    for beta in (0.0, 0.3)
    for nbest in (1, 5)
]


@pytest.mark.parametrize("seed", range(20))
def test_wide_beam_finds_the_best_there_is(seed: int) -> None:
    table = Table.random(seed)
    for settings in CASES:
        expected = table.everything(0, settings, free)[: settings.nbest]
        (found,) = table.search(settings)
        assert [whole(each) for each in found] == expected
        assert [each.score for each in found] == pytest.approx(
            [table.score(0, e, settings) for e in expected], rel=ROUNDING
        )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("prefix", [(), (B,), (A, A, A)], ids=["free", "one", "three"])
def test_wide_beam_with_rules_finds_the_best_there_is(seed: int, prefix: tuple[int, ...]) -> None:
    table = Table.random(seed)
    for update in (
        {"min_length": 2},
        {"no_repeat_ngram": 1},
        {"no_repeat_ngram": 2, "min_length": 3},
        {"no_repeat_ngram": 1, "min_length": 4, "max_length": 5},
    ):
        settings = WIDE.model_copy(update={"nbest": 4, **update})
        expected = table.everything(0, settings, by_rules(settings, prefix))[: settings.nbest]
        (found,) = table.search(settings, [list(prefix)])
        assert [whole(each) for each in found] == expected
        assert [each.score for each in found] == pytest.approx(
            [table.score(0, e, settings) for e in expected], rel=ROUNDING
        )


def by_hand(table: Table, source: int, settings: SearchSettings) -> list[tuple[int, ...]]:
    """Beam search over Python lists, to the very last step, `<stop>` included."""
    width = settings.width
    beginnings: list[tuple[int, ...]] = [()]
    ends: list[tuple[int, ...]] = []
    for _ in range(settings.max_length):
        grown = [(*begun, token) for begun in beginnings for token in free(begun)]
        grown.sort(key=lambda tokens: -table.replayed(source, tokens)[0])
        ends += [tokens for tokens in grown[:width] if tokens[-1] == STOP]
        beginnings = [tokens for tokens in grown if tokens[-1] != STOP][:width]
    ends.sort(key=lambda tokens: -table.score(source, tokens, settings))
    beginnings.sort(key=lambda tokens: -table.score(source, tokens, settings))
    return [*ends, *beginnings][: settings.nbest]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_narrow_beam_against_a_loop(width: int, seed: int) -> None:
    table = Table.random(seed, sources=4)
    for alpha, beta in ((0.0, 0.0), (0.6, 0.0), (1.0, 0.3), (2.0, 0.0)):
        settings = SearchSettings(
            kind="beam",
            width=width,
            nbest=width,
            max_length=7,
            length_penalty=alpha,
            coverage_penalty=beta,
        )
        found = [[whole(each) for each in some] for some in table.search(settings)]
        assert found == [by_hand(table, source, settings) for source in range(4)]


def test_everything_there_is_comes_back_when_asked_for() -> None:
    settings = WIDE.model_copy(update={"nbest": 200, "max_length": 3})
    table = Table.random(0)
    (found,) = table.search(settings)
    assert [whole(each) for each in found] == table.everything(0, settings, free)
    assert len(found) == (1 + 3 + 9) + 27
    assert [each.finished for each in found] == [True] * 13 + [False] * 27


@pytest.mark.parametrize("seed", range(20))
def test_width_one_without_length_penalty_is_greedy(seed: int) -> None:
    table = Table.random(seed, sources=3)
    narrow = SearchSettings(kind="beam", width=1, max_length=8, length_penalty=0.0)
    greedy = narrow.model_copy(update={"kind": "greedy"})
    assert table.search(narrow) == table.search(greedy)


@pytest.mark.parametrize("kind", ["greedy", "beam"])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_sources_do_not_see_each_other(kind: str, beta: float) -> None:
    table = Table.random(1, sources=6)
    settings = SearchSettings.model_validate(
        {"kind": kind, "width": 3, "nbest": 2, "max_length": 9, "coverage_penalty": beta}
    )
    prefixes = [[], [A], [B, C], [C], [], [A, A, B]]
    together = table.search(settings, prefixes)
    alone = [
        table.only(source).search(settings, [prefix])[0] for source, prefix in enumerate(prefixes)
    ]
    assert together == alone
    for prefix, found in zip(prefixes, together, strict=True):
        assert all(each.tokens[: len(prefix)] == tuple(prefix) for each in found)


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("seed", range(5))
def test_score_and_weights_of_each_hypothesis_are_its_own(kind: str, seed: int) -> None:
    table = Table.random(seed, sources=4)
    penalties = {"length_penalty": 0.6, "coverage_penalty": 0.2, "no_repeat_ngram": 2}
    settings = SearchSettings.model_validate(
        {
            "kind": kind,
            "width": 4,
            "nbest": 3,
            "max_length": 7,
            "temperature": 0.7,
            "top_k": 3,
            **penalties,
        }
    )
    for source, found in enumerate(table.search(settings)):
        assert len(found) == (1 if kind == "greedy" else 3)
        for each in found:
            total, weights = table.replayed(source, whole(each))
            assert each.log_probability == pytest.approx(total, rel=ROUNDING)
            assert each.score == pytest.approx(
                table.score(source, whole(each), settings), rel=ROUNDING
            )
            assert [list(row) for row in each.weights] == weights
            assert each.finished or len(each.tokens) == settings.max_length


def blocked(table: Table, *ways: tuple[int, int]) -> Table:
    """The table with these (last, next) pairs made impossible, the rest as it was."""
    scores = table.log_probabilities.clone()
    for last, following in ways:
        scores[:, :, last, following] = -torch.inf
    return replace(table, log_probabilities=scores)


@pytest.mark.parametrize("seed", range(10))
def test_fewer_living_hypotheses_than_places(seed: int) -> None:
    only_a_after_go = [
        (GO, STOP),
        (GO, B),
        (GO, C),
        (A, A),
        (A, STOP),
        (C, A),
        (C, B),
        (C, C),
        (C, STOP),
    ]
    table = blocked(Table.random(seed), *only_a_after_go)  # and nothing at all after C
    settings = WIDE.model_copy(update={"nbest": 100})
    (found,) = table.search(settings)
    assert [whole(each) for each in found] == table.everything(0, settings, free)
    assert all(each.log_probability > -math.inf for each in found)


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
def test_dead_end_leaves_what_was_output(kind: str) -> None:
    nothing_after_b = [(B, each) for each in range(SIZE)]
    two_steps = [(GO, STOP), (GO, B), (GO, C), (A, STOP), (A, A), (A, C)]
    table = blocked(Table.random(0, sources=2), *nothing_after_b, *two_steps)
    settings = SearchSettings.model_validate({"kind": kind, "width": 3, "nbest": 2})
    for source, found in enumerate(table.search(settings)):
        assert {(each.tokens, each.finished) for each in found} == {((A, B), False)}
        assert found[0].log_probability == pytest.approx(
            table.replayed(source, (A, B))[0], rel=ROUNDING
        )
        assert len(found[0].weights) == 2


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
def test_model_that_allows_nothing_gives_an_empty_hypothesis(kind: str) -> None:
    table = blocked(Table.random(0), *[(GO, each) for each in range(SIZE)])
    ((found,),) = table.search(
        SearchSettings.model_validate({"kind": kind, "coverage_penalty": 0.1})
    )
    assert found == Hypothesis(
        tokens=(), score=0.0, log_probability=0.0, weights=(), finished=False
    )


def test_dead_rows_beside_a_finished_one_are_not_returned() -> None:
    stop_after_a = [(A, A), (A, B), (A, C)]
    nothing_after_b = [(B, each) for each in range(SIZE)]
    table = blocked(Table.random(3), *stop_after_a, *nothing_after_b, (GO, C), (GO, STOP))
    (found,) = table.search(WIDE.model_copy(update={"nbest": 9}))
    assert [(each.tokens, each.finished) for each in found] == [((A,), True)]


@pytest.mark.parametrize("seed", range(10))
def test_one_token_is_all_there_is_room_for(seed: int) -> None:
    table = Table.random(seed)
    settings = WIDE.model_copy(update={"max_length": 1, "nbest": 4})
    (found,) = table.search(settings)
    rest = sorted((A, B, C), key=lambda token: -table.log_probabilities[0, GO, GO, token].item())
    assert [each.tokens for each in found] == [(), *((token,) for token in rest)]
    assert [each.finished for each in found] == [True, False, False, False]
    assert [len(each.weights) for each in found] == [1, 1, 1, 1]


@pytest.mark.parametrize(("stop", "alpha", "steps"), [(0.6, 0.0, 1), (0.6, 1.0, 12), (0.5, 0.0, 1)])
def test_beam_stops_once_nothing_can_get_better(stop: float, alpha: float, steps: int) -> None:
    """P(<stop>) is 0.6 at every step. Without a length penalty the first <stop> cannot be beaten,
    nor where it is 0.5.

    With α = 1 and at most 20 tokens it has log 0.6 = -0.51, and the token beside it (0.4) may still
    come to t log 0.4 / 20 = -0.046 t after t steps, so that it is given up only when 0.046 t >
    0.51: at step 12.
    """
    made = 0

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        nonlocal made
        made += 1
        return StepOutput(torch.tensor([0.0, stop, 1 - stop]).log().expand(len(token), 3)), state

    settings = SearchSettings(kind="beam", width=2, max_length=20, length_penalty=alpha)
    ((found,),) = search(step, State(torch.zeros(2, 1, 1)), settings, SPECIAL)
    assert found.tokens == ()
    assert made == steps
