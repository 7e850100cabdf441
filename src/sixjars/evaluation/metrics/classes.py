"""Metrics of classes and labels: precision, recall and F-scores."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from sixjars.evaluation.metrics.outcome import Outcome, Rows, Sums
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import SEPARATOR

_REST: Final = "other"
ONE_LABEL: Final = {
    "perplexity": "tells how surprising one label is, but an example may have several; "
    "use labels_micro_f1.",
    "macro_f1": "takes each set of labels for a class of its own; use labels_macro_f1.",
    "micro_f1": "takes each set of labels for a class of its own; use labels_micro_f1.",
}
"""Metrics that are for one label of each example, and why."""

Labels = frozenset[str]


def macro_f1(outcomes: Sequence[Outcome], *, multi_label: bool = False) -> float:
    r"""Macro-averaged F1: the mean of the F1 of each class (`labels_`: of each label); 0 to 1.

    .. math:: \frac{1}{|C|} \sum_{c \in C} \frac{2\, tp_c}{2\, tp_c + fp_c + fn_c}

    Rare classes count as much as common ones. The averaged F1 of Opitz & Burst 2019
    (https://arxiv.org/abs/1911.03347), who show that the F-score of averages in Sokolova & Lapalme
    2009 is another number. C are the classes that are true or predicted somewhere. Of several
    references the one predicted is the true class, else the first. With `labels_`, a text has `, `
    between its labels, whose order does not count.

    >>> macro_f1([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    0.3333333333333333
    >>> outcomes = [Outcome(("grain, wheat",), ("wheat",)), Outcome(("crude",), ("crude",))]
    >>> macro_f1(outcomes, multi_label=True)
    0.6666666666666666
    """
    rows = per_class(outcomes, multi_label=multi_label)
    return sum(row.f1 for row in rows) / max(1, len(rows))


def micro_f1(outcomes: Sequence[Outcome], *, multi_label: bool = False) -> float:
    r"""Micro-averaged F1: all classes counted together (`labels_`: all labels); 0 to 1.

    .. math:: \frac{2 \sum_c tp_c}{\sum_c (2\, tp_c + fp_c + fn_c)}

    Sebastiani 2002, section 7.1 (https://arxiv.org/abs/cs/0110053). With one label for each example
    every wrong answer is one false positive and one false negative, so this is `accuracy@1`. Texts
    as for `macro_f1`.

    >>> micro_f1([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    0.5
    >>> outcomes = [Outcome(("grain, wheat",), ("wheat",)), Outcome(("crude",), ("crude",))]
    >>> micro_f1(outcomes, multi_label=True)
    0.8
    """
    return micro_sums(multi_label=multi_label).over(outcomes)


def micro_sums(*, multi_label: bool = False) -> Sums:
    """Hits of all classes, and how many labels are true or predicted."""

    def rows(outcomes: Sequence[Outcome]) -> Rows:
        pairs = _pairs(outcomes, multi_label=multi_label)
        return [(2 * len(true & output), len(true) + len(output)) for true, output in pairs]

    return Sums(rows, lambda sums: sums[0] / max(1, sums[1]))


def macro_sums(*, multi_label: bool = False) -> Sums:
    """The hits of each class, and how often it is true or predicted."""
    return Sums(partial(_class_rows, multi_label=multi_label), _mean_f1)


def _class_rows(outcomes: Sequence[Outcome], *, multi_label: bool) -> Rows:
    import numpy as np

    pairs = _pairs(outcomes, multi_label=multi_label)
    labels = sorted(set[str]().union(*(true | predicted for true, predicted in pairs)))
    place = {label: at for at, label in enumerate(labels)}
    # one byte for each number: there may be thousands of labels
    rows: Any = np.zeros((len(pairs), 2 * len(place)), dtype=np.int8)
    for row, (true, predicted) in zip(rows, pairs, strict=True):
        for label in true & predicted:
            row[2 * place[label]] = 2
        for label in (*true, *predicted):
            row[2 * place[label] + 1] += 1
    return rows  # type: ignore[no-any-return]


def _mean_f1(sums: Sequence[float]) -> float:
    scores = [hits / size for hits, size in zip(sums[::2], sums[1::2], strict=True) if size]
    return math.fsum(scores) / max(1, len(scores))


def labels_exact(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose labels are all found, and no others; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [L_i = \hat L_i]

    One less the subset 0/1 loss of Dembczyński et al. 2012
    (https://doi.org/10.1007/s10994-012-5285-8). Texts have `, ` between their labels, whose order
    does not count; any of several references will do.

    >>> right = Outcome(("grain, wheat",), ("wheat, grain",))
    >>> labels_exact([right, Outcome(("crude",), ("crude, gas",))])
    0.5
    """
    return sum(true == predicted for true, predicted in _pairs(outcomes, multi_label=True)) / len(
        outcomes
    )


@final
@dataclass(frozen=True)
class ClassRow:
    """How well one class is recognised."""

    label: str
    count: int
    """How many examples are of this class."""
    precision: float
    """The share of right ones among the predictions of this class; 0 where there are none."""
    recall: float
    """The share of found ones among the examples of this class; 0 where there are none."""
    f1: float
    """The harmonic mean of the two."""


@final
@dataclass(frozen=True)
class Confusion:
    """A confusion matrix."""

    labels: tuple[str, ...]
    """The classes with the most examples first."""
    counts: tuple[tuple[int, ...], ...]
    """A row for each true class, a column for each predicted one, both in the order of `labels`."""


def per_class(outcomes: Sequence[Outcome], *, multi_label: bool = False) -> list[ClassRow]:
    """A row for each class that is true or predicted somewhere, the most frequent first.

    With `multi_label`, a text is a set of labels with `, ` between them, and an example counts for
    each of its own.

    >>> rows = per_class([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    >>> [(row.label, row.count, row.precision, row.recall) for row in rows]
    [('run', 2, 1.0, 0.5), ('jump', 0, 0.0, 0.0)]
    """
    pairs = _pairs(outcomes, multi_label=multi_label)
    true = Counter(label for labels, _ in pairs for label in labels)
    predicted = Counter(label for _, labels in pairs for label in labels)
    hits = Counter(label for right, found in pairs for label in right & found)
    return [
        ClassRow(
            label,
            count=true[label],
            precision=hits[label] / max(1, predicted[label]),
            recall=hits[label] / max(1, true[label]),
            f1=2 * hits[label] / (true[label] + predicted[label]),
        )
        for label in sorted(true | predicted, key=lambda label: (-true[label], label))
    ]


def confusion(outcomes: Sequence[Outcome], *, most: int = 12) -> Confusion:
    """How often each class was predicted for each, in the order of `per_class`.

    Classes beyond the first `most` are put together at the end as `other`.

    >>> pairs = (("run", "run"), ("run", "jump"), ("sit", "sit"))
    >>> confusion([Outcome((true,), (output,)) for true, output in pairs], most=1)
    Confusion(labels=('run', 'other'), counts=((1, 1), (0, 1)))
    """
    labels = [row.label for row in per_class(outcomes)]
    kept = labels[:most]
    place = {label: min(at, len(kept)) for at, label in enumerate(labels)}
    pairs = _pairs(outcomes, multi_label=False)
    counted = Counter((place[true], place[output]) for (true,), (output,) in pairs)
    if len(kept) < len(labels):
        kept = [*kept, _REST if _REST not in kept else f"all {_REST}"]
    size = range(len(kept))
    counts = tuple(tuple(counted[row, column] for column in size) for row in size)
    return Confusion(tuple(kept), counts)


def labels_of(text: str) -> Labels:
    """The labels in a text that has `, ` between them; the empty text has none.

    >>> sorted(labels_of("wheat, grain"))
    ['grain', 'wheat']
    """
    return frozenset(label for label in text.split(SEPARATOR) if label)


def _pairs(outcomes: Sequence[Outcome], *, multi_label: bool) -> list[tuple[Labels, Labels]]:
    """The true and the predicted labels of each example; one of each unless `multi_label`."""
    for number, outcome in enumerate(outcomes, start=1):
        if not outcome.candidates:
            raise DataError(
                f"Classes are counted from the model's outputs, but example {number} of "
                f"{len(outcomes)} has no candidates. Give at least one; the empty text is one."
            )
    read = labels_of if multi_label else lambda text: frozenset([text])
    pairs = []
    for outcome in outcomes:
        rights, predicted = [*map(read, outcome.references)], read(outcome.candidates[0])
        pairs.append((predicted if predicted in rights else rights[0], predicted))
    return pairs
