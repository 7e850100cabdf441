"""The uncertainty of scores: bootstrap intervals, and the paired test of two models.

Dims: N examples, R resamples, K sums that a metric is computed from.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.evaluation.metrics import Interval, Metric, Outcome, value_alone
from sixjars_runtime.errors import DataError

RESAMPLES: Final = 1000
LEVEL: Final = 0.95
IN_LEVEL: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Standard errors to each side that have this probability: 1.96."""
SEED: Final = 0
_AT_ONCE: Final = 4_000_000
"""Numbers in memory at a time."""


@final
@dataclass(frozen=True)
class Difference:
    """How much better or worse another model is than the first, on the same examples."""

    value: float
    """The score of the other less that of the first."""
    interval: Interval
    p: float
    """Two-sided: how probable so large a difference is where there is none."""


@final
@dataclass(frozen=True, eq=False)
class Statistics:
    """The sums over examples that a metric is computed from, for any choice of them."""

    rows: NDArray[Any]
    """(N, K): what each example adds."""
    value: Callable[[Sequence[float]], float]
    """The metric, of K sums."""

    def only(self, places: Sequence[int]) -> "Statistics":
        """The statistics of some examples."""
        return Statistics(self.rows[list(places)], self.value)

    @cached_property
    def resampled(self) -> NDArray[np.float64]:
        """The metric of each resample, (R,), the same ones for equal counts; NaN of one example."""
        if len(self.rows) < 2:  # one example does not vary
            return np.full(RESAMPLES, math.nan)
        products = [_product(counts_RN, self.rows) for counts_RN in _counts(len(self.rows))]
        sums = np.concatenate(products)
        return np.array([self.value(row) for row in sums.tolist()])


def statistics_of(metric: Metric, outcomes: Sequence[Outcome]) -> Statistics | None:
    """The sums of a metric for the bootstrap; nothing where only all examples have a value.

    A metric without `sums` is taken for a mean over the examples where that mean is its value.
    """
    if metric.sums is not None:
        return Statistics(np.asarray(metric.sums.rows(outcomes)), metric.sums.value)
    if not metric.per_example:
        return None
    values = [value_alone(metric, outcome) for outcome in outcomes]
    rows = np.array([(0.0, 0.0) if value is None else (value, 1.0) for value in values])
    mean, value = _mean(rows.sum(0).tolist()), float(metric.compute(outcomes))
    is_mean = math.isclose(mean, value, rel_tol=1e-9, abs_tol=1e-12)
    return Statistics(rows, _mean) if is_mean else None


def interval_of(metric: Metric, outcomes: Sequence[Outcome]) -> Interval | None:
    """The 95 % bootstrap interval of a score (percentiles); nothing where the metric has none.

    Efron & Tibshirani 1993, section 13.3: as many examples are drawn with replacement, 1,000 times,
    with a fixed seed.

    >>> from sixjars.evaluation.metrics import metric_named
    >>> outcomes = [Outcome(("a",), ("a" if number % 2 else "b",)) for number in range(100)]
    >>> interval_of(metric_named("exact_match"), outcomes)
    Interval(low=0.4, high=0.6)
    >>> interval_of(metric_named("distinct1"), outcomes) is None
    True
    """
    statistics = statistics_of(metric, outcomes)
    return None if statistics is None else interval(statistics.resampled)


def interval(values: NDArray[np.float64]) -> Interval | None:
    """The percentiles 2.5 and 97.5; nothing where fewer than half of the values are numbers."""
    finite = values[np.isfinite(values)]
    if len(finite) * 2 < len(values):
        return None
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Interval(low, high)


