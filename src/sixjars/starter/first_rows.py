"""The first rows of a user's file, whatever its format, and what each of its columns holds."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.delimited import TEXT
from sixjars.data.tables.dialect import ROWS, Dialect, dialect_of, of_records
from sixjars.data.tables.excel import sheet_names, sheet_rows
from sixjars.data.tables.headers import is_date, is_file, is_number
from sixjars.data.tables.records import json_records, opened_parquet
from sixjars.data.tables.rows import Fault
from sixjars.progress import tell
from sixjars.recipe.data import Column
from sixjars_runtime.errors import DataError, shown

_IDS: Final = frozenset("id ids idx index uid uuid guid key no nr number row rowid".split())
_CODE: Final = re.compile(r"[A-Za-z]{0,6}[-_#]?\d+[A-Za-z]?|[0-9a-f]{8,}|[0-9a-fA-F-]{32,36}")
_ADDRESS: Final = re.compile(r"https?://\S+|\S+@\S+\.\w+")
MOST_CHARACTERS: Final = 30
MUCH_SMALLER: Final = 10
"""A sheet with so many times fewer rows than another is not the data."""
_MISSING: Final[tuple[object, ...]] = (None, "", [])
"""What stands where there is no value."""
FEW: Final = 3
"""A column whose values each come this often on average has few values."""


@final
@dataclass(frozen=True)
class Profile:
    """One column: what it is called, and what it holds."""

    number: int
    """From 1."""
    name: str | None
    """In the header, or as a key; nothing where the file has no names."""
    values: list[Any]
    """Of the first rows, those that are there."""
    holds: str = ""
    """What makes it no text to learn from: `ids`, `dates`, `numbers`, ...; nothing for any other column."""

    @property
    def called(self) -> str:
        """As a message names it."""
        example = f" ({shown(str(self.values[0])[:MOST_CHARACTERS])})" if self.values else ""
        return f"column {self.number}{example}" if self.name is None else repr(self.name)

    @property
    def option(self) -> str:
        """As the command line names it."""
        return str(self.number) if not self.name else self.name

    @property
    def distinct(self) -> int:
        """Different values."""
        return len({str(value) for value in self.values})

    @property
    def words(self) -> float:
        """Words of a value, on average; a list has those of its members."""
        texts = [
            " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for value in self.values
        ]
        return sum(len(text.split()) for text in texts) / max(1, len(texts))

    @property
    def has_few(self) -> bool:
        """Whether few short values come again and again, as labels do."""
        return self.distinct * FEW <= len(self.values) and self.words <= FEW


@final
@dataclass(frozen=True)
class Sample:
    """The first rows of a file."""

    columns: list[Profile]
    dialect: Dialect | None = None
    """How lines become columns, where they are lines."""
    first: Mapping[str, Any] = field(default_factory=dict)
    """The names of the first row, each with its first value that is there."""
    sheet: str | None = None
    """Of a workbook with several."""

    def keys(self, chosen: Iterable[Profile]) -> tuple[list[Column], bool]:
        """Columns as a recipe names them, and whether it must say that there is a header: names come but once."""
        named, names = list(chosen), [column.name for column in self.columns]
        if all(one.name is not None and names.count(one.name) == 1 for one in named):
            unnamed = self.dialect is not None and any(not one.name for one in named)
            if not unnamed:
                return [str(one.name) for one in named], False
        return [one.number for one in named], self.dialect is not None and self.dialect.header


def sample_of(data: Path, ending: str, named: Collection[str] = ()) -> Sample:
    """The first rows of a file; a first line with a column that the user has `named` is a header."""
    if ending == ".parquet":
        return _of_records(data, _parquet_rows(data))
    if ending in (".json", ".jsonl"):
        return _of_records(data, _json_rows(data))
    if ending == ".xlsx":
        return _of_workbook(data, named)
    found = dialect_of(data, named)
    if ending == ".txt" and max(map(len, found.rows)) == 1:
        found = Dialect(
            "",
            quotes=False,
            header=False,
            rows=[*([found.names] if found.names else []), *found.rows],
            names=[],
        )
        return _of_lines(data, found, [TEXT])
    return _of_lines(data, found)


def _of_workbook(data: Path, named: Collection[str]) -> Sample:
    """The first sheet that is not much smaller than the largest: the first of all may say what the others hold."""
    names, sheets = sheet_names(data), dict[str, list[list[str]]]()
    for name in names:
        with suppress(DataError):  # it is empty
            rows = islice(sheet_rows(data, name), ROWS + 1)
            sheets[name] = [fields for _, fields in rows if not isinstance(fields, Fault)]
    if not sheets:
        next(sheet_rows(data))  # which says so
    most = max(map(len, sheets.values()))
    large = [name for name, cells in sheets.items() if len(cells) * MUCH_SMALLER >= most]
    chosen = large[0]
    others = ", ".join(shown(name) for name in large[1:])
    if others or chosen != names[0]:
        also = f"; data.sheet chooses another: {others}" if others else ""
        tell(f"{data}: the sheet {shown(chosen)} is read{also}.")
    made = _of_lines(data, of_records(data, sheets[chosen], "", quotes=False, named=named))
    return made if chosen == names[0] else replace(made, sheet=chosen)


def _of_lines(data: Path, found: Dialect, called: list[str | None] | None = None) -> Sample:
    """Columns between delimiters; those without names may be `called` something."""
    usual = (
        max(Counter(map(len, found.rows)).items(), key=lambda item: (item[1], item[0]))[0]
        if found.rows
        else 0
    )
    width = max(len(found.names), usual)
    names: list[str | None] = (
        [*found.names, *[None] * width][:width] if found.header else [None] * width
    )
    names = called or names
    if not found.rows:
        raise DataError(f"{data} has no rows below its header.")
    cells = [
        [row[at] for row in found.rows if at < len(row) and row[at].strip()] for at in range(width)
    ]
    columns = [
        Profile(at, name, values)
        for at, (name, values) in enumerate(zip(names, cells, strict=True), 1)
    ]
    return Sample(_described(columns, len(found.rows)), found)


def _of_records(data: Path, rows: Sequence[Mapping[str, Any]]) -> Sample:
    if not rows:
        raise DataError(f"{data} has no rows.")
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    values = {name: [row[name] for row in flat if row.get(name) not in _MISSING] for name in names}
    columns = [Profile(at, name, values[name]) for at, name in enumerate(names, 1)]
    first = {
        name: next((row[name] for row in rows if row.get(name) not in _MISSING), None)
        for name in rows[0]
    }
    return Sample(_described(columns, len(rows)), first=first)


def _flat(row: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Values by name; those of an object inside by `a.b`."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= (
            _flat(value, f"{above}{name}.")
            if isinstance(value, Mapping) and value
            else {f"{above}{name}": value}
        )
    return found


def _json_rows(data: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line, record in islice(json_records(data), ROWS):
        if isinstance(record, Fault):
            if not found:
                raise DataError(f"{data}, line {line} cannot be read: {record.sentence}")
            continue
        found.append(json.loads(json.dumps(record)))
    return found


def _parquet_rows(data: Path) -> list[dict[str, Any]]:
    """Those rows alone: the file may be large."""
    with opened_parquet(data) as file:
        batch: Any = next(file.iter_batches(batch_size=ROWS), None)
        found = list(batch.slice(0, 1).to_pylist()) if batch else []
        for at in range(1, len(batch) if batch else 0):
            with suppress(UnicodeDecodeError):  # a bad row, which readers tell of
                found += batch.slice(at, 1).to_pylist()
        return found


def _described(columns: Sequence[Profile], rows: int) -> list[Profile]:
    """Columns with what they hold; where every column is constant (a sample of one row), none is."""
    varied = any(column.distinct > 1 for column in columns)
    return [
        Profile(one.number, one.name, one.values, _held(one, rows, varied=varied))
        for one in columns
    ]


def _held(column: Profile, rows: int, *, varied: bool) -> str:
    if not column.values:
        return "empty"
    if any(isinstance(value, list | dict) for value in column.values):
        return ""
    texts = [str(value).strip() for value in column.values]
    if column.distinct == 1 and varied and rows > 2:
        return f"always {shown(texts[0][:MOST_CHARACTERS])}"
    if _is_id(column, texts):
        return "ids"
    if _is_counted(texts):
        return "row numbers"
    for test, name in ((is_number, "numbers"), (is_date, "dates"), (is_file, "file names")):
        if sum(map(test, texts)) >= 0.9 * len(texts):
            return name
    return (
        "addresses"
        if sum(_ADDRESS.fullmatch(text) is not None for text in texts) >= 0.9 * len(texts)
        else ""
    )


def _is_counted(texts: Sequence[str]) -> bool:
    """Whether whole numbers go up by one."""
    return (
        len(texts) > 2
        and all(map(str.isdecimal, texts))
        and all(int(b) == int(a) + 1 for a, b in pairwise(texts))
    )


def _is_id(column: Profile, texts: Sequence[str]) -> bool:
    """Whether values are there to tell rows apart: by the name of the column, or as codes that never come again."""
    words = {*re.split(r"[\W_]+", (column.name or "").lower())}
    codes = sum(_CODE.fullmatch(text) is not None for text in texts) >= 0.9 * len(texts)
    unique, single = column.distinct == len(texts), all(len(text.split()) == 1 for text in texts)
    if words & _IDS:
        return single and (codes or unique)
    return unique and codes and len(texts) > 2 and not all(map(str.isdecimal, texts))
