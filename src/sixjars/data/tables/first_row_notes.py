"""Notes on the first rows of a table: what may be a header, and texts that a delimiter cuts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sixjars.data.bad_rows import SHOWN
from sixjars.data.tables.cells import CellFile
from sixjars.data.tables.delimited import DelimitedFile
from sixjars.data.tables.dialect import ROWS
from sixjars.data.tables.headers import has_header
from sixjars.data.tables.rows import RowFault
from sixjars.data.tables.table_file import TableFile
from sixjars.progress import number_of

_CURLY = ("\u201c", "\u201d", "\u201e")


def unsaid_header(table: TableFile) -> list[str]:
    """The cells of a first line that looks like names of columns and need not be a header."""
    return _header(table, _first_rows(table))


def notes_on(table: TableFile) -> Iterator[str]:
    """What the first rows of training data suggest: a header, or delimiters that end a text."""
    rows = _first_rows(table)
    named = not all(isinstance(key, int) for key in table.columns.values())
    if not named and (cells := _header(table, rows)):
        yield (
            f"{table.path}: the first line ({', '.join(map(repr, cells))}) looks like a header, "
            "but is read as an example, because columns are given by number; name them, or write "
            "`data.header: true` (`data.header: false` if it is an example)."
        )
    if rows and (named or table.settings.header) and isinstance(table, DelimitedFile):
        names = len(rows[0][1])
        wide = [(line, cells) for line, cells in rows if any(map(str.strip, cells[names:]))]
        if wide:
            yield _cut_texts(table.path, names, len(rows) - 1, wide)


def _first_rows(table: TableFile) -> list[tuple[int, list[str]]]:
    """The first rows of cells with their lines, a header too; none of other formats."""
    lines = table.lines() if isinstance(table, CellFile) and table.delimiter else ()
    first = islice(lines, ROWS)
    return [(line, cells) for line, cells in first if not isinstance(cells, RowFault)]


def _header(table: TableFile, rows: Sequence[tuple[int, list[str]]]) -> list[str]:
    cells = [cells for _, cells in rows]
    return cells[0] if cells and table.settings.header is None and has_header(cells) else []


def _cut_texts(path: Path, names: int, rows: int, wide: Sequence[tuple[int, list[str]]]) -> str:
    """A sentence where lines have more values than the header has names."""
    curly = any(cell.strip().startswith(_CURLY) for _, cells in wide for cell in cells)
    quotes = "curly quotation marks do not enclose a text"
    why = quotes if curly else "a delimiter inside a text ends it"
    shown = [str(line) for line, _ in wide[:SHOWN]]
    lines = ", ".join(shown + ["..."] * (len(wide) > SHOWN))
    return (
        f"{path}: {len(wide)} of the first {rows} rows have more values than the header, which has "
        f"{number_of(names, 'name')} (line {lines}), so values may be in the wrong columns: {why}. "
        'Enclose such texts in straight quotation marks (") and read them with `data.quotes: '
        "true`, or choose another delimiter."
    )
