"""The words of sentence pairs as ids, and all pairs of words in chunks, which the aligner counts.

Dims: K sentence pairs of one shape, S words of the first text, T of the second,
      N word pairs of a chunk, U different ones of them, P of all chunks.

Sentence pairs of the same two lengths stand together, so a chunk is a few dense arrays (K, S, T) on
end. A chunk numbers its own word pairs: what is looked up for each place is then small enough for
the cache of a processor.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.flat import words_of
from sixjars.progress import counted, number_of, tell

Numbers = NDArray[np.int32]
CHUNK: Final = 1 << 20  # places of a chunk, about


@final
@dataclass(frozen=True)
class WordIds:
    """The words of a text as ids, all lines one after the other; an empty line has none."""

    ids: Numbers
    begins: NDArray[np.int64]
    """Where each line begins, and where the last ends."""
    count: int
    """Different words."""

    @classmethod
    def of(cls, texts: Any) -> "WordIds":
        """Split a `pyarrow` array of texts at white space, in lowercase.

        >>> import pyarrow
        >>> WordIds.of(pyarrow.array(["A b a", "", "b"])).ids.tolist()
        [0, 1, 0, 1]
        """
        import pyarrow.compute

        words, places, begins = words_of(pyarrow.compute.utf8_lower(texts))
        if "" in words:  # which stands for a line without words
            empty = places == words.index("")
            begins = begins - np.concatenate([[0], np.cumsum(empty)])[begins]
            places = places[~empty]
        return cls(places.astype(np.int32), begins, len(words))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of words of each line."""
        return np.diff(self.begins)

    def rows(self, lines: NDArray[np.int64], length: int) -> Numbers:
        """The words of some lines of the same length, (K, S)."""
        words_KS: Numbers = self.ids[self.begins[lines][:, None] + np.arange(length)]
        return words_KS


@final
@dataclass(frozen=True)
class PairBlock:
    """Sentence pairs of one shape within a chunk."""

    lines: NDArray[np.int64]
    """The numbers of its lines, (K,)."""
    first: Numbers
    """Words of the first text, (K, S)."""
    second: Numbers
    """Words of the second, (K, T)."""
    begin: int
    """Its first place in the chunk's array of word pairs."""

    def cut(self, places: NDArray[Any]) -> NDArray[Any]:
        """A view of this block's part of an array over the chunk's word pairs, as (K, S, T)."""
        shape = len(self.lines), self.first.shape[1], self.second.shape[1]
        return places[self.begin : self.begin + math.prod(shape)].reshape(shape)


@final
@dataclass(frozen=True)
class WordPairChunk:
    """Some blocks, and the word pairs in them."""

    blocks: tuple[PairBlock, ...]
    places: Numbers
    """The number, within this chunk, of the word pair at each place, (N,)."""
    pairs: Numbers
    """The number, among all word pairs, of each pair of this chunk, (U,)."""


@final
@dataclass(frozen=True)
class PairedText:
    """All sentence pairs that have words on both sides."""

    chunks: tuple[WordPairChunk, ...]
    first: Numbers
    """The word of the first text in each different word pair, (P,)."""
    second: Numbers
    """The word of the second text in each, (P,)."""
    counts: tuple[int, int]
    """Different words of both texts."""

    @classmethod
    def of(cls, first: WordIds, second: WordIds) -> "PairedText":
        """Pair the lines of two texts."""
        parts = []
        keys = np.zeros(0, dtype=np.int64)
        waiting: list[NDArray[np.int64]] = []
        total = int((first.lengths * second.lengths > 0).sum())
        for blocks in counted(_blocks(first, second), "pairing words", rows=_lines, total=total):
            # A word pair is one number, so that one `unique` finds the different ones.
            pairs = [_crossed(block, second.count).ravel() for block in blocks]
            keys_U, places = np.unique(np.concatenate(pairs), return_inverse=True)
            parts.append((tuple(blocks), places.astype(np.int32), keys_U))
            waiting.append(keys_U)
            if sum(map(len, waiting)) > max(4 * CHUNK, len(keys)):
                keys = _merged([keys, *waiting])
                waiting = []
        keys = _merged([keys, *waiting])
        chunks = []
        for block_group, places_N, keys_U in parts:
            pairs_U = np.searchsorted(keys, keys_U).astype(np.int32)
            chunks.append(WordPairChunk(block_group, places_N, pairs_U))
        sides = (keys // second.count).astype(np.int32), (keys % second.count).astype(np.int32)
        return cls(tuple(chunks), *sides, (first.count, second.count))


def _crossed(block: PairBlock, count: int) -> NDArray[np.int64]:
    """Each word pair of a block as one number, (K, S, T)."""
    pairs: NDArray[np.int64] = block.first[:, :, None].astype(np.int64) * count
    return pairs + block.second[:, None]


def _lines(blocks: list[PairBlock]) -> int:
    return sum(len(block.lines) for block in blocks)


def _merged(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All different keys, sorted: far faster here than `np.unique`, which hashes them."""
    ranked = np.sort(np.concatenate(keys))
    is_first = np.concatenate([[True], ranked[1:] != ranked[:-1]])[: len(ranked)]
    different: NDArray[np.int64] = ranked[is_first]
    return different


def _blocks(first: WordIds, second: WordIds) -> Iterator[list[PairBlock]]:
    """The blocks of each chunk: pairs sorted by their lengths, cut where the shape changes."""
    lengths_S, lengths_T = first.lengths, second.lengths
    order = np.lexsort((lengths_T, lengths_S))
    sizes = lengths_S * lengths_T
    if (long := int((sizes > CHUNK).sum())) > 0:
        tell(
            f"{number_of(long, 'pair')} of lines with more than {CHUNK:,} pairs of words: too "
            "long, left without links."
        )
    order = order[(sizes[order] > 0) & (sizes[order] <= CHUNK)]
    shapes = np.stack([lengths_S[order], lengths_T[order]], axis=1)
    changes = np.flatnonzero((np.diff(shapes, axis=0) != 0).any(axis=1)) + 1
    blocks: list[PairBlock] = []
    begin = 0
    for lines in np.split(order, changes) if len(order) else ():
        size_S, size_T = int(lengths_S[lines[0]]), int(lengths_T[lines[0]])
        count = max(1, CHUNK // (size_S * size_T))
        for at in range(0, len(lines), count):
            lines_K = lines[at : at + count]
            words = first.rows(lines_K, size_S), second.rows(lines_K, size_T)
            blocks.append(PairBlock(lines_K, *words, begin))
            begin += len(lines_K) * size_S * size_T
            if begin >= CHUNK:
                yield blocks
                blocks = []
                begin = 0
    if blocks:
        yield blocks
