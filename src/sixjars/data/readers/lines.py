r"""Lines of a file, plain or gzipped, many at a time and with exact numbers.

A line ends at `\n` (a `\r` before it is dropped); nothing else ends a line. In a CSV file a record may hold
line breaks inside quotes, so there a record ends at a `\n` with an even number of quotes before it.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Final, cast, final

import numpy
import pyarrow
import pyarrow.compute

from sixjars.data.readers.rows import Fault
from sixjars.errors import DataError

BLOCK: Final = 1 << 24
"""Bytes read at once."""
MARK: Final = b"\xef\xbb\xbf"
"""What some programs write before UTF-8 text."""
_NEWLINE, _QUOTE = 10, 34
_LONGEST = 2**31 - 1

Numbers = numpy.ndarray[Any, numpy.dtype[numpy.int64]]


@final
@dataclass(frozen=True)
class Lines:
    """Some whole lines (or records) of a file, those that are no UTF-8 left out."""

    texts: Any
    """A `pyarrow` string array, line ends dropped."""
    numbers: Numbers
    """The number of each line (of a record's first line), from 1."""
    faults: list[Fault]
    """The lines that were left out."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked if its name ends in .gz; every way this can fail is a sentence."""
    check_file(path)
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not a gzip file or is damaged: {_sentence(error)}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def check_file(path: Path) -> None:
    """Refuses what is not there and what is a folder."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name a file in it.")
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        near = get_close_matches(path.name, beside, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        hint = hint if path.parent.is_dir() else f" There is no folder {str(path.parent)!r} either."
        raise DataError(f"{path} does not exist.{hint}")


def lines_of(path: Path, *, quotes: bool = False) -> Iterator[Lines]:
    """All lines of a file, a block at a time; with `quotes`, records whose quotes may hold line breaks."""
    first = 1
    empty = True
    with opened(path) as stream:
        for block in _blocks(stream, quotes=quotes):
            empty = False
            if len(block) > _LONGEST:
                raise DataError(f"{path}, line {first}: longer than 2 GB; is a quotation mark left open?")
            lines, count = _split(block, first, quotes=quotes)
            first += count
            yield lines
    if empty:
        raise DataError(f"{path} is empty.")


def _sentence(error: BaseException) -> str:
    return str(error).rstrip(".") + "."


def _blocks(stream: BinaryIO, *, quotes: bool) -> Iterator[bytes]:
    """Pieces of a file that begin and end with a whole record."""
    pending: list[bytes] = []
    opens = 0  # quotes so far in the pending bytes
    start = stream.read(len(MARK))
    data = (b"" if start == MARK else start) + stream.read(BLOCK)
    while data:
        ends = _ends(data, opens, quotes=quotes)
        if quotes:
            opens += data.count(b'"')
        if len(ends):
            cut = int(ends[-1]) + 1
            yield b"".join([*pending, data[:cut]])
            pending = [data[cut:]]
            opens = pending[0].count(b'"') if quotes else 0
        else:
            pending.append(data)
        data = stream.read(BLOCK)
    rest = b"".join(pending)
    if rest:
        yield rest


def _ends(data: bytes, opens: int, *, quotes: bool) -> Numbers:
    """Where records end: at each line break outside quotes."""
    array = numpy.frombuffer(data, dtype=numpy.uint8)
    breaks = numpy.flatnonzero(array == _NEWLINE)
    if quotes:
        marks = numpy.flatnonzero(array == _QUOTE)
        if len(marks) or opens % 2:
            breaks = breaks[(numpy.searchsorted(marks, breaks) + opens) % 2 == 0]
    return breaks


def _split(block: bytes, first: int, *, quotes: bool) -> tuple[Lines, int]:
    """The records of a block whose first line has the number `first`, and how many lines it has."""
    breaks = _ends(block, 0, quotes=False)
    ends = _ends(block, 0, quotes=quotes)
    if not len(ends) or ends[-1] != len(block) - 1:
        ends = numpy.append(ends, len(block) - 1)
    offsets = numpy.concatenate([[0], ends + 1])
    numbers = first + (numpy.searchsorted(breaks, offsets[:-1]) if quotes else numpy.arange(len(ends)))
    buffers = [None, pyarrow.py_buffer(offsets.astype(numpy.int32)), pyarrow.py_buffer(block)]
    raw = pyarrow.BinaryArray.from_buffers(pyarrow.binary(), len(ends), buffers)
    faults: list[Fault] = []
    try:
        texts = raw.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        faults = [
            fault
            for text, number in zip(raw.to_pylist(), numbers.tolist(), strict=True)
            if (fault := _undecodable(text, number)) is not None
        ]
        bad = {fault.line for fault in faults}
        good = numpy.array([number not in bad for number in numbers.tolist()])
        texts, numbers = raw.filter(pyarrow.array(good)).cast(pyarrow.string()), numbers[good]
    return Lines(pyarrow.compute.ascii_rtrim(texts, "\r\n"), numbers, faults), len(breaks)


def _undecodable(text: bytes, number: int) -> Fault | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        at, value = error.start, text[error.start]
        return Fault(number, f"byte {at + 1} of the line (0x{value:02x}) is not UTF-8; save the file as UTF-8.")
    return None
