"""Metrics of the right output: whether it is found, at which rank, and how probable it is."""

import math
from collections.abc import Sequence
from typing import Final

from sixjars.evaluation.metrics.outcome import Outcome, Sums


def exact_match(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose best candidate is a right answer; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in R_i]

    Rajpurkar et al. 2016, section 6.1 (https://aclanthology.org/D16-1264/), without its removal of
    articles, punctuation and capitals. An empty candidate is right only where a reference is empty.

    >>> exact_match([Outcome(("two", "2"), ("2",)), Outcome(("red",), ("Red",))])
    0.5
    """
    return accuracy(outcomes, k=1)


def accuracy(outcomes: Sequence[Outcome], *, k: int) -> float:
    r"""Share of examples with a right answer among the first `k` candidates; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\{\hat y_{i1}, \dots, \hat y_{ik}\} \cap R_i \ne \emptyset]

    Called word accuracy for k = 1 in the transliteration task of Li et al. 2009
    (https://aclanthology.org/W09-3501/). Where search found fewer than `k`, those it found are
    compared.

    >>> accuracy([Outcome(("dilli",), ("delhi", "dilli"))], k=2)
    1.0
    """
    hits = sum(not set(each.references).isdisjoint(each.candidates[:k]) for each in outcomes)
    return hits / len(outcomes)


def perplexity(outcomes: Sequence[Outcome]) -> float:
    r"""Perplexity: exp of the mean negative log-likelihood of a token; 1 is the best.

    .. math:: \exp\Bigl(-\frac{\sum_i \log P(y_i \mid x_i)}{\sum_i |y_i|}\Bigr)

    Jelinek, Mercer, Bahl & Baker 1977, "Perplexity: a measure of the difficulty of speech
    recognition tasks". `y_i` is the first reference, `|y_i|` counts its tokens with `<stop>`, so
    values compare only where a token is the same thing. It is infinite where a reference has
    probability 0.

    >>> round(perplexity([Outcome(("a b",), log_probability=3 * math.log(1 / 50), tokens=3)]), 6)
    50.0
    """
    return LIKELIHOODS.over(outcomes)


def _exp_mean(sums: Sequence[float]) -> float:
    total, tokens = sums
    try:
        return math.exp(-total / tokens)
    except OverflowError:
        return math.inf


LIKELIHOODS: Final = Sums(
    lambda outcomes: [(each.log_probability or 0.0, each.tokens) for each in outcomes], _exp_mean
)


def mean_reciprocal_rank(outcomes: Sequence[Outcome]) -> float:
    r"""One over the rank of the first right candidate, 0 where none is right, averaged; 0 to 1.

    .. math:: \frac{1}{N} \sum_i \max_j \frac{[\hat y_{ij} \in R_i]}{j}

    Voorhees 1999, "The TREC-8 question answering track report" (five candidates there; here all
    that are given, and the signature has their number).

    >>> mean_reciprocal_rank([Outcome(("b",), ("a", "b")), Outcome(("c",), ("c",))])
    0.75
    """
    return math.fsum(_reciprocal_rank(outcome) for outcome in outcomes) / len(outcomes)


def _reciprocal_rank(outcome: Outcome) -> float:
    for rank, text in enumerate(outcome.candidates, start=1):
        if text in outcome.references:
            return 1.0 / rank
    return 0.0


def rank_how(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The signature of the reciprocal rank, which depends on the number of candidates."""
    most = max(len(outcome.candidates) for outcome in outcomes)
    return "any reference", f"candidates:{most}", "case:mixed"
