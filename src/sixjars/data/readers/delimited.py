"""Lines that hold columns: tab-separated, comma-separated, or the whole line as one column.

In TSV a quotation mark is a letter like any other. CSV is what Python's `csv` reads: a field in quotes may hold commas,
line breaks and doubled quotes.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import numpy
import pyarrow

from sixjars.data.readers.lines import AT_ONCE, decoded_lines, lines_of
from sixjars.data.readers.rows import Block, Fault, Key
from sixjars.errors import DataError, unknown

TEXT: Final = "text"
"""What the one column of a plain text file is called."""
csv.field_size_limit(2**31 - 1)  # a document may be longer than the 131,072 letters that are allowed otherwise

Record = tuple[int, list[str] | Fault]
"""The number of its first line, and its fields."""


def read_text(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Each line is the one column."""
    for key in keys:
        if key not in (TEXT, 1):
            raise DataError(f"{path}: {unknown('column', key, [TEXT, '1'])}")
    for lines in lines_of(path):
        yield Block(dict.fromkeys(keys, lines.texts), lines.numbers, lines.faults)


def read_tsv(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Columns between tabs; no quoting."""
    return _read(path, keys, tabbed)


def read_csv(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Columns between commas, quoted where needed."""
    return _read(path, keys, quoted)


def tabbed(path: Path) -> Iterator[Record]:
    """The fields of every line, between tabs."""
    for number, line in decoded_lines(path):
        yield number, line.split("\t") if isinstance(line, str) else line


def quoted(path: Path) -> Iterator[Record]:
    """The fields of every record, as `csv` reads them; one that breaks its rules is a fault."""
    bad: list[Fault] = []
    lines = 0

    def fed() -> Iterator[str]:
        nonlocal lines
        for number, line in decoded_lines(path):
            lines = number
            if isinstance(line, Fault):
                bad.append(line)
            yield f"{line}\n" if isinstance(line, str) else "\n"

    records = csv.reader(fed(), strict=True)
    while True:
        first = lines + 1
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                told = "a quotation mark opens a field here and is never closed; close it, or double it."
                raise DataError(f"{path}, line {first}: {told}") from None
            yield first, Fault(first, f"is not CSV: {error}; double each quotation mark inside a quoted field.")
            continue
        yield first, bad.pop() if bad else fields or [""]
        bad.clear()


def _read(path: Path, keys: Sequence[Key], records: Callable[[Path], Iterator[Record]]) -> Iterator[Block]:
    rows = records(path)
    numbers: dict[Key, int] = {key: key for key in keys if isinstance(key, int)}
    if len(numbers) < len(keys):
        numbers = _header(path, next(rows)[1], keys)
    needed = max(numbers.values())
    while some := list(islice(rows, AT_ONCE)):
        good, faults = [], []
        for line, fields in some:
            if isinstance(fields, Fault):
                faults.append(fields)
            elif len(fields) < needed:
                faults.append(_short(line, fields, needed))
            else:
                good.append((line, fields))
        columns = {
            key: pyarrow.array([fields[number - 1] for _, fields in good], pyarrow.string())
            for key, number in numbers.items()
        }
        yield Block(columns, numpy.array([line for line, _ in good], dtype=numpy.int64), faults)


def _header(path: Path, names: list[str] | Fault, keys: Sequence[Key]) -> dict[Key, int]:
    """The number of each column, from the names in the first line."""
    if isinstance(names, Fault):
        raise DataError(f"{path}, line {names.line}: {names.sentence}")
    for key in keys:
        if names.count(str(key)) > 1:
            raise DataError(f"{path}: column {key!r} is in the header twice; rename one or give its number.")
        if key not in names:
            raise DataError(f"{path}: {unknown('column', key, names)}")
    return {key: names.index(str(key)) + 1 for key in keys}


def _short(line: int, fields: list[str], needed: int) -> Fault:
    if fields == [""]:
        return Fault(line, "the line is empty.")
    count = len(fields)
    return Fault(line, f"has {count} column{'s' if count > 1 else ''}, but column {needed} is asked for.")
