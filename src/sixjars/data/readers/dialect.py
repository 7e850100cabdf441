"""How a file of lines is written: its delimiter, whether quotation marks enclose fields, whether it has a header.

All of it is decided from the first rows, by rules: the same file always gives the same answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.readers.delimited import DELIMITERS, header_names, records_of
from sixjars.data.readers.quoted import csv_fields
from sixjars.data.readers.rows import Fault, Key
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
_NUMBER: Final = re.compile(r"[-+]?(\d[\d,]*)?[.,]?\d+([eE][-+]?\d+)?%?")
_DATE: Final = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2} \w{3,9}\.? \d{4}|\w{3,9}\.? \d{1,2}, \d{4})"
    r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?(Z|[-+]\d{2}:?\d{2})?)?"
)
_FILE: Final = re.compile(r"\S[^\n]{0,250}\.[A-Za-z][A-Za-z0-9]{1,4}")
_NAME: Final = re.compile(r"[^\W\d][\w .:#()/-]{0,39}")
KNOWN: Final = frozenset(
    """
    id idx index no nr number key uid uuid row text texts sentence sentences document doc body content message review
    comment tweet post description abstract article story news title headline head subject summary highlights tldr label
    labels class category categories sentiment topic topics tag tags rating stars score polarity emotion intent target
    source src tgt trg input output prompt response reply utterance question answer context history turns dialog
    dialogue
    premise hypothesis image images file filename file_name path picture photo video clip caption captions date time
    timestamp year author user name language lang split set en de fr es it pt nl ru zh ja ko hi ar tr pl cs sv fi
    english
    german french spanish italian portuguese dutch russian chinese japanese korean hindi arabic turkish polish deutsch
    points order word words transliteration translation latin devanagari native url link from to
    """.split()
)
"""What people call columns."""


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


def is_number(text: str) -> bool:
    """Whether a text is a number, as people write them."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time."""
    return _DATE.fullmatch(text.strip()) is not None


def is_file(text: str) -> bool:
    """Whether a text may be the name of a file: it has an ending, and no more words than such names have."""
    return _FILE.fullmatch(text.strip()) is not None and len(text.split()) <= 3


def dialect_of(path: Path) -> Dialect:
    """How a file is written; its ending decides only where the content does not."""
    usual = _USUAL.get(ending_of(path))
    lines = _first_lines(path)
    order = [usual, *(mark for mark in DELIMITERS if mark != usual)] if usual else list(DELIMITERS)
    ways = [(mark, quotes) for mark in order for quotes in ((False, True) if mark == "\t" else (True, False))]
    scored = {way: _consistency(lines, *way) for way in ways}
    best = max(ways, key=lambda way: scored[way])  # the first of equals
    if scored[best] <= 0:
        best = (usual or "\t", usual == ",")
    delimiter, quotes = best
    records = [fields for fields in _records(path, delimiter, quotes=quotes) if fields != [""]]
    return of_records(path, records, delimiter, quotes=quotes)


def of_records(path: Path, records: list[list[str]], delimiter: str, *, quotes: bool) -> Dialect:
    """How a file with these first records is written: whether the first has names."""
    if not records:
        raise DataError(f"{path} has no rows.")
    names = header_names(records[0]) if has_header(records) else []
    return Dialect(delimiter, quotes, bool(names), records[1:] if names else records, names)


def refitted(path: Path, columns: Sequence[Key], table: TableSettings) -> dict[str, Any]:
    """The settings to read a file by that has these columns, but not between the delimiters of another file.

    Nothing where the settings of that one fit, or where none do: whoever reads it then says what is wrong.
    """
    ending = ending_of(path)
    usual = table.delimiter or _USUAL.get(ending)
    if usual is None or ending not in {*_USUAL, ".txt"} or not path.is_file():
        return {}
    _, first = next(records_of(path, usual, quotes=table.quotes), (0, []))
    if isinstance(first, Fault) or _has(first, columns):
        return {}
    found = dialect_of(path)
    if not _has(found.names or found.rows[0], columns):
        return {}
    tell(f"{path} has {found.delimiter!r} between its columns, and is read so; expected was {usual!r}.")
    return {"delimiter": found.delimiter, "quotes": found.quotes}


def _has(first: Sequence[str], columns: Sequence[Key]) -> bool:
    """Whether a first row has columns, by number or by name."""
    names = header_names(first, columns)
    return all(key <= len(names) if isinstance(key, int) else key in names for key in columns)


