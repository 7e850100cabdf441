"""Metrics of the true output: how probable it is, and its rank among the candidates."""

import math
from collections.abc import Sequence
from typing import Final

from sixjars.evaluation.metrics.outcome import Outcome, Sums


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
