"""Scores by the length of the input: initial-state conditioning falls with it where attention does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from sixjars.evaluation.metrics import Interval, Metric, Outcome, score
from sixjars.evaluation.metrics.table import is_annotated

FEW = 20
"""A score of fewer examples says little; it is marked."""


@final
@dataclass(frozen=True)
class Bucket:
    """The examples whose input has from `shortest` to `longest` words."""

    shortest: int
    longest: int
    count: int
    value: float | None
    """Nothing where no example can be scored."""
    interval: Interval | None = None
    """How far the score may be off by chance; nothing where that is not known."""


def edges_of(lengths: Sequence[int], *, buckets: int) -> list[tuple[int, int]]:
    """Ranges of equal width that cover all lengths.

    >>> edges_of([3, 9], buckets=2)
    [(3, 6), (7, 10)]
    """
    low = min(lengths)
    width = -(-(max(lengths) - low + 1) // buckets)
    return [(low + number * width, low + (number + 1) * width - 1) for number in range(buckets)]


def scores_by_length(
    outcomes: Sequence[Outcome],
    lengths: Sequence[int],
    *,
    metric: Metric,
    edges: Sequence[tuple[int, int]],
    interval: Callable[[Sequence[int]], Interval | None] = lambda _: None,
) -> list[Bucket]:
    """One score for each range of lengths; `interval` gives that of some examples, by their places.

    >>> from sixjars.evaluation.metrics import metric_named
    >>> right, wrong = Outcome(("a",), ("a",)), Outcome(("a",), ("b",))
    >>> buckets = scores_by_length([right, wrong], [3, 9], metric=metric_named("exact_match"), edges=[(3, 6), (7, 10)])
    >>> [(bucket.count, bucket.value) for bucket in buckets]
    [(1, 1.0), (1, 0.0)]
    """
    found = []
    for shortest, longest in edges:
        places = [at for at, length in enumerate(lengths) if shortest <= length <= longest]
        inside = [outcomes[at] for at in places]
        known = any(is_annotated(outcome, metric) for outcome in inside)
        value = score(inside, [metric])[0].value if known else None
        between = None if value is None or len(places) < 2 else interval(places)
        found.append(Bucket(shortest, longest, len(inside), value, between))
    return found
