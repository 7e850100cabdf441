"""Lines of text: with columns between delimiters, as CSV and TSV have them; or a file for each column.

CSV is read as Python's `csv` reads it, with exact line numbers and a fault for each bad record: a
field in quotes may hold delimiters, line breaks and doubled quotes; in a field that does not begin
with a quotation mark, one is a letter. Without quotes, as in TSV, every quotation mark is one.
"""

import csv
import io
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow
import pyarrow.compute

from sixjars.data.flat import spread
from sixjars.data.tables.rows import (
    Fields,
    Key,
    ReadSettings,
    RecordBlock,
    RowFault,
    Source,
    decoded,
    escaped,
    piece_of,
)
from sixjars.data.tables.table_file import CellFile, TableRow, picked
from sixjars.data.text.files import MARK, UTF16, blocks_of, ending_of, is_windows, lines_of, opened
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError, unknown

TEXT: Final = "text"  # the name of the one column of a plain text file
USUAL: Final = {".csv": ",", ".tsv": "\t"}
"""The delimiters of a file by its ending."""
_UNCLOSED = "a quotation mark opens a field here and is never closed; close it, or double it."
_ENDED = "unexpected end of data"  # the error of `csv` if a field is open at the end
_ENOUGH = 20  # records with the same number of columns that tell what a record looks like
_RETURN = "\ud800"  # stands for a carriage return, a line break for `csv`; no UTF-8 text has it
csv.field_size_limit(2**31 - 1)  # a document may be longer than the usual 131,072 letters


@final
class DelimitedFile(CellFile):
    """CSV or TSV; or plain text, whose lines are its one column unless there is a delimiter."""

    has_lines = True

    def __init__(self, path: Path, columns: Mapping[str, Key], settings: TableSettings) -> None:
        super().__init__(path, columns, settings)
        self.delimiter = settings.delimiter or USUAL.get(ending_of(path), "")
        self.quotes = is_quoted(self.delimiter, settings.quotes)

    def lines(self) -> Iterator[Fields]:
        """The cells of each line."""
        return _fields(self._counted(lines_of(self.path)), self.delimiter, self.path, self.quotes)

    def records(self, wanted: ReadSettings) -> Source:
        """The wanted columns of all rows; without quotes many lines at once."""
        if not self.delimiter:
            return self._whole_lines(wanted)
        return super().records(wanted) if self.quotes else self._unquoted(wanted)

    def _whole_lines(self, wanted: ReadSettings) -> Source:
        for key in wanted.keys:
            if key not in (TEXT, 1):
                raise DataError(f"{self.path}: {unknown('column', key, [TEXT, '1'])}")
        return read_parallel(dict.fromkeys(wanted.keys, self.path), wanted)

    def _unquoted(self, wanted: ReadSettings) -> Iterator[RecordBlock]:
        blocks = blocks_of(self.path)
        records = _split(_numbered(*next(blocks)), self.delimiter)
        numbers = self.numbers(wanted.keys, records)
        yield piece_of(list(picked(records, numbers, empty=wanted.empty)), wanted)
        yield from spread(lambda block: _piece(*block, self.delimiter, numbers, wanted), blocks)

    def rows(self) -> Iterator[TableRow]:
        """The rows, and how they begin and end is kept for others like them."""
        with opened(self.path) as stream:
            is_marked = is_windows(stream) or stream.read(3).startswith((MARK, *UTF16))
        self.begin = "\ufeff" if is_marked else ""  # without it, Excel misreads umlauts
        first = next((line for _, line in lines_of(self.path)), b"")
        self.line_end = "\r\n" if first.endswith(b"\r\n") else "\n"
        yield from super().rows()