def _first_lines(path: Path) -> list[str]:
    size, found = 0, []
    for _, line in islice(lines_of(path), ROWS):
        found.append(line.decode(errors="replace").rstrip("\r\n"))
        size += len(line)
        if size > _BYTES:
            break
    return found


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


def _consistency(lines: Sequence[str], delimiter: str, quotes: bool) -> float:  # noqa: FBT001 - a pair as one value
    """How well columns fit a delimiter: the share of rows that have the usual number of fields, two or more.

    A field that begins with a space speaks against it, as commas in a sentence do. So does a broken quotation mark.
    Where there are no quotation marks at all, there is nothing to say for quotes, so the first way wins.
    """
    filled = [line for line in lines if line.strip()]
    rows = [line.split(delimiter) for line in filled]
    broken = 0
    if quotes:
        rows, broken = _quoted(filled, delimiter)
        if broken > _MOST_BROKEN * len(rows) or (delimiter == "\t" and (broken or not _needs_quotes(filled))):
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


def _quoted(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Rows by the rules of CSV, and how many quotation marks break them. The last row may be cut by the sample."""
    rows: list[list[str]] = []
    broken = 0
    try:
        for _, fields in csv_fields(
            ((at, f"{line}\n".encode()) for at, line in enumerate(lines, 1)), delimiter, Path()
        ):
            if isinstance(fields, Fault):
                broken += 1
            else:
                rows.append(fields)
    except DataError:  # a field is never closed, and all lines behind it are lost
        broken += len(lines) if len(lines) < ROWS else 0
    return rows, broken


def _needs_quotes(lines: Sequence[str]) -> bool:
    """Whether tab-separated lines are quoted: fields hold doubled marks or line breaks, or every field is enclosed."""
    fields = [field for line in lines for field in line.split("\t")]
    marked = [field for field in fields if field.startswith('"')]
    doubled = any('""' in field[1:-1] for field in marked)
    opened = any(field.count('"') % 2 for field in marked)
    return bool(marked) and (doubled or opened or all(field.endswith('"') and len(field) > 1 for field in fields))


def _share_enclosed(rows: Sequence[Sequence[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(len(field) > 1 and field[0] == field[-1] == '"' for field in fields) / len(fields)


def has_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record has names of columns, not values.

    >>> has_header([["text", "label"], ["it is good", "pos"]]), has_header([["it is bad", "neg"], ["good", "pos"]])
    (True, False)
    """
    first, below = [cell.strip() for cell in records[0]], records[1:]
    named = [cell for cell in first if cell]
    if not named or not all(_NAME.fullmatch(cell) and cell[-1] != "." and len(cell.split()) <= 4 for cell in named):
        return False
    if len({*first}) < len(first) and not all(cell.lower() in KNOWN for cell in named):
        return False
    known = [_known(cell) for cell in named]
    if all(known):  # the header may come again, where files were put together
        below = [row for row in below if [cell.strip() for cell in row] != first]
    if not below:
        return all(known)
    columns = [[row[at].strip() for row in below if at < len(row)] for at in range(len(first))]
    signs = [_signs(cell, column) for cell, column in zip(first, columns, strict=True)]
    if any(sign == "value" for sign in signs):
        return False
    longer = [sign for sign in signs if sign == "longer"]
    return (
        "type" in signs
        or all(known)
        or (bool(longer) and sum(known) * 2 >= len(known))
        or (
            bool(longer) and set(signs) <= {"longer", "labels"} and len(below) >= 5 and not any(" " in n for n in named)
        )
    )


def _known(cell: str) -> bool:
    words = re.split(r"[\W_]+", cell.lower())
    return cell.lower() in KNOWN or (len(words) <= 3 and any(word in KNOWN for word in words))


def _signs(cell: str, column: Iterable[str]) -> str:
    """What the values below say of a first cell.

    `value` (it is one of them), `type` (they are numbers, dates or files, and it is not), `labels` (they are few, and
    it is none of them), `longer` (they are all texts of more words), or nothing.
    """
    filled = [text for text in column if text]
    if not filled:
        return ""
    if cell in filled:
        return "value"
    for test in (is_number, is_date, is_file):
        if sum(map(test, filled)) >= 0.9 * len(filled) and not test(cell):
            return "type"
    if min(len(text.split()) for text in filled) > len(cell.split()):
        return "longer"
    if len(set(filled)) * 3 <= len(filled):
        return "labels"
    words = sorted(len(text.split()) for text in filled)
    return "longer" if _known(cell) and words[len(words) // 2] > len(cell.split()) else ""
