"""Texts in segments, packed into a few rectangles of segments of like length.

Dims: B rows, S positions, P segments of a row, M segments of all rows, N segments of a pack,
      L its width, K widths that a pack may have.

Why: a batch of documents as one rectangle of sentences is four fifths padding, because its longest
sentence sets the width for all. A few rectangles, the best widths found by dynamic programming,
bring that below a fifth.
"""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.flat import Flat, places_of, ranges
from sixjars.flow.limits import padded_size
from sixjars.flow.values import Padded, Segments
from sixjars_runtime.special_tokens import STOP

MOST = 6  # packs at most: each is one more call of the network that encodes them
TOLERATED = 0.15  # share of padding that is not worth one more pack
SHORT, LONG = 64, 128  # where shapes should be few, all sizes are multiples of one of these
ONE = 1 << 18
"""Where shapes should be few, the places of the only pack: a GPU takes longer for more steps of a
recurrence than for more rows. Beyond that, a second pack, as wide as `SHORT`, holds what fits."""
_FINEST = 128  # widths that are compared; with more of them, comparing takes longer than it saves

Numbers = NDArray[np.int64]


@final
class SegmentColumn:
    """Ids of texts in segments, stored with a `<stop>` behind each, which batches leave out.

    >>> flat = np.array([7, 8, STOP, 9, STOP, 6], dtype=np.int32), np.array([0, 5, 6])
    >>> column = SegmentColumn(flat)  # the second row was cut before its `<stop>`
    >>> column.padded(np.array([0, 1])).values, column.lengths.tolist()
    (tensor([[7, 8, 9],
            [6, 0, 0]]), [3, 1])
    """

    def __init__(self, flat: Flat) -> None:
        self.ids, self.offsets = flat
        self.few_shapes = False
        stops = places_of(self.ids, STOP)
        stopped = np.diff(np.searchsorted(stops, self.offsets))
        self.lengths = np.diff(self.offsets) - stopped
        # A row that does not end in <stop> has one more segment than stops: the one that was cut.
        has_rest = np.diff(self.offsets) > 0
        has_rest[has_rest] = self.ids[self.offsets[1:][has_rest] - 1] != STOP
        self.counts = stopped + has_rest
        self._ends = np.sort(np.concatenate([stops, self.offsets[1:][has_rest]]))
        self._firsts = np.concatenate([[0], np.cumsum(self.counts)])
        # A segment begins behind the one before it; the first of a row, where the row begins.
        self._begins = np.concatenate([[0], self._ends[:-1] + 1])[: len(self._ends)]
        self._begins[self._firsts[:-1][self.counts > 0]] = self.offsets[:-1][self.counts > 0]

    def padded(self, rows: Numbers) -> Padded:
        """Ids (B, S) and their segments."""
        counts_B = self.counts[rows]
        segments_M = ranges(self._firsts[rows], counts_B)
        begins_M = self._begins[segments_M]
        lengths_M = self._ends[segments_M] - begins_M
        segments = packed(lengths_M, counts_B, few=self.few_shapes)
        mask_BS = np.arange(segments.segment_of.shape[1]) < self.lengths[rows][:, None]
        values_BS = np.zeros(mask_BS.shape, dtype=np.int64)
        values_BS[mask_BS] = self.ids[ranges(begins_M, lengths_M)]
        return Padded(torch.from_numpy(values_BS), torch.from_numpy(mask_BS), segments)


