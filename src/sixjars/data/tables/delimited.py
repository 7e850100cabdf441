"""Lines with columns between delimiters, lines as one column, or a file for each column.

Without quotes, as in TSV, a quotation mark is a letter like any other.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.compute

from sixjars.data.flat import spread
from sixjars.data.tables.quoted import csv_records
from sixjars.data.tables.rows import (
    Fault,
    Fields,
    Key,
    Piece,
    Record,
    Source,
    Wanted,
    decoded,
    piece_of,
)
from sixjars.data.text.files import blocks_of, lines_of
from sixjars_runtime.errors import DataError, shown, unknown

DELIMITERS: Final = ("\t", ";", "|", ",")
"""Marks between columns, the least usual in texts first."""
TEXT: Final = "text"  # the name of the one column of a plain text file


def decoded_lines(path: Path) -> Iterator[tuple[int, str | Fault]]:
    """Every line with its number, from 1; a fault in place of one that is no UTF-8."""
    for number, raw in lines_of(path):
        yield number, decoded(number, raw)


def read_text(path: Path, wanted: Wanted) -> Source:
    """Read lines as the one column, unless there is a delimiter."""
    if wanted.table.delimiter is not None:
        return read_delimited(path, wanted, wanted.table.delimiter)
    for key in wanted.keys:
        if key not in (TEXT, 1):
            raise DataError(f"{path}: {unknown('column', key, [TEXT, '1'])}")
    return read_parallel(dict.fromkeys(wanted.keys, path), wanted)


def read_parallel(paths: Mapping[Key, Path], wanted: Wanted) -> Iterator[Piece]:
    """Read a file for each column; line i of each is record i."""
    files = [spread(lambda block: lines_in(*block), blocks_of(path)) for path in paths.values()]
    waiting = [next(file, ()) for file in files]
    number = 1
    while count := min(map(len, waiting)):
        block = {key: lines[:count] for key, lines in zip(paths, waiting, strict=True)}
        if any(isinstance(lines, list) for lines in block.values()):
            rows = zip(*(map(_plain, lines) for lines in block.values()), strict=True)
            numbered = enumerate(rows, number)
            records = [(line, _side_by_side(line, row, paths)) for line, row in numbered]
            yield piece_of(records, wanted)
        else:
            yield Piece(block, np.arange(number, number + count))
        number += count
        for at, (lines, file) in enumerate(zip(waiting, files, strict=True)):
            waiting[at] = lines[count:] if len(lines) > count else next(file, ())
    left = [_counted(chain([lines], file)) for lines, file in zip(waiting, files, strict=True)]
    if any(has_text for _, has_text in left):
        totals = zip(paths.values(), left, strict=True)
        counts = ", ".join(f"{path} has {number - 1 + count}" for path, (count, _) in totals)
        raise DataError(f"Parallel files must have equally many lines, but {counts}.")


def _counted(blocks: Iterable[Sequence[Any]]) -> tuple[int, bool]:
    """How many lines there are, and whether any has text or cannot be read."""
    count, has_text = 0, False
    for lines in blocks:
        count += len(lines)
        plain = map(_plain, lines)
        has_text = has_text or any(isinstance(line, Fault) or line.strip() for line in plain)
    return count, has_text


def _plain(line: Any) -> str | Fault:
    """A line as text, which Arrow may hold."""
    text: str | Fault = line if isinstance(line, str | Fault) else line.as_py()
    return text


def _side_by_side(
    number: int, lines: Sequence[str | Fault], paths: Mapping[Key, Path]
) -> dict[Key, str] | Fault:
    """The lines of several files as one record, or the first fault, with its file."""
    record: dict[Key, str] = {}
    for (key, path), line in zip(paths.items(), lines, strict=True):
        if isinstance(line, Fault):
            return Fault(number, line.sentence, str(path))
        record[key] = line
    return record


def lines_in(first: int, block: bytes) -> Any:
    """The lines of a block: a `pyarrow` array, or a list with a fault for each that is no UTF-8."""
    text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    text = text[:-1] if text.endswith(b"\n") else text.removesuffix(b"\r")
    try:
        content = pyarrow.array([text], pyarrow.binary()).cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return [decoded(number, raw) for number, raw in enumerate(io.BytesIO(block), first)]
    return pyarrow.compute.split_pattern(content, "\n").flatten()


def read_tsv(path: Path, wanted: Wanted) -> Source:
    """Read columns between tabs, without quotes."""
    return read_delimited(path, wanted, wanted.table.delimiter or "\t")


def read_csv(path: Path, wanted: Wanted) -> Source:
    """Read columns between commas, quoted where needed."""
    return read_delimited(path, wanted, wanted.table.delimiter or ",")


def read_delimited(path: Path, wanted: Wanted, delimiter: str) -> Source:
    """Read columns between delimiters; without quotes many lines at once."""
    if is_quoted(delimiter, wanted.table.quotes):
        return read_fields(path, wanted, csv_records(path, delimiter))
    return _unquoted(path, wanted, delimiter)


def _unquoted(path: Path, wanted: Wanted, delimiter: str) -> Iterator[Piece]:
    blocks = blocks_of(path)
    records = _split(*next(blocks), delimiter)
    numbers = _numbers(path, wanted, records)
    yield piece_of(list(_picked(records, numbers, empty=wanted.empty)), wanted)
    yield from spread(lambda block: _piece(*block, delimiter, numbers, wanted), blocks)


def _piece(
    first: int, block: bytes, delimiter: str, numbers: Mapping[Key, int], wanted: Wanted
) -> Piece:
    """The columns of a block, in one step where every line has enough of them."""
    lines = lines_in(first, block)
    if not isinstance(lines, list):
        compute = pyarrow.compute
        split = compute.split_pattern(lines, delimiter)
        fewest = compute.min(compute.list_value_length(split)).as_py()
        if fewest >= max(numbers.values()):
            places = numbers.items()
            columns = {key: compute.list_element(split, number - 1) for key, number in places}
            return Piece(columns, np.arange(first, first + len(lines)))
    records = _split(first, block, delimiter)
    return piece_of(list(_picked(records, numbers, empty=wanted.empty)), wanted)


def is_quoted(delimiter: str, quotes: bool | None) -> bool:  # noqa: FBT001 - a setting
    """Whether quotation marks enclose fields; unless told, where the delimiter is no tab."""
    return delimiter != "\t" if quotes is None else quotes


def records_of(path: Path, delimiter: str, *, quotes: bool | None = None) -> Iterator[Fields]:
    """The fields of every record of a file."""
    if is_quoted(delimiter, quotes):
        return csv_records(path, delimiter)
    return chain.from_iterable(_split(*block, delimiter) for block in blocks_of(path))


def _split(first: int, block: bytes, delimiter: str) -> Iterator[Fields]:
    """The fields of every line of a block."""
    for at, raw in enumerate(io.BytesIO(block), first):
        line = decoded(at, raw)
        yield at, line if isinstance(line, Fault) else line.split(delimiter)


def read_fields(path: Path, wanted: Wanted, records: Iterator[Fields]) -> Iterator[Record]:
    """The wanted columns of each record."""
    yield from _picked(records, _numbers(path, wanted, records), empty=wanted.empty)


def _numbers(path: Path, wanted: Wanted, records: Iterator[Fields]) -> dict[Key, int]:
    """The number of each wanted column; by name, the first record is the header."""
    keys = wanted.keys
    numbers: dict[Key, int] = {key: key for key in keys if isinstance(key, int)}
    if len(numbers) < len(keys):
        if wanted.table.header is False:
            raise DataError(
                f"{path} has no header, as the recipe says; give columns by number, not "
                f"{keys[0]!r}."
            )
        return _header(path, *next(records), keys)
    if wanted.table.header:
        next(records)
    return numbers


def _picked(
    records: Iterable[Fields], numbers: Mapping[Key, int], *, empty: bool
) -> Iterator[Record]:
    """The columns with these numbers of each record; texts may be empty with `empty`."""
    needed = max(numbers.values())
    for line, fields in records:
        if isinstance(fields, Fault):
            yield line, fields
        elif len(fields) >= needed:
            yield line, {key: fields[number - 1] for key, number in numbers.items()}
        elif empty and not any(map(str.strip, fields)):
            yield line, dict.fromkeys(numbers, "")
        else:
            count = f"{len(fields)} column{'s' if len(fields) > 1 else ''}"
            short = f"has {count}, but column {needed} is asked for.{other_delimiter(fields)}"
            yield line, Fault(line, "the line is empty." if fields == [""] else short)


def _header(path: Path, line: int, names: list[str] | Fault, keys: Sequence[Key]) -> dict[Key, int]:
    """The number of each column, from the names in the first line."""
    if isinstance(names, Fault):
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


def header_names(cells: Sequence[str], wanted: Iterable[Key] = ()) -> list[str]:
    """The names in a header, without blanks around them unless two differ in those.

    >>> header_names([" Subject ", "Body"]), header_names([" a", "a"])
    (['Subject', 'Body'], [' a', 'a'])
    >>> header_names([" a", "b"], wanted=[" a"])
    [' a', 'b']
    """
    names = [cell.strip() for cell in cells]
    exact = any(key in cells and key not in names for key in wanted)
    return list(cells) if exact or len({*names}) < len({*cells}) else names


def other_delimiter(fields: Sequence[str]) -> str:
    r"""A question about the delimiter where a line is one column, but has another mark.

    >>> other_delimiter(["en;de"]), other_delimiter(["en", "de"])
    (" Is the delimiter ';'? Then write `data.delimiter: ';'`.", '')
    """
    mark = unused_delimiter(fields)
    written = '"\\t"' if mark == "\t" else repr(mark)
    return f" Is the delimiter {written}? Then write `data.delimiter: {written}`." if mark else ""


def unused_delimiter(fields: Sequence[str]) -> str:
    """The mark that may stand between the columns of a line read as one, or nothing."""
    return next((mark for mark in DELIMITERS if len(fields) == 1 and mark in fields[0]), "")
