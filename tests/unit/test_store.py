"""The store: every number comes back, whatever is killed, damaged or done twice at once."""

import errno
import json
import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sixjars.data import store
from sixjars.data.storage.features import FeatureStore, Records
from sixjars.errors import DataError, ShapeError

PLAN: dict[str, Any] = {"backbone": "lenet", "layer": 3, "dtype": "uint8"}
Array = NDArray[Any]


def record(key: str, frames: int = 2, numbers: int = 5, dtype: Any = np.uint8) -> Array:
    """PointColumn that depend on the key alone."""
    seed = int.from_bytes(key.encode(), "big") % 2**32
    return np.random.default_rng(seed).integers(0, 200, (frames, numbers)).astype(dtype)


def fill(kept: FeatureStore, keys: str) -> None:
    kept.add(list(keys), [record(key) for key in keys])


def shards(kept: FeatureStore) -> list[Path]:
    return sorted(kept.folder.glob("*.shard"))


def rows_of(records: Records) -> list[Array]:
    taken, lengths = records.take(np.arange(len(records)))
    return [row[:length] for row, length in zip(taken, lengths, strict=True)]


def test_what_is_added_is_there(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    assert kept.missing(["b", "a", "b"]) == ["b", "a"]
    kept.add(["a", "long"], [record("a"), record("long", 4)])
    kept.add(["none"], [record("none", 0)])
    assert kept.missing(["c", "a", "c", "long", "none", "d"]) == ["c", "d"]
    found = FeatureStore(tmp_path, PLAN).view(["none", "a", "long", "a"])
    assert (len(found), found.numbers, found.dtype) == (4, 5, np.dtype(np.uint8))
    assert found.lengths.tolist() == [0, 2, 4, 2]
    assert found.lengths.dtype == np.int64
    taken, lengths = found.take(np.array([3, 2, 0, 2]))
    assert (taken.shape, taken.dtype, lengths.tolist()) == ((4, 4, 5), np.dtype(np.uint8), [2, 4, 0, 4])
    np.testing.assert_array_equal(taken[0, :2], record("a"))
    assert not taken[0, 2:].any()
    assert not taken[2].any()
    np.testing.assert_array_equal(taken[1], record("long", 4))
    np.testing.assert_array_equal(taken[3], record("long", 4))
    taken[:] = 0  # what was taken is the caller's own
    np.testing.assert_array_equal(found.take(np.array([1]))[0][0], record("a"))


def test_nothing(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path / "new", PLAN)
    kept.add([], [])
    assert kept.missing([]) == []
    found = kept.view([])
    assert not (tmp_path / "new").exists()
    assert (len(found), found.numbers, found.lengths.tolist()) == (0, 0, [])
    assert found.take(np.array([], dtype=np.int64))[0].shape == (0, 0, 0)
    fill(kept, "a")
    assert kept.view(["a"]).take(np.array([], dtype=np.int64))[0].shape == (0, 0, 5)


@settings(max_examples=60, deadline=None)
@given(
    frames=st.lists(st.integers(0, 4), min_size=1, max_size=9),
    numbers=st.integers(1, 6),
    dtype=st.sampled_from([np.uint8, np.float16, np.float32]),
    cuts=st.sets(st.integers(1, 8)),
    picks=st.lists(st.integers(0, 8), max_size=12),
)
def test_round_trip(frames: list[int], numbers: int, dtype: Any, cuts: set[int], picks: list[int]) -> None:
    keys = [f"key {row}" for row in range(len(frames))]
    wanted = [record(key, count, numbers, dtype) for key, count in zip(keys, frames, strict=True)]
    edges = [0, *sorted(cut for cut in cuts if cut < len(keys)), len(keys)]
    with tempfile.TemporaryDirectory() as folder:
        kept = FeatureStore(Path(folder), PLAN)
        for start, end in pairwise(edges):
            kept.add(keys[start:end], wanted[start:end])
        for again in (kept, FeatureStore(Path(folder), PLAN)):
            rows = np.array([pick for pick in picks if pick < len(keys)], dtype=np.int64)
            taken, lengths = again.view(keys).take(rows)
            longest = max((frames[row] for row in rows), default=0)
            padded = [np.pad(wanted[row], ((0, longest - frames[row]), (0, 0))) for row in rows]
            assert (taken.shape, taken.dtype) == ((len(rows), longest, numbers), dtype)
            assert lengths.tolist() == [frames[row] for row in rows]
            for got, want in zip(taken, padded, strict=True):
                np.testing.assert_array_equal(got, want)


def test_bits_are_kept(tmp_path: Path) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(4, -1)  # all numbers there are, and none too
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(["every", "turned"], [every, np.asfortranarray(every[::-1])])
    first, second = rows_of(FeatureStore(tmp_path, PLAN).view(["every", "turned"]))
    np.testing.assert_array_equal(first.view(np.uint16), every.view(np.uint16))
    np.testing.assert_array_equal(second.view(np.uint16), every[::-1].view(np.uint16))


def test_another_plan_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "a")
    assert kept.folder.parent == tmp_path
    assert json.loads((kept.folder / "plan.json").read_text())["plan"] == PLAN
    assert FeatureStore(tmp_path, dict(reversed(PLAN.items()))).missing(["a"]) == []
    assert FeatureStore(tmp_path, PLAN | {"layer": 4}).missing(["a"]) == ["a"]
    monkeypatch.setattr(store, "FORMAT", store.FORMAT + 1)
    assert FeatureStore(tmp_path, PLAN).missing(["a"]) == ["a"]


