"""The columns of a user's file, and the one of each field: by name, by content; or a question."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.fields import FIELDS
from sixjars.data.tables.delimited import TEXT
from sixjars.data.tables.dialect import (
    ROWS,
    Dialect,
    dialect_of,
    is_date,
    is_file,
    is_number,
    of_records,
)
from sixjars.data.tables.excel import sheet_names, sheet_rows
from sixjars.data.tables.json_objects import json_records
from sixjars.data.tables.parquet import opened_parquet
from sixjars.data.tables.rows import RowFault
from sixjars.progress import tell
from sixjars.recipe.data import Column
from sixjars.recipe.files import flat
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, shown, unknown

SPEAKERS, SPLIT = "speakers", "split"
_IDS: Final = frozenset("id ids idx index uid uuid guid key no nr number row rowid".split())
_CODE: Final = re.compile(r"[A-Za-z]{0,6}[-_#]?\d+[A-Za-z]?|[0-9a-f]{8,}|[0-9a-fA-F-]{32,36}")
_ADDRESS: Final = re.compile(r"https?://\S+|\S+@\S+\.\w+")
_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    "numbers": is_number,
    "dates": is_date,
    "file names": is_file,
    "addresses": _ADDRESS.fullmatch,
}
_MISSING: Final[tuple[object, ...]] = (None, "", [])
"""The values that mean that there is none."""
MOST_CHARACTERS: Final = 30
MUCH_SMALLER: Final = 10
"""A sheet with so many times fewer rows than another is not the data."""
FEW: Final = 3
"""A column whose values each come this often on average has few values."""
OPTIONS: Final = ("source", "target", "label")
"""Fields with an option of their own."""
FIRST: Final = "the first text"
ONLY: Final = ("the only text", "the only other text")
CLEAR: Final = 2.0
"""A text that is so many times longer than the next is clearly the long one."""
SURE: Final = 4
"""How many names at the beginning of a field's list settle the matter by themselves."""
LEAST_GOOD: Final = 0.9
"""The share of values that must fit a field, or a kind of content."""
OFTEN, SELDOM = 10, 3
"""Rows for each of its values from which a column is clearly one of labels, and up to which it clearly is not."""
MOST_WORDS: Final = 6
"""Words of a label on average, at most."""


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
        return self.name or str(self.number)

    @property
    def distinct(self) -> int:
        """Different values."""
        return len({str(value) for value in self.values})

    @property
    def share_distinct(self) -> float:
        """Different values among all."""
        return self.distinct / max(len(self.values), 1)

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

    @property
    def spelled(self) -> str:
        """The name as lists of usual names spell it."""
        return (self.name or "").strip().lower().replace(" ", "_")

    @property
    def parts(self) -> set[str]:
        """The words of its name."""
        return {*re.split(r"[\W_]+", (self.name or "").lower())}


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
    chosen, *others = [name for name, cells in sheets.items() if len(cells) * MUCH_SMALLER >= most]
    if others or chosen != names[0]:
        also = f"; data.sheet chooses another: {', '.join(map(shown, others))}" if others else ""
        tell(f"{data}: the sheet {shown(chosen)} is read{also}.")
    dialect = of_records(data, sheets[chosen], "", quotes=False, named=named)
    sample = _of_lines(data, dialect)
    return sample if chosen == names[0] else replace(sample, sheet=chosen)


def _of_lines(data: Path, dialect: Dialect, called: list[str | None] | None = None) -> TableSample:
    """Columns between delimiters; those without names may be `called` something."""
    rows = dialect.rows
    if not rows:
        raise DataError(f"{data} has no rows below its header.")
    widths = Counter(map(len, rows))
    usual = max(widths, key=lambda count: (widths[count], count))
    width = max(len(dialect.names), usual)
    names = called or [*dialect.names, *[None] * width][:width]
    values = [[row[at] for row in rows if at < len(row) and row[at].strip()] for at in range(width)]
    return TableSample(_profiles(names, values, len(rows)), dialect)


def _of_records(data: Path, rows: Sequence[Mapping[str, Any]]) -> TableSample:
    if not rows:
        raise DataError(f"{data} has no rows.")
    members = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in members for name in row))
    values = [[row[name] for row in members if row.get(name) not in _MISSING] for name in names]
    first = {}
    for name in rows[0]:
        first[name] = next((row[name] for row in rows if row.get(name) not in _MISSING), None)
    return TableSample(_profiles(names, values, len(rows)), first=first)