def difference(first: Statistics, other: Statistics) -> Difference | None:
    r"""The paired bootstrap: two models on the same resamples; nothing where too few have values.

    .. math:: p = \min\Bigl(1, \; \max\Bigl(2^{1 - n}, \;
              2 \cdot \frac{1 + \min(\#\{d_r \le 0\}, \#\{d_r \ge 0\})}{1 + R}\Bigr)\Bigr)

    Koehn 2004 (https://aclanthology.org/W04-3250/), who counts on how many resamples one model is
    better; here two-sided, as neither is expected to be. It is never less than the sign test can
    give, :math:`2^{1 - n}` of n examples that differ, as resamples of few examples are too much
    alike.
    """
    if len(first.rows) != len(other.rows):
        counts = f"{len(first.rows)} and {len(other.rows)}"
        raise DataError(f"a paired test needs the same examples, but there are {counts}.")
    changes = other.resampled - first.resampled
    between = interval(changes)
    if between is None:
        return None
    changes = changes[np.isfinite(changes)]
    rarer = min(int((changes <= 0).sum()), int((changes >= 0).sum()))
    least = 2.0 ** (1 - _differing(first.rows, other.rows))
    value = other.value(other.rows.sum(0).tolist()) - first.value(first.rows.sum(0).tolist())
    return Difference(value, between, min(1.0, max(least, 2 * (1 + rarer) / (1 + len(changes)))))


def error_of_difference(
    metric: Metric, first: Sequence[Outcome], other: Sequence[Outcome]
) -> float | None:
    """The standard error of the difference of two models, by the paired bootstrap.

    Where the test finds no difference, 1.96 times the error is no less than the difference.
    """
    pooled = statistics_of(metric, [*first, *other])  # together, so that they have the same sums
    if pooled is None:
        return None
    places = range(len(pooled.rows))
    gain = difference(pooled.only(places[: len(first)]), pooled.only(places[len(first) :]))
    if gain is None:
        return None
    error = (gain.interval.high - gain.interval.low) / 2 / IN_LEVEL
    return max(error, abs(gain.value) / IN_LEVEL) if gain.p > 1 - LEVEL else error


def exchanged(metric: Metric, first: Sequence[Outcome], other: Sequence[Outcome]) -> list[float]:
    """How the first model's score changes where one example has the other's output; may be empty.

    It shows on which examples two models differ by a metric of all examples together.
    """
    pooled = statistics_of(metric, [*first, *other])  # together, so that they have the same sums
    if pooled is None:
        return []
    ours, theirs = pooled.rows[: len(first)].astype(np.float64), pooled.rows[len(first) :]
    total = ours.sum(0)
    now = pooled.value(total.tolist())
    return [pooled.value(row.tolist()) - now for row in total - ours + theirs]


def _differing(one_NK: NDArray[Any], other_NK: NDArray[Any]) -> int:
    """How many examples differ; all where the sums are of other things, as of other classes."""
    return int((one_NK != other_NK).any(1).sum()) if one_NK.shape == other_NK.shape else len(one_NK)


def _mean(sums: Sequence[float]) -> float:
    return sums[0] / sums[1] if sums[1] else math.nan


def _counts(examples: int) -> Iterator[NDArray[np.float64]]:
    """How often each example is in each resample, (R, N), some resamples at a time."""
    random = np.random.default_rng(SEED)
    at_once = max(1, _AT_ONCE // examples)
    left = RESAMPLES
    while left:
        count = min(at_once, left)
        drawn = random.integers(examples, size=(count, examples))
        drawn += examples * np.arange(count)[:, None]  # one bincount for all resamples
        counts = np.bincount(drawn.ravel(), minlength=count * examples)
        yield counts.reshape(count, examples).astype(np.float64)
        left -= count


def _product(counts_RN: NDArray[np.float64], rows_NK: NDArray[Any]) -> NDArray[np.float64]:
    """Sums of each resample, (R, K), some columns at a time."""
    width = max(1, _AT_ONCE // len(rows_NK))
    columns = (rows_NK[:, at : at + width] for at in range(0, rows_NK.shape[1], width))
    return np.concatenate([counts_RN @ part.astype(np.float64) for part in columns], axis=1)
