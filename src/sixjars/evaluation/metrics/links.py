"""Whether attention connects the words that belong together."""

from collections.abc import Sequence

from sixjars.evaluation.metrics.outcome import Outcome


def alignment_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""How far the predicted links A are from the sure links S and the possible links P; 0 to 1.

    .. math:: 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}, \quad S \subseteq P

    Och & Ney 2003 (https://aclanthology.org/J03-1002/), each size added up over the corpus.
    Links that are sure count as possible whether `possible` repeats them or not.
    0 when nothing was predicted and nothing was to be found: there is no error.

    >>> right = frozenset({(0, 0), (1, 2)})
    >>> alignment_error_rate([Outcome(("a b c",), links=frozenset({(0, 0), (1, 1)}), sure=right)])
    0.5
    """
    hits = size = 0
    for outcome in outcomes:
        assert outcome.links is not None
        assert outcome.sure is not None
        possible = outcome.sure | (outcome.possible or frozenset())
        hits += len(outcome.links & outcome.sure) + len(outcome.links & possible)
        size += len(outcome.links) + len(outcome.sure)
    return 1 - hits / size if size else 0.0
