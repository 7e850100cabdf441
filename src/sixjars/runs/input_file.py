"""A file of inputs with columns, whatever its format: its columns, its rows, and its faults."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sixjars.data.tables.delimited import unused_delimiter
from sixjars.data.tables.rows import Fault, Key, decoded
from sixjars.data.text.files import check_file, ending_of, is_gzipped
from sixjars.runs.answer_files import Answers, Row
from sixjars.runs.requests import Unreadable, not_utf8
from sixjars_runtime.errors import DataError

_NAMED: Final = 5
"""Columns that a sentence names."""


class InputFile(ABC):
    """A file with columns; `wanted` has the column of each field, by name or number."""

    def __init__(self, path: Path, wanted: Mapping[str, Key]) -> None:
        check_file(path)
        self.path = path
        self.wanted = wanted
        self.blank = False
        """Whether a workbook has no value, not even a header."""
        self.read = 0
        """Bytes, or rows of a Parquet file, so far."""
        self.size: int | None = None if is_gzipped(path) else path.stat().st_size
        """Their total; None where that is not known before the end."""
        self.answer_ending = ending_of(path)
        """The ending of the file that `answers` writes."""
        self.names: list[str] = []
        """Its columns, as far as rows were read."""
        self.used: dict[str, str] = {}
        """The column that each field is read from."""
        self.count: int | None = None
        """Its rows, where the file itself tells when the first is read."""
        self.cut = 0
        """Rows so far that have more values than the header has names: those beyond are left out."""
        self._fault = ""
        """The fault in the bytes of the row that is being read."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """One row after the other."""

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

    @abstractmethod
    def answers(self, path: Path, columns: Mapping[str, type]) -> Answers:
        """A file of the same kind to write, with columns added, once the first row was read."""

    def _key(self, field: str, names: Sequence[str]) -> str:
        """The column of a field: the one of the recipe, or one that has the field's name."""
        key = self.wanted[field]
        if str(key).partition(".")[0] in names and not isinstance(key, int):
            return key
        if field in names:
            return field
        mark = unused_delimiter(names)
        columns = names[0].split(mark) if mark else names
        there = ", ".join(repr(name.strip('"')) for name in columns)
        raise DataError(f"{self.path} has no column {key!r}, which this run reads; it has {there}.")

    def _text(self, number: int, raw: bytes) -> str:
        """A line; bytes that are not UTF-8 stay as they are, so that they can be written again."""
        text = raw.decode("utf-8", "surrogateescape")
        if not text.isascii() and isinstance(fault := decoded(number, raw), Fault):
            self._fault = f"line {number}: {fault.sentence}"
        return text

    def _row_of(self, values: Mapping[str, Any], whole: Any) -> Row:
        """A row, unreadable where bytes of a field (not of other columns) are not UTF-8."""
        fault, self._fault = self._fault, ""
        bad = fault and not_utf8(json.dumps(values, ensure_ascii=False), "it")
        return Row(Unreadable(fault) if bad else values, whole)
