"""Search for outputs, greedily, by sampling or by a beam: the toolkit's own search, in numpy.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions, t
tokens output so far, T all steps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sixjars_runtime.exported.search.beam import beam
from sixjars_runtime.exported.search.problem import (
    FEWER,
    Attended,
    Hypothesis,
    Problem,
    Step,
    Tensors,
    hypotheses_of,
    picked,
)
from sixjars_runtime.exported.search.sampling import draw, likely, row_seeds
from sixjars_runtime.exported.search.scores import NEVER, Bools, Floats, Ints, Ranking, best_tokens
from sixjars_runtime.exported.search.settings import SearchSettings
from sixjars_runtime.special_tokens import SpecialTokens


def search(  # noqa: PLR0913 - what search knows of a model, and what a caller may add
    step: Step,
    state: Tensors,
    prepared: Tensors,
    settings: SearchSettings,
    special: SpecialTokens,
    *,
    mask: Bools,
    longest: int | None = None,
    prefix: tuple[Ints, Bools] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search for at least one hypothesis of each source, and return the best first.

    State, what is prepared, mask (B, S) and prefix have a row for each source. `longest` replaces
    `max_length` where the source decides. What is drawn for a source depends on its own seed, and
    on nothing else in the batch.
    """
    if not len(mask):
        return []
    rows = np.repeat(np.arange(len(mask)), settings.rows)
    ranking = Ranking(
        settings.length_penalty,
        settings.coverage_penalty,
        mask if settings.coverage_penalty else None,
    )
    numbers = range(len(mask)) if seeds is None else seeds
    problem = Problem(
        step,
        prepared,
        len(mask),
        longest or settings.max_length,
        settings,
        special,
        ranking,
        None,
        prefix,
    )
    problem, state = problem.pick(rows), picked(state, rows)
    if settings.kind == "sample":
        problem = replace(problem, seeds=row_seeds(settings.seed, numbers, settings.rows))
    return KINDS[settings.kind](problem, state)


def greedy(problem: Problem, state: Tensors) -> list[list[Hypothesis]]:
    """Take the most probable token at every step, for one hypothesis of each source."""
    return _row_by_row(
        problem, state, lambda _, allowed_RV, __: best_tokens(allowed_RV, 1)[1][:, 0]
    )


def sample(problem: Problem, state: Tensors) -> list[list[Hypothesis]]:
    """Draw `nbest` outputs for each source, the most probable first; two may be the same."""
    hypotheses = _row_by_row(problem, state, _drawn)
    return [
        sorted(drawn, key=lambda each: each.log_probability, reverse=True) for drawn in hypotheses
    ]


def _drawn(problem: Problem, allowed_RV: Floats, steps: int) -> Ints:
    settings, scores_RV, tokens_RV = (
        problem.settings,
        allowed_RV / np.float32(problem.settings.temperature),
        None,
    )
    assert problem.seeds is not None
    if settings.top_k or settings.top_p < 1.0:
        scores_RV, tokens_RV = likely(scores_RV, top_k=settings.top_k, top_p=settings.top_p)
    return draw(scores_RV, problem.seeds, steps, tokens_RV)


def _row_by_row(
    problem: Problem, state: Tensors, choose: Callable[[Problem, Floats, int], Ints]
) -> list[list[Hypothesis]]:
    """Choose the tokens of each row by themselves, and return one hypothesis for each.

    A row ends with `<stop>`, at the limit, or where no token may follow; only the first is
    finished.
    """
    every, ranking, attended = problem.count, problem.ranking, Attended()
    places, open_R, token_R = (
        np.arange(every),
        np.ones(every, dtype=bool),
        np.full(every, problem.special.go),
    )
    total, covered, reads = (
        np.zeros(every, dtype=np.float32),
        None,
        problem.settings.no_repeat_ngram > 0,
    )
    count, finished, output = (
        np.zeros(every, dtype=np.int64),
        np.zeros(every, dtype=bool),
        list[Ints](),
    )
    for steps in range(problem.longest):
        before_Rt = (
            np.stack(output, axis=1)[places]
            if output and reads
            else np.zeros((len(places), 0), dtype=np.int64)
        )
        allowed_RV, weights_RS, state = problem.step_on(token_R, state, before_Rt, steps)
        token_R = choose(problem, allowed_RV, steps)
        gained_R = np.take_along_axis(allowed_RV, token_R[:, None], 1)[:, 0]
        goes_R = open_R & (gained_R > NEVER)
        stops_R = token_R == problem.special.stop
        total[places] += np.where(goes_R, gained_R, np.float32(0))
        count[places] += goes_R & ~stops_R
        finished[places] |= goes_R & stops_R
        open_R = goes_R & ~stops_R
        column = np.zeros(every, dtype=np.int64)
        column[places] = token_R
        output.append(column)
        attended.add(places, weights_RS)
        if ranking.coverage_penalty:
            covered = _summed(ranking.covered(None, weights_RS), covered, places, goes_R, every)
        going_B = open_R.reshape(-1, problem.settings.rows).any(1)
        if not going_B.any():
            break
        if going_B.sum() <= FEWER * len(going_B):
            rows = problem.rows_of(going_B.nonzero()[0])
            problem, state = problem.pick(rows), picked(state, rows)
            places, open_R, token_R = places[rows], open_R[rows], token_R[rows]
    score = ranking.scores(total, count + finished, ranking.penalty(covered))
    weights = attended.of(np.broadcast_to(np.arange(every), (len(output), every)))
    return hypotheses_of(
        np.stack(output, axis=1), score, total, count, finished, weights, problem.settings.rows
    )


def _summed(
    weights: Floats | None, before: Floats | None, places: Ints, goes: Bools, every: int
) -> Floats:
    """Add the weights of one more step to those of all rows, (R, S)."""
    assert weights is not None
    whole = np.zeros((every, weights.shape[1]), dtype=np.float32) if before is None else before
    whole[places] += weights * goes[:, None]
    return whole


KINDS: Mapping[str, Callable[[Problem, Any], list[list[Hypothesis]]]] = {
    "greedy": greedy,
    "sample": sample,
    "beam": beam,
}
