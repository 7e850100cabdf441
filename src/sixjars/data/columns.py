"""One field of many examples, from which rows can be taken as a padded rectangle.

Dims: B rows, S positions, F frames, N numbers of a frame, M parts of all rows.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sixjars.data.packing import packed
from sixjars.data.vocabularies import STOP
from sixjars.flow import Padded

Rows = NDArray[np.int64]
"""Numbers of examples."""
Flat = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Token ids of all rows one after the other, and where each row begins (one entry more than rows)."""

_AT_ONCE = 2**22  # ids that are looked at together, so that those of a large file are never all in memory


def laid_flat(rows: Sequence[Sequence[int]]) -> Flat:
    """Rows that are in no cache, as a column takes them.

    >>> laid_flat([[7, 8], [], [9]])
    (array([7, 8, 9], dtype=int32), array([0, 2, 2, 3]))
    """
    ids = np.array(list(chain.from_iterable(rows)), dtype=np.int32)
    return ids, np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])


class Column(Protocol):
    """What batches know of a field."""

    lengths: NDArray[np.int64]
    """Positions of each row."""

    def padded(self, rows: Rows) -> Padded:
        """These rows in one rectangle."""
        ...


class Records(Protocol):
    """Whoever has the frames of each row: a view of a store."""

    lengths: NDArray[np.int64]
    """Frames of each row."""

    def take(self, rows: Rows, /) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The numbers of some rows, with zeros up to the longest (B, F, N), and the frames of each (B,)."""
        ...


@final
class Ids:
    """Token ids, each row with `stop` behind it if given.

    >>> Ids((np.array([7, 8, 9], dtype=np.int32), np.array([0, 2, 3])), stop=2).padded(np.array([1, 0])).values
    tensor([[9, 2, 0],
            [7, 8, 2]])
    """

    def __init__(self, flat: Flat, *, stop: int | None = None, narrowest: int = 0) -> None:
        self.ids, self.offsets = flat
        self.stop = stop
        self.narrowest = narrowest
        self.lengths = np.diff(self.offsets) + (stop is not None)

    def padded(self, rows: Rows) -> Padded:
        """Ids (B, S), at least `narrowest` wide."""
        begins, ends = self.offsets[rows], self.lengths[rows]
        lengths = ends - (self.stop is not None)
        positions = np.arange(max(int(ends.max(initial=0)), self.narrowest))
        inside = positions < lengths[:, None]
        values = np.zeros(inside.shape, dtype=np.int64)
        values[inside] = self.ids[(begins[:, None] + positions)[inside]]
        if self.stop is not None:
            values[np.arange(len(rows)), lengths] = self.stop
        return Padded(torch.from_numpy(values), torch.from_numpy(positions < ends[:, None]))


@final
class Parted:
    """Token ids of texts in parts, kept with `<stop>` behind every part; handed out without, and with the parts packed.

    >>> column = Parted(laid_flat([[7, 8, STOP, 9, STOP], [6]]))  # the second was cut before its `<stop>`
    >>> column.padded(np.array([0, 1])).values, column.lengths.tolist()
    (tensor([[7, 8, 9],
            [6, 0, 0]]), [3, 1])
    """

    def __init__(self, flat: Flat) -> None:
        self.ids, self.offsets = flat
        stops = _places(self.ids, STOP)
        stopped = np.diff(np.searchsorted(stops, self.offsets))
        self.lengths = np.diff(self.offsets) - stopped
        has_rest = np.diff(self.offsets) > 0
        has_rest[has_rest] = self.ids[self.offsets[1:][has_rest] - 1] != STOP
        self.counts = stopped + has_rest
        self._ends = np.sort(np.concatenate([stops, self.offsets[1:][has_rest]]))
        self._firsts = np.concatenate([[0], np.cumsum(self.counts)])
        self._begins = np.concatenate([[0], self._ends[:-1] + 1])[: len(self._ends)]
        self._begins[self._firsts[:-1][self.counts > 0]] = self.offsets[:-1][self.counts > 0]

    def padded(self, rows: Rows) -> Padded:
        """Ids (B, S) and their parts."""
        counts_B, lengths_B = self.counts[rows], self.lengths[rows]
        parts_M = _ranges(self._firsts[rows], counts_B)
        begins_M, lengths_M = self._begins[parts_M], self._ends[parts_M] - self._begins[parts_M]
        mask_BS = np.arange(int(lengths_B.max(initial=0))) < lengths_B[:, None]
        values_BS = np.zeros(mask_BS.shape, dtype=np.int64)
        values_BS[mask_BS] = self.ids[_ranges(begins_M, lengths_M)]
        return Padded(torch.from_numpy(values_BS), torch.from_numpy(mask_BS), packed(lengths_M, counts_B))


def _places(ids: NDArray[np.int32], wanted: int) -> NDArray[np.int64]:
    """Where an id stands."""
    found = [np.flatnonzero(ids[at : at + _AT_ONCE] == wanted) + at for at in range(0, len(ids), _AT_ONCE)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of many ranges, one range after the other."""
    shifts = begins - (np.cumsum(lengths) - lengths)
    return np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))


@final
class Frames:
    """Pictures (one frame each) or films, as the numbers of each frame."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.lengths = records.lengths

    def padded(self, rows: Rows) -> Padded:
        """Numbers (B, F, N)."""
        values_BFN, lengths_B = self.records.take(rows)
        positions_F = np.arange(values_BFN.shape[1])
        return Padded(torch.from_numpy(values_BFN), torch.from_numpy(positions_F < lengths_B[:, None]))


def stacked(records: Sequence[NDArray[Any]]) -> Padded:
    """Records that are in no store, (F, N) each, as numbers (B, F, N).

    >>> stacked([np.ones((2, 3)), np.ones((1, 3))]).mask
    tensor([[ True,  True],
            [ True, False]])
    """
    values_BFN = nn.utils.rnn.pad_sequence([torch.from_numpy(record) for record in records], batch_first=True)
    lengths_B = torch.tensor([len(record) for record in records])
    return Padded(values_BFN, torch.arange(values_BFN.shape[1]) < lengths_B[:, None])


@final
class Nothing:
    """No input at all: rows without positions."""

    def __init__(self, count: int) -> None:
        self.lengths = np.zeros(count, dtype=np.int64)

    def padded(self, rows: Rows) -> Padded:
        """As many empty rows."""
        return Padded.of([[] for _ in rows])
