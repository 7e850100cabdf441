"""How a file of lines is written: its delimiter, its quotation marks, and whether it has a header.

All of it is decided from the first rows, by rules: the same file always gives the same answer.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.delimited import USUAL, is_quoted, records_of
from sixjars.data.tables.headers import (
    DELIMITERS,
    has_header,
    header_names,
    may_have_header,
    unused_delimiter,
)
from sixjars.data.tables.quoted import csv_fields
from sixjars.data.tables.rows import Key, RowFault
from sixjars.data.text.files import ending_of, lines_of
from sixjars.progress import tell
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError

ROWS: Final = 1000  # rows that are looked at
_BYTES: Final = 1 << 20
_MOST_BROKEN: Final = 0.1
"""The share of rows that quotation marks may break; where it is larger, they are letters."""
Names = Key | tuple[str, ...]
"""A column by its name or number, or by any of several names."""


@final
@dataclass(frozen=True)
class Dialect:
    """How a file is written, and its first rows."""

    delimiter: str
    quotes: bool
    header: bool
    rows: list[list[str]]
    """The first rows, without the header."""
    names: list[str]
    """The names in the header, if there is one."""
    unclear: bool = False
    """Whether the first row may be a header all the same."""


def dialect_of(path: Path, named: Collection[str] = (), columns: Sequence[Names] = ()) -> Dialect:
    """How a file is written: by its content, else its ending; `named` as in `of_records`.

    If the first line has the `columns` between some delimiter, it is that one, or one of those.
    """
    usual = USUAL.get(ending_of(path))
    sample = _sample(path)
    order = sorted(DELIMITERS, key=lambda mark: mark != usual)
    ways = [(mark, quotes) for mark in order for quotes in (mark != "\t", mark == "\t")]
    with_columns = [way for way in ways if columns and _has(_first(path, *way), columns)]
    ways = with_columns or ways
    scored = {way: _consistency(sample, *way) for way in ways}
    best = max(ways, key=lambda way: scored[way])  # the first of equals
    if scored[best] <= 0 and not with_columns:
        best = (usual or "\t", usual == ",")
    delimiter, quotes = best
    records = [fields for fields in _records(path, delimiter, quotes=quotes) if fields != [""]]
    return of_records(path, records, delimiter, quotes=quotes, named=named)


def of_records(
    path: Path,
    records: list[list[str]],
    delimiter: str,
    *,
    quotes: bool,
    named: Collection[str] = (),
) -> Dialect:
    """How a file with these first records is written: whether the first has names.

    It has if one of the names that the user gives, `named`, stands there.
    """
    if not records:
        raise DataError(f"{path} has no rows.")
    said = {*header_names(records[0], named)} & {name for name in named if not name.isdecimal()}
    names = header_names(records[0], said) if said or has_header(records) else []
    unclear = not names and may_have_header(records)
    rows = records[1:] if names else records
    return Dialect(delimiter, quotes, bool(names), rows, names, unclear)


def encloses(path: Path, delimiter: str, quotes: bool | None) -> bool:  # noqa: FBT001 - a setting
    """Whether quotation marks enclose fields: as is said, else between tabs as the first rows say, and yes elsewhere."""
    if quotes is not None or delimiter != "\t":
        return is_quoted(delimiter, quotes)
    sample = _sample(path)
    with_quotes, without = (_consistency(sample, delimiter, way) for way in (True, False))
    return with_quotes > without


def refitted(path: Path, columns: Sequence[Names], table: TableSettings) -> dict[str, Any]:
    """The settings to read a file that has these columns, but is written in another way.

    Nothing where the given settings fit, or where none do: the reader then says what is wrong.
    """
    ending = ending_of(path)
    usual = table.delimiter or USUAL.get(ending)
    if usual is None or ending not in {*USUAL, ".txt"} or not path.is_file():
        return {}
    first = _first(path, usual, quotes=table.quotes)
    if not first:
        return {}
    if _has(first, columns) and not (usual == "," and _may_be_first(first, columns)):
        quotes = encloses(path, usual, table.quotes)
        return {"quotes": True} if quotes and not is_quoted(usual, table.quotes) else {}
    dialect = dialect_of(path, columns=columns)
    mark = dialect.delimiter
    if not _has(dialect.names or dialect.rows[0], columns):
        return {}
    if mark != usual:
        tell(
            f"{path} has {mark!r} between its columns, and is read that way; {usual!r} was expected."
        )
    return {"delimiter": mark, "quotes": dialect.quotes}


def _first(path: Path, delimiter: str, quotes: bool | None) -> list[str]:  # noqa: FBT001 - a setting
    """The cells of the first line; none where it cannot be read."""
    with suppress(DataError):  # a field that is never closed, for one
        _, first = next(records_of(path, delimiter, quotes=quotes), (0, []))
        return [] if isinstance(first, RowFault) else first
    return []


def _may_be_first(first: Sequence[str], columns: Sequence[Names]) -> bool:
    """Whether a line of CSV that is read as one column may be several, of which one is wanted."""
    return all(names == 1 for names in columns) and unused_delimiter(first) in (";", "|", "\t")


def _has(first: Sequence[str], columns: Sequence[Names]) -> bool:
    """Whether a first row has columns, each by number or by one of its names."""
    keys = [names if isinstance(names, tuple) else (names,) for names in columns]
    there = {*header_names(first, [key for names in keys for key in names])}
    numbers = range(1, len(first) + 1)
    return all(any(key in there or key in numbers for key in names) for names in keys)


Sample = tuple[list[str], bool]
"""The first lines of a file that are not blank, and whether more follow: `ROWS` may not be enough,
for a field may hold line breaks."""


def _sample(path: Path) -> Sample:
    lines = list[str]()
    size = 0
    for _, raw in lines_of(path):
        if size > _BYTES:
            return lines, True
        size += len(raw)
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line.strip():
            lines.append(line)
    return lines, False


def _records(path: Path, delimiter: str, *, quotes: bool) -> list[list[str]]:
    records: list[list[str]] = []
    bad: RowFault | None = None
    for _, fields in records_of(path, delimiter, quotes=quotes):
        if isinstance(fields, RowFault):
            bad = bad or fields
        else:
            records.append(fields)
        if len(records) > ROWS:
            break
    if bad is not None and len(records) < 2:
        raise DataError(f"{path}, line {bad.line}: {bad.sentence}")
    return records


def _consistency(sample: Sample, delimiter: str, quotes: bool) -> float:  # noqa: FBT001 - a pair as one value
    """How well columns fit a delimiter: the share of rows with the usual number of fields.

    Fields that begin with a space count against it, as commas in a sentence do, and so do broken
    quotation marks. Without any quotation marks, both ways are equal, and the first wins.
    """
    first = sample[0][:ROWS]
    rows = [line.split(delimiter) for line in first]
    broken = 0
    if quotes:
        rows, broken = _quoted(sample, delimiter)
        letters = delimiter == "\t" and (broken or not _needs_quotes(first))
        if letters or broken > _MOST_BROKEN * len(rows):
            return 0.0
    if not rows:
        return 0.0
    width, count = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))
    if width < 2:
        return 0.0
    inner = [field for row in rows for field in row[1:]]
    spaced = sum(field.startswith(" ") for field in inner) / len(inner)
    score = count / (len(rows) + broken) * (1 - 0.6 * spaced)
    if delimiter == "\t":
        return score + 0.05 * quotes  # lines between tabs come here quoted only if they need it
    return score if quotes else score - 0.2 * _share_enclosed(rows)


def _quoted(sample: Sample, delimiter: str) -> tuple[list[list[str]], int]:
    """The first `ROWS` records by the rules of CSV, and how many quotation marks break them.

    A sample may be cut inside a field, which speaks neither for a delimiter nor against it.
    """
    rows: list[list[str]] = []
    broken = 0
    lines, is_cut = sample
    numbered = ((at, f"{line}\n".encode()) for at, line in enumerate(lines, 1))
    try:
        for _, fields in csv_fields(numbered, delimiter, Path()):
            if isinstance(fields, RowFault):
                broken += 1
            else:
                rows.append(fields)
            if len(rows) == ROWS or broken > _MOST_BROKEN * ROWS:
                break
    except DataError:  # a field is never closed, and all lines behind it are lost
        broken += 0 if is_cut else len(lines)
    return rows, broken


def _needs_quotes(lines: Sequence[str]) -> bool:
    """Whether tab-separated lines are quoted: a field needs marks, or every field has them."""
    fields = [field for line in lines for field in line.split("\t")]
    marked = [field for field in fields if field.startswith('"')]
    doubled = any('""' in field[1:-1] for field in marked)
    opened = any(field.count('"') % 2 for field in marked)
    enclosed = all(field.endswith('"') and len(field) > 1 for field in fields)
    return bool(marked) and (doubled or opened or enclosed)


def _share_enclosed(rows: Sequence[Sequence[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(len(field) > 1 and field[0] == field[-1] == '"' for field in fields) / len(fields)
