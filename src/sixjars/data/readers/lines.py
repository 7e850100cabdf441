r"""Lines of a file, plain or gzipped, many at a time and with exact numbers.

A line ends at `\n` (a `\r` before it is dropped); nothing else ends a line. In a CSV file a record may hold
line breaks inside a quoted field. As in RFC 4180, a quotation mark opens such a field only where a field begins:
after a comma, or where a record begins. Inside any other field it is a letter.
"""

import gzip
import re
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
UNCLOSED: Final = (
    "a quotation mark opens a field here and is never closed; close it, or, if it is a letter, quote the field "
    "and double it."
)
_NEWLINE, _QUOTE, _COMMA = 10, 34, 44
_QUOTED: Final = re.compile(rb'(?:(?<=[,\n])|\A)"[^"]*+(?:""[^"]*+)*+("?)')
_FRESH, _INSIDE, _LETTERS = b"", b'"', b"x"
"""Where a scan stands, as the shortest text that leads there: a field begins, is quoted, is not quoted."""
_LONGEST = 2**31 - 1

Numbers = numpy.ndarray[Any, numpy.dtype[numpy.int64]]
_NONE: Final[Numbers] = numpy.array([], dtype=numpy.int64)


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
    """All lines of a file, a block at a time; with `quotes`, records whose quoted fields may hold line breaks.

    A quoted field that is never closed spoils its record up to the end of the line where it opens;
    the rest of the file is read as if it began there.
    """
    first = 1
    empty = True
    with opened(path) as stream:
        for block, ends in _blocks(stream, quotes=quotes):
            empty = False
            if len(block) > _LONGEST:
                raise DataError(f"{path}, line {first}: longer than 2 GB; is a quotation mark left open?")
            count = block.count(b"\n")
            if ends is None:
                last = first + count - block.endswith(b"\n")
                yield Lines(pyarrow.array([], pyarrow.string()), _NONE, [Fault(last, UNCLOSED)])
            else:
                yield _split(block, ends, first, quotes=quotes)
            first += count
    if empty:
        raise DataError(f"{path} is empty.")


def _sentence(error: BaseException) -> str:
    return str(error).rstrip(".") + "."


def _blocks(stream: BinaryIO, *, quotes: bool) -> Iterator[tuple[bytes, Numbers | None]]:
    """Pieces of a file that begin and end with a whole record, and where in them records end; None if never."""
    pending: list[bytes] = []
    stands = _FRESH
    start = stream.read(len(MARK))
    data = (b"" if start == MARK else start) + _chunk(stream, quotes=quotes)
    while data:
        ends, stands = _ends(data, stands) if quotes else (_breaks(data), _FRESH)
        if len(ends):
            cut = int(ends[-1]) + 1
            yield b"".join([*pending, data[:cut]]), ends + sum(map(len, pending))
            pending = [data[cut:]]
        else:
            pending.append(data)
        data = _chunk(stream, quotes=quotes)
    rest = b"".join(pending)
    if stands == _INSIDE and len(rest) <= _LONGEST:
        cut = _end_of_unclosed(rest)
        yield rest[:cut], None
        rest = rest[cut:]
    if rest:
        yield rest, _ends(rest, _FRESH)[0] if quotes else _breaks(rest)


def _chunk(stream: BinaryIO, *, quotes: bool) -> bytes:
    """The next bytes; a run of quotation marks is never cut, for only its length says what it means."""
    data = stream.read(BLOCK)
    more = bytearray()
    while quotes and (more or data).endswith(b'"') and (letter := stream.read(1)):
        more += letter
    return data + more


def _breaks(data: bytes) -> Numbers:
    return numpy.flatnonzero(numpy.frombuffer(data, dtype=numpy.uint8) == _NEWLINE)


def _ends(data: bytes, stands: bytes) -> tuple[Numbers, bytes]:
    """Where records end, at each line break outside a quoted field, and where the scan stands after them all.

    Quotation marks open and close in turn, as long as each that opens stands where a field begins or
    directly after the one before (a doubled one). Where that does not hold, the fields are sought one by one.
    """
    text = stands + data
    array = numpy.frombuffer(text, dtype=numpy.uint8)
    marks = numpy.flatnonzero(array == _QUOTE)
    opening = marks[::2]
    before = array[opening - 1]  # of the very first letter of all: the last, which is looked at only below
    right = (opening == 0) | (before == _COMMA) | (before == _NEWLINE) | (before == _QUOTE)
    if right.all():
        inside = bool(len(marks) % 2)
    else:
        edges = [edge for one in _QUOTED.finditer(text) for edge in (one.start(), one.end() - len(one[1]))]
        marks = numpy.array(edges, dtype=numpy.int64)
        inside = edges[-1:] == [len(text)]
    breaks = _breaks(data)
    ends = breaks[numpy.searchsorted(marks, breaks + len(stands)) % 2 == 0] if len(marks) else breaks
    return ends, _INSIDE if inside else _FRESH if text[-1] in b",\n" else _LETTERS


def _end_of_unclosed(text: bytes) -> int:
    """Where the line ends on which a quoted field opens that is never closed.

    No lone quotation mark can follow it, so what comes after is whole again.
    """
    opened_at = max(one.start() for one in _QUOTED.finditer(text) if not one[1])
    return text.find(b"\n", opened_at) + 1 or len(text)


def _split(block: bytes, ends: Numbers, first: int, *, quotes: bool) -> Lines:
    """The records of a block whose first line has the number `first`."""
    if not len(ends) or ends[-1] != len(block) - 1:
        ends = numpy.append(ends, len(block) - 1)
    offsets = numpy.concatenate([[0], ends + 1])
    numbers = first + (numpy.searchsorted(_breaks(block), offsets[:-1]) if quotes else numpy.arange(len(ends)))
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
    return Lines(pyarrow.compute.ascii_rtrim(texts, "\r\n"), numbers, faults)


def _undecodable(text: bytes, number: int) -> Fault | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        at, value = error.start, text[error.start]
        return Fault(number, f"byte {at + 1} of the line (0x{value:02x}) is not UTF-8; save the file as UTF-8.")
    return None