def _piece(
    first: int, block: bytes, delimiter: str, numbers: Mapping[Key, int], wanted: ReadSettings
) -> RecordBlock:
    """The columns of a block, in one step where every line has enough of them."""
    lines = lines_in(first, block)
    if not isinstance(lines, list):
        compute = pyarrow.compute
        split = compute.split_pattern(lines, delimiter)
        fewest = compute.min(compute.list_value_length(split)).as_py()
        if fewest >= max(numbers.values()):
            places = numbers.items()
            columns = {key: compute.list_element(split, number - 1) for key, number in places}
            return RecordBlock(columns, np.arange(first, first + len(lines)))
    records = _split(_numbered(first, block), delimiter)
    return piece_of(list(picked(records, numbers, empty=wanted.empty)), wanted)


def is_quoted(delimiter: str, quotes: bool | None) -> bool:  # noqa: FBT001 - a setting
    """Whether quotation marks enclose fields; unless told, where the delimiter is no tab."""
    return delimiter != "\t" if quotes is None else quotes


def records_of(path: Path, delimiter: str, quotes: bool = True) -> Iterator[Fields]:  # noqa: FBT001, FBT002 - a way
    """The fields of every record of a file."""
    return _fields(lines_of(path), delimiter, path, quotes)


def _fields(
    lines: Iterable[tuple[int, bytes]],
    delimiter: str,
    path: Path,
    quotes: bool,  # noqa: FBT001 - a setting
) -> Iterator[Fields]:
    return csv_fields(lines, delimiter, path) if quotes else _split(lines, delimiter)


