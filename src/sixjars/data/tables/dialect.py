"""How a file of lines is written: its delimiter, whether quotation marks enclose fields, whether it has a header.

All of it is decided from the first rows, by rules: the same file always gives the same answer.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.delimited import DELIMITERS, header_names, is_quoted, records_of
from sixjars.data.tables.headers import has_header, may_have_header
from sixjars.data.tables.quoted import csv_fields
from sixjars.data.tables.rows import Fault, Key
from sixjars.data.text.files import ending_of, lines_of
from sixjars.errors import DataError
from sixjars.progress import tell
from sixjars.recipe.data import TableSettings

ROWS: Final = 1000
"""How many rows are looked at."""
_BYTES: Final = 1 << 20
_MOST_BROKEN: Final = 0.1
"""The share of rows that quotation marks may break where they enclose fields; in one of more they are letters."""
_USUAL: Final = {".csv": ",", ".tsv": "\t"}


@final
@dataclass(frozen=True)
class Dialect:
    """How a file is written."""

    delimiter: str
    quotes: bool
    header: bool
    rows: list[list[str]]
    """The first rows, without the header."""
    names: list[str]
    """Those of the header; nothing where there is none."""
    unclear: bool = False
    """Whether the first row may be a header all the same."""


def dialect_of(path: Path, named: Collection[str] = ()) -> Dialect:
    """How a file is written; its ending decides only where the content does not. `named` as in `of_records`."""
    usual = _USUAL.get(ending_of(path))
    sample = _sample(path)
    order = [usual, *(mark for mark in DELIMITERS if mark != usual)] if usual else list(DELIMITERS)
    ways = [
        (mark, quotes)
        for mark in order
        for quotes in ((False, True) if mark == "\t" else (True, False))
    ]
    scored = {way: _consistency(sample, *way) for way in ways}
    best = max(ways, key=lambda way: scored[way])  # the first of equals
    if scored[best] <= 0:
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

    It has where the user calls a column by what stands there: `named`.
    """
    if not records:
        raise DataError(f"{path} has no rows.")
    said = {*header_names(records[0], named)} & {name for name in named if not name.isdecimal()}
    names = header_names(records[0], said) if said or has_header(records) else []
    unclear = not names and may_have_header(records)
    return Dialect(
        delimiter, quotes, bool(names), records[1:] if names else records, names, unclear
    )


def encloses(path: Path, delimiter: str, quotes: bool | None) -> bool:  # noqa: FBT001 - a setting
    """Whether quotation marks enclose fields: as is said, else between tabs as the first rows say, and yes elsewhere."""
    if quotes is not None or delimiter != "\t":
        return is_quoted(delimiter, quotes)
    sample = _sample(path)
    with_quotes, without = (_consistency(sample, delimiter, way) for way in (True, False))
    return with_quotes > without


def refitted(path: Path, columns: Sequence[Key], table: TableSettings) -> dict[str, Any]:
    """The settings to read a file by that has these columns, but is not written as the training file is.

    Nothing where the settings of that one fit, or where none do: whoever reads it then says what is wrong.
    """
    ending = ending_of(path)
    usual = table.delimiter or _USUAL.get(ending)
    if usual is None or ending not in {*_USUAL, ".txt"} or not path.is_file():
        return {}
    _, first = next(records_of(path, usual, quotes=table.quotes), (0, []))
    if isinstance(first, Fault):
        return {}
    if _has(first, columns):
        quotes = encloses(path, usual, table.quotes)
        return {"quotes": True} if quotes and not is_quoted(usual, table.quotes) else {}
    found = dialect_of(path)
    if not _has(found.names or found.rows[0], columns):
        return {}
    tell(
        f"{path} has {found.delimiter!r} between its columns, and is read that way; {usual!r} was expected."
    )
    return {"delimiter": found.delimiter, "quotes": found.quotes}


def _has(first: Sequence[str], columns: Sequence[Key]) -> bool:
    """Whether a first row has columns, by number or by name."""
    names = header_names(first, columns)
    return all(key <= len(names) if isinstance(key, int) else key in names for key in columns)


