"""Word alignments from attention, in the form that Pharaoh and its successors read: `0-0 1-2`, source before target."""

from collections.abc import Sequence

from sixjars.inspection.page import Weights


def pharaoh(weights: Weights, source: Sequence[int], target: Sequence[int]) -> str:
    """A link from each output token to the position with its largest weight, as numbers of words counted from 0.

    `source` and `target` have the word of each token; rows of weights beyond them, as that of `<stop>`, have no link.

    >>> pharaoh([[0.9, 0.1, 0.0], [0.1, 0.3, 0.6], [1.0, 0.0, 0.0]], [0, 1, 1], [0, 1])
    '0-0 1-1'
    """
    links = set()
    for row, word in zip(weights, target, strict=False):
        best = max(range(min(len(row), len(source))), key=row.__getitem__)
        links.add((source[best], word))
    return " ".join(f"{one}-{two}" for one, two in sorted(links))
