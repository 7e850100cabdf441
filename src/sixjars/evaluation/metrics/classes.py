"""Outputs that are labels: how well each class is told from the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sixjars.errors import DataError
from sixjars.evaluation.metrics.outcome import Outcome

_REST: Final = "other"


@final
@dataclass(frozen=True)
class ClassRow:
    """How well one class is recognised."""

    label: str
    count: int
    """How many examples are of this class."""
    precision: float
    """Share of the examples called so that are so; 0 where none is called so."""
    recall: float
    """Share of the examples that are so that are called so; 0 where none is so."""
    f1: float
    """The harmonic mean of the two."""


@final
@dataclass(frozen=True)
class Confusion:
    """Which class was taken for which."""

    labels: tuple[str, ...]
    """The classes with the most examples first."""
    counts: tuple[tuple[int, ...], ...]
    """A row for each true class, a column for each predicted one, both in the order of `labels`."""


def macro_f1(outcomes: Sequence[Outcome]) -> float:
    r"""F-score of each class, averaged over the classes, so that rare ones count as much as common ones; 0 to 1.

    .. math:: \frac{1}{|C|} \sum_{c \in C} \frac{2 P_c R_c}{P_c + R_c}

    The averaged F1 of Opitz & Burst 2019 (https://arxiv.org/abs/1911.03347), who show that the F-score of
    averages in Sokolova & Lapalme 2009 is another number. C are the classes that are true or predicted
    somewhere; those with neither precision nor recall have 0. Of several references the one predicted is the
    true class, else the first.

    >>> macro_f1([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    0.3333333333333333
    """
    rows = per_class(outcomes)
    return sum(row.f1 for row in rows) / len(rows)


def per_class(outcomes: Sequence[Outcome]) -> list[ClassRow]:
    """A row for each class that is true or predicted somewhere, the most frequent first, then by name.

    >>> rows = per_class([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    >>> [(row.label, row.count, row.precision, row.recall) for row in rows]
    [('run', 2, 1.0, 0.5), ('jump', 0, 0.0, 0.0)]
    """
    pairs = _judged(outcomes)
    true, said = Counter(right for right, _ in pairs), Counter(label for _, label in pairs)
    hits = Counter(right for right, label in pairs if right == label)
    return [
        ClassRow(
            label,
            count=true[label],
            precision=hits[label] / max(1, said[label]),
            recall=hits[label] / max(1, true[label]),
            f1=2 * hits[label] / (true[label] + said[label]),
        )
        for label in _by_count(pairs)
    ]


def confusion(outcomes: Sequence[Outcome], *, most: int = 12) -> Confusion:
    """How often each class was taken for each, in the order of `per_class`.

    Classes beyond the first `most` are put together at the end as `other`.

    >>> confusion([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",)), Outcome(("sit",), ("sit",))], most=1)
    Confusion(labels=('run', 'other'), counts=((1, 1), (0, 1)))
    """
    pairs = _judged(outcomes)
    labels = _by_count(pairs)
    kept = labels[:most]
    place = {label: min(at, len(kept)) for at, label in enumerate(labels)}
    counted = Counter((place[right], place[said]) for right, said in pairs)
    names = kept if len(kept) == len(labels) else [*kept, _REST if _REST not in kept else f"all {_REST}"]
    size = range(len(names))
    return Confusion(tuple(names), tuple(tuple(counted[row, column] for column in size) for row in size))


def _judged(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """The true class and the predicted one of each example."""
    for number, outcome in enumerate(outcomes, start=1):
        if not outcome.candidates:
            raise DataError(
                f"Classes are counted from what the model said, but example {number} of {len(outcomes)} has no "
                "candidates. Give at least one; the empty text is one."
            )
    return [(o.best if o.best in o.references else o.references[0], o.best) for o in outcomes]


def _by_count(pairs: list[tuple[str, str]]) -> list[str]:
    true = Counter(right for right, _ in pairs)
    return sorted({label for pair in pairs for label in pair}, key=lambda label: (-true[label], label))
