"""Examples are tokenised once, kept in a file, and mapped into memory from then on.

The file is Arrow IPC with one record batch, so that all ids of a field are one flat array. It is put together
from temporary files that are written a few thousand rows at a time, so memory stays small however long the
data is. It appears under its final name in one step, complete or not at all.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy
import pyarrow

from sixjars.data.cuts import Cut
from sixjars.data.readers.rows import LINE, Examples
from sixjars.errors import DataError

FORMAT: Final = 2
"""Changes when the file's form does, so that no old file is read."""
MAKING: Final = ".making-"
"""What the name of a folder begins with in which a file is being made."""
_ROWS = 4096
_STALE = 24 * 3600.0
_IDS = "ids of "

Ids = numpy.ndarray[Any, numpy.dtype[numpy.int32]]
Offsets = numpy.ndarray[Any, numpy.dtype[numpy.int64]]


def cache_folder() -> Path:
    """Where tokenised data is kept: $SIXJARS_CACHE, else $XDG_CACHE_HOME/sixjars, else ~/.cache/sixjars."""
    if chosen := os.environ.get("SIXJARS_CACHE"):
        return Path(chosen).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).expanduser() / "sixjars"
    return Path.home() / ".cache" / "sixjars"


def cached(examples: Examples, cuts: Mapping[str, Cut], *, folder: Path) -> "Table":
    """The examples with the ids that each cut makes, by its name; made now or found there."""
    fingerprint = _fingerprint(examples)
    key = _key(fingerprint, examples.table.column_names, cuts)
    path = folder / f"{key}.arrow"
    with sentences("Tokenised data", folder):
        table = _opened(path, key, fingerprint)
        if table is None:
            folder.mkdir(parents=True, exist_ok=True)
            sweep(folder)
            _make(path, key, examples, cuts)
            table = _opened(path, key, fingerprint)
    if table is None:
        raise DataError(f"The cache in {folder} cannot be read back; is the disk damaged? Set SIXJARS_CACHE.")
    return table


@final
class Table:
    """Tokenised examples, mapped from a file: nothing is loaded before it is looked at."""

    def __init__(self, batch: Any, fingerprint: str) -> None:
        self._batch = batch
        self.fingerprint = fingerprint
        self._ids = {
            name.removeprefix(_IDS): _ids(batch.column(name)) for name in batch.schema.names if name.startswith(_IDS)
        }
        self._lines: Offsets = batch.column(LINE).to_numpy()

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def has(self, field: str) -> bool:
        """Whether there is such a field of text."""
        return field != LINE and field in self._batch.schema.names

    def texts(self, field: str, rows: Sequence[int] | None = None) -> list[str]:
        """The raw texts of a field, of all rows or of some."""
        column = self._batch.column(field)
        texts: list[str] = column.to_pylist() if rows is None else [column[int(row)].as_py() for row in rows]
        return texts

    def ids(self, field: str) -> tuple[Ids, Offsets]:
        """All ids of a field on end, and where each row begins (one entry more than rows); no copy."""
        return self._ids[field]

    def line(self, row: int) -> int:
        """Where a row was in its file, counted from 1."""
        return int(self._lines[row])


def _ids(column: Any) -> tuple[Ids, Offsets]:
    return column.values.to_numpy(), column.offsets.to_numpy()


