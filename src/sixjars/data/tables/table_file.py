"""The contract of files with columns, and what files of cells share: lines with delimiters, sheets.

Training reads `records`, the wanted columns alone, where a row that lacks one is a fault. Prediction
reads `rows`, where what a row lacks is empty, for each is written again with the output beside it.
"""

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, cast, final

from sixjars.data.bad_rows import SHOWN
from sixjars.data.tables.rows import ESCAPED, Fields, Key, ReadSettings, Record, RowFault, Source
from sixjars.data.text.files import check_file, ending_of, is_gzipped
from sixjars.progress import number_of
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError, shown, unknown

DELIMITERS: Final = ("\t", ";", "|", ",")
"""Marks between columns, the least usual in texts first."""
Cell = str | float | None
"""A value of a new column: a text, a probability, or none where there is no output."""
_NAMED: Final = 5
"""Columns that a sentence names."""


@final
@dataclass(frozen=True)
class TableRow:
    """One row of a file."""

    values: Mapping[str, Any] | RowFault
    """The value of each field, or why they cannot be read."""
    whole: Any
    """The whole row, as its format writes it again."""


class RowWriter(ABC):
    """A file that rows are appended to; whatever ends the work, it has whole rows."""

    @abstractmethod
    def append(self, rows: Sequence[TableRow], cells: Sequence[Sequence[Cell]]) -> None:
        """Append rows, each with its cells in the new columns; on return they are on disk."""

    @abstractmethod
    def close(self) -> None:
        """Write what stands at the end of such a file."""


class LineWriter(RowWriter):
    """Lines, plain or gzipped by the ending; each call is one write, so the file has whole rows."""

    def __init__(self, path: Path, head: str = "", end: str = "") -> None:
        file = gzip.open(path, "wb") if is_gzipped(path) else path.open("wb", buffering=0)
        self.file = cast(BinaryIO, file)
        self.end = end
        self.put(head)

    def put(self, text: str) -> None:
        """Write a text now."""
        self.file.write(text.encode("utf-8", "surrogateescape"))
        self.file.flush()

    def close(self) -> None:
        """Write the end, and close the file."""
        try:
            self.put(self.end)
        finally:
            self.file.close()


