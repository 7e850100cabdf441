"""Files of rows with their answers: whatever ends the work, what was written is whole rows."""

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast, final

from sixjars.data.text.files import is_gzipped
from sixjars.runs.requests import Unreadable

Cell = str | float | None
"""A value of a new column: a text, a probability, or none where there is no answer."""


@final
@dataclass(frozen=True)
class Row:
    """One row of a file."""

    values: Mapping[str, Any] | Unreadable
    """The value of each field."""
    whole: Any
    """The whole row, as its format writes it again."""


class Answers(ABC):
    """A file of rows with their answers; when `write` returns, its rows are on disk."""

    @abstractmethod
    def write(self, rows: Sequence[Row], answers: Sequence[Sequence[Cell]]) -> None:
        """Some rows, each with the values of the new columns."""

    @abstractmethod
    def close(self) -> None:
        """Write what stands at the end of such a file."""


class _Stream(Answers):
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


@final
class DelimitedAnswers(_Stream):
    """CSV or TSV."""

    def __init__(
        self,
        path: Path,
        delimiter: str,
        head: str = "",
        *,
        quotes: bool = True,
        line_end: str = "\n",
    ) -> None:
        super().__init__(path, head)
        self.delimiter = delimiter
        self.quotes = quotes
        self.line_end = line_end

    def put_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Write cells; without quotation marks a tab or a line break in a cell becomes a blank."""
        if self.delimiter == "\t" and not self.quotes:
            cleaned = (
                (" ".join(cell.splitlines()).replace("\t", " ") for cell in row) for row in rows
            )
            self.put("".join("\t".join(row) + self.line_end for row in cleaned))
            return
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator=self.line_end).writerows(rows)
        self.put(text.getvalue())

    def write(self, rows: Sequence[Row], answers: Sequence[Sequence[Cell]]) -> None:
        """Some rows, each with the values of the new columns."""
        pairs = zip(rows, answers, strict=True)
        self.put_rows([[*row.whole, *map(_text, cells)] for row, cells in pairs])


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6f}" if isinstance(cell, float) else cell


@final
class JsonAnswers(_Stream):
    """JSON lines, or one list."""

    def __init__(self, path: Path, columns: Iterable[str], *, listed: bool) -> None:
        super().__init__(path, "[" if listed else "", "\n]\n" if listed else "")
        self.columns = list(columns)
        self.between = "\n" if listed else ""
        self.listed = listed

    def write(self, rows: Sequence[Row], answers: Sequence[Sequence[Cell]]) -> None:
        """Some rows, each with the values of the new columns."""
        lines = []
        for row, cells in zip(rows, answers, strict=True):
            added = json.dumps(dict(zip(self.columns, cells, strict=True)), ensure_ascii=False)
            body = row.whole.strip() if not isinstance(row.values, Unreadable) else ""
            inside = body[1:-1].strip()
            lines.append(f"{{{inside}, {added[1:]}" if inside else added)
        if self.listed:
            self.put(self.between + ",\n".join(lines) if lines else "")
            self.between = ",\n"
        else:
            self.put("".join(f"{line}\n" for line in lines))


@final
class ParquetAnswers(Answers):
    """Row groups; such a file can be opened once it was closed."""

    def __init__(self, path: Path, schema: Any, columns: Mapping[str, type]) -> None:
        import pyarrow
        import pyarrow.parquet

        kinds = {str: pyarrow.string(), float: pyarrow.float64()}
        self.schema = schema
        self.arrow = pyarrow
        self.columns = {name: kinds[kind] for name, kind in columns.items()}
        whole = schema
        for name, kind in self.columns.items():
            whole = whole.append(pyarrow.field(name, kind))
        self.file = pyarrow.parquet.ParquetWriter(path, whole)

    def write(self, rows: Sequence[Row], answers: Sequence[Sequence[Cell]]) -> None:
        """Some rows, each with the values of the new columns."""
        table = self.arrow.Table.from_batches([row.whole for row in rows], schema=self.schema)
        for at, (name, kind) in enumerate(self.columns.items()):
            values = self.arrow.array([cells[at] for cells in answers], kind)
            table = table.append_column(name, values)
        self.file.write_table(table)

    def close(self) -> None:
        """Without this, the file cannot be opened."""
        self.file.close()
