"""Pixels and features of media files, computed once and memory-mapped afterwards.

Each call of `add` writes one safetensors file, a shard: the frames of all its records in one
tensor, and an index. A check sum covers each record and is compared when the record is first taken.
Work that was killed goes on where it stopped, and any number of processes may add at the same time.

Dims: B batch, F frames, N numbers of a frame, X frames of all records of a shard.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, final

import numpy
from numpy.typing import NDArray
from pydantic import JsonValue
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sixjars.data.storage.cache import disk_faults, made_whole, set_aside, sweep, touch
from sixjars_runtime.errors import DataError, ShapeError

FORMAT: Final = 2  # of the files: a new one makes all older files unread
_WHAT = "Pixels and features"

Form = tuple[int, numpy.dtype[Any]]  # the numbers of a frame, and their dtype


def rounded(numbers: NDArray[Any]) -> NDArray[Any]:
    """Features in 16 bits, which take half the space; pixels have 8.

    Features of a prediction are not rounded: exported graphs compute other last digits, and
    rounding would make some of them a difference a thousand times as large.

    >>> rounded(numpy.array([1.0001, 2.5])), rounded(numpy.array([7], dtype=numpy.uint8)).dtype
    (array([1. , 2.5], dtype=float16), dtype('uint8'))
    """
    return numbers.astype(numpy.float16) if numbers.dtype.kind == "f" else numbers


@final
class MemoryStore:
    """Records of media files for one prediction, in memory; each is frames × numbers.

    >>> store = MemoryStore()
    >>> store.add(["cat"], [numpy.ones((2, 3))])
    >>> store.missing(["dog", "cat"]), store.take("cat").shape
    (['dog'], (2, 3))
    """

    def __init__(self) -> None:
        self._records: dict[str, NDArray[Any]] = {}

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that have no record yet."""
        return [key for key in dict.fromkeys(keys) if key not in self._records]

    def add(self, keys: Sequence[str], records: Sequence[NDArray[Any]]) -> None:
        """Keep a record for each key."""
        self._records.update(zip(keys, records, strict=True))

    def take(self, key: str) -> NDArray[Any]:
        """The record of a key."""
        return self._records[key]

    def lengths(self, keys: Sequence[str]) -> NDArray[numpy.int64]:
        """The frames of each record."""
        return numpy.array([len(self._records[key]) for key in keys], dtype=numpy.int64)


@final
class FeatureStore:
    """Records in files, in a folder for each plan: all that the numbers depend on.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FeatureStore(Path(folder.name), {"backbone": "none"})
    >>> store.add(["cat"], [numpy.ones((2, 3), dtype=numpy.uint8)])
    >>> store.missing(["dog", "cat", "dog"]), store.take("cat").shape, store.lengths(["cat", "cat"])
    (['dog'], (2, 3), array([2, 2]))
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, plan: Mapping[str, JsonValue]) -> None:
        self._plan = json.dumps({"format": FORMAT, "plan": dict(plan)}, sort_keys=True, indent=2)
        self.folder = folder / _hash(self._plan)
        self._shards: dict[str, _Shard] = {}
        self._index: dict[str, tuple[_Shard, int]] = {}
        self._form: Form | None = None
        self._begun = False

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys, each once and in order, that have no record yet."""
        self._look()
        return [key for key in dict.fromkeys(keys) if not self._has(key)]

    def add(self, keys: Sequence[str], records: Sequence[NDArray[Any]]) -> None:
        """Keep a record (F, N) for each key, all of them or none.

        Every call is a file of its own: add some hundred records at once, not one. If another
        process adds the same key, either record may be found later.
        """
        if len(keys) != len(records):
            raise ShapeError(f"There are {len(keys)} keys, but {len(records)} records.")
        if not keys:
            return
        for record in records:
            if record.ndim != 2 or not len(record):
                form = "one frame or more, each of some numbers"
                raise ShapeError(f"A record must have {form}, but is {record.shape}.")
            self._agree((record.shape[1], record.dtype))
        path = self.folder / f"{_hash(json.dumps(list(keys)))}.safetensors"
        with disk_faults(_WHAT, self.folder):
            self._begin()
            _write(path, keys, records)
            shard = _opened(path)
        if shard is None:
            raise DataError(f"{path} cannot be read back; is the disk damaged? Set SIXJARS_CACHE.")
        self._take_in(shard)

    def take(self, key: str) -> NDArray[Any]:
        """The record of a key, (F, N)."""
        shard, row = self._found(key)
        return shard.record(row)

    def lengths(self, keys: Sequence[str]) -> NDArray[numpy.int64]:
        """The frames of each record; nothing is read for it."""
        places = [self._found(key) for key in keys]
        return numpy.array([shard.frames[row] for shard, row in places], dtype=numpy.int64)

    def _found(self, key: str) -> "tuple[_Shard, int]":
        if not self._has(key):
            self._look()
        if not self._has(key):
            raise DataError(
                f"{self.folder} has no record of {key!r}; it was never added, or removed since."
            )
        return self._index[key]

    def _has(self, key: str) -> bool:
        return key in self._index and not self._index[key][0].damaged

    def _look(self) -> None:
        """Take in the files that other processes have added."""
        with disk_faults(_WHAT, self.folder):
            for path in sorted(self.folder.glob("*.safetensors")):
                known = self._shards.get(path.name)
                if known is None or known.damaged:
                    if (shard := _opened(path)) is not None:
                        self._take_in(shard)

    def _take_in(self, shard: "_Shard") -> None:
        self._agree(shard.form)
        self._shards[shard.path.name] = shard
        self._index.update((key, (shard, row)) for row, key in enumerate(shard.keys))

    def _agree(self, form: Form) -> None:
        self._form = self._form or form
        if form != self._form:
            (numbers, dtype), (before, kind) = form, self._form
            raise ShapeError(
                f"A record has frames of {numbers} {dtype} numbers, but others {before} {kind}."
            )

    def _begin(self) -> None:
        """Prepare the folder to be written to, once."""
        if not self._begun:
            for place in (self.folder.parent, self.folder):
                set_aside(place, folder=True)
            with made_whole(self.folder / "plan.json") as plan:
                plan.write_text(self._plan + "\n", encoding="utf-8")
            sweep(self.folder)
            self._begun = True


