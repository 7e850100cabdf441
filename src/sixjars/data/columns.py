"""One field of many examples, from which rows can be taken as a padded rectangle.

Dims: B rows, S positions, F frames, N numbers of a frame.
"""

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sixjars.data.store import Records
from sixjars.flow import Padded

Rows = NDArray[np.int64]
"""Numbers of examples."""
Flat = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Token ids of all rows one after the other, and where each row begins (one entry more than rows)."""


class Column(Protocol):
    """What batches know of a field."""

    lengths: NDArray[np.int64]
    """Positions of each row."""

    def padded(self, rows: Rows) -> Padded:
        """These rows in one rectangle."""
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
