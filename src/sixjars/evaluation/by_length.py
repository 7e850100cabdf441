"""Scores by the length of the input: where the plain encoder-decoder falls and attention does not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sixjars.evaluation.metrics import Outcome, score


@final
@dataclass(frozen=True)
class Bucket:
    """The examples whose input has from `shortest` to `longest` tokens."""

    shortest: int
    longest: int
    count: int
    value: float


def scores_by_length(outcomes: Sequence[Outcome], lengths: Sequence[int], *, metric: str, buckets: int) -> list[Bucket]:
    """One score for each range of lengths; ranges are equally wide and empty ones are left out.

    >>> right, wrong = Outcome(("a",), ("a",)), Outcome(("a",), ("b",))
    >>> buckets = scores_by_length([right, wrong], [3, 9], metric="exact_match", buckets=2)
    >>> [(bucket.shortest, bucket.longest, bucket.value) for bucket in buckets]
    [(3, 6, 1.0), (7, 10, 0.0)]
    """
    low = min(lengths)
    width = -(-(max(lengths) - low + 1) // buckets)
    found = []
    for number in range(buckets):
        begin = low + number * width
        inside = [o for o, length in zip(outcomes, lengths, strict=True) if begin <= length < begin + width]
        if inside:
            value = score(inside, [metric])[0].value
            found.append(Bucket(begin, begin + width - 1, len(inside), value))
    return found
