"""What is costly to make of a picture or a film (pixels, features) is made once, and mapped into memory from then on.

Each call of `add` writes one file, a shard: an index as JSON, then the raw numbers. Arrow IPC, which holds tokenised
text, is not used here: its own structure can only be trusted after the whole file has been read, and these files are
long. Here a check sum covers the index, which is read when a shard is opened, and one more each record, which is
checked when it is first taken. A shard appears under its final name in one step, complete or not at all; work that
was killed goes on where it stopped, and any number of processes may add at the same time.

Dims: B batch, F frames, N numbers of a frame.
"""

import hashlib
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, final

import numpy
import pyarrow
from numpy.typing import NDArray
from pydantic import JsonValue

from sixjars.data.cache import MAKING, sentences, sweep
from sixjars.errors import DataError, ShapeError

FORMAT: Final = 1
"""Changes when the form of the files does, so that no old file is read."""
_MARK = b"sixjars\n"
_HEAD = struct.Struct("<8sQI")
"""What a shard begins with: the mark, the length of the index, and its check sum."""
_ALIGNED = 64
_LETTERS = 32
_WHAT = "Pixels and features"

Form = tuple[int, numpy.dtype[Any]]
"""Numbers of a frame, and their dtype."""


@final
class Store:
    """Records of many media files, each found by its key; a record is frames × numbers.

    Whatever the numbers depend on is in the plan, so another plan is another folder.

    >>> import numpy, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name), {"backbone": "none"})
    >>> store.add(["cat"], [numpy.ones((2, 3), dtype=numpy.uint8)])
    >>> store.missing(["dog", "cat", "dog"])
    ['dog']
    >>> numbers_BFN, lengths_B = store.view(["cat"]).take(numpy.array([0, 0]))
    >>> numbers_BFN.shape, lengths_B.tolist()
    ((2, 2, 3), [2, 2])
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, plan: Mapping[str, JsonValue]) -> None:
        self._plan = json.dumps({"format": FORMAT, "plan": dict(plan)}, sort_keys=True, indent=2)
        self.folder = folder / hashlib.sha256(self._plan.encode()).hexdigest()[:_LETTERS]
        self._shards: dict[str, _Shard] = {}
        self._index: dict[str, tuple[_Shard, int]] = {}
        self._form: Form | None = None
        self._begun = False

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys, each once and in order, that have no record yet."""
        self._look()
        return [key for key in dict.fromkeys(keys) if not self._has(key)]

    def add(self, keys: Sequence[str], records: Sequence[NDArray[Any]]) -> None:
        """Keeps a record (F, N) for each key, all of them or none.

        Every call is a file of its own: add some hundred records at once, not one. If another process adds the
        same key, either record may be found later.
        """
        if len(keys) != len(records):
            raise ShapeError(f"There are {len(keys)} keys, but {len(records)} records.")
        if not keys:
            return
        self._agree(_form(records))
        name = hashlib.sha256(json.dumps(list(keys)).encode()).hexdigest()[:_LETTERS]
        path = self.folder / f"{name}.shard"
        with sentences(_WHAT, self.folder):
            self._begin()
            _write(path, keys, records)
            shard = _opened(path)
        if shard is None:
            raise DataError(f"{path} cannot be read back; is the disk damaged? Set SIXJARS_CACHE.")
        self._take_in(shard)

    def view(self, keys: Sequence[str]) -> "Records":
        """A record for each key, the same one twice if a key is there twice; nothing is read yet."""
        self._look()
        lost = [key for key in dict.fromkeys(keys) if not self._has(key)]
        if lost:
            raise DataError(f"{self.folder} has no record of {lost[0]!r}, one of {len(lost)} that were never added.")
        return Records([self._index[key] for key in keys], self._form or (0, numpy.dtype(numpy.uint8)))

    def _has(self, key: str) -> bool:
        return key in self._index and not self._index[key][0].damaged

    def _look(self) -> None:
        """Finds what others have added."""
        with sentences(_WHAT, self.folder):
            for path in sorted(self.folder.glob("*.shard")):
                known = self._shards.get(path.name)
                if known is None or known.damaged:
                    shard = _opened(path)
                    if shard is not None:
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
                f"A record has frames of {numbers} {dtype} numbers, but those in {self.folder} have {before} {kind}."
            )

    def _begin(self) -> None:
        """Makes the folder ready to be written to, once."""
        if self._begun:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        with tempfile.TemporaryDirectory(prefix=MAKING, dir=self.folder, ignore_cleanup_errors=True) as made:
            plan = Path(made, "plan.json")
            plan.write_text(self._plan + "\n", encoding="utf-8")
            plan.replace(self.folder / plan.name)
        self._begun = True


