"""Word alignments from attention, in the form that Pharaoh and its successors read: `0-0 1-2`, source before target."""

from collections.abc import Sequence

from sixjars.evaluation.metrics.attention import linked
from sixjars.inspection.page import Weights


def pharaoh(weights: Weights, source: Sequence[int], target: Sequence[int]) -> str:
    """The links between words that the weights between their tokens give (see `linked`), counted from 0.

    >>> pharaoh([[0.9, 0.1, 0.0], [0.1, 0.3, 0.6], [1.0, 0.0, 0.0]], [0, 1, 1], [0, 1])
    '0-0 1-1'
    """
    return " ".join(f"{one}-{two}" for one, two in sorted(linked(weights, source, target)))
