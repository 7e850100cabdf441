"""The column of each field of a task, chosen by name and by content; or a question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.fields import FIELDS
from sixjars.data.tables.headers import is_number
from sixjars.recipe.data import Column
from sixjars.starter.first_rows import FEW, ColumnProfile, TableSample
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, unknown

SPEAKERS, SPLIT = "speakers", "split"
OPTIONS: Final = ("source", "target", "label")
"""Fields with an option of their own."""
FIRST: Final = "the first text"
ONLY: Final = ("the only text", "the only other text")
CLEAR: Final = 2.0
"""A text that is so many times longer than the next is clearly the long one."""
SURE: Final = 4
"""How many names at the beginning of a field's list settle the matter by themselves."""
LEAST_GOOD: Final = 0.9
"""The share of values that must fit a field."""
OFTEN, SELDOM = 10, 3
"""Rows for each of its values from which a column is clearly one of labels, and up to which it clearly is not."""
MOST_WORDS: Final = 6
"""Words of a label on average, at most."""


@final
@dataclass(frozen=True)
class ColumnChoice:
    """The columns of a task's fields, each with the reason."""

    columns: Mapping[str, ColumnProfile]
    reasons: Mapping[str, str]

    def sentence(self, sample: TableSample) -> str:
        """The chosen columns with the reasons, and the other columns that there are."""
        columns = self.columns.items()
        chosen = [f"{name} = {column.called} ({self.reasons[name]})" for name, column in columns]
        parts = [", ".join(chosen)]
        if FIRST in self.reasons.values():
            names = [name for name, reason in self.reasons.items() if reason in (FIRST, *ONLY)]
            pairs = zip(names, reversed(names), strict=True)
            turned = [option_for(name, self.columns[other].option) for name, other in pairs]
            parts.append(f"the other way round: {' '.join(turned)}")
        taken = {column.number for _, column in columns}
        if rest := [column for column in sample.columns if column.number not in taken]:
            unused = ", ".join(f"{each.called} ({each.holds or _content(each)})" for each in rest)
            usable = [column.option for column in rest if not column.holds]
            if usable and columns:
                option = option_for(next(iter(self.columns)), usable[0])
                unused += f"; {option} would choose another"
            parts.append(f"not used: {unused}")
        return "; ".join(parts) + "."


def _quoted(option: str) -> str:
    return option if re.fullmatch(r"[\w.=-]+", option) else f"'{option}'"


def _content(column: ColumnProfile) -> str:
    return f"{column.distinct} values" if column.has_few else "text"


def _is_text(slot: Slot) -> bool:
    return FIELDS[slot.kind].holds == "tokens"


def is_label(slot: Slot) -> bool:
    """Whether a field holds labels."""
    return FIELDS[slot.kind].holds == "classes"


def option_for(field: str, column: object) -> str:
    """The option with which a user names the column of a field.

    >>> option_for("source", "en"), option_for("image", "my photo")
    ('--source en', "--column 'image=my photo'")
    """
    if field in OPTIONS:
        return f"--{field} {_quoted(str(column))}"
    return f"--column {_quoted(f'{field}={column}')}"


def guess(slot: Slot, column: ColumnProfile) -> dict[str, Any] | None:
    """The settings that a column's values suggest for a field; None where it cannot be that."""
    lists = [value for value in column.values if isinstance(value, list)]
    others = [value for value in column.values if not isinstance(value, list)]
    values = lists if len(lists) * 2 > len(column.values) else others
    if not values:
        return None
    kind = FIELDS[slot.kind]
    settings = kind.guess(values)
    if settings is None:  # a few may be bad rows, which readers tell of
        good = [value for value in values if kind.guess([value]) is not None]
        settings = kind.guess(good) if len(good) >= LEAST_GOOD * len(values) else None
    return settings


def choose(
    task: Task, sample: TableSample, data: Path, columns: Mapping[str, Column] | None = None
) -> ColumnChoice:
    """The column of each field: those in `columns`, then by name, then by content."""
    named, chosen, reasons = dict(columns or {}), dict[str, ColumnProfile](), dict[str, str]()
    for slot in task.slots:
        if slot.name in named:
            chosen[slot.name] = _named(sample, named.pop(slot.name), slot, data)
            reasons[slot.name] = "as you say"
    if named:
        wrong = unknown("field", next(iter(named)), [slot.name for slot in task.slots])
        raise DataError(f"{wrong} That is what {task.name} has.")
    left = [slot for slot in task.slots if slot.name not in chosen]
    left.sort(key=lambda slot: not FIELDS[slot.kind].is_media)
    for slot in left:
        column = _by_name(slot, _believable(task, slot, _free(sample, chosen)), data)
        if column is not None:
            chosen[slot.name], reasons[slot.name] = column, "by its name"
    for slot in left:
        if slot.name not in chosen:
            chosen[slot.name], reasons[slot.name] = _by_content(task, slot, sample, chosen, data)
    _check_classes(task, chosen, data)
    return ColumnChoice({slot.name: chosen[slot.name] for slot in task.slots}, reasons)