def test_records_must_agree(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    with pytest.raises(ShapeError) as caught:
        kept.add(["a"], [np.zeros((2, 3, 4))])
    assert str(caught.value) == "A record must have 2 dimensions (frames and numbers), but has shape (2, 3, 4)."
    with pytest.raises(ShapeError) as caught:
        kept.add(["a", "b"], [record("a"), record("b", numbers=6, dtype=np.float16)])
    assert str(caught.value) == "Records must agree: one has frames of 5 uint8 numbers, another of 6 float16."
    fill(kept, "a")
    for other in (kept, FeatureStore(tmp_path, PLAN)):
        other.missing([])
        with pytest.raises(ShapeError) as caught:
            other.add(["b"], [record("b", numbers=4)])
        assert str(caught.value) == (
            f"A record has frames of 4 uint8 numbers, but those in {kept.folder} have 5 uint8."
        )
    for records in ([], [record("a")]):
        with pytest.raises(ShapeError) as caught:
            kept.add(["a", "b"], records)
        assert str(caught.value) == f"There are 2 keys, but {len(records)} records."
    assert len(shards(kept)) == 1


def test_a_key_that_was_never_added(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "a")
    with pytest.raises(DataError) as caught:
        kept.view(["a", "b", "c", "b"])
    assert str(caught.value) == f"{kept.folder} has no record of 'b', one of 2 that were never added."


def test_nothing_is_read_before_it_is_taken(tmp_path: Path) -> None:
    keys = [str(row) for row in range(64)]
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(keys, [record(key, 1, 100_000) for key in keys])
    before = pyarrow.total_allocated_bytes()
    open_before = len(os.listdir("/proc/self/fd"))
    again = FeatureStore(tmp_path, PLAN)
    found = again.view(keys)
    found.take(np.array([3]))
    assert pyarrow.total_allocated_bytes() - before < 100_000  # the numbers are 6.4 MB
    assert len(os.listdir("/proc/self/fd")) == open_before  # so that shards can be many
    (path,) = shards(kept)
    for line in Path("/proc/self/smaps").read_text().split("VmFlags")[::-1]:
        if str(path) in line:
            touched = int(next(part for part in line.splitlines() if part.startswith("Referenced:")).split()[1])
            assert touched < 3000  # kilobytes; one record, the index, and what the system reads ahead
            break
    else:
        pytest.fail("the shard is not mapped")


def test_taking_is_quick(tmp_path: Path) -> None:
    keys = [str(row) for row in range(64)]
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(keys, [record(key, 8, 2750, np.float16) for key in keys])  # 44 KB each
    found, rows = kept.view(keys), np.arange(64)
    spent = []
    for _ in range(20):
        start = time.perf_counter()
        found.take(rows)
        spent.append(time.perf_counter() - start)
    assert min(spent) < 0.005


# Damage


def test_a_shard_that_is_no_shard_is_made_again(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "ab")
    (path,) = shards(kept)
    fill(kept, "cd")
    whole = path.read_bytes()
    at = whole.index(b'"a"') + 1
    other = whole[:at] + b"x" + whole[at + 1 :]
    for content in (b"", b"no shard", whole[:100], whole[: len(whole) // 2], whole[:-1], whole + b"x", other):
        path.unlink()
        path.write_bytes(content)
        again = FeatureStore(tmp_path, PLAN)
        assert again.missing(list("abcd")) == ["a", "b"]
        fill(again, "ab")
        assert path.read_bytes() == whole
        for key, found in zip("abcd", rows_of(again.view(list("abcd"))), strict=True):
            np.testing.assert_array_equal(found, record(key))


def test_every_byte_is_watched(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "ab")
    (path,) = shards(kept)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.unlink(missing_ok=True)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        again = FeatureStore(tmp_path, PLAN)
        if not again.missing(["a", "b"]):
            with pytest.raises(DataError, match="damaged"):
                rows_of(again.view(["a", "b"]))


def test_numbers_that_changed_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "ab")
    (path,) = shards(kept)
    whole = path.read_bytes()
    at = whole.index(record("b").tobytes()) + 3
    path.unlink()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    again = FeatureStore(tmp_path, PLAN)
    found = again.view(["a", "b"])
    np.testing.assert_array_equal(found.take(np.array([0]))[0][0], record("a"))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(DataError) as caught:
            found.take(np.array([1]))
    assert str(caught.value) == (
        f"{path} is damaged and cannot be removed; remove it and start again, and what it held is made anew."
    )
    with pytest.raises(DataError) as caught:
        found.take(np.array([0, 1]))
    assert str(caught.value) == (
        f"{path} was damaged on the disk and is removed; start again, and what it held is made anew."
    )
    for other in (again, FeatureStore(tmp_path, PLAN)):
        assert other.missing(["a", "b"]) == ["a", "b"]
    fill(again, "ab")
    np.testing.assert_array_equal(rows_of(again.view(["b"]))[0], record("b"))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "there is no space left; make room or set SIXJARS_CACHE to another folder."),
        (errno.EROFS, "Read-only file system; set SIXJARS_CACHE to a folder that can be written."),
    ],
)
def test_trouble_with_the_disk(number: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    kept = FeatureStore(tmp_path, PLAN)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DataError) as caught:
        fill(kept, "a")
    assert str(caught.value) == f"Pixels and features cannot be kept in {kept.folder}: {reason}"
    assert [path.name for path in kept.folder.iterdir()] == ["plan.json"]


def test_a_disk_that_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_opened", lambda _: None)
    with pytest.raises(DataError, match=r"\.shard cannot be read back; is the disk damaged\? Set SIXJARS_CACHE\.$"):
        fill(FeatureStore(tmp_path, PLAN), "a")