def _json_rows(data: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line, record in islice(json_records(data), ROWS):
        if not isinstance(record, RowFault):
            rows.append(json.loads(json.dumps(record)))
        elif not rows:
            raise DataError(f"{data}, line {line} cannot be read: {record.sentence}")
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


def _profiles(
    names: Sequence[str | None], values: Sequence[list[Any]], rows: int
) -> list[ColumnProfile]:
    """Columns with what they hold; if every column is constant (one row), none counts as such."""
    pairs = enumerate(zip(names, values, strict=True), 1)
    columns = [ColumnProfile(number, *pair) for number, pair in pairs]
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
    return next((name for name, test in _KINDS.items() if _mostly(test, texts)), "")


def _mostly(test: Callable[[str], object], texts: Sequence[str]) -> bool:
    return sum(bool(test(text)) for text in texts) >= LEAST_GOOD * len(texts)


def _is_counted(texts: Sequence[str]) -> bool:
    """Whether whole numbers go up by one."""
    if len(texts) < 3 or not all(map(str.isdecimal, texts)):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(texts))


def _is_id(column: ColumnProfile, texts: Sequence[str]) -> bool:
    """Whether values tell rows apart: by the column's name, or as codes that are all different."""
    codes = _mostly(_CODE.fullmatch, texts)
    unique = column.distinct == len(texts)
    if column.parts & _IDS:
        return all(len(text.split()) == 1 for text in texts) and (codes or unique)
    return unique and codes and len(texts) > 2 and not all(map(str.isdecimal, texts))


def is_text(slot: Slot) -> bool:
    """Whether a field holds texts."""
    return FIELDS[slot.kind].holds == "tokens"


def is_label(slot: Slot) -> bool:
    """Whether a field holds labels."""
    return FIELDS[slot.kind].holds == "classes"


def is_media(slot: Slot) -> bool:
    """Whether a field holds names of files."""
    return FIELDS[slot.kind].is_media


def option_for(field: str, column: object) -> str:
    """The option with which a user names the column of a field.

    >>> option_for("source", "en"), option_for("image", "my photo")
    ('--source en', "--column 'image=my photo'")
    """
    option, value = (field, f"{column}") if field in OPTIONS else ("column", f"{field}={column}")
    return f"--{option} {value}" if re.fullmatch(r"[\w.=-]+", value) else f"--{option} '{value}'"


def guess(slot: Slot, values: Sequence[Any]) -> dict[str, Any] | None:
    """The settings that a column's values suggest for a field; None where it cannot be that."""
    lists = [value for value in values if isinstance(value, list)]
    others = [value for value in values if not isinstance(value, list)]
    values = lists if len(lists) * 2 > len(values) else others
    if not values:
        return None
    kind = FIELDS[slot.kind]
    settings = kind.guess(values)
    if settings is None:  # a few may be bad rows, which readers tell of
        good = [value for value in values if kind.guess([value]) is not None]
        settings = kind.guess(good) if len(good) >= LEAST_GOOD * len(values) else None
    return settings


def _fits(slot: Slot, column: ColumnProfile, *, named: bool) -> bool:
    """Whether a column can be a field; one that is `named` so needs less evidence."""
    if guess(slot, column.values) is None:
        return is_media(slot) and named and _are_names(column)
    if is_label(slot):
        if column.holds in ("row numbers", "ids", "dates", "file names", "addresses"):
            return named and column.has_few
        comes_again = column.distinct * 2 <= len(column.values) or len(column.values) < FEW
        is_like = (column.distinct > 1 and comes_again) or isinstance(column.values[0], list)
        return named or (is_like and column.words <= MOST_WORDS)
    return not (is_text(slot) and column.holds)


def _are_names(column: ColumnProfile) -> bool:
    return all(isinstance(value, str) for value in column.values)


