"""The first rows of a user's file, whatever its format, and the contents of its columns."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.delimited import TEXT
from sixjars.data.tables.dialect import ROWS, Dialect, dialect_of, of_records
from sixjars.data.tables.excel import sheet_names, sheet_rows
from sixjars.data.tables.headers import is_date, is_file, is_number
from sixjars.data.tables.json_objects import json_records
from sixjars.data.tables.parquet import opened_parquet
from sixjars.data.tables.rows import RowFault
from sixjars.progress import tell
from sixjars.recipe.data import Column
from sixjars_runtime.errors import DataError, shown

_IDS: Final = frozenset("id ids idx index uid uuid guid key no nr number row rowid".split())
_CODE: Final = re.compile(r"[A-Za-z]{0,6}[-_#]?\d+[A-Za-z]?|[0-9a-f]{8,}|[0-9a-fA-F-]{32,36}")
_ADDRESS: Final = re.compile(r"https?://\S+|\S+@\S+\.\w+")
_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    "numbers": is_number,
    "dates": is_date,
    "file names": is_file,
    "addresses": _ADDRESS.fullmatch,
}
MOST_CHARACTERS: Final = 30
MUCH_SMALLER: Final = 10
"""A sheet with so many times fewer rows than another is not the data."""
_MISSING: Final[tuple[object, ...]] = (None, "", [])
"""The values that mean that there is none."""
FEW: Final = 3
"""A column whose values each come this often on average has few values."""


@final
@dataclass(frozen=True)
class ColumnProfile:
    """One column: its name, and what it holds."""

    number: int
    """From 1."""
    name: str | None
    """The name in the header, or the key; None where the file has no names."""
    values: list[Any]
    """The values of the first rows, without missing ones."""
    holds: str = ""
    """Why it is no text to learn from: `ids`, `dates`, `numbers`, ...; else empty."""

    @property
    def called(self) -> str:
        """The column as a message names it."""
        example = f" ({shown(str(self.values[0])[:MOST_CHARACTERS])})" if self.values else ""
        return f"column {self.number}{example}" if self.name is None else repr(self.name)

    @property
    def option(self) -> str:
        """The column as the command line names it."""
        return str(self.number) if not self.name else self.name

    @property
    def distinct(self) -> int:
        """Different values."""
        return len({str(value) for value in self.values})

    @property
    def words(self) -> float:
        """Words of a value, on average; a list has those of its members."""
        lists = [value if isinstance(value, list) else [value] for value in self.values]
        texts = [" ".join(map(str, members)) for members in lists]
        return sum(len(text.split()) for text in texts) / max(1, len(texts))

    @property
    def has_few(self) -> bool:
        """Whether few short values come again and again, as labels do."""
        return self.distinct * FEW <= len(self.values) and self.words <= FEW


@final
@dataclass(frozen=True)
class TableSample:
    """The first rows of a file."""

    columns: list[ColumnProfile]
    dialect: Dialect | None = None
    """The format of lines with columns, where there are lines."""
    first: Mapping[str, Any] = field(default_factory=dict)
    """The names of the first row, each with its first value that is there."""
    sheet: str | None = None
    """The sheet of a workbook with several."""

    def keys(self, chosen: Iterable[ColumnProfile]) -> tuple[list[Column], bool]:
        """Columns as a recipe names them, by names that occur once, and whether it has a header."""
        columns, names = list(chosen), [column.name for column in self.columns]
        if all(each.name is not None and names.count(each.name) == 1 for each in columns):
            if self.dialect is None or all(each.name for each in columns):
                return [str(each.name) for each in columns], False
        return [each.number for each in columns], self.dialect is not None and self.dialect.header


def sample_of(data: Path, ending: str, named: Collection[str] = ()) -> TableSample:
    """The first rows of a file; a first line with a column that the user `named` is a header."""
    if ending == ".parquet":
        return _of_records(data, _parquet_rows(data))
    if ending in (".json", ".jsonl"):
        return _of_records(data, _json_rows(data))
    if ending == ".xlsx":
        return _of_workbook(data, named)
    dialect = dialect_of(data, named)
    if ending != ".txt" or max(map(len, dialect.rows)) != 1:
        return _of_lines(data, dialect)
    rows = [*([dialect.names] if dialect.names else []), *dialect.rows]
    lines = Dialect("", quotes=False, header=False, rows=rows, names=[])
    return _of_lines(data, lines, [TEXT])


def _of_workbook(data: Path, named: Collection[str]) -> TableSample:
    """The first sheet that is not much smaller than the largest: a short first one describes it."""
    names = sheet_names(data)
    sheets = dict[str, list[list[str]]]()
    for name in names:
        with suppress(DataError):  # it is empty
            rows = islice(sheet_rows(data, name), ROWS + 1)
            sheets[name] = [fields for _, fields in rows if not isinstance(fields, RowFault)]
    if not sheets:
        next(sheet_rows(data))  # which says so
    most = max(map(len, sheets.values()))
    large = [name for name, cells in sheets.items() if len(cells) * MUCH_SMALLER >= most]
    chosen = large[0]
    others = ", ".join(shown(name) for name in large[1:])
    if others or chosen != names[0]:
        also = f"; data.sheet chooses another: {others}" if others else ""
        tell(f"{data}: the sheet {shown(chosen)} is read{also}.")
    dialect = of_records(data, sheets[chosen], "", quotes=False, named=named)
    sample = _of_lines(data, dialect)
    return sample if chosen == names[0] else replace(sample, sheet=chosen)


def _of_lines(data: Path, dialect: Dialect, called: list[str | None] | None = None) -> TableSample:
    """Columns between delimiters; those without names may be `called` something."""
    rows = dialect.rows
    widths = Counter(map(len, rows))
    usual = max(widths, key=lambda count: (widths[count], count), default=0)
    width = max(len(dialect.names), usual)
    names: list[str | None] = [None] * width
    if dialect.header:
        names = [*dialect.names, *names][:width]
    if not rows:
        raise DataError(f"{data} has no rows below its header.")
    columns = []
    for at, name in zip(range(width), called or names, strict=True):
        values = [row[at] for row in rows if at < len(row) and row[at].strip()]
        columns.append(ColumnProfile(at + 1, name, values))
    return TableSample(_described(columns, len(rows)), dialect)


def _of_records(data: Path, rows: Sequence[Mapping[str, Any]]) -> TableSample:
    if not rows:
        raise DataError(f"{data} has no rows.")
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    values = {name: [row[name] for row in flat if row.get(name) not in _MISSING] for name in names}
    columns = [ColumnProfile(at, name, values[name]) for at, name in enumerate(names, 1)]
    first = {}
    for name in rows[0]:
        first[name] = next((row[name] for row in rows if row.get(name) not in _MISSING), None)
    return TableSample(_described(columns, len(rows)), first=first)


def _flat(row: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Values by name; those of an inner object by `a.b`."""
    values: dict[str, Any] = {}
    for name, value in row.items():
        is_inner = isinstance(value, Mapping) and value
        values |= _flat(value, f"{above}{name}.") if is_inner else {f"{above}{name}": value}
    return values