@final
@dataclass(frozen=True)
class _Sample:
    """The beginning of a file."""

    lines: list[str]
    """Those that are not blank; as many as may hold `ROWS` records whose fields hold line breaks."""
    first: list[str]
    """Those of them that are among the first `ROWS` lines of the file."""
    cut: bool
    """Whether the file goes on behind them."""


def _sample(path: Path) -> _Sample:
    size, lines, first, cut = 0, [], 0, False
    for number, raw in lines_of(path):
        if cut := size > _BYTES:
            break
        size += len(raw)
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line.strip():
            lines.append(line)
            first += number <= ROWS
    return _Sample(lines, lines[:first], cut)


def _records(path: Path, delimiter: str, *, quotes: bool) -> list[list[str]]:
    found: list[list[str]] = []
    bad: Fault | None = None
    for _, fields in records_of(path, delimiter, quotes=quotes):
        if isinstance(fields, Fault):
            bad = bad or fields
        else:
            found.append(fields)
        if len(found) > ROWS:
            break
    if bad is not None and len(found) < 2:
        raise DataError(f"{path}, line {bad.line}: {bad.sentence}")
    return found


def _consistency(sample: _Sample, delimiter: str, quotes: bool) -> float:  # noqa: FBT001 - a pair as one value
    """How well columns fit a delimiter: the share of rows that have the usual number of fields, two or more.

    A field that begins with a space speaks against it, as commas in a sentence do. So does a broken quotation mark.
    Where there are no quotation marks at all, there is nothing to say for quotes, so the first way wins.
    """
    rows, broken = [line.split(delimiter) for line in sample.first], 0
    if quotes:
        rows, broken = _quoted(sample, delimiter)
        letters = delimiter == "\t" and (broken or not _needs_quotes(sample.first))
        if letters or broken > _MOST_BROKEN * len(rows):
            return 0.0
    if not rows:
        return 0.0
    width, count = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))
    if width < 2:
        return 0.0
    inner = [field for row in rows for field in row[1:]]
    spaced = sum(field.startswith(" ") for field in inner) / len(inner)
    enclosed = 0.0 if quotes or delimiter == "\t" else 0.2 * _share_enclosed(rows)
    bonus = 0.05 if quotes and delimiter == "\t" else 0.0
    return count / (len(rows) + broken) * (1 - 0.6 * spaced) - enclosed + bonus


def _quoted(sample: _Sample, delimiter: str) -> tuple[list[list[str]], int]:
    """The first `ROWS` records by the rules of CSV, and how many quotation marks break them.

    A sample may be cut inside a field, which speaks neither for a delimiter nor against it.
    """
    rows: list[list[str]] = []
    broken = 0
    numbered = ((at, f"{line}\n".encode()) for at, line in enumerate(sample.lines, 1))
    try:
        for _, fields in csv_fields(numbered, delimiter, Path()):
            if isinstance(fields, Fault):
                broken += 1
            else:
                rows.append(fields)
            if len(rows) == ROWS or broken > _MOST_BROKEN * ROWS:
                break
    except DataError:  # a field is never closed, and all lines behind it are lost
        broken += 0 if sample.cut else len(sample.lines)
    return rows, broken


def _needs_quotes(lines: Sequence[str]) -> bool:
    """Whether tab-separated lines are quoted: fields hold doubled marks or line breaks, or every field is enclosed."""
    fields = [field for line in lines for field in line.split("\t")]
    marked = [field for field in fields if field.startswith('"')]
    doubled = any('""' in field[1:-1] for field in marked)
    opened = any(field.count('"') % 2 for field in marked)
    return bool(marked) and (
        doubled or opened or all(field.endswith('"') and len(field) > 1 for field in fields)
    )


def _share_enclosed(rows: Sequence[Sequence[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(len(field) > 1 and field[0] == field[-1] == '"' for field in fields) / len(fields)