def packed(lengths_M: Numbers, counts_B: Numbers, *, few: bool = False) -> Segments:
    """The segments of a batch, from the length of each, row by row, and each row's count of them.

    With `few`, all sizes are padded, so that many batches have the same: a CUDA graph is recorded
    for each shape.

    The first pack holds the longest segments, and those of each stand longest first. A segment of
    length 0 is a row of padding. Here the first row has segments of 4, 3 and 4 words:

    >>> segments = packed(np.array([4, 3, 4, 9]), np.array([3, 1]))
    >>> [tuple(pack.shape) for pack in segments.packs], segments.segment_index.tolist()
    ([(1, 9), (3, 4)], [[1, 3, 2], [0, -1, -1]])
    """
    ends_M = np.concatenate([[0], np.cumsum(lengths_M)])
    borders_B = np.concatenate([[0], np.cumsum(counts_B)])
    starts_M = ends_M[:-1] - np.repeat(ends_M[borders_B[:-1]], counts_B)  # each in its row
    totals_B = np.diff(ends_M[borders_B])
    width, most = int(totals_B.max(initial=0)), max(int(counts_B.max(initial=0)), 1)
    if few:
        width = padded_size(width, least=LONG, parts=2)
        most = padded_size(most, least=SHORT // 4, parts=2)
    rows_M = np.repeat(np.arange(len(counts_B)), counts_B)
    places_M = np.arange(len(lengths_M)) - np.repeat(borders_B[:-1], counts_B)
    order_M = np.argsort(-lengths_M, kind="stable")
    of_BS = np.zeros((len(counts_B), width), dtype=np.int64)
    of_BS[np.arange(width) < totals_B[:, None]] = np.repeat(places_M, lengths_M)
    begins_M = (rows_M * width + starts_M)[order_M]
    packs, numbers_M, back = _packs(begins_M, lengths_M[order_M], of_BS.size, few=few)
    index_BP = np.full((len(counts_B), most), -1, dtype=np.int64)
    index_BP[rows_M[order_M], places_M[order_M]] = numbers_M
    tensors = tuple(torch.from_numpy(pack_NL) for pack_NL in packs)
    places_BS = torch.from_numpy(back.reshape(len(counts_B), width))
    return Segments(tensors, torch.from_numpy(index_BP), places_BS, torch.from_numpy(of_BS))


def _packs(
    begins_M: Numbers, lengths_M: Numbers, places: int, *, few: bool
) -> tuple[list[Numbers], Numbers, Numbers]:
    """Where each place of the packs is in the batch, the pack row of each segment, and the inverse.

    Segments are given longest first, by where they begin in the flattened batch.
    """
    back = np.zeros(places, dtype=np.int64)
    if not len(lengths_M):
        return [np.full((1, 1), -1)], np.zeros(0, dtype=np.int64), back
    packs, numbers = [], []
    before = rows = 0
    widths = _few_widths(lengths_M) if few else _widths(lengths_M)
    # The first segment of each pack but the first.
    borders = np.searchsorted(-lengths_M, [-width for width in widths[1:]])
    parts = np.split(begins_M, borders), np.split(lengths_M, borders)
    for width, begins_N, lengths_N in zip(widths, *parts, strict=True):
        padding = 0, _rows(len(begins_N)) - len(begins_N) if few else 0
        inside_NL = np.arange(width) < np.pad(lengths_N, padding)[:, None]
        pack_NL = np.where(inside_NL, np.pad(begins_N, padding)[:, None] + np.arange(width), -1)
        back[pack_NL[inside_NL]] = before + np.flatnonzero(inside_NL)
        packs.append(pack_NL)
        numbers.append(rows + np.arange(len(begins_N)))
        before += pack_NL.size
        rows += len(pack_NL)
    return packs, np.concatenate(numbers), back


def _rows(count: int) -> int:
    """The rows of a pack where shapes should be few."""
    return padded_size(max(count, 1), least=LONG, parts=2)


def _few_widths(lengths_M: Numbers) -> list[int]:
    """How wide the packs are where shapes should be few: one, or a wide one and `SHORT`."""
    widest = padded_size(max(int(lengths_M[0]), 1), least=SHORT, parts=2)
    return [widest] if widest == SHORT or widest * _rows(len(lengths_M)) <= ONE else [widest, SHORT]


def _widths(lengths_M: Numbers) -> list[int]:
    """The widths of packs, widest first: the fewest with little padding, else the best `MOST`.

    A pack that holds the segments longer than the i-th width, up to the j-th, has as many places as
    there are such segments times the j-th width. The least area of r packs up to j is the least,
    over i, of that of r - 1 up to i and this one.
    """
    sizes_K, counts_K = np.unique(np.maximum(lengths_M, 1), return_counts=True)
    spread = np.linspace(0, len(sizes_K) - 1, min(len(sizes_K), _FINEST))
    chosen = np.unique(spread.astype(np.int64))
    widths_K, upto_K = sizes_K[chosen], np.cumsum(counts_K)[chosen]
    above_KK = np.subtract.outer(-np.concatenate([[0], upto_K[:-1]]), -upto_K)
    area_KK = np.where(above_KK > 0, above_KK * widths_K, np.iinfo(np.int64).max // 2)
    enough = int(sizes_K @ counts_K) / (1 - TOLERATED)
    least_K: Numbers = area_KK[0]
    cuts: list[Numbers] = []
    while least_K[-1] > enough and len(cuts) + 1 < min(MOST, len(widths_K)):
        sums_KK = np.concatenate([[0], least_K[:-1]])[:, None] + area_KK
        cuts.append(sums_KK.argmin(axis=0))
        least_K = sums_KK.min(axis=0)
    widths = [int(widths_K[-1])]
    at = len(widths_K) - 1
    for cut_K in reversed(cuts):
        # Never before the first: while there are widths, one more pack is better.
        at = int(cut_K[at]) - 1
        widths.append(int(widths_K[at]))
    return widths
