"""Whether the right answer was found, and how far up. Texts are compared as they are, letter by letter."""

import math
from collections.abc import Sequence

from sixjars.evaluation.metrics.outcome import Outcome, signature_of


def exact_match(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose best candidate is a right answer.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in R_i]

    Rajpurkar et al. 2016, section 6.1 (https://aclanthology.org/D16-1264/), without its removal of articles,
    punctuation and capitals. An empty candidate is right only where a reference is empty.

    >>> exact_match([Outcome(("two", "2"), ("2",)), Outcome(("red",), ("Red",))])
    0.5
    """
    return accuracy(outcomes, k=1)


def accuracy(outcomes: Sequence[Outcome], *, k: int) -> float:
    r"""Share of examples with a right answer among the first `k` candidates.

    .. math:: \frac{1}{N} \sum_i [\{\hat y_{i1}, \dots, \hat y_{ik}\} \cap R_i \ne \emptyset]

    Called word accuracy for k = 1 in the transliteration task of Li et al. 2009
    (https://aclanthology.org/W09-3501/). Where search found fewer than `k`, those it found are asked.

    >>> accuracy([Outcome(("dilli",), ("delhi", "dilli"))], k=2)
    1.0
    """
    hits = sum(not set(outcome.references).isdisjoint(outcome.candidates[:k]) for outcome in outcomes)
    return hits / len(outcomes)


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


def rank_signature(outcomes: Sequence[Outcome]) -> str:
    """The reciprocal rank depends on how many candidates there were."""
    most = max(len(outcome.candidates) for outcome in outcomes)
    return signature_of("mean_reciprocal_rank", "any reference", f"candidates:{most}", "case:mixed")
