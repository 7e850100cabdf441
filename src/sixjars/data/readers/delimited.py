"""Lines that hold columns: tab-separated, comma-separated, or the whole line as one column.

In TSV a quotation mark is a letter like any other. CSV is quoted as RFC 4180 says: a field in quotes may hold
commas, line breaks and doubled quotes. In a field that does not begin with a quotation mark, one is a letter.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow
import pyarrow.compute

from sixjars.data.readers.lines import Lines, lines_of
from sixjars.data.readers.rows import Block, Fault, Key
from sixjars.errors import DataError, unknown

TEXT: Final = "text"
"""What the one column of a plain text file is called."""
_FIELD = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"|(?!")([^,]*))(?:,|\Z)')


def read_text(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Each line is the one column."""
    for key in keys:
        if key not in (TEXT, 1):
            raise DataError(f"{path}: {unknown('column', key, [TEXT, '1'])}")
    for lines in lines_of(path):
        yield Block(dict.fromkeys(keys, lines.texts), lines.numbers, lines.faults)


def read_tsv(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Columns between tabs; no quoting."""
    return _read(path, keys, delimiter="\t")


def read_csv(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Columns between commas, quoted where needed."""
    return _read(path, keys, delimiter=",")


def _read(path: Path, keys: Sequence[Key], *, delimiter: str) -> Iterator[Block]:
    numbers: dict[Key, int] = {key: key for key in keys if isinstance(key, int)}
    headless = len(numbers) == len(keys)
    for lines in lines_of(path, quotes=delimiter == ","):
        rest = lines
        if not headless:
            numbers, rest = _header(path, lines, keys, delimiter), _without_first(lines)
            headless = True
        yield _block(rest, numbers, delimiter)


def _header(path: Path, lines: Lines, keys: Sequence[Key], delimiter: str) -> dict[Key, int]:
    """The number of each column, from the names in the first line."""
    if not len(lines.numbers) or lines.numbers[0] != 1:
        raise DataError(f"{path}, line {lines.faults[0].line}: {lines.faults[0].sentence}")
    line = lines.texts[0].as_py()
    try:
        names = _quoted(line) if delimiter == "," and '"' in line else line.split(delimiter)
    except ValueError as error:
        raise DataError(f"{path}, line 1: {error}") from error
    for key in keys:
        if names.count(str(key)) > 1:
            raise DataError(f"{path}: column {key!r} is in the header twice; rename one or give its number.")
        if key not in names:
            raise DataError(f"{path}: {unknown('column', key, names)}")
    return {key: names.index(str(key)) + 1 for key in keys}


def _without_first(lines: Lines) -> Lines:
    return Lines(lines.texts[1:], lines.numbers[1:], lines.faults)


def _block(lines: Lines, numbers: dict[Key, int], delimiter: str) -> Block:
    texts, places, faults = lines.texts, lines.numbers, list(lines.faults)
    needed = max(numbers.values())
    rows, order = [], []
    if delimiter == ",":
        has_quotes = pyarrow.compute.match_substring(texts, '"').to_numpy(zero_copy_only=False)
        if has_quotes.any():
            quoted, kept = _quoted_rows(texts.filter(pyarrow.array(has_quotes)), places[has_quotes], faults)
            rows.append(quoted)
            order.append(kept)
            texts, places = texts.filter(pyarrow.array(~has_quotes)), places[~has_quotes]
    rows.append(pyarrow.compute.split_pattern(texts, delimiter, max_splits=needed))
    order.append(places)
    parts, places = pyarrow.concat_arrays(rows), numpy.concatenate(order)
    if len(rows) > 1:
        ranks = numpy.argsort(places, kind="stable")
        parts, places = parts.take(pyarrow.array(ranks)), places[ranks]
    counts = pyarrow.compute.list_value_length(parts).to_numpy()
    if (counts < needed).any():
        for row in numpy.flatnonzero(counts < needed):
            faults.append(_short(int(places[row]), int(counts[row]), parts[int(row)], needed))
        parts, places = parts.filter(pyarrow.array(counts >= needed)), places[counts >= needed]
    columns = {key: pyarrow.compute.list_element(parts, number - 1) for key, number in numbers.items()}
    return Block(columns, places, faults)


def _short(line: int, count: int, parts: Any, needed: int) -> Fault:
    if count == 1 and not parts[0].as_py():
        return Fault(line, "the line is empty.")
    return Fault(line, f"has {count} column{'s' if count > 1 else ''}, but column {needed} is asked for.")


def _quoted_rows(texts: Any, places: Any, faults: list[Fault]) -> tuple[Any, Any]:
    """The fields of records with quotes; those that break the rules go to the faults."""
    rows, kept = [], []
    for text, line in zip(texts.to_pylist(), places.tolist(), strict=True):
        try:
            rows.append(_quoted(text))
            kept.append(line)
        except ValueError as error:
            faults.append(Fault(line, str(error)))
    return pyarrow.array(rows, pyarrow.list_(pyarrow.string())), numpy.array(kept, dtype=numpy.int64)


def _quoted(text: str) -> list[str]:
    r"""The fields of one CSV record.

    >>> _quoted('a,"b, ""c"" d",5" pipe,')
    ['a', 'b, "c" d', '5" pipe', '']
    """
    fields, at = [], 0
    while True:
        found = _FIELD.match(text, at)
        if found is None:
            raise ValueError(
                "text follows the quotation mark that closes a field; double each mark inside a quoted field."
            )
        inside, plain = found.groups()
        fields.append(plain if inside is None else inside.replace('""', '"'))
        at = found.end()
        if at == len(text) and not found.group().endswith(","):
            return fields