def _named(sample: TableSample, key: Column, slot: Slot, data: Path) -> ColumnProfile:
    """The column that the user names, or numbers."""
    columns = sample.columns
    same = [column for column in columns if column.name == str(key)]
    same = same or [column for column in columns if str(column.number) == str(key)]
    if not same:
        options = [column.option for column in columns]
        raise DataError(f"{data}: {unknown('column', key, options)}")
    if guess(slot, same[0]) is None:
        holds = same[0].holds or "other values"
        raise DataError(f"{data}: column {key!r} cannot be the {slot.name}; it holds {holds}.")
    return same[0]


def _free(sample: TableSample, chosen: Mapping[str, ColumnProfile]) -> list[ColumnProfile]:
    """The columns that no field has yet."""
    taken = {column.number for column in chosen.values()}
    kept = (SPLIT, SPEAKERS, *ANNOTATIONS)
    free = [column for column in sample.columns if column.number not in taken]
    return [column for column in free if column.name not in kept]


def _fits(slot: Slot, column: ColumnProfile, *, named: bool) -> bool:
    """Whether a column can be a field; one that is `named` so needs less evidence."""
    field = FIELDS[slot.kind]
    if guess(slot, column) is None:
        return field.is_media and named and all(isinstance(value, str) for value in column.values)
    if field.is_media:
        return True
    if is_label(slot):
        if column.holds in ("row numbers", "ids", "dates", "file names", "addresses"):
            return named and column.has_few
        comes_again = column.distinct * 2 <= len(column.values) or len(column.values) < FEW
        is_like = (column.distinct > 1 and comes_again) or isinstance(column.values[0], list)
        return named or (is_like and column.words <= MOST_WORDS)
    return not column.holds if _is_text(slot) else True


def _believable(task: Task, slot: Slot, free: Sequence[ColumnProfile]) -> Sequence[ColumnProfile]:
    """Columns whose names count: `source` with five values, beside two texts, is their origin."""
    texts = [column for column in free if not column.has_few and not column.holds]
    needed = sum(map(_is_text, task.slots))
    return texts if _is_text(slot) and len(texts) >= needed else free


def _by_name(slot: Slot, free: Sequence[ColumnProfile], data: Path) -> ColumnProfile | None:
    """The column with a usual name of such a field, or else with such a word in its name."""
    usual = slot.columns
    fit = [column for column in free if _fits(slot, column, named=True)]
    exact = [column for column in fit if _spelled(column) in usual]
    exact.sort(key=lambda column: usual.index(_spelled(column)))
    if len(exact) > 1 and exact[0].name == exact[1].name:
        raise _question(slot, [each for each in exact if each.name == exact[0].name], data)
    if len(exact) == 1 or (exact and (exact[0].name or "").lower() in slot.columns[:SURE]):
        return exact[0]
    if not exact:
        words = [{*re.split(r"[\W_]+", (column.name or "").lower())} for column in fit]
        exact = [column for column, parts in zip(fit, words, strict=True) if parts & {*usual}]
    if len(exact) > 1 and is_label(slot):
        raise _question(slot, exact, data)
    return exact[0] if len(exact) == 1 else None


def _spelled(column: ColumnProfile) -> str:
    return (column.name or "").strip().lower().replace(" ", "_")


def _by_content(
    task: Task, slot: Slot, sample: TableSample, chosen: Mapping[str, ColumnProfile], data: Path
) -> tuple[ColumnProfile, str]:
    """The column whose values are like those of such a field."""
    free = _free(sample, chosen)
    field = FIELDS[slot.kind]
    fit: Sequence[ColumnProfile] = [column for column in free if _fits(slot, column, named=False)]
    left = [each for each in task.slots if each.name not in chosen]
    clear: tuple[ColumnProfile, str] | None = None
    if is_label(slot):
        fit = _like_labels(fit, free)
        clear = _clear_label(fit)
    elif _is_text(slot):
        fit = _like_texts(fit, free, left)
        clear = _text(task, slot, fit, [each for each in left if _is_text(each)])
    elif field.is_media and not fit:
        texts = [column for column in free if not column.holds]
        fit = [each for each in texts if all(isinstance(value, str) for value in each.values)]
    if clear is not None:
        return clear
    if not fit:
        called = [column for column in free if column.name in slot.columns]
        fit = [column for column in called if guess(slot, column) is not None]
    if not fit:
        raise _missing(task, slot, sample, data)
    if len(fit) > 1 and (is_label(slot) or _is_text(slot)):
        raise _question(slot, fit, data)
    counts = f"{fit[0].distinct} values in {len(fit[0].values)} rows"
    return fit[0], counts if is_label(slot) else "its values"


def _like_labels(
    fit: Sequence[ColumnProfile], free: Sequence[ColumnProfile]
) -> Sequence[ColumnProfile]:
    """Words rather than numbers; else the last column that is left, where values come again."""
    if not fit and len(free) == 1 and not free[0].holds and free[0].distinct < len(free[0].values):
        return free
    return [column for column in fit if column.holds != "numbers"] or fit