@final
class ColumnChoice:
    """The columns of a task's fields, each with the reason: those `named`, then by name, then by content."""

    def __init__(
        self, task: Task, sample: TableSample, data: Path, named: Mapping[str, Column]
    ) -> None:
        self.task = task
        self.sample = sample
        self.data = data
        self.columns: dict[str, ColumnProfile] = {}
        self.reasons: dict[str, str] = {}
        self._choose(named)
        self._check_classes()
        self.columns = {slot.name: self.columns[slot.name] for slot in task.slots}

    def _choose(self, named: Mapping[str, Column]) -> None:
        for slot in self.task.slots:
            if slot.name in named:
                self._take(slot, self._named(slot, named[slot.name]), "as you say")
        check_fields(self.task, named)
        for slot in sorted(self._left(), key=lambda slot: not is_media(slot)):
            if column := self._by_name(slot):
                self._take(slot, column, "by its name")
        for slot in sorted(self._left(), key=lambda slot: not is_media(slot)):
            self._take(slot, *self._by_content(slot))

    def _take(self, slot: Slot, column: ColumnProfile, reason: str) -> None:
        self.columns[slot.name], self.reasons[slot.name] = column, reason

    def _left(self) -> list[Slot]:
        """The fields without a column."""
        return [slot for slot in self.task.slots if slot.name not in self.columns]

    def _named(self, slot: Slot, key: Column) -> ColumnProfile:
        """The column that the user names, or numbers."""
        columns = self.sample.columns
        same = [column for column in columns if column.name == str(key)]
        same = same or [column for column in columns if str(column.number) == str(key)]
        if not same:
            options = [column.option for column in columns]
            raise DataError(f"{self.data}: {unknown('column', key, options)}")
        if guess(slot, same[0].values) is None:
            holds = same[0].holds or "other values"
            raise DataError(
                f"{self.data}: column {key!r} cannot be the {slot.name}; it holds {holds}."
            )
        return same[0]

    def _rest(self) -> list[ColumnProfile]:
        """The columns that no field has yet."""
        taken = {column.number for column in self.columns.values()}
        return [column for column in self.sample.columns if column.number not in taken]

    def _free(self) -> list[ColumnProfile]:
        """Those that are for a field to take."""
        kept = (SPLIT, SPEAKERS, *ANNOTATIONS)
        return [column for column in self._rest() if column.name not in kept]

    def _by_name(self, slot: Slot) -> ColumnProfile | None:
        """The column with a usual name of such a field, or else with such a word in its name."""
        free = self._free()
        if is_text(slot):  # `source` with five values, beside two texts, is their origin
            texts = [column for column in free if not column.has_few and not column.holds]
            free = texts if len(texts) >= sum(map(is_text, self.task.slots)) else free
        usual = slot.columns
        fit = [column for column in free if _fits(slot, column, named=True)]
        exact = [column for column in fit if column.spelled in usual]
        exact.sort(key=lambda column: usual.index(column.spelled))
        if len(exact) > 1 and exact[0].name == exact[1].name:
            raise self._question(slot, [each for each in exact if each.name == exact[0].name])
        if len(exact) == 1 or (exact and (exact[0].name or "").lower() in usual[:SURE]):
            return exact[0]
        exact = exact or [column for column in fit if column.parts & {*usual}]
        if len(exact) > 1 and is_label(slot):
            raise self._question(slot, exact)
        return exact[0] if len(exact) == 1 else None

    def _by_content(self, slot: Slot) -> tuple[ColumnProfile, str]:
        """The column whose values are like those of such a field, and the reason."""
        free = self._free()
        fit = [column for column in free if _fits(slot, column, named=False)]
        clear: tuple[ColumnProfile, str] | None = None
        if is_label(slot):
            fit = _like_labels(fit, free)
            clear = _clear_label(fit)
        elif is_text(slot):
            fit = self._like_texts(fit, free)
            clear = self._clear_text(slot, fit)
        elif is_media(slot) and not fit:
            fit = [column for column in free if not column.holds and _are_names(column)]
        if clear is not None:
            return clear
        if not fit:
            called = [column for column in free if column.name in slot.columns]
            fit = [column for column in called if guess(slot, column.values) is not None]
        if not fit:
            raise self._missing(slot)
        if len(fit) > 1 and (is_label(slot) or is_text(slot)):
            raise self._question(slot, fit)
        counts = f"{fit[0].distinct} values in {len(fit[0].values)} rows"
        return fit[0], counts if is_label(slot) else "its values"

    def _like_texts(
        self, fit: list[ColumnProfile], free: Sequence[ColumnProfile]
    ) -> list[ColumnProfile]:
        """Columns with many values, if there are enough; of texts and a label, the longer ones."""
        left = self._left()
        needed = sum(not is_label(slot) for slot in left)
        texts = [column for column in fit if not column.has_few]
        fit = texts if len(texts) >= needed else fit
        if needed == len(left) or len(free) != len(left):
            return fit
        longest = sorted(fit, key=lambda column: -column.words)[:needed]
        return [column for column in fit if column in longest]

    def _clear_text(
        self, slot: Slot, fit: Sequence[ColumnProfile]
    ) -> tuple[ColumnProfile, str] | None:
        """The text of a field, where it is clear; and the reason."""
        slots, longer_source = self.task.slots, self.task.longer_source
        texts_left = sum(map(is_text, self._left()))
        if not fit:
            return None
        longest, *others = sorted(fit, key=lambda column: -column.words)
        if not others:
            return longest, ONLY[any(map(is_text, slots[: slots.index(slot)]))]
        if len(fit) == texts_left == 2:
            return (longest, "the longer text") if longer_source else (fit[0], FIRST)
        clear = texts_left == 1 and longest.words >= CLEAR * others[0].words
        if clear and (slot is not self.task.output or not longer_source):
            return longest, "the longest text"
        return None

    def _question(self, slot: Slot, columns: Sequence[ColumnProfile]) -> DataError:
        twice = len({each.name for each in columns}) < len(columns) and columns[0].name is not None
        names = [
            f"column {each.number} ({each.name!r})" if twice else each.called for each in columns
        ]
        which = f"{', '.join(names[:-1])} or {names[-1]}"
        best = columns[0]
        if is_label(slot):
            best = min(columns, key=lambda column: column.share_distinct)
        key = best.number if twice or best.name is None else best.name
        option = option_for(slot.name, best.number if twice else best.option)
        return DataError(
            f"{self.data}: it is not clear which column is the {slot.name}: {which}? "
            f"Say it, such as {option} (in Python: columns={{{slot.name!r}: {key!r}}})."
        )

    def _missing(self, slot: Slot) -> DataError:
        data, task, columns = self.data, self.task, self.sample.columns
        if len(columns) == 1 and self.sample.dialect is not None and len(task.slots) > 1:
            files = f"--data {data}{' --data FILE' * (len(task.slots) - 1)}"
            either = f" Or name a file for each, line by line: {files}."
            return DataError(
                f"{data}: only one column was found, {columns[0].called}, but {task.role()}. "
                "Columns may be separated by tabs, commas, semicolons or |, the same number in "
                f"each line.{'' if any(map(is_media, task.slots)) else either}"
            )
        names = [f"{each.called} ({each.holds})" if each.holds else each.called for each in columns]
        have = f"none of its columns ({', '.join(names)})"
        return DataError(f"{data}: {have} is left for the {slot.name} that {task.name} needs.")

    def _check_classes(self) -> None:
        output = self.task.output
        column = self.columns[output.name]
        if is_label(output) and column.holds.startswith("always") and len(column.values) > FEW:
            raise DataError(
                f"{self.data}: the label, {column.called}, is {column.holds}, so there is nothing "
                "to tell apart; two classes or more are needed. Name another column: "
                f"{option_for(output.name, 'COLUMN')}."
            )

    @property
    def sentence(self) -> str:
        """The chosen columns with the reasons, and the other columns that there are."""
        columns = self.columns.items()
        chosen = [f"{name} = {column.called} ({self.reasons[name]})" for name, column in columns]
        parts = [", ".join(chosen)]
        if FIRST in self.reasons.values():
            names = [name for name, _ in columns if self.reasons[name] in (FIRST, *ONLY)]
            pairs = zip(names, reversed(names), strict=True)
            turned = [option_for(name, self.columns[other].option) for name, other in pairs]
            parts.append(f"the other way round: {' '.join(turned)}")
        if rest := self._rest():
            contents = [
                each.holds or (f"{each.distinct} values" if each.has_few else "text")
                for each in rest
            ]
            pairs_of_rest = zip(rest, contents, strict=True)
            unused = ", ".join(f"{each.called} ({content})" for each, content in pairs_of_rest)
            usable = [column.option for column in rest if not column.holds]
            if usable and columns:
                option = option_for(next(iter(self.columns)), usable[0])
                unused += f"; {option} would choose another"
            parts.append(f"not used: {unused}")
        return "; ".join(parts) + "."

    def odd_labels(self) -> list[str]:
        """A sentence where a few labels are numbers and the others words: most likely a mistake."""
        labels = [str(value) for value in self.columns[self.task.output.name].values]
        odd = list(filter(is_number, labels))
        if not 0 < len(odd) * 10 <= len(labels):
            return []
        many = f"{len(odd)} labels are numbers" if len(odd) > 1 else "1 label is a number"
        values = ", ".join(dict.fromkeys(odd[:3]))
        return [f"{self.data}: {many} ({values}) where the others are words; each is a class too."]


def check_fields(task: Task, named: Mapping[str, Column]) -> None:
    """Refuse columns for fields that a task does not have."""
    fields = [slot.name for slot in task.slots]
    for name in named:
        if name not in fields:
            raise DataError(f"{unknown('field', name, fields)} That is what {task.name} has.")


def _like_labels(fit: list[ColumnProfile], free: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Words rather than numbers; else the last column that is left, where values come again."""
    if not fit and len(free) == 1 and not free[0].holds and free[0].share_distinct < 1:
        return [*free]
    return [column for column in fit if column.holds != "numbers"] or fit


def _clear_label(fit: Sequence[ColumnProfile]) -> tuple[ColumnProfile, str] | None:
    """The column whose few values come again and again, where those of all others hardly do; and the reason."""
    if len(fit) < 2:
        return None
    best, *others = sorted(fit, key=lambda column: column.share_distinct)
    if best.share_distinct * OFTEN > 1 or others[0].share_distinct * SELDOM < 1:
        return None
    named = " and ".join(f"{each.called} has {each.distinct}" for each in others)
    return best, f"{best.distinct} values in {len(best.values)} rows, where {named}"
