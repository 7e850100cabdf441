"""What a decoder that copies may write: words of its vocabulary, and places of the source.

In kept data a word outside the vocabulary is a number from its size on, the same wherever the word stands (see `text`).
In a batch it is the size plus the first position of the word in its own source.

Dims: B rows, S source positions, T target positions.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.columns import Column, Rows
from sixjars.data.vocabularies import UNK
from sixjars.errors import DataError
from sixjars.flow import Padded

_SHIFT = 32  # an id takes fewer bits


def copyable(ids_BS: Tensor, mask_BS: Tensor, size: int) -> Tensor:
    """What copying each source position writes: its word, or `size` + the first position of a word that has no id.

    >>> copyable(torch.tensor([[5, 99, 7, 99]]), torch.ones(1, 4, dtype=torch.bool), 10)
    tensor([[ 5, 11,  7, 11]])
    """
    said_BS = np.where(mask_BS.numpy(), ids_BS.numpy(), 0)
    rows, positions, words = _beyond(said_BS, size)
    _, firsts, same = np.unique(words, return_index=True, return_inverse=True)
    said_BS[rows, positions] = size + positions[firsts][same]
    return torch.from_numpy(said_BS)


def copied(target_BT: Tensor, ids_BS: Tensor, mask_BS: Tensor, size: int) -> Tensor:
    """The target in the same numbers: a word without an id is copied if the source has it, else unknown.

    >>> source = torch.tensor([[5, 99, 7, 99]]), torch.ones(1, 4, dtype=torch.bool)
    >>> copied(torch.tensor([[99, 5, 88]]), *source, 10)
    tensor([[11,  5,  3]])
    """
    written_BT = target_BT.numpy().copy()
    rows, positions, wanted = _beyond(written_BT, size)
    _, places, words = _beyond(np.where(mask_BS.numpy(), ids_BS.numpy(), 0), size)
    known, firsts = np.unique(words, return_index=True)
    at = np.searchsorted(known, wanted)
    found = at < len(known)
    found[found] = known[at[found]] == wanted[found]
    written_BT[rows, positions] = UNK
    written_BT[rows[found], positions[found]] = size + places[firsts[at[found]]]
    return torch.from_numpy(written_BT)


def _beyond(ids: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the words outside a vocabulary stand: row, position, and a number for the word in this row."""
    rows, positions = np.nonzero(ids >= size)
    return rows, positions, (rows << _SHIFT) + ids[rows, positions]


@final
@dataclass(frozen=True)
class Copying:
    """How the words of one input are written by the decoder."""

    said: Column
    """The words of the input as the target's vocabulary numbers them, those that it does not hold told apart."""
    size: int
    """Of that vocabulary."""
    source: str = "source"
    """Which input is copied from."""

    def check(self, source: Column) -> None:
        """Refuses an input that its own vocabulary cuts into other positions than the target's."""
        differ = np.flatnonzero(self.said.lengths != source.lengths)
        if len(differ):
            row = differ[0]
            raise DataError(
                f"Row {row + 1} of the {self.source} has {source.lengths[row]} tokens by its own settings and "
                f"{self.said.lengths[row]} by the target's; to copy, give both the same tokens, split and lowercase."
            )

    def of(self, rows: Rows, source: Padded, target: Padded) -> tuple[Padded, Padded]:
        """The input with what copying it would write, and the target with words to copy in place of unknown ones."""
        words = self.said.padded(rows)
        said_BS = copyable(words.values, words.mask, self.size)
        target_BT = copied(target.values, words.values, words.mask, self.size)
        return replace(source, said=said_BS), replace(target, values=target_BT)