@contextmanager
def sentences(what: str, folder: Path) -> Iterator[None]:
    """Trouble with the disk becomes one sentence about what should be kept there."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "there is no space left; make room or set SIXJARS_CACHE to another folder."
        else:
            reason = f"{error.strerror or error}; set SIXJARS_CACHE to a folder that can be written."
        raise DataError(f"{what} cannot be kept in {folder}: {reason}") from error


def _key(fingerprint: str, fields: Sequence[str], cuts: Mapping[str, Cut]) -> str:
    """The name of a cache file: all that its content depends on."""
    plan = {
        "format": FORMAT,
        "fields": list(fields),
        "texts": fingerprint,
        "cuts": {name: cut.key() for name, cut in cuts.items()},
    }
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def _fingerprint(examples: Examples) -> str:
    """A number that changes with any text of the examples, or with the line it came from."""
    whole = hashlib.sha256()
    for name in examples.table.column_names:
        lengths, content = hashlib.sha256(), hashlib.sha256()
        for chunk in examples.table.column(name).chunks:
            if name == LINE:
                content.update(chunk.to_numpy())
                continue
            offsets, data = _strings(chunk)
            lengths.update(numpy.diff(offsets).tobytes())
            content.update(data)
        whole.update(lengths.digest() + content.digest())
    return whole.hexdigest()


def _strings(chunk: Any) -> tuple[Offsets, memoryview]:
    """The offsets (from 0) and the bytes of a string array, without a copy of the bytes."""
    if not len(chunk):
        return numpy.zeros(1, dtype=numpy.int64), memoryview(b"")
    _, places, data = chunk.buffers()
    offsets = numpy.frombuffer(places, dtype=numpy.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    content = memoryview(data or b"")[int(offsets[0]) : int(offsets[-1])]
    return (offsets - offsets[0]).astype(numpy.int64), content


@final
class _Column:
    """Values of different lengths, written one batch after the other to a file."""

    def __init__(self, path: Path, kind: Any) -> None:
        self._path = path
        self._kind = kind
        self._file: BinaryIO = path.open("wb")
        self._offsets: list[Offsets] = [numpy.zeros(1, dtype=numpy.int64)]
        self._last = 0

    def add(self, lengths: Offsets, content: Any) -> None:
        self._file.write(content)
        ends = self._last + numpy.cumsum(lengths, dtype=numpy.int64)
        self._offsets.append(ends)
        self._last = int(ends[-1]) if len(ends) else self._last

    def array(self) -> Any:
        """All of it as one Arrow array whose values are mapped from the file."""
        self._file.close()
        offsets = pyarrow.py_buffer(numpy.concatenate(self._offsets))
        count = len(offsets) // 8 - 1
        values = pyarrow.memory_map(str(self._path)).read_buffer() if self._last else pyarrow.py_buffer(b"")
        if self._kind == pyarrow.large_string():
            return pyarrow.Array.from_buffers(self._kind, count, [None, offsets, values])
        flat = pyarrow.Array.from_buffers(pyarrow.int32(), self._last, [None, values])
        return pyarrow.Array.from_buffers(self._kind, count, [None, offsets], children=[flat])

    def close(self) -> None:
        self._file.close()


def _make(path: Path, key: str, examples: Examples, cuts: Mapping[str, Cut]) -> None:
    """Writes the file of a key; another process may do the same at the same time."""
    with tempfile.TemporaryDirectory(prefix=MAKING, dir=path.parent, ignore_cleanup_errors=True) as made:
        folder = Path(made)
        columns: dict[str, Any] = {}
        for number, name in enumerate(examples.table.column_names):
            if name == LINE:
                columns[name] = pyarrow.concat_arrays(examples.table.column(name).chunks)
                continue
            columns[name] = _texts(folder / f"{number}.text", examples.table.column(name))
        for name, cut in cuts.items():
            columns[_IDS + name] = _tokenised(folder / f"{name}.ids", examples.table.column(cut.column), cut)
        batch = pyarrow.record_batch(columns)
        batch = batch.replace_schema_metadata({"key": key, "sum": str(_sum(batch))})
        final_file = folder / "whole.arrow"
        with final_file.open("wb") as file:
            with pyarrow.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        final_file.replace(path)


def _texts(path: Path, column: Any) -> Any:
    made = _Column(path, pyarrow.large_string())
    try:
        for chunk in column.chunks:
            offsets, data = _strings(chunk)
            made.add(numpy.diff(offsets), data)
        return made.array()
    finally:
        made.close()


def _tokenised(path: Path, column: Any, cut: Cut) -> Any:
    made = _Column(path, pyarrow.large_list(pyarrow.int32()))
    try:
        for start in range(0, len(column), _ROWS):
            rows = cut.encode(column.slice(start, _ROWS).to_pylist())
            lengths = numpy.array([len(ids) for ids in rows], dtype=numpy.int64)
            made.add(lengths, numpy.array([number for ids in rows for number in ids], dtype=numpy.int32))
        return made.array()
    finally:
        made.close()


def _sum(batch: Any) -> int:
    """A check sum over every byte of the values."""
    total = 0
    for column in batch.columns:
        for buffer in column.buffers():
            if buffer is not None:
                total = zlib.crc32(buffer, total)
    return total


def _opened(path: Path, key: str, fingerprint: str) -> Table | None:
    """The table of a file, or nothing if it is missing, damaged or another's."""
    try:
        reader = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
        batch = reader.get_batch(0)
        kept = reader.schema.metadata or {}
        batch.validate()
        table = Table(batch, fingerprint)
    except (FileNotFoundError, pyarrow.ArrowException, ValueError, IndexError, KeyError):
        return None
    except OSError as error:
        if error.errno is not None:
            raise
        return None
    if kept.get(b"key") != key.encode() or kept.get(b"sum") != str(_sum(batch)).encode():
        return None
    return table


def sweep(folder: Path) -> None:
    """Removes what a killed process left behind a day ago or longer."""
    for left in folder.glob(f"{MAKING}*"):
        try:
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            continue
