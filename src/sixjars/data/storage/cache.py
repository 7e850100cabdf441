"""The cache: its folder, where files appear whole or not at all, and in it examples with their token ids.

An entry of the cache is a folder: the texts as Arrow, and for each encoder all ids in one flat array of 32-bit numbers,
with where each row begins. Ids are written some thousand rows at a time, so memory stays small.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, final

import numpy
import pyarrow

from sixjars.data.flat import Flat, as_array, batches_of, flattened, mapped, portions, spread
from sixjars.data.storage.pruning import MAKING, MAKING_HERE, is_abandoned, prune
from sixjars.progress import counted
from sixjars_runtime.errors import DataError

LINE: Final = "line"
"""The column of an example that says where in its file it was."""
FORMAT: Final = 4
"""Changes when the form of an entry does, so that no old one is read."""
ASIDE = ".aside-"
"""How the name of what stood where a file of ours should be begins."""
_OFTEN, _INDEX = 3600.0, "index.json"


def cache_folder() -> Path:
    """Where encoded data and features are kept: $SIXJARS_CACHE, else $XDG_CACHE_HOME/sixjars, else ~/.cache/sixjars."""
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("SIXJARS_CACHE") or f"{shared}/sixjars").expanduser()


@contextmanager
def disk_faults(what: str, folder: Path) -> Iterator[None]:
    """Trouble with the disk becomes one sentence about what should be kept there."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "there is no space left; make room (sixjars cache --prune GB) or point SIXJARS_CACHE elsewhere."
        else:
            reason = (
                f"{error.strerror or error}; set SIXJARS_CACHE to a folder that can be written."
            )
        raise DataError(f"{what} cannot be kept in {folder}: {reason}") from error


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """A temporary path to write; what is there at the end appears as `path` in one step, complete or not at all.

    Other processes may make the same at the same time; one of them stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = f"{MAKING_HERE}{os.getpid()}-"
    with tempfile.TemporaryDirectory(
        prefix=mine, dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        made = Path(folder, path.name)
        yield made
        for part in made.iterdir() if made.is_dir() else [made]:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        set_aside(path, folder=made.is_dir())
        if made.is_dir():  # which replaces no other folder, so the old one leaves first
            with suppress(OSError):
                path.rename(Path(folder, "old"))
        try:
            made.replace(path)
        except OSError as error:
            if error.errno not in (
                errno.ENOTEMPTY,
                errno.EEXIST,
            ):  # another process made it a moment ago
                raise


def set_aside(path: Path, *, folder: bool = False) -> None:
    """Rename what is no file (or no `folder`) where one of ours should be; its content is not touched."""
    if path.exists() and path.is_dir() != folder:
        with suppress(OSError):
            path.rename(path.with_name(f"{ASIDE}{time.time_ns()}-{path.name}"))


def touch(path: Path) -> None:
    """Note that a file is in use."""
    with suppress(OSError):
        os.utime(path)


def sweep(folder: Path) -> None:
    """Remove what a killed process left behind; once an hour, also what is too much."""
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
    """A `pyarrow.Table`: a string column for each field asked for, in that order, then `line`, from 1."""
    skipped: int  # bad rows that were left out
    where: str
    """The file's name, for messages."""
    notes: tuple[str, ...] = ()
    """What a person should know of the reading, a sentence each."""
    unit: str = "line"
    """What `line` counts; nothing where every row is a file, which its name tells better."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """What was wrong with bad rows, as readers say it, and how many there were of each."""

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], *, where: str) -> "Examples":
        """Examples that come from no file, numbered from 1.

        >>> Examples.of({"source": ["a", "b"], "target": ["c", "d"]}, where="a test").table.column_names
        ['source', 'target', 'line']
        """
        arrays = {name: as_array(texts) for name, texts in columns.items()}
        count = len(next(iter(arrays.values())))
        lines = pyarrow.py_buffer(numpy.arange(1, count + 1, dtype=numpy.int64))
        made = pyarrow.Array.from_buffers(pyarrow.int64(), count, [None, lines])
        return cls(pyarrow.table({**arrays, LINE: made}), 0, where)


class IdEncoder(Protocol):
    """Whatever turns the texts of a column into ids: a field, or what a field copies from another."""

    @property
    def column(self) -> str:
        """Whose texts are encoded."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""

    def flat(self, texts: Any) -> Flat:
        """The same for a `pyarrow` array of texts."""

    def key(self) -> str:
        """All that the ids depend on, besides the texts."""


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


@final
class Table:
    """Encoded examples; those from the cache are memory-mapped, and nothing is loaded before it is looked at."""

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
        column, some = self._texts.column(field), range(len(self)) if rows is None else rows
        at_once = isinstance(some, range) and some.step == 1 and column.slice(some.start, len(some))
        return list(at_once.to_pylist() if at_once else (column[int(row)].as_py() for row in some))

    def ids(self, field: str) -> Flat:
        """All ids of a field on end, and where each row begins (one entry more than rows); no copy."""
        return self._ids[field]

    def line(self, row: int) -> int:
        """Where a row was in its file, counted from 1."""
        return int(self._texts.column(LINE)[row].as_py())


