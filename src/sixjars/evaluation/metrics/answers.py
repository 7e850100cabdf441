"""How far up the right answer is found, how probable it is, and how well classes are told from each other."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sixjars.data.text.segments import SEPARATOR
from sixjars.errors import DataError
from sixjars.evaluation.metrics.outcome import Outcome

_REST: Final = "other"

Labels = frozenset[str]


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
    return _mean_f1(per_class(outcomes))


def micro_f1(outcomes: Sequence[Outcome]) -> float:
    r"""F-score of all classes counted together, so that common ones count most; 0 to 1.

    .. math:: \frac{2 \sum_c tp_c}{\sum_c (2\, tp_c + fp_c + fn_c)}

    The microaverage of Sebastiani 2002, section 7.1 (https://arxiv.org/abs/cs/0110053). With one label for each
    example every wrong answer is once too much and once too little, so this is `accuracy@1`.

    >>> micro_f1([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    0.5
    """
    return _pooled_f1(_judged(outcomes, multi_label=False))


def labels_of(text: str) -> Labels:
    """The labels in a text that has `, ` between them; the empty text has none.

    >>> sorted(labels_of("wheat, grain"))
    ['grain', 'wheat']
    """
    return frozenset(label for label in text.split(SEPARATOR) if label)


def labels_micro_f1(outcomes: Sequence[Outcome]) -> float:
    r"""F-score of all labels counted together where an example may have several; 0 to 1.

    .. math:: \frac{2 \sum_i |L_i \cap \hat L_i|}{\sum_i (|L_i| + |\hat L_i|)}

    The microaverage of Sebastiani 2002, section 7.1 (https://arxiv.org/abs/cs/0110053). References and candidates
    are texts with `, ` between their labels, whose order tells nothing. 0 where nothing is true or predicted.

    >>> labels_micro_f1([Outcome(("grain, wheat",), ("wheat",)), Outcome(("crude",), ("crude",))])
    0.8
    """
    return _pooled_f1(_judged(outcomes, multi_label=True))


def labels_macro_f1(outcomes: Sequence[Outcome]) -> float:
    r"""F-score of each label, averaged over the labels, where an example may have several; 0 to 1.

    .. math:: \frac{1}{|C|} \sum_{c \in C} \frac{2\, tp_c}{2\, tp_c + fp_c + fn_c}

    `macro_f1` of sets of labels: Opitz & Burst 2019 (https://arxiv.org/abs/1911.03347). C are the labels that are
    true or predicted somewhere; 0 where there are none. Texts have `, ` between their labels.

    >>> labels_macro_f1([Outcome(("grain, wheat",), ("wheat",)), Outcome(("crude",), ("crude",))])
    0.6666666666666666
    """
    return _mean_f1(per_class(outcomes, multi_label=True))


def labels_exact(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose labels are all found, and none besides; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [L_i = \hat L_i]

    One less the subset 0/1 loss of Dembczyński et al. 2012 (https://doi.org/10.1007/s10994-012-5285-8).
    Texts have `, ` between their labels, whose order tells nothing; any of several references will do.

    >>> labels_exact([Outcome(("grain, wheat",), ("wheat, grain",)), Outcome(("crude",), ("crude, gas",))])
    0.5
    """
    return sum(right == said for right, said in _judged(outcomes, multi_label=True)) / len(outcomes)


def per_class(outcomes: Sequence[Outcome], *, multi_label: bool = False) -> list[ClassRow]:
    """A row for each class that is true or predicted somewhere, the most frequent first, then by name.

    With `multi_label`, a text is a set of labels with `, ` between them, and an example counts for each of its own.

    >>> rows = per_class([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",))])
    >>> [(row.label, row.count, row.precision, row.recall) for row in rows]
    [('run', 2, 1.0, 0.5), ('jump', 0, 0.0, 0.0)]
    """
    pairs = _judged(outcomes, multi_label=multi_label)
    true = Counter(label for right, _ in pairs for label in right)
    said = Counter(label for _, called in pairs for label in called)
    hits = Counter(label for right, called in pairs for label in right & called)
    return [
        ClassRow(
            label,
            count=true[label],
            precision=hits[label] / max(1, said[label]),
            recall=hits[label] / max(1, true[label]),
            f1=2 * hits[label] / (true[label] + said[label]),
        )
        for label in sorted(true | said, key=lambda label: (-true[label], label))
    ]


def confusion(outcomes: Sequence[Outcome], *, most: int = 12) -> Confusion:
    """How often each class was taken for each, in the order of `per_class`.

    Classes beyond the first `most` are put together at the end as `other`.

    >>> confusion([Outcome(("run",), ("run",)), Outcome(("run",), ("jump",)), Outcome(("sit",), ("sit",))], most=1)
    Confusion(labels=('run', 'other'), counts=((1, 1), (0, 1)))
    """
    labels = [row.label for row in per_class(outcomes)]
    kept = labels[:most]
    place = {label: min(at, len(kept)) for at, label in enumerate(labels)}
    pairs = _judged(outcomes, multi_label=False)
    counted = Counter((place[right], place[said]) for rights, calls in pairs for right in rights for said in calls)
    names = kept if len(kept) == len(labels) else [*kept, _REST if _REST not in kept else f"all {_REST}"]
    size = range(len(names))
    return Confusion(tuple(names), tuple(tuple(counted[row, column] for column in size) for row in size))


def _judged(outcomes: Sequence[Outcome], *, multi_label: bool) -> list[tuple[Labels, Labels]]:
    """The true labels and the predicted ones of each example; one of each unless there may be multi_label."""
    for number, outcome in enumerate(outcomes, start=1):
        if not outcome.candidates:
            raise DataError(
                f"Classes are counted from what the model said, but example {number} of {len(outcomes)} has no "
                "candidates. Give at least one; the empty text is one."
            )
    read = labels_of if multi_label else _single
    pairs = [([read(text) for text in outcome.references], read(outcome.candidates[0])) for outcome in outcomes]
    return [(said if said in rights else rights[0], said) for rights, said in pairs]


def _single(text: str) -> Labels:
    return frozenset([text])


def _mean_f1(rows: Sequence[ClassRow]) -> float:
    return sum(row.f1 for row in rows) / max(1, len(rows))


def _pooled_f1(pairs: Sequence[tuple[Labels, Labels]]) -> float:
    hits = sum(len(right & said) for right, said in pairs)
    return 2 * hits / max(1, sum(len(right) + len(said) for right, said in pairs))


def mean_reciprocal_rank(outcomes: Sequence[Outcome]) -> float:
    r"""One over the place of the first right candidate, 0 where none is right, averaged.

    .. math:: \frac{1}{N} \sum_i \max_j \frac{[\hat y_{ij} \in R_i]}{j}

    Voorhees 1999, "The TREC-8 question answering track report" (five candidates there;
    here all that are given, and the signature says how many).

    >>> mean_reciprocal_rank([Outcome(("b",), ("a", "b")), Outcome(("c",), ("c",))])
    0.75
    """
    return math.fsum(_reciprocal_rank(outcome) for outcome in outcomes) / len(outcomes)


def _reciprocal_rank(outcome: Outcome) -> float:
    right = (rank for rank, text in enumerate(outcome.candidates, start=1) if text in outcome.references)
    return 1.0 / next(right, math.inf)


def rank_how(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The reciprocal rank depends on how many candidates there were."""
    most = max(len(outcome.candidates) for outcome in outcomes)
    return "any reference", f"candidates:{most}", "case:mixed"


def perplexity(outcomes: Sequence[Outcome]) -> float:
    r"""As many equally likely tokens as the model wavers between, on average.

    .. math:: \exp\Bigl(-\frac{\sum_i \log P(y_i \mid x_i)}{\sum_i |y_i|}\Bigr)

    Jelinek, Mercer, Bahl & Baker 1977, "Perplexity: a measure of the difficulty of speech recognition tasks".
    `|y_i|` counts tokens with `<stop>`, so values compare only where a token is the same thing.
    1 is the best; a model that gives a reference no chance at all has infinity.

    >>> round(perplexity([Outcome(("a b",), log_probability=3 * math.log(1 / 50), tokens=3)]), 6)
    50.0
    """
    total = math.fsum(_log_probability(outcome) for outcome in outcomes)
    tokens = sum(outcome.tokens for outcome in outcomes)
    try:
        return math.exp(-total / tokens)
    except OverflowError:
        return math.inf


def _log_probability(outcome: Outcome) -> float:
    assert outcome.log_probability is not None
    return outcome.log_probability
