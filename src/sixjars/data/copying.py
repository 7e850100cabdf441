"""Copying source words: ids for words that the decoder's vocabulary does not have.

In stored data a word outside the vocabulary is a number from its size on, a hash of the word (see
`text.tokenizer`), so that the same word has the same number in source and target without a list of
all words anywhere. In a batch it is the size plus the first position of the word in its own source,
so that V + S numbers are enough for the decoder.

Dims: B rows, S source positions, T target positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.batches import FieldValues, Rows
from sixjars.data.storage.cache import ExampleTable, IdEncoder
from sixjars.flow.values import Padded
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import UNK

_SHIFT = 32  # an id takes fewer bits, so row and id fit one number


def copyable(ids_BS: Tensor, mask_BS: Tensor, size: int) -> Tensor:
    """What copying outputs at each source position: an id, or `size` + the word's first position.

    >>> copyable(torch.tensor([[5, 99, 7, 99]]), torch.ones(1, 4, dtype=torch.bool), 10)
    tensor([[ 5, 11,  7, 11]])
    """
    copy_BS = np.where(mask_BS.numpy(), ids_BS.numpy(), 0)
    rows, positions, words = _outside(copy_BS, size)
    _, firsts, same = np.unique(words, return_index=True, return_inverse=True)
    copy_BS[rows, positions] = size + positions[firsts][same]
    return torch.from_numpy(copy_BS)


def copied(target_BT: Tensor, ids_BS: Tensor, mask_BS: Tensor, size: int) -> Tensor:
    """The target in these numbers: a word without an id is copied if the source has it.

    >>> source = torch.tensor([[5, 99, 7, 99]]), torch.ones(1, 4, dtype=torch.bool)
    >>> copied(torch.tensor([[99, 5, 88]]), *source, 10)
    tensor([[11,  5,  3]])
    """
    output_BT = target_BT.numpy().copy()
    rows, positions, target_words = _outside(output_BT, size)
    _, places, words = _outside(np.where(mask_BS.numpy(), ids_BS.numpy(), 0), size)
    known, firsts = np.unique(words, return_index=True)  # sorted, each where it first stands
    is_known = np.isin(target_words, known)
    copied_from = places[firsts[np.searchsorted(known, target_words[is_known])]]
    output_BT[rows, positions] = UNK
    output_BT[rows[is_known], positions[is_known]] = size + copied_from
    return torch.from_numpy(output_BT)


def _outside(
    ids: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The rows and positions of words outside a vocabulary, and a number for each word.

    The number holds the row too, so that one `unique` finds the words of all rows and never mixes
    two of them.
    """
    rows, positions = np.nonzero(ids >= size)
    return rows, positions, (rows << _SHIFT) + ids[rows, positions]


@final
@dataclass(frozen=True)
class Copying:
    """How the words of one input are output by the decoder."""

    words: FieldValues
    """The words of the input in the target's numbers, also those outside its vocabulary."""
    size: int
    """The size of that vocabulary."""
    source: str
    """The name of the input that is copied from."""

    def check(self, inputs: Mapping[str, FieldValues]) -> None:
        """Refuse an input that its own and the target's vocabulary split differently."""
        lengths = inputs[self.source].lengths
        differ = np.flatnonzero(self.words.lengths != lengths)
        if len(differ):
            row = differ[0]
            raise DataError(
                f"Row {row + 1} of the {self.source} has {lengths[row]} tokens by its own settings "
                f"and {self.words.lengths[row]} by the target's; to copy, give both the same "
                "tokens, split and lowercase."
            )

    def join(
        self, rows: Rows, inputs: Mapping[str, Padded], target: Padded
    ) -> tuple[dict[str, Padded], Padded]:
        """Add copy ids to the input, and replace `<unk>` in the target by words to copy."""
        words = self.words.padded(rows)
        copy_BS = copyable(words.values, words.mask, self.size)
        target_BT = copied(target.values, words.values, words.mask, self.size)
        source = inputs[self.source]
        wider = source.mask.shape[1] - copy_BS.shape[1]  # segments of few shapes have more padding
        source = replace(source, copy_ids=torch.nn.functional.pad(copy_BS, (0, wider)))
        return {**inputs, self.source: source}, replace(target, values=target_BT)


@final
@dataclass(frozen=True)
class CopyLink:
    """A source text whose words can be copied into a target text."""

    source: Any
    """The `TextField` that is copied from."""
    target: Any
    """The `TextField` that is copied into; its vocabulary numbers the words of both."""

    @property
    def _name(self) -> str:
        return f"copies of {self.source.name}"

    def encoders(self) -> dict[str, IdEncoder]:
        """Encodes the source with the target's vocabulary."""
        return {self._name: self.source.encoding(self.target.tokenizer, copies=True)}

    def joint(self, table: ExampleTable) -> Copying:
        """The joint that adds copy ids to batches."""
        words = self.source.id_column(table.ids(self._name))
        return Copying(words, self.target.tokenizer.size, self.source.name)

    def source_words(self, row: Mapping[str, str]) -> list[str]:
        """The word at each position of the source, as the tokenizer spells it."""
        encoding = self.source.encoding(self.target.tokenizer, copies=True)
        words: list[str] = encoding.words(row[self.source.name])
        return words

    def shown(self, words: Sequence[str]) -> list[str]:
        """The words without the tokenizer's marks."""
        return [self.target.tokenizer.plain(word) for word in words]
