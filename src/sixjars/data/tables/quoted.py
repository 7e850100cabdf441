"""CSV as Python's `csv` reads it, with exact line numbers and a fault for each bad record.

A field in quotes may hold commas, line breaks and doubled quotes; in a field that does not begin
with a quotation mark, one is a letter.
"""

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sixjars.data.tables.rows import Fields, RowFault, decoded, escaped
from sixjars_runtime.errors import DataError

_UNCLOSED = "a quotation mark opens a field here and is never closed; close it, or double it."
_ENDED = "unexpected end of data"  # the error of `csv` if a field is open at the end
_ENOUGH = 20  # records with the same number of columns that tell what a record looks like
_RETURN = "\ud800"  # stands for a carriage return, a line break for `csv`; no UTF-8 text has it
csv.field_size_limit(2**31 - 1)  # a document may be longer than the usual 131,072 letters


def csv_fields(source: Iterable[tuple[int, bytes]], delimiter: str, path: Path) -> Iterator[Fields]:
    """The fields of every record of numbered lines; one that breaks the rules of `csv` is a fault."""
    unread = iter(source)
    again = deque[tuple[int, bytes]]()  # lines of a broken record that are read once more
    lines: list[tuple[int, bytes]] = []  # of the record that is being read
    bad: list[RowFault] = []
    number = width = like = 0  # the columns of the first record, and how many have as many

    def fed() -> Iterator[str]:
        nonlocal number
        while line := again.popleft() if again else next(unread, None):
            number, raw = line
            text = _csv_line(raw)
            if not text.isascii() and isinstance(fault := decoded(number, raw), RowFault):
                bad.append(fault)
            lines.append(line)
            yield text

    records = csv.reader(fed(), delimiter=delimiter, strict=True)
    while True:
        first = number + 1
        lines.clear()
        bad.clear()
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            fault, used = _broken(path, lines, delimiter, str(error), (width, like))
            again.extendleft(reversed(lines[used:]))
            number = first + used - 1
            records = csv.reader(fed(), delimiter=delimiter, strict=True)
            yield first, bad[0] if bad and bad[0].line <= number else fault
            continue
        width = width or len(fields)
        like += len(fields) == width
        cells = [field.replace(_RETURN, "\r") for field in fields] or [""]
        yield first, replace(bad[0], cells=cells) if bad else cells


def _csv_line(raw: bytes) -> str:
    """A line for `csv`; where it is no UTF-8, its quotation marks still open and close fields."""
    end = "\r\n" if raw.endswith(b"\r\n") else "\n"
    return escaped(raw).replace("\r", _RETURN) + end


def _broken(
    path: Path,
    lines: Sequence[tuple[int, bytes]],
    delimiter: str,
    error: str,
    known: tuple[int, int],
) -> tuple[RowFault, int]:
    """The fault of a record that breaks the rules, and how many of its lines are lost.

    Where a field is never closed, but the lines behind it are like the `known` records (columns of
    each, and their number), only the lines up to it are lost. It is an error if all lines are.
    """
    texts = [_csv_line(raw) for _, raw in lines]
    ended = _ENDED in error
    inside = texts if ended else texts[:-1]  # the error is in the last
    *_, rest = next(csv.reader(inside, delimiter=delimiter), [""])
    used = len(inside) + 1 - rest.count("\n")
    fault = RowFault(lines[0][0] + used - 1, _UNCLOSED)
    if inside and _go_on(texts[used:], delimiter, *known):
        return fault, used
    if ended:
        raise DataError(f"{path}, line {fault.line}: {fault.sentence}")
    message = f"is not CSV: {error}; double each quotation mark inside a quoted field."
    return RowFault(lines[0][0], message), len(lines)


def _go_on(lines: Sequence[str], delimiter: str, width: int, like: int) -> bool:
    """Whether nearly all lines are records with so many columns; the last may be unfinished."""
    records = csv.reader(lines, delimiter=delimiter, strict=True)
    fit = count = 0
    while True:
        try:
            fit += len(next(records)) == width
        except StopIteration:
            return width > 1 and fit >= 0.9 * count and like + fit >= _ENOUGH
        except csv.Error as error:
            fit += _ENDED in str(error)
        count += 1