class TableFile(ABC):
    """A file with columns; `columns` has the one of each field, by name or number."""

    unit = "line"
    """The unit that its records are counted in."""

    def __init__(self, path: Path, columns: Mapping[str, Key], settings: TableSettings) -> None:
        check_file(path)
        self.path = path
        self.columns = columns
        self.settings = settings
        self.read = 0
        """Bytes, or rows of a Parquet file, so far."""
        self.size: int | None = None if is_gzipped(path) else path.stat().st_size
        """Their total; None where that is not known before the end."""
        self.names: list[str] = []
        """Its columns, as far as rows were read."""
        self.used: dict[str, str] = {}
        """The column that each field is read from."""
        self.count: int | None = None
        """Its rows, where the file itself tells when the first is read."""
        self.cut = 0
        """Rows so far that have more values than the header has names: those beyond are left out."""

    @property
    def output_ending(self) -> str:
        """The ending of the files that `writer` writes."""
        return ending_of(self.path)

    @abstractmethod
    def records(self, wanted: ReadSettings) -> Source:
        """The wanted columns of all rows; a row that lacks one is a fault."""

    @abstractmethod
    def rows(self) -> Iterator[TableRow]:
        """One whole row after the other; a value that it lacks is empty."""

    @abstractmethod
    def writer(self, path: Path, added: Mapping[str, type]) -> RowWriter:
        """A file of the same kind with columns added, once the first of `rows` was read."""

    def is_blank(self) -> bool:
        """Whether it has no value, not even a header; only a workbook may."""
        return False

    def notes(self) -> list[str]:
        """Notes on the rows that were read so far."""
        return []

    def other_columns(self) -> str:
        """Sentences about the column that was read, where another column may be meant."""
        others = [name for name in self.names if name not in self.used.values()]
        if not others:
            return ""
        [field, name], *more = self.used.items()
        read = " and ".join([self._called(name), *(self._called(name) for _, name in more)])
        first = [self._called(name) for name in others[:_NAMED]]
        named = ", ".join(first + ["..."] * (len(others) > _NAMED))
        place = f"move it to column {name}" if name.isdecimal() else f"call it {field!r} there"
        return f"read was {read} of {self.path}, which also has {named}: if one is meant, {place}."

    def _called(self, name: str) -> str:
        """A column, as a sentence names it."""
        return repr(name)

    def _column(self, field: str, names: Sequence[str]) -> str:
        """The column of a field: the one of the recipe, or one that has the field's name."""
        key = self.columns[field]
        if str(key).partition(".")[0] in names and not isinstance(key, int):
            return key
        if field in names:
            return field
        mark = unused_delimiter(names)
        columns = names[0].split(mark) if mark else names
        there = ", ".join(repr(name.strip('"')) for name in columns)
        raise DataError(f"{self.path} has no column {key!r}, which this run reads; it has {there}.")

    def _counted(self, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Numbered lines or blocks, whose bytes are counted as read."""
        for number, raw in blocks:
            self.read += len(raw)
            yield number, raw


def row_of(values: Mapping[str, Any], whole: Any, fault: RowFault | None) -> TableRow:
    """A row whose bytes are not all UTF-8 if there is a fault, which counts where a value has some."""
    if fault is None or not ESCAPED.search(json.dumps(values, ensure_ascii=False)):
        return TableRow(values, whole)
    return TableRow(replace(fault, sentence=f"line {fault.line}: {fault.sentence}"), whole)


class CellFile(TableFile):
    """Rows of cells; where the columns are numbers there is no header."""

    delimiter = ","
    """The mark between cells where rows are written; none in plain text."""
    quotes = True
    """Whether quotation marks enclose cells there."""
    has_lines = False
    """Whether a row is a line: under a header of one name, all of the line belongs to it."""
    begin = ""
    """The beginning of a file of such rows: a byte order mark, or nothing."""
    line_end = "\n"
    """The end of each row there."""
    _rows = _wide = 0
    _wide_rows: tuple[int, ...] = ()
    _first: Sequence[str] = ()

    @property
    def numbered(self) -> bool:
        """Whether all columns are given by number."""
        return all(isinstance(key, int) for key in self.columns.values())

    @property
    def header(self) -> bool:
        """Whether the first row has names: as is said, else where columns are named."""
        header = self.settings.header
        return not self.numbered if header is None else header

    @abstractmethod
    def lines(self) -> Iterator[Fields]:
        """The cells of each row, the header too."""

    def records(self, wanted: ReadSettings) -> Source:
        """The wanted columns of all rows; by name, the first row is the header."""
        lines = self.lines()
        return picked(lines, self.numbers(wanted.keys, lines), empty=wanted.empty)

    def numbers(self, keys: Sequence[Key], lines: Iterator[Fields]) -> dict[Key, int]:
        """The number of each column; a header is taken from the lines."""
        numbers: dict[Key, int] = {key: key for key in keys if isinstance(key, int)}
        if len(numbers) < len(keys):
            if self.settings.header is False:
                raise DataError(
                    f"{self.path} has no header, as the recipe says; give columns by number, not "
                    f"{keys[0]!r}."
                )
            return _header(self.path, *next(lines), keys)
        if self.settings.header:
            next(lines)
        return numbers

    def rows(self) -> Iterator[TableRow]:
        """A row that is too short has empty cells, one that is too long is cut: columns stay.

        Where lines have one column, what is too long is that column.
        """
        places = dict[str, int]()
        self._rows, self._wide, self._wide_rows, self.cut = 0, 0, (), 0
        has_header = self.header
        for _, fields in self.lines():
            fault = fields if isinstance(fields, RowFault) else None
            cells = fields if not isinstance(fields, RowFault) else fields.cells
            if fault is not None and cells is None:  # it could not be written again
                raise DataError(f"{self.path}, line {fault.line}: {fault.sentence}")
            record = list(cells or [])
            if not places:
                places, self._first = self._places(record), record
                self.used = {field: self.names[place] for field, place in places.items()}
                if has_header:
                    continue
            self._rows += 1
            whole = self._fitted(record)
            values = {field: whole[place] for field, place in places.items()}
            yield row_of(values, whole, fault)

    def _fitted(self, record: list[str]) -> list[str]:
        """A row with a cell for each column."""
        if any(map(str.strip, record[len(self.names) :])) and self.header:
            self._wide += 1
            self._wide_rows += (self._rows,) if self._wide <= SHOWN else ()
            if self._has_whole_lines:
                return [self.delimiter.join(record)]
            self.cut += 1
        return (record + [""] * (len(self.names) - len(record)))[: len(self.names)]

    def writer(self, path: Path, added: Mapping[str, type]) -> RowWriter:
        """Lines with the same header, delimiter, quotation marks and line ends."""
        return CellWriter(path, self, added)

    def notes(self) -> list[str]:
        """A sentence where rows have more values than the header: a text may have been cut."""
        if not self._wide:
            return []
        have = "rows has" if self._wide == 1 else "rows have"
        places = ", ".join(map(str, self._wide_rows)) + (", ..." if self._wide > SHOWN else "")
        named = number_of(len(self.names), "name")
        what = (
            f"{self.path}: {self._wide:,} of {self._rows:,} {have} more values than the header, "
            f"which has {named} (input {places})"
        )
        if self._has_whole_lines:
            read = "it is read as one text" if self._wide == 1 else "each is read as one text"
            return [f'{what}: {read}. If that is right, enclose such texts in quotation marks (").']
        return [
            f"{what}, so values may be in the wrong columns, and those beyond are left out: a "
            'delimiter inside a text ends it. Enclose such texts in quotation marks (").'
        ]

    @property
    def _has_whole_lines(self) -> bool:
        return self.has_lines and len(self.names) == 1

    def _called(self, name: str) -> str:
        """A column without a header is called by its number, and by its value in the first row."""
        if self.header:
            return super()._called(name)
        return f"column {name} ({shown(self._first[int(name) - 1])})"

    def _places(self, first: list[str]) -> dict[str, int]:
        self.names = first if self.header else [str(at) for at in range(1, len(first) + 1)]
        keys = {field: str(key) for field, key in self.columns.items()}
        if not self.header or self.numbered:
            for key in keys.values():
                if not key.isdigit() or int(key) > len(first):
                    lacks = f"has no column {key}, which this run reads; it has {len(first)}."
                    raise DataError(f"{self.path} {lacks}")
            return {field: int(key) - 1 for field, key in keys.items()}
        names = header_names(first, keys.values())
        used = {field: self._column(field, names) for field in keys}
        for name in used.values():
            if names.count(name) > 1:
                raise DataError(f"{self.path}: column {name!r} is in the header twice; rename one.")
        return {field: names.index(name) for field, name in used.items()}


@final
class CellWriter(LineWriter):
    """CSV or TSV, as a table is."""

    def __init__(self, path: Path, table: CellFile, added: Mapping[str, type]) -> None:
        super().__init__(path, table.begin)
        self.table = table
        if table.header:
            self._put_rows([[*table.names, *added]])

    def append(self, rows: Sequence[TableRow], cells: Sequence[Sequence[Cell]]) -> None:
        """Append rows; without quotation marks a tab or a line break in a cell becomes a blank."""
        pairs = zip(rows, cells, strict=True)
        self._put_rows([[*row.whole, *map(_text, added)] for row, added in pairs])

    def _put_rows(self, rows: Sequence[Sequence[str]]) -> None:
        delimiter, end = self.table.delimiter, self.table.line_end
        if delimiter == "\t" and not self.table.quotes:
            plain = (
                [" ".join(cell.splitlines()).replace("\t", " ") for cell in row] for row in rows
            )
            self.put("".join("\t".join(row) + end for row in plain))
            return
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
        self.put(text.getvalue())


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6f}" if isinstance(cell, float) else cell


def picked(
    records: Iterable[Fields], numbers: Mapping[Key, int], *, empty: bool
) -> Iterator[Record]:
    """The columns with these numbers of each record; texts may be empty with `empty`."""
    needed = max(numbers.values())
    splits = False
    for line, fields in records:
        if isinstance(fields, RowFault):
            yield line, fields
        elif len(fields) >= needed:
            splits = True
            yield line, {key: fields[number - 1] for key, number in numbers.items()}
        elif empty and not any(map(str.strip, fields)):
            yield line, dict.fromkeys(numbers, "")
        else:
            count = f"{len(fields)} column{'s' if len(fields) > 1 else ''}"
            short = f"has {count}, but column {needed} is asked for."
            if not splits:  # no other line has its columns either
                short += other_delimiter(fields)
            yield line, RowFault(line, "the line is empty." if fields == [""] else short)


def _header(
    path: Path, line: int, names: list[str] | RowFault, keys: Sequence[Key]
) -> dict[Key, int]:
    """The number of each column, from the names in the first line."""
    if isinstance(names, RowFault):
        raise DataError(f"{path}, line {line}: {names.sentence}")
    names = header_names(names, keys)
    for key in keys:
        if names.count(str(key)) > 1:
            raise DataError(
                f"{path}: column {key!r} is in the header twice; rename one, or give numbers and "
                "`data.header: true`."
            )
        if key not in names:
            mark = unused_delimiter(names)
            known = [name.strip('"') for name in names[0].split(mark)] if mark else names
            whole = f"the header is one column, {shown(names[0])}."
            fault = whole if key in known else unknown("column", key, known)
            raise DataError(f"{path}: {fault}{other_delimiter(names)}")
    return {key: names.index(str(key)) + 1 for key in keys}


def header_names(cells: Sequence[str], wanted: Iterable[str | int] = ()) -> list[str]:
    """The names in a header, without blanks around them unless two differ in those.

    >>> header_names([" Subject ", "Body"]), header_names([" a", "a"])
    (['Subject', 'Body'], [' a', 'a'])
    >>> header_names([" a", "b"], wanted=[" a"])
    [' a', 'b']
    """
    names = [cell.strip() for cell in cells]
    exact = any(key in cells and key not in names for key in wanted)
    return list(cells) if exact or len({*names}) < len({*cells}) else names


def other_delimiter(fields: Sequence[str]) -> str:
    r"""A question about the delimiter where a line is one column, but has another mark.

    >>> other_delimiter(["en;de"]), other_delimiter(["en", "de"])
    (" Is the delimiter ';'? Then write `data.delimiter: ';'`.", '')
    """
    mark = unused_delimiter(fields)
    written = '"\\t"' if mark == "\t" else repr(mark)
    return f" Is the delimiter {written}? Then write `data.delimiter: {written}`." if mark else ""


def unused_delimiter(fields: Sequence[str]) -> str:
    """The mark that may stand between the columns of a line read as one, or nothing."""
    return next((mark for mark in DELIMITERS if len(fields) == 1 and mark in fields[0]), "")
