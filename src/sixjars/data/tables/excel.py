"""Rows of one sheet of an Excel workbook; no formula is computed, no other file opened."""

import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, time
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.rows import Fields
from sixjars.data.tables.table_file import CellFile, TableRow
from sixjars.data.text.files import check_file
from sixjars.progress import tell
from sixjars_runtime.errors import DataError, MissingExtra, shown, unknown

LARGEST: Final = 1 << 30
"""Bytes that a workbook may unpack to; texts that many cells share are all in memory."""

TITLES: Final = 5  # rows that a title above a table may have
MOST_ROWS: Final = 1 << 20  # rows that a sheet can have
_DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, SyntaxError),
    *(KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError),
)


@final
class ExcelFile(CellFile):
    """A sheet of a workbook; a workbook that is cut short cannot open, so rows go to a CSV file."""

    begin = "\ufeff"  # by which Excel knows UTF-8: what was made with it is opened with it
    unit = "row"

    @property
    def output_ending(self) -> str:
        """Rows go to a CSV file."""
        return ".csv"

    def lines(self) -> Iterator[Fields]:
        """The cells of each row with a value."""
        return sheet_rows(self.path, self.settings.sheet)

    def rows(self) -> Iterator[TableRow]:
        """The rows of the sheet that training names; the only one is meant, whatever its name."""
        if self.settings.sheet is not None and len(sheet_names(self.path)) == 1:
            self.settings = self.settings.model_copy(update={"sheet": None})
        return super().rows()

    def is_blank(self) -> bool:
        """Whether the sheet has no cell with a value."""
        with _opened(self.path) as book:
            return (
                next(_filled(self.path, _sheet(book, self.path, self.settings.sheet)), None) is None
            )


def sheet_rows(path: Path, sheet: str | None = None) -> Iterator[Fields]:
    """The number of each row, and its cells as text, as many as the first row has.

    Rows without a value are left out, and so is a title above the table.
    """
    with _opened(path) as book:
        table = _sheet(book, path, sheet)
        width = 0
        for number, cells in _below_title(_filled(path, table), path):
            width = width or max(at for at, cell in enumerate(cells, 1) if cell)
            yield number, (cells + [""] * width)[: max(width, len(cells))]
    if not width:
        raise DataError(f"{path} is empty: the sheet {table.title!r} has no cell with a value.")


def _sheet(book: Any, path: Path, sheet: str | None) -> Any:
    """The sheet of this name, or the first."""
    sheets = {table.title: table for table in book.worksheets}  # a chart sheet has no cells
    if sheet is not None and sheet not in sheets:
        raise DataError(f"{path}: {unknown('sheet', sheet, list(sheets))}")
    table = sheets[sheet] if sheet is not None else book.worksheets[0]
    table.reset_dimensions()  # some programs write a wrong size
    return table


def sheet_names(path: Path) -> list[str]:
    """The sheets of a workbook that have cells."""
    with _opened(path) as book:
        return [table.title for table in book.worksheets]


def _filled(path: Path, sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that have a value."""
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > MOST_ROWS:
            raise DataError(
                f"{path} has a row beyond {MOST_ROWS:,}, the most of a sheet; is it damaged?"
            )
        cells = [_text(value) for value in values]
        if any(cells):
            yield number, cells


def _below_title(
    rows: Iterator[tuple[int, list[str]]], path: Path
) -> Iterator[tuple[int, list[str]]]:
    """The rows without a title: single values above rows that have more."""
    top = list(islice(rows, TITLES + 1))
    alone = [sum(map(bool, cells)) == 1 for _, cells in top]
    count = alone.index(False) if False in alone else 0
    if count:
        title = next(filter(None, top[0][1]))
        tell(f"{path}: {shown(title)} above the table is taken for a title, not for a row.")
    return chain(top[count:], rows)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a workbook; every way in which it cannot be read is a sentence."""
    check_file(path)
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGEST:
            raise DataError(
                f"{path} unpacks to {size:,} bytes, but {LARGEST:,} are the most; save it as .csv."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        with closing(book):
            if not book.worksheets:
                raise DataError(f"{path} has no sheet of cells.")
            yield book
    except _DAMAGED as error:
        raise DataError(
            f"{path} is not an .xlsx workbook, is damaged, or is locked with a password."
        ) from error


def _text(value: object) -> str:
    """A cell as text: a day without its midnight, truth values as in JSON."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value).lower() if isinstance(value, bool) else str(value)
