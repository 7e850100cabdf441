"""What every kind of search has in common: what is searched, and what it finds.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions, t
tokens output so far, T steps, X hypotheses that ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.exported.search.sampling import Bits
from sixjars_runtime.exported.search.scores import (
    NEVER,
    Bools,
    Floats,
    Ints,
    Ranking,
    Rule,
    rule_of,
)
from sixjars_runtime.exported.search.settings import SearchSettings
from sixjars_runtime.special_tokens import SpecialTokens

Tensors = Mapping[str, NDArray[Any]]
"""Tensors by name, each with the rows as its first dimension."""
Step = Callable[[Ints, Tensors, Tensors], tuple[Floats, Floats | None, Tensors]]
"""A token for each row, (R,), a state and what is prepared to log probabilities, attention and a
new state."""
FEWER = 0.75
"""Sources that are done leave when at most this share of them goes on."""


def picked(tensors: Tensors, rows: Ints) -> Tensors:
    """Return some rows of each tensor."""
    return {name: tensor[rows] for name, tensor in tensors.items()}


@final
@dataclass(frozen=True)
class Hypothesis:
    """One output that search found, or the labels that were chosen."""

    tokens: tuple[int, ...]
    """Without `<go>` and `<stop>`; or the labels chosen, most often one."""
    score: float
    """What search ranked it by: higher is better."""
    log_probability: float
    """Of these tokens and, if finished, of `<stop>`."""
    weights: Floats | None = None
    """A row for each token (and one for `<stop>` if finished), over the source positions."""
    finished: bool = True
    """Whether `<stop>` was reached before the limit."""


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: Step
    prepared: Tensors
    """What `step` is given of the sources, a row for each row."""
    count: int
    """R, how many rows there are."""
    longest: int
    """Most tokens of an output, `<stop>` included."""
    settings: SearchSettings
    special: SpecialTokens
    ranking: Ranking
    seeds: Bits | None = None
    """Of sampling, one for each row, (R,)."""
    prefix: tuple[Ints, Bools] | None = None
    """What each row must begin with, and where that is."""

    @cached_property
    def rule(self) -> Rule:
        """The rule for what may not be output next."""
        return rule_of(self.settings, self.special, self.prefix)

    def step_on(
        self, token: Ints, state: Tensors, output: Ints, steps: int
    ) -> tuple[Floats, Floats | None, Tensors]:
        """Make one step.

        Returns the log probability of what may come next (R, V), the weights (R, S), the state.
        """
        scores_RV, weights_RS, state = self.step(token, state, self.prepared)
        return self.rule(scores_RV, output, steps), weights_RS, state

    def pick(self, rows: Ints) -> "Problem":
        """Return the same batch with some of its rows only."""
        return replace(
            self,
            prepared=picked(self.prepared, rows),
            count=len(rows),
            ranking=self.ranking.pick(rows),
            seeds=None if self.seeds is None else self.seeds[rows],
            prefix=None if self.prefix is None else (self.prefix[0][rows], self.prefix[1][rows]),
        )

    def rows_of(self, sources: Ints) -> Ints:
        """Return the rows of some sources, (B,) -> (R,)."""
        each = self.settings.rows
        return (sources[:, None] * each + np.arange(each)).ravel()


@final
class Attended:
    """The attention of every step, whose rows become fewer."""

    def __init__(self) -> None:
        self._steps: list[tuple[Ints, Floats]] = []

    def add(self, places: Ints, weights: Floats | None) -> None:
        """Keep the weights of one step, and which of all rows its rows are."""
        if weights is not None:
            self._steps.append((places, weights))

    def of(self, rows: Ints) -> Floats | None:
        """Return the weights (X, T, S) of X hypotheses, which were in the given rows (T, X)."""
        if not self._steps:
            return None
        weights_of_steps = [
            weights[np.minimum(np.searchsorted(places, row_X), len(places) - 1)]
            for (places, weights), row_X in zip(self._steps, rows, strict=True)
        ]
        return np.stack(weights_of_steps, axis=1)


def hypotheses_of(
    tokens: Ints,
    score: Floats,
    log_probability: Floats,
    count: Ints,
    finished: Bools,
    weights: Floats | None,
    each: int,
) -> list[list[Hypothesis]]:
    """Make hypotheses of arrays with one in each row, `each` of them for a source.

    Those with a score of -inf are left out.
    """
    columns = [column.tolist() for column in (tokens, score, log_probability, count, finished)]
    hypotheses = [
        Hypothesis(
            tuple(output[:most]),
            worth,
            total,
            None if weights is None else weights[row, : most + ends],
            ends,
        )
        for row, (output, worth, total, most, ends) in enumerate(zip(*columns, strict=True))
    ]
    return [
        [hypothesis for hypothesis in hypotheses[at : at + each] if hypothesis.score > NEVER]
        for at in range(0, len(hypotheses), each)
    ]
