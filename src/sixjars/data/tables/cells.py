"""Tables of cells, as lines with delimiters and sheets are, whose first row may be a header."""

import csv
import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from sixjars.data.bad_rows import SHOWN
from sixjars.data.tables.headers import header_names, other_delimiter, unused_delimiter
from sixjars.data.tables.rows import Fields, Key, ReadSettings, Record, RowFault, Source
from sixjars.data.tables.table_file import Cell, LineWriter, RowWriter, TableFile, TableRow, row_of
from sixjars.progress import number_of
from sixjars_runtime.errors import DataError, shown, unknown


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
    for line, fields in records:
        if isinstance(fields, RowFault):
            yield line, fields
        elif len(fields) >= needed:
            yield line, {key: fields[number - 1] for key, number in numbers.items()}
        elif empty and not any(map(str.strip, fields)):
            yield line, dict.fromkeys(numbers, "")
        else:
            count = f"{len(fields)} column{'s' if len(fields) > 1 else ''}"
            short = f"has {count}, but column {needed} is asked for.{other_delimiter(fields)}"
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