def _clear_label(fit: Sequence[ColumnProfile]) -> tuple[ColumnProfile, str] | None:
    """The column whose few values come again and again, where those of all others hardly do; and the reason."""
    if len(fit) < 2:
        return None
    best, *others = sorted(fit, key=_share_distinct)
    if _share_distinct(best) * OFTEN > 1 or any(
        _share_distinct(one) * SELDOM < 1 for one in others
    ):
        return None
    named = " and ".join(f"{one.called} has {one.distinct}" for one in others)
    return best, f"{best.distinct} values in {len(best.values)} rows, where {named}"


def _share_distinct(column: ColumnProfile) -> float:
    return column.distinct / max(len(column.values), 1)


def _like_texts(
    fit: Sequence[ColumnProfile], free: Sequence[ColumnProfile], left: Sequence[Slot]
) -> Sequence[ColumnProfile]:
    """Columns with many values, if there are enough; of texts and a label, the longer ones."""
    labels = [slot for slot in left if is_label(slot)]
    texts = [column for column in fit if not column.has_few]
    needed = len(left) - len(labels)
    fit = texts if len(texts) >= needed else fit
    longest = sorted(fit, key=lambda column: -column.words)[:needed]
    some_are_labels = labels and len(free) == len(left)
    return [column for column in fit if column in longest] if some_are_labels else fit


def _text(
    task: Task, slot: Slot, fit: Sequence[ColumnProfile], alike: Sequence[Slot]
) -> tuple[ColumnProfile, str] | None:
    """The text of a field, where it is clear."""
    by_length = sorted(fit, key=lambda column: -column.words)
    if len(fit) == 1:
        return fit[0], ONLY[any(map(_is_text, task.slots[: task.slots.index(slot)]))]
    if len(fit) == len(alike) == 2:
        return (by_length[0], "the longer text") if task.longer_source else (fit[0], FIRST)
    clear = len(fit) > 1 and by_length[0].words >= CLEAR * by_length[1].words
    if clear and len(alike) == 1 and (slot is not task.output or not task.longer_source):
        return by_length[0], "the longest text"
    return None


def _question(slot: Slot, columns: Sequence[ColumnProfile], data: Path) -> DataError:
    twice = len({each.name for each in columns}) < len(columns) and columns[0].name is not None
    names = [f"column {each.number} ({each.name!r})" if twice else each.called for each in columns]
    which = f"{', '.join(names[:-1])} or {names[-1]}"
    best = min(columns, key=_share_distinct) if is_label(slot) else columns[0]
    key = best.number if twice or best.name is None else best.name
    option = option_for(slot.name, best.number if twice else best.option)
    return DataError(
        f"{data}: it is not clear which column is the {slot.name}: {which}? "
        f"Say it, such as {option} (in Python: columns={{{slot.name!r}: {key!r}}})."
    )


def _missing(task: Task, slot: Slot, sample: TableSample, data: Path) -> DataError:
    if len(sample.columns) == 1 and sample.dialect is not None and len(task.slots) > 1:
        files = f"--data {data}{' --data FILE' * (len(task.slots) - 1)}"
        either = f" Or name a file for each, line by line: {files}."
        has_media = any(FIELDS[each.kind].is_media for each in task.slots)
        return DataError(
            f"{data}: only one column was found, {sample.columns[0].called}, but {task.role()}. "
            "Columns may be separated by tabs, commas, semicolons or |, the same number in each "
            f"line.{'' if has_media else either}"
        )
    columns = [
        f"{each.called} ({each.holds})" if each.holds else each.called for each in sample.columns
    ]
    have = f"none of its columns ({', '.join(columns)})"
    return DataError(f"{data}: {have} is left for the {slot.name} that {task.name} needs.")


def odd_labels(task: Task, choice: ColumnChoice, data: Path) -> list[str]:
    """A sentence where a few labels are numbers and the others words: most likely a mistake."""
    column = choice.columns[task.output.name]
    odd = [str(value) for value in column.values if is_number(str(value))]
    if not is_label(task.output) or not 0 < len(odd) * 10 <= len(column.values):
        return []
    many = f"{len(odd)} labels are numbers" if len(odd) > 1 else "1 label is a number"
    values = ", ".join(dict.fromkeys(odd[:3]))
    return [f"{data}: {many} ({values}) where the others are words; each is a class too."]


def _check_classes(task: Task, chosen: Mapping[str, ColumnProfile], data: Path) -> None:
    column = chosen[task.output.name]
    if is_label(task.output) and column.holds.startswith("always") and len(column.values) > FEW:
        option = option_for(task.output.name, "COLUMN")
        raise DataError(
            f"{data}: the label, {column.called}, is {column.holds}, so there is nothing to tell "
            f"apart; two classes or more are needed. Name another column: {option}."
        )
