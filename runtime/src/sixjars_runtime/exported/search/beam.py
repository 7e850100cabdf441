"""Beam search: at every step the K best beginnings of each source, all sources at once.

Dims: B sources, K width of the beam, R = B * K rows, V vocabulary, C = 2K candidates, N hypotheses
      to return, S source positions, T steps so far, t tokens output so far, X = K * C ways to go
      on, or = B * N hypotheses.
"""

from dataclasses import dataclass, fields
from typing import Self, final

import numpy as np

from sixjars_runtime.exported.search.problem import (
    FEWER,
    Attended,
    Hypothesis,
    Problem,
    Tensors,
    hypotheses_of,
    picked,
)
from sixjars_runtime.exported.search.scores import NEVER, Bools, Floats, Ints, best_tokens, highest


@final
@dataclass(frozen=True)
class Ended:
    """Hypotheses that ended, all fields (B, N); a score of -inf is an empty place."""

    score: Floats
    log_probability: Floats
    row: Ints
    """The row, of all, that it was in when the last of its tokens was output."""
    count: Ints
    """How many tokens it has, `<stop>` not counted."""
    finished: Bools
    """Whether `<stop>` came after them."""

    def beside(self, other: Self) -> Self:
        """Return these and the others, to the right of them."""
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return type(self)(*(np.concatenate(pair, axis=1) for pair in pairs))

    def ordered(self, places: Ints) -> Self:
        """Return those in the given places, (B, N)."""
        return type(self)(
            *(np.take_along_axis(getattr(self, each.name), places, 1) for each in fields(self))
        )

    def best(self, most: int) -> Self:
        """Return the best of each source, the best first."""
        return self.ordered(highest(self.score, most)[1])

    def of(self, sources: Ints) -> Self:
        """Return those of some sources."""
        return type(self)(*(getattr(self, each.name)[sources] for each in fields(self)))

    def put(self, sources: Ints, other: Self) -> None:
        """Replace those of some sources."""
        for each in fields(self):
            getattr(self, each.name)[sources] = getattr(other, each.name)


def _empty(sources: int, places: int) -> Ended:
    score, number = np.full((sources, places), NEVER), np.zeros((sources, places), dtype=np.int64)
    return Ended(score, score.copy(), number, number.copy(), number.astype(bool))


