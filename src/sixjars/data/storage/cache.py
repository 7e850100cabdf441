"""The cache: its folder, files that appear whole or not at all, and examples with their ids.

An entry of the cache is a folder: the texts as Arrow, and for each encoder all ids in one flat
array of 32-bit numbers, with where each row begins. Ids are written some thousand rows at a time,
so memory stays small.
"""

import errno
import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, final

import numpy

from sixjars.data.flat import Flat, as_array, batches_of, flattened, mapped, portions, spread
from sixjars.data.storage.pruning import MAKING, MAKING_HERE, is_abandoned, prune
from sixjars.progress import counted
from sixjars_runtime.errors import DataError

LINE: Final = "line"  # the column with the place of an example in its file
FORMAT: Final = 4  # of entries: a new one makes all older entries unread
ASIDE = ".aside-"  # prefix of files that stood where one of ours belongs
_OFTEN = 3600.0  # seconds between two prunings
_INDEX = "index.json"


def cache_folder() -> Path:
    """$SIXJARS_CACHE, else $XDG_CACHE_HOME/sixjars, else ~/.cache/sixjars."""
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("SIXJARS_CACHE") or f"{shared}/sixjars").expanduser()


@contextmanager
def disk_faults(what: str, folder: Path) -> Iterator[None]:
    """Turn errors of the disk into one sentence about what could not be kept."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = (
                "there is no space left; make room (sixjars cache --prune GB) or point "
                "SIXJARS_CACHE elsewhere."
            )
        else:
            fault = error.strerror or error
            reason = f"{fault}; set SIXJARS_CACHE to a folder that can be written."
        raise DataError(f"{what} cannot be kept in {folder}: {reason}") from error


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """A temporary path to write, which then appears as `path` in one step, complete or not at all.

    Other processes may make the same at the same time; one of them stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = f"{MAKING_HERE}{os.getpid()}-"
    with TemporaryDirectory(prefix=mine, dir=path.parent, ignore_cleanup_errors=True) as folder:
        making = Path(folder, path.name)
        yield making
        for part in making.iterdir() if making.is_dir() else [making]:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        set_aside(path, folder=making.is_dir())
        if making.is_dir():  # which replaces no other folder, so the old one leaves first
            with suppress(OSError):
                path.rename(Path(folder, "old"))
        try:
            making.replace(path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process made it
                raise


def set_aside(path: Path, *, folder: bool = False) -> None:
    """Rename what is no file (or no `folder`) where one of ours should be; nothing is lost."""
    if path.exists() and path.is_dir() != folder:
        with suppress(OSError):
            path.rename(path.with_name(f"{ASIDE}{time.time_ns()}-{path.name}"))


def touch(path: Path) -> None:
    """Note that a file is in use, so that it is not pruned soon."""
    with suppress(OSError):
        os.utime(path)


def sweep(folder: Path) -> None:
    """Remove what killed processes left behind; once an hour, prune the cache."""
    for left in folder.glob(f"{MAKING}*"):
        if is_abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    stamp = cache_folder() / ".pruned"
    with suppress(OSError):
        if not stamp.exists():
            stamp.touch()
        elif time.time() - stamp.stat().st_mtime > _OFTEN:
            stamp.touch()
            prune(cache_folder())


@final
@dataclass(frozen=True)
class Examples:
    """The rows of one file, as text."""

    table: Any
    """A `pyarrow.Table`: a string column for each field, in the order asked for, then `line`."""
    skipped: int  # bad rows that were left out
    where: str
    """The file's name, for messages."""
    notes: tuple[str, ...] = ()
    """Sentences about the reading, for a person."""
    unit: str = "line"
    """The unit of `line`; empty where every row is a file."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The number of bad rows for each reason that a reader gave."""

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], *, where: str) -> "Examples":
        """Examples that come from no file, numbered from 1.

        >>> examples = Examples.of({"source": ["a", "b"], "target": ["c", "d"]}, where="a test")
        >>> examples.table.column_names
        ['source', 'target', 'line']
        """
        import pyarrow

        arrays = {name: as_array(texts) for name, texts in columns.items()}
        count = len(next(iter(arrays.values())))
        lines = pyarrow.py_buffer(numpy.arange(1, count + 1, dtype=numpy.int64))
        numbers = pyarrow.Array.from_buffers(pyarrow.int64(), count, [None, lines])
        return cls(pyarrow.table({**arrays, LINE: numbers}), 0, where)