def encoded(examples: Examples, encoders: Mapping[str, IdEncoder]) -> Table:
    """The examples with the ids of each encoder, in memory: for a few, as in a prediction."""
    whole = {
        name: examples.table.column(encoder.column).combine_chunks()
        for name, encoder in encoders.items()
    }
    ids = {name: encoders[name].flat(texts) for name, texts in whole.items()}
    return Table(examples.table, ids, "")


def cached(examples: Examples, encoders: Mapping[str, IdEncoder], *, folder: Path) -> Table:
    """The examples with the ids of each encoder, by its name; made now or found in the cache."""
    fingerprint = _fingerprint(examples)
    entry = folder / _key(fingerprint, examples.table.column_names, encoders)
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


def _key(fingerprint: str, fields: Sequence[str], encoders: Mapping[str, IdEncoder]) -> str:
    """The name of an entry: all that its content depends on."""
    plan = {
        "format": FORMAT,
        "fields": list(fields),
        "texts": fingerprint,
        "encoders": {name: [encoder.column, encoder.key()] for name, encoder in encoders.items()},
    }
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def _fingerprint(examples: Examples) -> str:
    """A number that changes with any text of the examples, or with the line it came from."""
    whole = hashlib.sha256()
    for name in examples.table.column_names:
        lengths, content = hashlib.sha256(), hashlib.sha256()
        for chunk in portions(examples.table.column(name)):
            if name == LINE:
                content.update(chunk.to_numpy())
            elif len(chunk):
                _, places, data = (
                    chunk.buffers()
                )  # of a string array: where each text begins, and all of them
                offsets = numpy.frombuffer(places, dtype=numpy.int32)[
                    chunk.offset : chunk.offset + len(chunk) + 1
                ]
                lengths.update(numpy.diff(offsets).astype(numpy.int64).tobytes())
                content.update(memoryview(data or b"")[int(offsets[0]) : int(offsets[-1])])
                if chunk.null_count:  # which is not the same as an empty text
                    content.update(chunk.is_null().to_numpy(zero_copy_only=False).tobytes())
        whole.update(lengths.digest() + content.digest())
    return whole.hexdigest()


def _make(entry: Path, examples: Examples, encoders: Mapping[str, IdEncoder]) -> None:
    """Writes an entry; another process may do the same at the same time."""
    with made_whole(entry) as made:
        made.mkdir()
        with pyarrow.ipc.new_file(str(made / "texts.arrow"), examples.table.schema) as writer:
            for batch in batches_of(examples.table):
                writer.write_batch(batch)
        for number, encoder in enumerate(encoders.values()):
            column = examples.table.column(encoder.column)
            begins = [numpy.zeros(1, numpy.int64)]
            with (made / f"{number}.ids").open("wb") as file:
                found = spread(encoder.flat, portions(column))
                what = f"tokenizing {encoder.column}"
                for ids, own in counted(
                    found, what, rows=lambda flat: len(flat[1]) - 1, total=len(column)
                ):
                    file.write(ids.tobytes())
                    begins.append(own[1:] + begins[-1][-1])
            numpy.save(made / f"{number}.npy", numpy.concatenate(begins))
        sums = json.dumps({path.name: _sum(path) for path in sorted(made.iterdir())})
        (made / _INDEX).write_text(sums, encoding="utf-8")


def _sum(path: Path) -> int:
    """A check sum over every byte of a file."""
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            total = zlib.crc32(block, total)
    return total


def _opened(entry: Path, encoders: Mapping[str, IdEncoder], fingerprint: str) -> Table | None:
    """The table of an entry, or nothing if it is missing or damaged."""
    try:
        sums = json.loads((entry / _INDEX).read_text(encoding="utf-8"))
        if any(_sum(entry / name) != total for name, total in sums.items()):
            return None
        ids = {}
        for number, name in enumerate(encoders):
            offsets = numpy.load(entry / f"{number}.npy", mmap_mode="r")
            with (entry / f"{number}.ids").open("rb") as file:
                own = numpy.frombuffer(
                    mapped(file) if offsets[-1] else b"", numpy.int32, int(offsets[-1])
                )
            ids[name] = own, offsets
        texts = pyarrow.ipc.open_file(pyarrow.memory_map(str(entry / "texts.arrow"))).read_all()
        table = Table(texts, ids, fingerprint)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, pyarrow.ArrowException):
        return None
    except (ValueError, TypeError, AttributeError):  # the index is JSON, but not ours
        return None
    touch(entry / _INDEX)
    return table