def _numbered(first: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    return enumerate(io.BytesIO(block), first)


def _split(lines: Iterable[tuple[int, bytes]], delimiter: str) -> Iterator[Fields]:
    """The fields of every line."""
    for at, raw in lines:
        line = decoded(at, raw)
        if isinstance(line, RowFault):
            yield at, replace(line, cells=escaped(raw).split(delimiter))
        else:
            yield at, line.split(delimiter)


def csv_fields(source: Iterable[tuple[int, bytes]], delimiter: str, path: Path) -> Iterator[Fields]:
    """The fields of every record of numbered lines; one that breaks the rules of `csv` is a fault."""
    unread = iter(source)
    again = deque[tuple[int, bytes]]()  # lines of a broken record that are read once more
    lines: list[tuple[int, bytes]] = []  # of the record that is being read
    bad: list[RowFault] = []
    number = width = like = 0  # the columns of the first record, and how many have as many

    def fed() -> Iterator[str]:
        nonlocal number
        while line := again.popleft() if again else next(unread, None):
            number, raw = line
            text = _csv_line(raw)
            if not text.isascii() and isinstance(fault := decoded(number, raw), RowFault):
                bad.append(fault)
            lines.append(line)
            yield text

    records = csv.reader(fed(), delimiter=delimiter, strict=True)
    while True:
        first = number + 1
        lines.clear()
        bad.clear()
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            fault, used = _broken(path, lines, delimiter, str(error), (width, like))
            again.extendleft(reversed(lines[used:]))
            number = first + used - 1
            records = csv.reader(fed(), delimiter=delimiter, strict=True)
            yield first, bad[0] if bad and bad[0].line <= number else fault
            continue
        width = width or len(fields)
        like += len(fields) == width
        cells = [field.replace(_RETURN, "\r") for field in fields] or [""]
        yield first, replace(bad[0], cells=cells) if bad else cells


def _csv_line(raw: bytes) -> str:
    """A line for `csv`; where it is no UTF-8, its quotation marks still open and close fields."""
    end = "\r\n" if raw.endswith(b"\r\n") else "\n"
    return escaped(raw).replace("\r", _RETURN) + end


def _broken(
    path: Path,
    lines: Sequence[tuple[int, bytes]],
    delimiter: str,
    error: str,
    known: tuple[int, int],
) -> tuple[RowFault, int]:
    """The fault of a record that breaks the rules, and how many of its lines are lost.

    Where a field is never closed, but the lines behind it are like the `known` records (columns of
    each, and their number), only the lines up to it are lost. It is an error if all lines are.
    """
    texts = [_csv_line(raw) for _, raw in lines]
    ended = _ENDED in error
    inside = texts if ended else texts[:-1]  # the error is in the last
    *_, rest = next(csv.reader(inside, delimiter=delimiter), [""])
    used = len(inside) + 1 - rest.count("\n")
    fault = RowFault(lines[0][0] + used - 1, _UNCLOSED)
    if inside and _go_on(texts[used:], delimiter, *known):
        return fault, used
    if ended:
        raise DataError(f"{path}, line {fault.line}: {fault.sentence}")
    message = f"is not CSV: {error}; double each quotation mark inside a quoted field."
    return RowFault(lines[0][0], message), len(lines)


def _go_on(lines: Sequence[str], delimiter: str, width: int, like: int) -> bool:
    """Whether nearly all lines are records with so many columns; the last may be unfinished."""
    records = csv.reader(lines, delimiter=delimiter, strict=True)
    fit = count = 0
    while True:
        try:
            fit += len(next(records)) == width
        except StopIteration:
            return width > 1 and fit >= 0.9 * count and like + fit >= _ENOUGH
        except csv.Error as error:
            fit += _ENDED in str(error)
        count += 1


def decoded_lines(path: Path) -> Iterator[tuple[int, str | RowFault]]:
    """Every line with its number, from 1; a fault in place of one that is no UTF-8."""
    for number, raw in lines_of(path):
        yield number, decoded(number, raw)


def read_parallel(paths: Mapping[Key, Path], wanted: ReadSettings) -> Iterator[RecordBlock]:
    """Read a file for each column; line i of each is record i."""
    files = [spread(lambda block: lines_in(*block), blocks_of(path)) for path in paths.values()]
    waiting = [next(file, ()) for file in files]
    number = 1
    while count := min(map(len, waiting)):
        block = {key: lines[:count] for key, lines in zip(paths, waiting, strict=True)}
        if any(isinstance(lines, list) for lines in block.values()):
            rows = zip(*(map(_plain, lines) for lines in block.values()), strict=True)
            numbered = enumerate(rows, number)
            records = [(line, _side_by_side(line, row, paths)) for line, row in numbered]
            yield piece_of(records, wanted)
        else:
            yield RecordBlock(block, np.arange(number, number + count))
        number += count
        for at, (lines, file) in enumerate(zip(waiting, files, strict=True)):
            waiting[at] = lines[count:] if len(lines) > count else next(file, ())
    left = [_counted(chain([lines], file)) for lines, file in zip(waiting, files, strict=True)]
    if any(has_text for _, has_text in left):
        totals = zip(paths.values(), left, strict=True)
        counts = ", ".join(f"{path} has {number - 1 + count}" for path, (count, _) in totals)
        raise DataError(f"Parallel files must have equally many lines, but {counts}.")


def _counted(blocks: Iterable[Sequence[Any]]) -> tuple[int, bool]:
    """How many lines there are, and whether any has text or cannot be read."""
    count, has_text = 0, False
    for lines in blocks:
        count += len(lines)
        plain = map(_plain, lines)
        has_text = has_text or any(isinstance(line, RowFault) or line.strip() for line in plain)
    return count, has_text


def _plain(line: Any) -> str | RowFault:
    """A line as text, which Arrow may hold."""
    text: str | RowFault = line if isinstance(line, str | RowFault) else line.as_py()
    return text


def _side_by_side(
    number: int, lines: Sequence[str | RowFault], paths: Mapping[Key, Path]
) -> dict[Key, str] | RowFault:
    """The lines of several files as one record, or the first fault, with its file."""
    record: dict[Key, str] = {}
    for (key, path), line in zip(paths.items(), lines, strict=True):
        if isinstance(line, RowFault):
            return RowFault(number, line.sentence, str(path))
        record[key] = line
    return record


def lines_in(first: int, block: bytes) -> Any:
    """The lines of a block: a `pyarrow` array, or a list with a fault for each that is no UTF-8."""
    text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    text = text[:-1] if text.endswith(b"\n") else text.removesuffix(b"\r")
    try:
        content = pyarrow.array([text], pyarrow.binary()).cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return [decoded(number, raw) for number, raw in enumerate(io.BytesIO(block), first)]
    return pyarrow.compute.split_pattern(content, "\n").flatten()
