"""The time and rows of a baseline: few rows at first, then as many as there is time for."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

import numpy as np

M = TypeVar("M")
T = TypeVar("T")
Check = Callable[[], None]
"""Raises `TooMuch` where the time is up; called between pieces of work."""
FIRST: Final = 100_000
"""Numbers in the rows of the first attempt, and of predictions to be timed: about half a second."""
FEWEST_FIRST: Final = 50
"""Rows of the first attempt, however long they are: what fewer teach is chance."""
MOST_FIRST: Final = 500
"""Rows of the first attempt, where they are short; with a tenth of them the rate is chance."""
MOST: Final = 20_000_000
"""Numbers that a baseline learns from: about a gigabyte. 50 bytes each were measured for the words
and pairs of words of 25,000 movie reviews (11 million), with what scikit-learn copies of them."""
GROWTH: Final = 1.5
"""Time grows faster than rows, for more rows have more different words: with their power of 1.2 on
AG news (500 to 5,000 rows), of 1.5 with 20 labels (8,000 to 67,000 rows)."""
STEP: Final = 16
"""Times as many rows at most in the next attempt: no rate holds for ever, and where that attempt is
late, a model of a sixteenth of the rows is left."""
CAREFUL: Final = 0.7
"""Share of the time left that is planned: a rate of few rows may be off; late work is lost."""


@final
class TooMuch(Exception):
    """The time of a baseline is up, or it would take too much memory.

    >>> raise TooMuch
    Traceback (most recent call last):
        ...
    sixjars.evaluation.baselines.budget.TooMuch
    """


@final
class TimeBudget:
    """A limit of seconds from now on.

    >>> budget = TimeBudget(2.0, clock=iter([10.0, 11.5]).__next__)
    >>> budget.left
    0.5
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.end = self.began + seconds

    @property
    def left(self) -> float:
        """Seconds; below 0 when the time is up."""
        return self.end - self.clock()

    def check(self) -> None:
        """Raise `TooMuch` where no time is left."""
        if self.left <= 0:
            raise TooMuch

    def share(self, part: float) -> "TimeBudget":
        """A budget of a part of the time left, for the next piece of work."""
        return TimeBudget(max(self.left, 0.0) * part, self.clock)

    def without(self, seconds: float) -> "TimeBudget":
        """A budget of the time left, less that for later work."""
        return TimeBudget(max(self.left - seconds, 0.0), self.clock)

    def at_least(self, seconds: float) -> "TimeBudget":
        """A budget of the time left, or of so many seconds where that is more."""
        return TimeBudget(max(self.left, seconds), self.clock)


@final
@dataclass(frozen=True)
class Learner(Generic[M, T]):
    """A method that learns from some training rows, and predicts others."""

    fit: Callable[[Sequence[int], Check], M]
    predict: Callable[[M, Sequence[int], Check], list[T]]
    size: float
    """Numbers of a row on average, on which time and memory depend: words, features."""
    at_once: Callable[[M], int] = lambda _: sys.maxsize
    """Rows that a model predicts between two checks of the time."""
    compares: bool = False
    """Whether predictions take longer the more rows were learned from."""

    def predicted(self, model: M, rows: Sequence[int], check: Check) -> list[T]:
        """The predictions for some rows, a part of them at a time."""
        size = self.at_once(model)
        outputs: list[T] = []
        for begin in range(0, len(rows), size):
            if begin:
                check()
            outputs += self.predict(model, rows[begin : begin + size], check)
        return outputs

    @property
    def few(self) -> int:
        """Rows that take about half a second."""
        return max(FEWEST_FIRST, min(MOST_FIRST, int(FIRST / max(self.size, 1.0))))

    @property
    def most(self) -> int:
        """Rows that fit into memory."""
        return max(self.few, int(MOST / max(self.size, 1.0)))


@final
@dataclass(frozen=True)
class _Attempt(Generic[M]):
    model: M
    rows: int
    fitting: float
    """Seconds."""
    predicting: float
    """Seconds for all rows that are to be predicted."""

    def next(self, seconds: float, most: int, *, compares: bool) -> int:
        """How many rows the next attempt should learn from; 0 where more are not worth the time."""
        once, each = self.predicting, self.fitting
        if compares:  # predictions take longer too
            once, each = 0.0, each + once
        ratio = max((CAREFUL * seconds - once) / max(each, 1e-9), 0.0)
        rows = min(most, int(self.rows * min(ratio ** (1 / GROWTH), STEP)))
        return rows if rows > self.rows and rows >= min(2 * self.rows, most) else 0


def learned_in_time(
    learner: Learner[M, T],
    rows: Sequence[int],
    scored: Sequence[int],
    budget: TimeBudget,
    *,
    seed: int = 0,
) -> tuple[list[T], int]:
    """Predict the rows in `scored`; also return how many rows there was time to learn from.

    A few rows, drawn by the seed, come first; their time tells how many more there is time for, and
    so on. An attempt that is late is given up, and the model before it predicts.
    """
    order = np.random.default_rng(seed).permutation(len(rows))[: learner.most]
    sample = scored[: learner.few]
    count = min(learner.few, len(order))
    best = None
    while count:
        limit = budget if best is None else budget.without(best.predicting)
        few = [rows[at] for at in np.sort(order[:count])]
        try:
            model = learner.fit(few, limit.check)
            between = limit.clock()
            learner.predicted(model, sample, limit.check)
        except TooMuch:
            break
        predicting = (limit.clock() - between) * len(scored) / max(len(sample), 1)
        best = _Attempt(model, count, between - limit.began, predicting)
        count = best.next(budget.left, len(order), compares=learner.compares)
    if best is None:
        raise TooMuch
    # The fit of one label is not interrupted, so an attempt that was given up may have taken too
    # long.
    last = budget.at_least(2 * best.predicting)
    return learner.predicted(best.model, scored, last.check), best.rows
