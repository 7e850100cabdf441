"""Columns: rows taken in any order as padded rectangles, against loops."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sixjars.data.batches import ArrayColumn, EmptyColumn, IdColumn
from sixjars.data.flat import Flat
from sixjars.data.packing import SegmentColumn
from sixjars.data.storage.features import FeatureStore
from sixjars.errors import ShapeError
from sixjars.flow.values import Batch, Padded
from sixjars_runtime.special_tokens import STOP

IdRows = list[list[int]]


def laid(rows: IdRows) -> Flat:
    ids = np.array(list(chain.from_iterable(rows)), dtype=np.int32)
    return ids, np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


@given(
    st.lists(st.lists(st.integers(4, 9), max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=7),
    st.sampled_from([None, 2]),
    st.integers(0, 3),
    st.sampled_from([None, 1, 3, 9]),
)
def test_ids_equal_a_loop(
    rows: IdRows, chosen: list[int], stop: int | None, narrowest: int, limit: int | None
) -> None:
    """`<stop>` stands where a text ended, and nowhere else: not behind what was cut."""
    chosen = [row % len(rows) for row in chosen]
    column = IdColumn(laid(rows), stop=stop, narrowest=narrowest, limit=limit)
    ending = [] if stop is None else [stop]
    kept = [row[:limit] if limit is not None and len(row) > limit else row + ending for row in rows]
    wanted = [kept[row] for row in chosen]
    assert column.lengths.tolist() == [len(row) for row in kept]
    padded = column.padded(np.array(chosen, dtype=np.int64))
    widest = max([narrowest, *(len(row) for row in wanted)])
    assert padded.values.shape == padded.mask.shape == (len(chosen), widest)
    assert padded.values.tolist() == [row + [0] * (widest - len(row)) for row in wanted]
    assert padded.mask.tolist() == [[at < len(row) for at in range(widest)] for row in wanted]
    assert (padded.values.dtype, padded.mask.dtype) == (torch.int64, torch.bool)


def test_labels_that_are_in_no_list_still_have_a_place() -> None:
    column = IdColumn(laid([[3], [], [0]]), narrowest=1)
    padded = column.padded(np.array([1]))
    assert padded.values.tolist() == [[0]]
    assert padded.mask.tolist() == [[False]]
    assert column.lengths.tolist() == [1, 0, 1]


def stored(segments: IdRows, *, cut: bool) -> list[int]:
    """A text as it is stored: `<stop>` behind each segment, the last one perhaps cut off."""
    row = [number for segment in segments for number in [*segment, STOP]]
    return row[:-1] if cut else row


texts = st.lists(
    st.tuples(st.lists(st.lists(st.integers(4, 9), max_size=4), max_size=4), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(texts, st.lists(st.integers(0, 5), max_size=7))
def test_texts_in_segments_equal_a_loop(
    texts: list[tuple[IdRows, bool]], chosen: list[int]
) -> None:
    chosen = [row % len(texts) for row in chosen]
    column = SegmentColumn(laid([stored(segments, cut=cut) for segments, cut in texts]))
    assert column.lengths.tolist() == [sum(map(len, segments)) for segments, _ in texts]
    padded = column.padded(np.array(chosen, dtype=np.int64))
    wanted = [list(chain.from_iterable(texts[row][0])) for row in chosen]
    widest = max([0, *(len(row) for row in wanted)])
    assert padded.values.tolist() == [row + [0] * (widest - len(row)) for row in wanted]
    assert padded.mask.tolist() == [[at < len(row) for at in range(widest)] for row in wanted]
    packed = padded.segments
    assert packed is not None
    assert packed.position_index.shape == packed.segment_of.shape == padded.values.shape
    flat = padded.values.flatten().tolist()
    lines = [
        [flat[place] for place in line if place >= 0]
        for pack in packed.packs
        for line in pack.tolist()
    ]
    for at, row in enumerate(chosen):
        segments, cut = texts[row]
        # of an empty one nothing is left
        segments = segments[:-1] if cut and segments and not segments[-1] else segments
        assert [
            lines[place] for place in packed.segment_index[at].tolist() if place >= 0
        ] == segments


def test_a_rest_before_an_empty_segment() -> None:
    """The first text ends where the second has its first end of a segment."""
    segments = (
        SegmentColumn(laid([[4, STOP, 5, 6], [STOP, 7, STOP], [], [8]]))
        .padded(np.arange(4))
        .segments
    )
    assert segments is not None
    sizes = [int((line >= 0).sum()) for pack in segments.packs for line in pack]
    found = [
        [sizes[place] for place in row if place >= 0] for row in segments.segment_index.tolist()
    ]
    assert found == [[1, 2], [0, 1], [], [1]]


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a batch"])
def test_rows_of_texts_in_segments_cannot_be_picked(inside: bool) -> None:
    """Their segments are packed across rows; otherwise there were wrong rows."""
    text = SegmentColumn(laid([[4, STOP, 5, STOP], [6, STOP]])).padded(np.arange(2))
    value = Batch({"source": text}, Padded.of([[4], [5]]), torch.arange(2)) if inside else text
    told = r"^rows of a text in segments cannot be picked: its segments are packed across rows\.$"
    with pytest.raises(ShapeError, match=told):
        value.pick(torch.tensor([1]))
    with pytest.raises(ShapeError, match=told):
        value.repeat(2)
    assert value.to("cpu").rows == 2


def test_a_large_file_is_looked_at_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[4, STOP, 5, 6, STOP], [STOP], [7, 8], [9, STOP]]
    whole = SegmentColumn(laid(rows)).padded(np.arange(4)).segments
    monkeypatch.setattr("sixjars.data.flat.MOST_BYTES", 3)
    pieces = SegmentColumn(laid(rows)).padded(np.arange(4)).segments
    assert whole is not None
    assert pieces is not None
    assert torch.equal(pieces.segment_index, whole.segment_index)
    assert all(
        torch.equal(one, other) for one, other in zip(pieces.packs, whole.packs, strict=True)
    )


def videos(dtype: Any) -> dict[str, NDArray[Any]]:
    noise = np.random.default_rng(0)
    return {
        name: noise.integers(0, 255, (length, 5)).astype(dtype)
        for name, length in (("a", 3), ("b", 1), ("c", 4))
    }


def frames_of(keys: list[str], store: FeatureStore) -> ArrayColumn:
    return ArrayColumn(lambda row: store.take(keys[row]), store.lengths(keys))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_frames_equal_a_loop(dtype: Any, tmp_path: Path) -> None:
    store, kept = FeatureStore(tmp_path, {"test": "frames"}), videos(dtype)
    store.add(list(kept), list(kept.values()))
    keys = ["b", "c", "a", "b"]
    column = frames_of(keys, store)
    assert column.lengths.tolist() == [1, 4, 3, 1]
    rows = [2, 0, 3, 2]
    padded = column.padded(np.array(rows))
    assert padded.values.shape == (4, 3, 5)
    assert padded.values.dtype == (torch.uint8 if dtype is np.uint8 else torch.float16)
    for at, row in enumerate(rows):
        wanted = kept[keys[row]]
        assert padded.mask[at].tolist() == [place < len(wanted) for place in range(3)]
        np.testing.assert_array_equal(padded.values[at][: len(wanted)].numpy(), wanted)
        assert not padded.values[at][len(wanted) :].any()


def test_arrays_may_have_a_number_at_each_position() -> None:
    arrays = [np.array([3, 4]), np.array([5])]
    padded = ArrayColumn(arrays.__getitem__, np.array([2, 1])).padded(np.array([1, 0]))
    assert padded.values.tolist() == [[5, 0], [3, 4]]
    assert padded.mask.tolist() == [[True, False], [True, True]]


def test_what_is_taken_can_be_written_to(tmp_path: Path) -> None:
    """A batch is a copy: changing it must not reach the files, which are mapped."""
    store, kept = FeatureStore(tmp_path, {"test": "copies"}), videos(np.uint8)
    store.add(list(kept), list(kept.values()))
    column = frames_of(["a"], store)
    column.padded(np.array([0])).values.zero_()
    np.testing.assert_array_equal(column.padded(np.array([0])).values[0].numpy(), kept["a"])


def test_nothing_has_rows_without_positions() -> None:
    column = EmptyColumn(5)
    assert column.lengths.tolist() == [0] * 5
    padded = column.padded(np.array([4, 0, 2]))
    assert padded.values.shape == padded.mask.shape == (3, 0)
    assert padded.rows == 3
