"""Rows of an Excel workbook (.xlsx), one sheet of it; nothing in it is computed, and no other file is opened."""

import warnings
import zipfile
from collections.abc import Iterator
from datetime import datetime, time
from pathlib import Path
from typing import Any, Final

from sixjars.data.readers.delimited import Fields, read_fields
from sixjars.data.readers.rows import Record, Wanted
from sixjars.data.text.files import check_file
from sixjars.errors import DataError, MissingExtra, unknown

LARGEST: Final = 1 << 30
"""Bytes that a workbook may unpack to; texts that many cells share are all in memory."""


def read_xlsx(path: Path, wanted: Wanted) -> Iterator[Record]:
    """The rows of a sheet; as in CSV, the first has the names where columns are named."""
    return read_fields(path, wanted, sheet_rows(path, wanted.table.sheet))


def sheet_rows(path: Path, sheet: str | None = None) -> Iterator[Fields]:
    """The number of each row, and its cells as text, as many as the first row has; rows without a value are left out.

    Without a name it is the first sheet.
    """
    book = _opened(path)
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"{path}: {unknown('sheet', sheet, book.sheetnames)}")
        found = book[sheet] if sheet is not None else book.worksheets[0]
        found.reset_dimensions()  # some programs write a wrong size
        width = 0
        for number, values in enumerate(found.iter_rows(values_only=True), 1):
            cells = [_text(value) for value in values]
            if not any(cells):
                continue
            width = width or max(at for at, cell in enumerate(cells, 1) if cell)
            yield number, (cells + [""] * width)[: max(width, len(cells))]
    finally:
        book.close()


def _opened(path: Path) -> Any:
    check_file(path)
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(one.file_size for one in packed.infolist())
        if size > LARGEST:
            raise DataError(f"{path} unpacks to {size:,} bytes, but {LARGEST:,} are the most; save it as .csv.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, SyntaxError) as error:
        raise DataError(f"{path} is not an .xlsx workbook, is damaged, or is locked with a password.") from error
    if not book.worksheets:
        raise DataError(f"{path} has no sheet of cells.")
    return book


def _text(value: object) -> str:
    """A cell as text: a day without its midnight, truth values as JSON has them."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value).lower() if isinstance(value, bool) else str(value)
