"""How much of the output a person would have to correct."""

from collections.abc import Callable, Sequence

from sixjars.evaluation.metrics.outcome import Outcome


def character_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Fewest characters to insert, delete or replace, for each character of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    The distance `d` is that of Levenshtein 1966, "Binary codes capable of correcting deletions,
    insertions, and reversals". A character is a Unicode code point: a vowel sign of Devanagari counts, and so
    does a space.
    Of references that are equally near, the longest one is counted. The rate may exceed 1.
    When every reference is empty there is nothing to divide by: 0 if every candidate is empty too, else 1,
    which is also what sacrebleu's TER says.

    >>> character_error_rate([Outcome(("kitten",), ("sitting",))])
    0.5
    """
    return _error_rate(outcomes, units=list)


def word_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Fewest words to insert, delete or replace, for each word of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    Levenshtein 1966, over what stands between spaces. Nearest reference, range and empty references as in
    `character_error_rate`.

    >>> word_error_rate([Outcome(("I am going home",), ("I going to home",))])
    0.5
    """
    return _error_rate(outcomes, units=str.split)


def _error_rate(outcomes: Sequence[Outcome], *, units: Callable[[str], list[str]]) -> float:
    from rapidfuzz.distance.Levenshtein import distance

    edits = length = 0
    for outcome in outcomes:
        said = units(outcome.best)
        rights = [units(reference) for reference in outcome.references]
        fewest, shortfall = min((distance(said, right), -len(right)) for right in rights)
        edits += fewest
        length -= shortfall
    if length == 0:
        return 1.0 if edits else 0.0
    return edits / length