class IdEncoder(Protocol):
    """Turns the texts of a column into ids: a field, or its link to a source."""

    @property
    def column(self) -> str:
        """The column with the texts."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""

    def flat(self, texts: Any) -> Flat:
        """The same for a `pyarrow` array of texts."""

    def key(self) -> str:
        """A text of all that the ids depend on, besides the texts."""


@final
@dataclass(frozen=True)
class FieldEncoder:
    """An `IdEncoder` made of functions."""

    column: str
    encode: Callable[[Sequence[str]], list[list[int]]]
    key: Callable[[], str] = str

    def flat(self, texts: Any) -> Flat:
        """The ids of a `pyarrow` array of texts."""
        return flattened(self.encode(texts.to_pylist()))


class ExampleTable(Protocol):
    """Encoded examples, as fields read them."""

    fingerprint: str
    """A hash of all texts; empty where they are not kept."""

    def __len__(self) -> int:
        """The number of examples."""

    def has(self, field: str) -> bool:
        """Whether there is such a field of text."""

    def texts(self, field: str, rows: Sequence[int] | None = None) -> list[str]:
        """The raw texts of a field, of all rows or of some."""

    def ids(self, field: str) -> Flat:
        """All ids of a field on end, and where each row begins and the last ends."""

    def line(self, row: int) -> int:
        """Where a row was in its file, counted from 1."""


@final
class ArrowTable:
    """Examples in Arrow; those from the cache are memory-mapped, and loaded when they are read."""

    def __init__(self, texts: Any, ids: Mapping[str, Flat], fingerprint: str) -> None:
        self._texts = texts
        self._ids = ids
        self.fingerprint = fingerprint

    def __len__(self) -> int:
        return int(self._texts.num_rows)

    def has(self, field: str) -> bool:
        """Whether there is such a field of text."""
        return field != LINE and field in self._texts.column_names

    def texts(self, field: str, rows: Sequence[int] | None = None) -> list[str]:
        """The raw texts of a field, of all rows or of some; those of a range are read at once."""
        column = self._texts.column(field)
        rows = range(len(self)) if rows is None else rows
        if isinstance(rows, range) and rows.step == 1:
            return list(column.slice(rows.start, len(rows)).to_pylist())
        return [column[int(row)].as_py() for row in rows]

    def ids(self, field: str) -> Flat:
        """All ids of a field on end, and where each row begins and the last ends; no copy."""
        return self._ids[field]

    def line(self, row: int) -> int:
        """Where a row was in its file, counted from 1."""
        return int(self._texts.column(LINE)[row].as_py())


def encoded(examples: Examples, encoders: Mapping[str, IdEncoder]) -> ExampleTable:
    """The examples with the ids of each encoder, in memory: for a few, as in a prediction."""
    ids = {}
    for name, encoder in encoders.items():
        ids[name] = encoder.flat(examples.table.column(encoder.column).combine_chunks())
    return ArrowTable(examples.table, ids, "")


def cached(examples: Examples, encoders: Mapping[str, IdEncoder], *, folder: Path) -> ExampleTable:
    """The examples with the ids of each encoder, by its name; made now or found in the cache."""
    import pyarrow

    fingerprint = _fingerprint(examples)
    plan = {
        "format": FORMAT,
        "fields": list(examples.table.column_names),
        "texts": fingerprint,
        "encoders": {name: [encoder.column, encoder.key()] for name, encoder in encoders.items()},
    }
    # The name of an entry is all that its content depends on.
    entry = folder / hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    with disk_faults("Encoded data", folder):
        if (table := _opened(entry, encoders, fingerprint)) is None:
            folder.mkdir(parents=True, exist_ok=True)
            sweep(folder)
            _make(entry, examples, encoders)
            table = _opened(entry, encoders, fingerprint)
            pyarrow.default_memory_pool().release_unused()
    if table is None:
        raise DataError(
            f"The cache in {folder} cannot be read back; is the disk damaged? Set SIXJARS_CACHE."
        )
    return table


def _fingerprint(examples: Examples) -> str:
    """A hash of all texts of the examples and of their lines."""
    digest = hashlib.sha256()
    for name in examples.table.column_names:
        lengths, content = hashlib.sha256(), hashlib.sha256()
        for chunk in portions(examples.table.column(name)):
            if name == LINE:
                content.update(chunk.to_numpy())
            elif len(chunk):
                # Of a string array: where each text begins and the last ends, and all of them.
                _, places, data = chunk.buffers()
                offsets = numpy.frombuffer(places, dtype=numpy.int32)[chunk.offset :]
                offsets = offsets[: len(chunk) + 1]
                lengths.update(numpy.diff(offsets).astype(numpy.int64).tobytes())
                content.update(memoryview(data or b"")[int(offsets[0]) : int(offsets[-1])])
                if chunk.null_count:  # which is not the same as an empty text
                    content.update(chunk.is_null().to_numpy(zero_copy_only=False).tobytes())
        digest.update(lengths.digest() + content.digest())
    return digest.hexdigest()


def _make(entry: Path, examples: Examples, encoders: Mapping[str, IdEncoder]) -> None:
    """Write an entry; another process may do the same at the same time."""
    import pyarrow

    with made_whole(entry) as making:
        making.mkdir()
        with pyarrow.ipc.new_file(str(making / "texts.arrow"), examples.table.schema) as writer:
            for batch in batches_of(examples.table):
                writer.write_batch(batch)
        for number, encoder in enumerate(encoders.values()):
            column = examples.table.column(encoder.column)
            begins = [numpy.zeros(1, numpy.int64)]
            parts = spread(encoder.flat, portions(column))
            what = f"tokenizing {encoder.column}"
            with (making / f"{number}.ids").open("wb") as file:
                rows = counted(parts, what, rows=lambda flat: len(flat[1]) - 1, total=len(column))
                for ids, offsets in rows:
                    file.write(ids.tobytes())
                    begins.append(offsets[1:] + begins[-1][-1])
            numpy.save(making / f"{number}.npy", numpy.concatenate(begins))
        sums = json.dumps({path.name: _sum(path) for path in sorted(making.iterdir())})
        (making / _INDEX).write_text(sums, encoding="utf-8")


def _sum(path: Path) -> int:
    """A check sum over every byte of a file."""
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            total = zlib.crc32(block, total)
    return total


def _opened(
    entry: Path, encoders: Mapping[str, IdEncoder], fingerprint: str
) -> ExampleTable | None:
    """The table of an entry, or nothing if it is missing or damaged."""
    import pyarrow

    try:
        sums = json.loads((entry / _INDEX).read_text(encoding="utf-8"))
        if any(_sum(entry / name) != total for name, total in sums.items()):
            return None
        ids = {}
        for number, name in enumerate(encoders):
            offsets = numpy.load(entry / f"{number}.npy", mmap_mode="r")
            with (entry / f"{number}.ids").open("rb") as file:
                content = mapped(file) if offsets[-1] else b""
            ids[name] = numpy.frombuffer(content, numpy.int32, int(offsets[-1])), offsets
        texts = pyarrow.ipc.open_file(pyarrow.memory_map(str(entry / "texts.arrow"))).read_all()
        table = ArrowTable(texts, ids, fingerprint)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, pyarrow.ArrowException):
        return None
    except (ValueError, TypeError, AttributeError):  # the index is JSON, but not ours
        return None
    touch(entry / _INDEX)
    return table
