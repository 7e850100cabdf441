"""Lines with columns between delimiters, as CSV and TSV are.

Without quotes, as in TSV, a quotation mark is a letter like any other.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, final

import numpy as np
import pyarrow
import pyarrow.compute

from sixjars.data.flat import spread
from sixjars.data.tables.cells import CellFile, picked
from sixjars.data.tables.lines import lines_in, read_parallel
from sixjars.data.tables.quoted import csv_fields
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
from sixjars.data.tables.table_file import TableRow
from sixjars.data.text.files import MARK, UTF16, blocks_of, ending_of, is_windows, lines_of, opened
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError, unknown

TEXT: Final = "text"  # the name of the one column of a plain text file
USUAL: Final = {".csv": ",", ".tsv": "\t"}
"""The delimiters of a file by its ending."""


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


def records_of(path: Path, delimiter: str, *, quotes: bool | None = None) -> Iterator[Fields]:
    """The fields of every record of a file."""
    return _fields(lines_of(path), delimiter, path, is_quoted(delimiter, quotes))


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
