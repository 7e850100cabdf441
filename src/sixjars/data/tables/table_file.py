"""The contract of files with columns: each format reads its rows, and appends rows of its kind.

Training reads `records`, the wanted columns alone, where a row that lacks one is a fault. Prediction
reads `rows`, where what a row lacks is empty, for each is written again with the output beside it.
"""

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, cast, final

from sixjars.data.tables.headers import unused_delimiter
from sixjars.data.tables.rows import ESCAPED, Key, ReadSettings, RowFault, Source
from sixjars.data.text.files import check_file, ending_of, is_gzipped
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError

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