Store = MemoryStore | FeatureStore


@final
class _Shard:
    """One file of a store, memory-mapped; the mapping outlives the file's name."""

    def __init__(self, path: Path, index: dict[str, Any], values: Any) -> None:
        self.path = path
        self.keys: list[str] = index["keys"]
        self.frames: list[int] = index["frames"]
        self._sums: list[int] = index["sums"]
        self._starts = [0, *accumulate(self.frames)]
        self._values = values
        self.form: Form = (values.get_shape()[1], values[:0].dtype)
        self.damaged = False
        self._unchecked = set(range(len(self.keys)))

    def record(self, row: int) -> NDArray[Any]:
        """The record of a row (F, N), compared with its check sum the first time."""
        record: NDArray[Any] = self._values[self._starts[row] : self._starts[row + 1]]
        if row in self._unchecked and zlib.crc32(record.data) != self._sums[row]:
            self.damaged = True  # its keys are missing again
            try:
                self.path.unlink(missing_ok=True)
                removed = "was damaged on the disk and is removed; start again"
            except OSError:
                removed = "is damaged and cannot be removed; remove it and start again"
            raise DataError(f"{self.path} {removed}, and what it held is computed anew.")
        self._unchecked.discard(row)
        return record


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _write(path: Path, keys: Sequence[str], records: Sequence[NDArray[Any]]) -> None:
    index = {
        "keys": list(keys),
        "frames": [len(record) for record in records],
        "sums": [zlib.crc32(numpy.ascontiguousarray(record).data) for record in records],
    }
    metadata = {"index": json.dumps(index)}
    with made_whole(path) as making:
        save_file({"frames": numpy.concatenate(records)}, making, metadata=metadata)


def _opened(path: Path) -> _Shard | None:
    """The shard of a file, or nothing if it is gone or damaged."""
    set_aside(path)
    try:
        with safe_open(path, framework="numpy") as file:
            index = json.loads((file.metadata() or {})["index"])
            shard = _Shard(path, index, file.get_slice("frames"))
            is_whole = file.get_slice("frames").get_shape()[0] == sum(shard.frames)
            # The name is a hash of the keys, so that no key can have changed.
            is_whole = is_whole and path.stem == _hash(json.dumps(shard.keys))
    except (FileNotFoundError, SafetensorError, ValueError, KeyError, TypeError):
        return None
    touch(path)
    return shard if is_whole else None
