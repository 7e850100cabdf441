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
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sixjars.data.storage import features
from sixjars.data.storage.features import FeatureStore
from sixjars.errors import DataError, ShapeError

PLAN: dict[str, Any] = {"backbone": "lenet", "layer": 3, "dtype": "uint8"}
Array = NDArray[Any]


def record(key: str, frames: int = 2, numbers: int = 5, dtype: Any = np.uint8) -> Array:
    """Numbers that depend on the key alone."""
    seed = int.from_bytes(key.encode(), "big") % 2**32
    return np.random.default_rng(seed).integers(0, 200, (frames, numbers)).astype(dtype)


def fill(kept: FeatureStore, keys: str) -> None:
    kept.add(list(keys), [record(key) for key in keys])


def shards(kept: FeatureStore) -> list[Path]:
    return sorted(kept.folder.glob("*.safetensors"))


def taken(kept: FeatureStore, keys: str | list[str]) -> list[Array]:
    return [kept.take(key) for key in keys]


def test_what_is_added_is_there(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    assert kept.missing(["b", "a", "b"]) == ["b", "a"]
    kept.add(["a", "long"], [record("a"), record("long", 4)])
    kept.add(["short"], [record("short", 1)])
    assert kept.missing(["c", "a", "c", "long", "short", "d"]) == ["c", "d"]
    found = FeatureStore(tmp_path, PLAN)
    lengths = found.lengths(["short", "a", "long", "a"])
    assert (lengths.tolist(), lengths.dtype) == ([1, 2, 4, 2], np.dtype(np.int64))
    assert (found.take("short").shape, found.take("short").dtype) == ((1, 5), np.dtype(np.uint8))
    np.testing.assert_array_equal(found.take("a"), record("a"))
    np.testing.assert_array_equal(found.take("long"), record("long", 4))
    found.take("a")[:] = 0  # what was taken is the caller's own
    np.testing.assert_array_equal(found.take("a"), record("a"))


def test_nothing(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path / "new", PLAN)
    kept.add([], [])
    assert kept.missing([]) == []
    assert kept.lengths([]).tolist() == []
    assert not (tmp_path / "new").exists()


@settings(max_examples=60, deadline=None)
@given(
    frames=st.lists(st.integers(1, 4), min_size=1, max_size=9),
    numbers=st.integers(1, 6),
    dtype=st.sampled_from([np.uint8, np.float16, np.float32]),
    cuts=st.sets(st.integers(1, 8)),
    picks=st.lists(st.integers(0, 8), max_size=12),
)
def test_round_trip(
    frames: list[int], numbers: int, dtype: Any, cuts: set[int], picks: list[int]
) -> None:
    keys = [f"key {row}" for row in range(len(frames))]
    wanted = [record(key, count, numbers, dtype) for key, count in zip(keys, frames, strict=True)]
    edges = [0, *sorted(cut for cut in cuts if cut < len(keys)), len(keys)]
    with tempfile.TemporaryDirectory() as folder:
        kept = FeatureStore(Path(folder), PLAN)
        for start, end in pairwise(edges):
            kept.add(keys[start:end], wanted[start:end])
        for again in (kept, FeatureStore(Path(folder), PLAN)):
            assert again.lengths(keys).tolist() == frames
            for row in (pick for pick in picks if pick < len(keys)):
                found = again.take(keys[row])
                assert (found.shape, found.dtype) == ((frames[row], numbers), dtype)
                np.testing.assert_array_equal(found, wanted[row])


def test_bits_are_kept(tmp_path: Path) -> None:
    # all numbers there are, and none too
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(4, -1)
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(["every", "turned"], [every, np.asfortranarray(every[::-1])])
    first, second = taken(FeatureStore(tmp_path, PLAN), ["every", "turned"])
    np.testing.assert_array_equal(first.view(np.uint16), every.view(np.uint16))
    np.testing.assert_array_equal(second.view(np.uint16), every[::-1].view(np.uint16))


def test_another_plan_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "a")
    assert kept.folder.parent == tmp_path
    assert json.loads((kept.folder / "plan.json").read_text())["plan"] == PLAN
    assert FeatureStore(tmp_path, dict(reversed(PLAN.items()))).missing(["a"]) == []
    assert FeatureStore(tmp_path, PLAN | {"layer": 4}).missing(["a"]) == ["a"]
    monkeypatch.setattr(features, "FORMAT", features.FORMAT + 1)
    assert FeatureStore(tmp_path, PLAN).missing(["a"]) == ["a"]


