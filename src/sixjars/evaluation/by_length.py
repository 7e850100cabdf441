"""Scores by the length of the input, with which initial-state conditioning gets worse."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
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
    """The score; nothing where no example can be scored."""
    interval: Interval | None = None
    """How far the score may be off by chance; nothing where that is not known."""
    median: float | None = None
    """The median of the lengths; a range may be wide where few texts are long."""

    @property
    def name(self) -> str:
        """The range as a text.

        >>> Bucket(2, 5, 9, 0.5).name, Bucket(6, 6, 9, 0.5).name
        ('2–5', '6')
        """
        if self.shortest == self.longest:
            return str(self.shortest)
        return f"{self.shortest}–{self.longest}"

    @property
    def place(self) -> float:
        """The place of the bucket on an axis of lengths."""
        return (self.shortest + self.longest) / 2 if self.median is None else self.median


def edges_of(lengths: Sequence[int], *, buckets: int) -> list[tuple[int, int]]:
    """At most so many ranges, with about equally many lengths; equal lengths stay together.

    >>> edges_of([3, 3, 4, 5, 6, 90], buckets=3)
    [(3, 3), (4, 5), (6, 90)]
    """
    ordered = sorted(lengths)
    edges = list[tuple[int, int]]()
    begin = 0
    while begin < len(ordered):
        size = round((len(ordered) - begin) / (buckets - len(edges)))
        end = bisect_right(ordered, ordered[begin + max(size, 1) - 1])
        edges.append((ordered[begin], ordered[end - 1]))
        begin = end
    return edges


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
    >>> metric, edges = metric_named("exact_match"), [(3, 6), (7, 10)]
    >>> buckets = scores_by_length([right, wrong], [3, 9], metric=metric, edges=edges)
    >>> [(bucket.count, bucket.value, bucket.median) for bucket in buckets]
    [(1, 1.0, 3), (1, 0.0, 9)]
    """
    buckets = []
    for shortest, longest in edges:
        places = [at for at, length in enumerate(lengths) if shortest <= length <= longest]
        inside = [outcomes[at] for at in places]
        known = any(is_annotated(outcome, metric) for outcome in inside)
        value = score(inside, [metric])[0].value if known else None
        between = None if value is None or len(places) < 2 else interval(places)
        middle = median(lengths[at] for at in places) if places else None
        buckets.append(Bucket(shortest, longest, len(inside), value, between, middle))
    return buckets
