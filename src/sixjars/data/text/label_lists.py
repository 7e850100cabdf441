"""Columns of a table whose texts are lists of labels."""

from collections.abc import Sequence
from typing import Final

LEAST_LISTS: Final = 0.1
"""The share of texts with several labels, from which on a column is taken for one of lists."""


def hold_lists(texts: Sequence[str], mark: str) -> bool:
    """Whether texts are lists of labels with `mark` between them, and not names with that mark.

    Then there are fewer labels than texts, and most that are in a list also stand alone. '1,3' may
    be a decimal number.

    >>> hold_lists(["billing", "refund", "billing, refund"], ",")
    True
    >>> hold_lists(["Paris, France", "Rome, Italy"], ",")
    False
    >>> hold_lists(["1", "3", "1,3"], ","), hold_lists(["1", "3", "7", "1,3,7"], ",")
    (False, True)
    """
    split = (map(str.strip, text.casefold().split(mark)) for text in texts)
    parts = [[part for part in labels if part] for labels in split]
    if all(len(labels) < 3 and all(map(str.isdigit, labels)) for labels in parts):
        return False
    alone = {labels[0] for labels in parts if len(labels) == 1}
    listed = [label for labels in parts if len(labels) > 1 for label in labels]
    if sum(len(labels) > 1 for labels in parts) < LEAST_LISTS * len(texts):
        return False
    if len(alone.union(listed)) >= len({tuple(sorted(labels)) for labels in parts}):
        return False
    return sum(label in alone for label in listed) * 2 > len(listed)