@final
class Records:
    """Some records of a store, mapped from its files."""

    def __init__(self, places: Sequence[tuple["_Shard", int]], form: Form) -> None:
        self._places = places
        self.numbers, self.dtype = form
        lengths = (shard.frames[row] for shard, row in places)
        self.lengths: NDArray[numpy.int64] = numpy.fromiter(lengths, dtype=numpy.int64, count=len(places))
        """Frames of each row."""

    def __len__(self) -> int:
        return len(self._places)

    def take(self, rows: NDArray[numpy.int64]) -> tuple[NDArray[Any], NDArray[numpy.int64]]:
        """The numbers of some rows, with zeros up to the longest (B, F, N), and the frames of each (B,)."""
        lengths_B = self.lengths[rows]
        frames = int(lengths_B.max(initial=0))
        numbers_BFN = numpy.zeros((len(rows), frames, self.numbers), dtype=self.dtype)
        for numbers_FN, row, length in zip(numbers_BFN, rows.tolist(), lengths_B.tolist(), strict=True):
            shard, place = self._places[row]
            numbers_FN[:length] = shard.record(place)
        return numbers_BFN, lengths_B


@final
class _Shard:
    """One file of a store, mapped; the mapping outlives the file's name."""

    def __init__(self, path: Path, index: dict[str, Any], data: NDArray[numpy.uint8]) -> None:
        self.path = path
        self.keys: list[str] = index["keys"]
        self.frames: list[int] = index["frames"]
        self.form: Form = (index["numbers"], numpy.dtype(index["dtype"]))
        self.damaged = False
        self._sums: list[int] = index["sums"]
        self._starts = _starts(self.frames, self.form)
        self._data = data
        self._unchecked = set(range(len(self.keys)))

    @property
    def whole(self) -> bool:
        """Whether the file has as many bytes as its index says."""
        return len(self._data) == self._starts[-1]

    def record(self, row: int) -> NDArray[Any]:
        """The numbers of a row (F, N), a view; checked when it is asked for first."""
        data = self._data[self._starts[row] : self._starts[row + 1]]
        if row in self._unchecked:
            if zlib.crc32(data.data) != self._sums[row]:
                self._give_up()
            self._unchecked.discard(row)
        numbers, dtype = self.form
        return data.view(dtype).reshape(self.frames[row], numbers)

    def _give_up(self) -> None:
        """Numbers that changed on the disk are no numbers: the file goes, so that its keys are missing again."""
        self.damaged = True
        try:
            self.path.unlink(missing_ok=True)
            removed = "was damaged on the disk and is removed; start again"
        except OSError:
            removed = "is damaged and cannot be removed; remove it and start again"
        raise DataError(f"{self.path} {removed}, and what it held is made anew.")


def _form(records: Sequence[NDArray[Any]]) -> Form:
    """What all records have in common."""
    for record in records:
        if record.ndim != 2:
            raise ShapeError(f"A record must have 2 dimensions (frames and numbers), but has shape {record.shape}.")
    forms: list[Form] = [(record.shape[1], record.dtype) for record in records]
    for form in forms:
        if form != forms[0]:
            (first, kind), (numbers, dtype) = forms[0], form
            raise ShapeError(
                f"Records must agree: one has frames of {first} {kind} numbers, another of {numbers} {dtype}."
            )
    return forms[0]


def _starts(frames: Sequence[int], form: Form) -> list[int]:
    """Where each record begins among the bytes of all, and where the last ends."""
    numbers, dtype = form
    return [0, *(end * numbers * dtype.itemsize for end in accumulate(frames))]


def _write(path: Path, keys: Sequence[str], records: Sequence[NDArray[Any]]) -> None:
    whole = [numpy.ascontiguousarray(record) for record in records]
    index = {
        "keys": list(keys),
        "frames": [len(record) for record in whole],
        "sums": [zlib.crc32(record.data) for record in whole],
        "numbers": whole[0].shape[1],
        "dtype": whole[0].dtype.str,
    }
    told = json.dumps(index).encode()
    told += b" " * (-(_HEAD.size + len(told)) % _ALIGNED)
    with tempfile.TemporaryDirectory(prefix=MAKING, dir=path.parent, ignore_cleanup_errors=True) as made:
        temporary = Path(made, "shard")
        with temporary.open("wb") as file:
            file.write(_HEAD.pack(_MARK, len(told), zlib.crc32(told)))
            file.write(told)
            for record in whole:
                file.write(record.data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def _opened(path: Path) -> _Shard | None:
    """The shard of a file, or nothing if it is gone or damaged."""
    try:
        # This mapping, unlike that of `mmap`, keeps no file open, so there is no limit on shards.
        with pyarrow.memory_map(str(path)) as file:
            mapped = numpy.frombuffer(file.read_buffer(), dtype=numpy.uint8)
    except FileNotFoundError:
        return None
    if len(mapped) < _HEAD.size:
        return None
    mark, length, total = _HEAD.unpack(mapped[: _HEAD.size].data)
    told = mapped[_HEAD.size : _HEAD.size + length].tobytes()
    if mark != _MARK or zlib.crc32(told) != total:
        return None
    shard = _Shard(path, json.loads(told), mapped[_HEAD.size + length :])
    return shard if shard.whole else None
