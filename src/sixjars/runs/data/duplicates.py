"""Rows that are equal: their numbers within one table, and how many of one split are in another."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.flat import portions
from sixjars.data.storage.cache import Examples

Numbers = NDArray[np.int64]
MANY: Final = 0.01
"""The share of rows also in the training set from which a note says so; a few are chance."""
MOST: Final = 500_000
"""Training rows that others are compared with; more would take seconds."""


def shared_in_words(
    train: Examples, other: Examples, fields: Sequence[str], *, what: str
) -> Iterator[str]:
    """A sentence where many rows of another split are also in the training set, by `fields`.

    >>> rows = Examples.of({"source": ["a", "b", "c"], "target": ["x", "y", "z"]}, where="a test")
    >>> other = Examples.of({"source": ["a", "b"], "target": ["x", "z"]}, where="a test")
    >>> next(shared_in_words(rows, other, ["source", "target"], what="test")).partition(",")[0]
    '1 of the 2 test rows is also in the training set'
    """
    rows = len(other.table)
    if len(train.table) > MOST:
        return
    shared = int(np.isin(_row_hashes(other, fields), _row_hashes(train, fields)).sum())
    if shared and shared >= MANY * rows:
        count = f"all {rows:,}" if shared == rows > 1 else f"{shared:,} of the {rows:,}"
        are = "is" if shared == 1 else "are"
        yield (
            f"{count} {what} rows {are} also in the training set, so a score on them says little "
            "of new ones."
        )


def _row_hashes(examples: Examples, columns: Sequence[str]) -> "NDArray[np.uint64]":
    """A number for each row, the same for rows that are equal in some columns."""
    numbers = np.zeros(len(examples.table), np.uint64)
    for name in columns:
        numbers = numbers * np.uint64(1_000_003) ^ _hashes(examples.table.column(name))
    return numbers


def paired(examples: Examples, inputs: Sequence[str], group: Numbers) -> Numbers:
    """Groups that hold the same inputs in another order too: A follows from B, and B from A.

    Groups that share such rows become one; where that would join most rows, only the rows
    themselves are together.
    """
    hashes = np.sort([_hashes(examples.table.column(name)) for name in inputs], axis=0)
    mixed = np.zeros(len(group), np.uint64)
    for at, row in enumerate(hashes):
        mixed = mixed + (row << np.uint64(at))
    number = _first_seen(mixed)
    pairs = int(number.max(initial=-1)) + 1
    joined = group.copy()
    while True:
        lowest = np.full(pairs, len(joined))
        np.minimum.at(lowest, number, joined)
        of_group = np.full(int(group.max(initial=0)) + 1, len(joined))
        np.minimum.at(of_group, group, lowest[number])
        if (of_group[group] == joined).all():
            break
        joined = of_group[group]
    whole = np.bincount(joined).max(initial=0) * 2 <= len(joined)
    return np.unique(joined if whole else number, return_inverse=True)[1].astype(np.int64)


def numbered(examples: Examples, columns: Sequence[str]) -> Numbers:
    """A number for each row, the same for rows that are equal in some columns."""
    table = examples.table
    number = np.zeros(len(examples.table), dtype=np.int64)
    for at, name in enumerate(column for column in columns if column in table.column_names):
        codes = _first_seen(_hashes(table.column(name)))
        pairs = number * (int(codes.max(initial=0)) + 1) + codes
        number = np.unique(pairs, return_inverse=True)[1].astype(np.int64) if at else codes
    return number


def _hashes(column: Any) -> "NDArray[np.uint64]":
    """A number for each value, so that no text is kept; hardly two of millions collide."""
    hashes = [np.zeros(0, np.int64)]
    for values in portions(column):
        hashes.append(np.fromiter(map(hash, values.to_pylist()), np.int64, len(values)))
    return np.concatenate(hashes).view(np.uint64)


def _first_seen(values: "NDArray[np.uint64]") -> Numbers:
    """Values numbered in the order in which each is first seen."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