def beam(problem: Problem, state: Tensors) -> list[list[Hypothesis]]:
    """Return the `nbest` best hypotheses of each source, the best first.

    Beginnings of one length are compared by log P, ended ones by their score. Twice the width are
    compared, so that `width` go on even if as many output `<stop>`; a `<stop>` counts only among
    the best `width`. A beginning is dropped when nothing it could become would be among the
    `nbest`. Search ends with the last.
    """
    width, longest, nbest = problem.settings.width, problem.longest, problem.settings.nbest
    every, ranking, stop = problem.count, problem.ranking, problem.special.stop
    sources, places = np.arange(every // width), np.arange(every)
    alive_BK = np.full((len(sources), width), NEVER)
    alive_BK[:, 0] = 0.0
    pool, last = _empty(len(sources), nbest), _empty(len(sources), width)
    last.put(
        sources, Ended(alive_BK, alive_BK, places.reshape(-1, width), last.count, last.finished)
    )
    token_R, output_Rt, covered_RS = (
        np.full(every, problem.special.go),
        np.zeros((every, 0), dtype=np.int64),
        None,
    )
    tokens, parents, attended = list[Ints](), list[Ints](), Attended()
    for steps in range(longest):
        allowed_RV, weights_RS, state = problem.step_on(token_R, state, output_Rt, steps)
        attended.add(places, weights_RS)
        covered_RS = ranking.covered(covered_RS, weights_RS)
        log_BC, token_BC, row_BC = _grown(alive_BK, allowed_RV)
        penalty_R = ranking.penalty(covered_RS)
        score_BC = ranking.scores(
            log_BC, steps + 1, None if penalty_R is None else penalty_R[row_BC]
        )
        stops_BC = token_BC == stop
        ended = (
            pool.of(sources)
            .beside(_stopped(score_BC, log_BC, stops_BC, places[row_BC], steps, width))
            .best(nbest)
        )
        pool.put(sources, ended)
        log_BK, place_BK = highest(np.where(stops_BC, NEVER, log_BC), width)
        _go_on(
            last,
            sources,
            np.take_along_axis(np.where(stops_BC, NEVER, score_BC), place_BK, 1),
            log_BK,
            steps + 1,
        )
        alive_BK = np.where(ranking.bound(log_BK, longest) <= ended.score[:, -1:], NEVER, log_BK)
        token_R, row_R = (
            np.take_along_axis(array_BC, place_BK, 1).ravel() for array_BC in (token_BC, row_BC)
        )
        tokens.append(_of_all(places, token_R, every))
        parents.append(_of_all(places, places[row_R], every))
        going_B = np.any(alive_BK > NEVER, axis=1)
        if not going_B.any():
            break
        kept = np.arange(len(row_R))
        if going_B.sum() <= FEWER * len(going_B):
            kept = problem.rows_of(going_B.nonzero()[0])
            problem, sources, alive_BK = problem.pick(kept), sources[going_B], alive_BK[going_B]
            ranking = problem.ranking
        state = picked(state, row_R[kept])
        if problem.settings.no_repeat_ngram:  # to copy all of it at every step takes long
            output_Rt = np.concatenate([output_Rt[row_R], token_R[:, None]], 1)[kept]
        covered_RS = None if covered_RS is None else covered_RS[row_R][kept]
        places, token_R = places[kept], token_R[kept]
    hypotheses = pool.beside(_unfinished(last, pool, longest))
    hypotheses = hypotheses.ordered(
        (hypotheses.score == NEVER).argsort(1, kind="stable")[:, :nbest]
    )
    return _traced(hypotheses, tokens, parents, attended)


def _grown(alive_BK: Floats, allowed_RV: Floats) -> tuple[Floats, Ints, Ints]:
    """Return the best 2K beginnings that are one token longer, as (B, C) arrays, the best first.

    They are log P, token and row.
    """
    sources, width = alive_BK.shape
    size = allowed_RV.shape[1]
    log_RC, token_RC = best_tokens(
        allowed_RV, min(2 * width, size)
    )  # no row can have more of the best
    total_BX = (alive_BK[:, :, None] + log_RC.reshape(sources, width, -1)).reshape(sources, -1)
    log_BC, place_BC = highest(total_BX, min(2 * width, width * size))
    token_BC = np.take_along_axis(token_RC.reshape(sources, -1), place_BC, 1)
    return (
        log_BC,
        token_BC,
        np.arange(0, sources * width, width)[:, None] + place_BC // log_RC.shape[1],
    )


def _stopped(
    score_BC: Floats, log_BC: Floats, stops_BC: Bools, row_BC: Ints, count: int, most: int
) -> Ended:
    """Return the leftmost candidates that ended, as hypotheses of `count` tokens and `<stop>`."""
    stops, row = stops_BC[:, :most], row_BC[:, :most]
    score, log = (np.where(stops, each[:, :most], NEVER) for each in (score_BC, log_BC))
    return Ended(score, log, row, np.full_like(row, count), np.ones_like(stops))


def _go_on(last: Ended, sources: Ints, score_BK: Floats, log_BK: Floats, count: int) -> None:
    """Keep the beginnings of each source that has any that go on."""
    lives = (log_BK > NEVER).any(1)
    last.score[sources[lives]], last.log_probability[sources[lives]] = (
        score_BK[lives],
        log_BK[lives],
    )
    last.count[sources[lives]] = count


def _of_all(places: Ints, values: Ints, every: int) -> Ints:
    """Return a value for each of all rows, 0 where a row is not computed any more."""
    whole = np.zeros(every, dtype=np.int64)
    whole[places] = values
    return whole


def _unfinished(last: Ended, pool: Ended, max_length: int) -> Ended:
    """Return what `<stop>` never ended, (B, K), the best first: beginnings as long as allowed.

    A source without any hypothesis gets its last living beginnings instead, so that it is not left
    with nothing.
    """
    wanted_BK = (last.count == max_length) | (pool.score[:, :1] == NEVER)
    score_BK = np.where(wanted_BK, last.score, NEVER)
    return Ended(score_BK, last.log_probability, last.row, last.count, last.finished).best(
        score_BK.shape[1]
    )


def _traced(
    ended: Ended, tokens: list[Ints], parents: list[Ints], attended: Attended
) -> list[list[Hypothesis]]:
    """Follow the hypotheses of each source backwards from the rows that they ended in."""
    row_X, count_X, rows, written = (
        ended.row.ravel(),
        ended.count.ravel(),
        list[Ints](),
        list[Ints](),
    )
    for step in reversed(range(len(tokens))):
        written.append(tokens[step][row_X])
        # A hypothesis of `count` tokens was in its row before step `count`: only earlier steps
        # moved it there.
        row_X = np.where(step < count_X, parents[step][row_X], row_X)
        rows.append(row_X)
    flat = (ended.score.ravel(), ended.log_probability.ravel(), count_X, ended.finished.ravel())
    weights_XTS = attended.of(np.stack(rows[::-1]))
    return hypotheses_of(np.stack(written[::-1], axis=1), *flat, weights_XTS, ended.score.shape[1])
