"""How long a baseline may take: rows are limited by a rate that is measured, and work that is late is given up."""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, final

import numpy as np

M = TypeVar("M")
T = TypeVar("T")
Check = Callable[[], None]
"""Raises `OutOfTime` where the time is up; called between pieces of work."""
PROBED: Final = 500
"""Rows of the first attempt, from which the rate is measured; so few take less than a second."""
GROWTH: Final = 1.2
"""Time grows faster than rows: more rows have more different words. Measured on AG news, 500 to 5,000 rows."""
CAREFUL: Final = 0.7
"""Share of the time left that is planned for: a rate from few rows may be off, and one product is not interrupted."""


@final
class OutOfTime(Exception):
    """The time of a baseline is up.

    >>> raise OutOfTime
    Traceback (most recent call last):
        ...
    sixjars.evaluation.baselines.budget.OutOfTime
    """


@final
class Budget:
    """So many seconds from now on.

    >>> budget = Budget(2.0, clock=iter([10.0, 11.5]).__next__)
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
        """Raise `OutOfTime` where no time is left."""
        if self.left <= 0:
            raise OutOfTime

    def share(self, count: int) -> "Budget":
        """An equal part of what is left, for the next of `count` pieces of work."""
        return Budget(max(self.left, 0.0) / count, self.clock)


def as_many_as_fit(
    fit: Callable[[Sequence[int], Check], M],
    predict: Callable[[M, Check], T],
    rows: Sequence[int],
    budget: Budget,
    *,
    seed: int = 0,
) -> tuple[T, int]:
    """What a model predicts that was fitted to as many rows as there is time for, and how many those are.

    A few rows, drawn by the seed, come first; how long they take tells how many more the time allows, and so on. An
    attempt that is not over in time is given up, and what was made before is kept.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    count = min(PROBED, len(rows))
    made: tuple[T, int] | None = None
    while True:
        began = budget.clock()
        try:
            model = fit([rows[at] for at in np.sort(order[:count])], budget.check)
            between = budget.clock()
            made = predict(model, budget.check), count
        except OutOfTime:
            if made is None:
                raise
            return made
        predicting = budget.clock() - between  # as long again, however many rows are fitted
        ratio = max((CAREFUL * budget.left - predicting) / max(between - began, 1e-9), 0.0)
        more = min(len(rows), int(count * min(ratio, 1e9) ** (1 / GROWTH)))
        if more <= count or more < min(2 * count, len(rows)):  # too few more to be worth the time
            return made
        count = more