def _json_rows(data: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line, record in islice(json_records(data), ROWS):
        if isinstance(record, RowFault):
            if not rows:
                raise DataError(f"{data}, line {line} cannot be read: {record.sentence}")
            continue
        rows.append(json.loads(json.dumps(record)))
    return rows


def _parquet_rows(data: Path) -> list[dict[str, Any]]:
    """The first rows alone: the file may be large."""
    with opened_parquet(data) as file:
        batch: Any = next(file.iter_batches(batch_size=ROWS), None)
        rows = list(batch.slice(0, 1).to_pylist()) if batch else []
        for at in range(1, len(batch) if batch else 0):
            with suppress(UnicodeDecodeError):  # a bad row, which readers tell of
                rows += batch.slice(at, 1).to_pylist()
        return rows


def _described(columns: Sequence[ColumnProfile], rows: int) -> list[ColumnProfile]:
    """Columns with what they hold; if every column is constant (one row), none counts as such."""
    varied = any(column.distinct > 1 for column in columns)
    return [replace(column, holds=_held(column, rows, varied=varied)) for column in columns]


def _held(column: ColumnProfile, rows: int, *, varied: bool) -> str:
    """Why a column is no text to learn from, by nine tenths of its values; else nothing."""
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
    for name, test in _KINDS.items():
        if sum(bool(test(text)) for text in texts) >= 0.9 * len(texts):
            return name
    return ""


def _is_counted(texts: Sequence[str]) -> bool:
    """Whether whole numbers go up by one."""
    if len(texts) < 3 or not all(map(str.isdecimal, texts)):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(texts))


def _is_id(column: ColumnProfile, texts: Sequence[str]) -> bool:
    """Whether values tell rows apart: by the column's name, or as codes that are all different."""
    words = {*re.split(r"[\W_]+", (column.name or "").lower())}
    codes = sum(_CODE.fullmatch(text) is not None for text in texts) >= 0.9 * len(texts)
    unique, single = column.distinct == len(texts), all(len(text.split()) == 1 for text in texts)
    if words & _IDS:
        return single and (codes or unique)
    return unique and codes and len(texts) > 2 and not all(map(str.isdecimal, texts))