def test_records_must_agree(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    for shape in ((2, 3, 4), (0, 3)):
        with pytest.raises(ShapeError) as caught:
            kept.add(["a"], [np.zeros(shape)])
        told = f"A record must have one frame or more, each of some numbers, but is {shape}."
        assert str(caught.value) == told
    with pytest.raises(ShapeError) as caught:
        kept.add(["a", "b"], [record("a"), record("b", numbers=6, dtype=np.float16)])
    assert str(caught.value) == "A record has frames of 6 float16 numbers, but others 5 uint8."
    fill(kept, "a")
    for other in (kept, FeatureStore(tmp_path, PLAN)):
        other.missing([])
        with pytest.raises(ShapeError) as caught:
            other.add(["b"], [record("b", numbers=4)])
        assert str(caught.value) == "A record has frames of 4 uint8 numbers, but others 5 uint8."
    for records in ([], [record("a")]):
        with pytest.raises(ShapeError) as caught:
            kept.add(["a", "b"], records)
        assert str(caught.value) == f"There are 2 keys, but {len(records)} records."
    assert len(shards(kept)) == 1


def test_a_key_that_was_never_added(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "a")
    for call in (lambda: kept.take("b"), lambda: kept.lengths(["a", "b"])):
        with pytest.raises(DataError) as caught:
            call()
        told = f"{kept.folder} has no record of 'b'; it was never added, or removed since."
        assert str(caught.value) == told


def test_nothing_is_read_before_it_is_taken(tmp_path: Path) -> None:
    keys = [str(row) for row in range(64)]
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(keys, [record(key, 1, 100_000) for key in keys])
    open_before = len(os.listdir("/proc/self/fd"))
    again = FeatureStore(tmp_path, PLAN)
    assert again.lengths(keys).tolist() == [1] * 64
    again.take("3")
    assert len(os.listdir("/proc/self/fd")) == open_before  # so that shards can be many
    (path,) = shards(kept)
    for line in Path("/proc/self/smaps").read_text().split("VmFlags")[::-1]:
        if str(path) in line:
            [referenced] = [part for part in line.splitlines() if part.startswith("Referenced:")]
            touched = int(referenced.split()[1])
            # kilobytes; one record, the index, and what the system reads ahead
            assert touched < 3000
            break
    else:
        pytest.fail("the shard is not mapped")


def test_taking_is_quick(tmp_path: Path) -> None:
    keys = [str(row) for row in range(64)]
    kept = FeatureStore(tmp_path, PLAN)
    kept.add(keys, [record(key, 8, 2750, np.float16) for key in keys])  # 44 KB each
    spent = []
    for _ in range(20):
        start = time.perf_counter()
        taken(kept, keys)
        spent.append(time.perf_counter() - start)
    assert min(spent) < 0.005


# Damage


def test_a_shard_that_is_no_shard_is_made_again(tmp_path: Path) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "ab")
    (path,) = shards(kept)
    fill(kept, "cd")
    whole = path.read_bytes()
    at = whole.index(b'\\"a\\"') + 2
    other = whole[:at] + b"x" + whole[at + 1 :]
    cut = [whole[:end] for end in (100, len(whole) // 2, -1)]
    for content in (b"", b"no shard", *cut, whole + b"x", other):
        path.unlink()
        path.write_bytes(content)
        again = FeatureStore(tmp_path, PLAN)
        assert again.missing(list("abcd")) == ["a", "b"]
        fill(again, "ab")
        assert path.read_bytes() == whole
        for key, found in zip("abcd", taken(again, "abcd"), strict=True):
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
                taken(again, "ab")


def test_numbers_that_changed_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FeatureStore(tmp_path, PLAN)
    fill(kept, "ab")
    (path,) = shards(kept)
    whole = path.read_bytes()
    at = whole.index(record("b").tobytes()) + 3
    path.unlink()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    again = FeatureStore(tmp_path, PLAN)
    np.testing.assert_array_equal(again.take("a"), record("a"))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(DataError) as caught:
            again.take("b")
    assert str(caught.value) == (
        f"{path} is damaged and cannot be removed; remove it and start again, and what it held is "
        "computed anew."
    )
    with pytest.raises(DataError) as caught:
        FeatureStore(tmp_path, PLAN).take("b")
    assert str(caught.value) == (
        f"{path} was damaged on the disk and is removed; start again, and what it held is "
        "computed anew."
    )
    for other in (again, FeatureStore(tmp_path, PLAN)):
        assert other.missing(["a", "b"]) == ["a", "b"]
    fill(again, "ab")
    np.testing.assert_array_equal(again.take("b"), record("b"))


def test_trouble_with_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of it is read in the tests of the cache."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    kept = FeatureStore(tmp_path, PLAN)
    monkeypatch.setattr(os, "fsync", refuse)
    told = f"^Pixels and features cannot be kept in {kept.folder}: Read-only file system; set "
    with pytest.raises(DataError, match=told):
        fill(kept, "a")
    assert list(kept.folder.iterdir()) == []


def test_a_disk_that_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_opened", lambda _: None)
    told = r"\.safetensors cannot be read back; is the disk damaged\? Set "
    with pytest.raises(DataError, match=told):
        fill(FeatureStore(tmp_path, PLAN), "a")


def test_what_is_no_shard_or_no_folder_is_set_aside(tmp_path: Path) -> None:
    """A folder with a shard's name, a file with a folder's: they stay, and work goes on."""
    frames = tmp_path / "frames"
    frames.write_text("mine")
    kept = FeatureStore(frames, PLAN)
    assert kept.missing(["a"]) == ["a"]
    fill(kept, "a")
    (path,) = shards(kept)
    path.unlink()
    (path / "inside").mkdir(parents=True)
    (kept.folder / "plan.json").unlink()
    (kept.folder / "plan.json").mkdir()
    again = FeatureStore(frames, PLAN)
    assert again.missing(["a"]) == ["a"]
    fill(again, "a")
    np.testing.assert_array_equal(FeatureStore(frames, PLAN).take("a"), record("a"))
    assert [aside.read_text() for aside in tmp_path.glob(".aside-*-frames")] == ["mine"]
    assert [(aside / "inside").is_dir() for aside in kept.folder.glob(".aside-*.safetensors")] == [
        True
    ]
    assert [aside.is_dir() for aside in kept.folder.glob(".aside-*-plan.json")] == [True]
