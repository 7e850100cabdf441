"""Packing: every segment is found again by following the tensors, with little padding."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.packing import MOST, TOLERATED, packed
from sixjars.flow.values import Segments

Rows = list[list[int]]
"""The lengths of the segments of each text."""


def packing(rows: Rows) -> Segments:
    lengths = np.array([length for row in rows for length in row], dtype=np.int64)
    return packed(lengths, np.array([len(row) for row in rows], dtype=np.int64))


def followed(segments: Segments, rows: Rows) -> None:
    """Each text is written as (row, segment, place), then read back in all ways there are."""
    width = max([sum(row) for row in rows], default=0)
    texts = [
        [(row, segment, at) for segment, length in enumerate(lengths) for at in range(length)]
        for row, lengths in enumerate(rows)
    ]
    flat = {
        row * width + at: position
        for row, text in enumerate(texts)
        for at, position in enumerate(text)
    }
    whole = [line for pack in segments.packs for line in pack.tolist()]
    # padding is behind
    assert all(sorted(line, key=lambda place: place < 0) == line for line in whole)
    lines = [[flat[place] for place in line if place >= 0] for line in whole]
    laid = [place for line in whole for place in line]
    # each position exactly once
    assert sorted(place for place in laid if place >= 0) == sorted(flat)

    assert segments.segment_index.shape == (len(rows), max([1, *(len(row) for row in rows)]))
    for row, lengths in enumerate(rows):
        homes = segments.segment_index[row].tolist()
        assert homes[len(lengths) :] == [-1] * (len(homes) - len(lengths))
        assert [lines[home] for home in homes[: len(lengths)]] == [
            [(row, segment, at) for at in range(length)] for segment, length in enumerate(lengths)
        ]
    used = segments.segment_index[segments.segment_index >= 0].tolist()
    assert sorted(used) == list(range(sum(map(len, rows))))

    assert segments.position_index.shape == segments.segment_of.shape == (len(rows), width)
    for row, text in enumerate(texts):
        assert [
            flat[laid[place]] for place in segments.position_index[row].tolist()[: len(text)]
        ] == text
        assert segments.segment_of[row].tolist() == [segment for _, segment, _ in text] + [0] * (
            width - len(text)
        )
        assert segments.position_index[row].tolist()[len(text) :] == [0] * (width - len(text))


def area(lengths: list[int], widths: tuple[int, ...]) -> int:
    """Places of rectangles of these widths, each segment in the narrowest that holds it."""
    return sum(min(width for width in widths if width >= length) for length in lengths)


def padding(segments: Segments) -> float:
    """The share of all places that hold nothing."""
    places: list[int] = [
        place for pack in segments.packs for line in pack.tolist() for place in line
    ]
    return sum(place < 0 for place in places) / len(places)


lengths = st.integers(0, 12) | st.sampled_from([0, 1, 500])


@given(st.lists(st.lists(lengths, max_size=6), min_size=1, max_size=6))
def test_every_segment_is_found_again(rows: Rows) -> None:
    segments = packing(rows)
    followed(segments, rows)
    assert 1 <= len(segments.packs) <= MOST
    assert all(
        pack.shape[0] >= 1 and pack.shape[1] >= 1 and pack.dtype == torch.int64
        for pack in segments.packs
    )


@pytest.mark.parametrize(
    "rows",
    [
        [[400] * 5, [1]],
        [[2000], [1]],
        [[3, 2], [], [1]],
        [[0], [0, 0]],
        [[0, 4, 0]],
        [[]],
        [[], []],
        [],
        [[1]],
        [[5] * 40] * 3,
        [list(range(1, 300))],
    ],
    ids=repr,
)
def test_odd_batches(rows: Rows) -> None:
    followed(packing(rows), rows)


def test_by_hand() -> None:
    """Texts of segments 2 + 1 and 9: the nine in a rectangle of its own, the others in theirs."""
    segments = packing([[2, 1], [9]])
    packs = [[[9, 10, 11, 12, 13, 14, 15, 16, 17]], [[0, 1], [2, -1]]]
    assert [pack.tolist() for pack in segments.packs] == packs
    assert segments.segment_index.tolist() == [[1, 2], [0, -1]]
    places = [[9, 10, 11, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6, 7, 8]]
    assert segments.position_index.tolist() == places
    assert segments.segment_of.tolist() == [[0, 0, 1, 0, 0, 0, 0, 0, 0], [0] * 9]
    assert padding(segments) == 1 / 13


@given(st.lists(st.integers(1, 14), min_size=1, max_size=20))
def test_no_other_rectangles_would_be_better(row: list[int]) -> None:
    """Against all ways to choose widths: as many as needed, and none has less padding."""
    segments = packing([row])
    count = len(segments.packs)
    places = sum(pack.numel() for pack in segments.packs)
    others = sorted(set(row))[:-1]

    def least(most: int) -> int:
        return min(area(row, (*widths, max(row))) for widths in combinations(others, most - 1))

    assert places == least(count)
    rounding = 1e-9
    assert count == 1 or 1 - sum(row) / least(count - 1) > TOLERATED - rounding
    assert 1 - sum(row) / places <= TOLERATED + rounding or count == min(MOST, len(others) + 1)


def test_a_skewed_batch_wastes_little() -> None:
    """Newspaper-like sentences, some very long ones, and a text of one word."""
    noise = np.random.default_rng(3)
    rows = [np.maximum(noise.normal(22, 10, 18), 1).astype(int).tolist() for _ in range(62)]
    rows += [[2000], [1], [180, 3, 1, 90]]
    segments = packing(rows)
    followed(segments, rows)
    words = sum(map(sum, rows))
    assert sum(map(len, rows)) * 2000 > 80 * words  # one rectangle would be nearly all padding
    assert padding(segments) < 0.2


def test_more_widths_than_are_compared() -> None:
    """Lengths from 1 to 500: six equal steps waste one seventh at best."""
    rows = [list(range(1, 501))]
    segments = packing(rows)
    followed(segments, rows)
    assert 1 / 7 - 0.01 < padding(segments) < 1 / 7 + 0.01


def test_segments_of_one_length_need_no_padding() -> None:
    segments = packing([[7, 7], [7]])
    assert [tuple(pack.shape) for pack in segments.packs] == [(3, 7)]
    assert padding(segments) == 0.0


def test_the_longest_segments_come_first() -> None:
    segments = packing([[1, 30, 4], [28, 5, 0, 2]])
    lengths = [int((line >= 0).sum()) for pack in segments.packs for line in pack]
    assert lengths == [30, 28, 5, 4, 2, 1, 0]


def test_there_are_never_more_packs_than_the_most() -> None:
    """Ten lengths, each with as many words, of which the best widths still leave much padding."""
    lengths = [2**power for power in range(10) for _ in range(2 ** (9 - power))]
    assert len(packing([lengths]).packs) == MOST
