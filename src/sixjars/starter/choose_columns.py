"""Which column of a file is which field of a task: by name and by content, with the reasons; or a question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.fields import FIELDS
from sixjars.data.tables.headers import is_number
from sixjars.errors import DataError, unknown
from sixjars.recipe.data import Column
from sixjars.starter.first_rows import FEW, Profile, Sample
from sixjars.tasks import Slot, Task

SPEAKERS, SPLIT = "speakers", "split"
OPTIONS: Final = ("source", "target", "label")
"""Fields with an option of their own."""
FIRST: Final = "the first text"
ONLY: Final = ("the only text", "the only other text")
CLEAR: Final = 2.0
"""A text that is so many times longer than the next is clearly the long one."""
SURE: Final = 4
"""The names of a field at the beginning of its list, of which any settles the matter."""
LEAST_GOOD: Final = 0.9
"""The share of values that must fit a field."""
OFTEN, SELDOM = 10, 3
"""Rows for each of its values from which a column is clearly one of labels, and up to which it clearly is not."""
MOST_WORDS: Final = 6
"""Of a label, on average."""


@final
@dataclass(frozen=True)
class Choice:
    """The columns of a task's fields, each with the reason."""

    columns: Mapping[str, Profile]
    reasons: Mapping[str, str]

    def told(self, sample: Sample) -> str:
        """What was chosen and why, and what else there is."""
        chosen = [
            f"{name} = {column.called} ({self.reasons[name]})"
            for name, column in self.columns.items()
        ]
        taken = {column.number for column in self.columns.values()}
        rest = [one for one in sample.columns if one.number not in taken]
        other = ", ".join(f"{one.called} ({one.holds or _content(one)})" for one in rest)
        option = next(
            (
                option_for(name, one.option)
                for one in rest
                if not one.holds
                for name in self.columns
            ),
            "",
        )
        change = f"; {option} would choose another" if option else ""
        turned = ""
        if FIRST in self.reasons.values():
            names = [name for name, reason in self.reasons.items() if reason in (FIRST, *ONLY)]
            last = [self.columns[name] for name in reversed(names)]
            turned = " ".join(
                option_for(name, one.option) for name, one in zip(names, last, strict=True)
            )
        ways = [f"the other way round: {turned}"] if turned else []
        return (
            "; ".join(
                [", ".join(chosen), *ways, *([f"not used: {other}{change}"] if other else [])]
            )
            + "."
        )


def _quoted(option: str) -> str:
    return option if re.fullmatch(r"[\w.=-]+", option) else f"'{option}'"


def _content(column: Profile) -> str:
    return f"{column.distinct} values" if column.has_few else "text"


def _is_text(slot: Slot) -> bool:
    return FIELDS[slot.kind].holds == "tokens"


def is_label(slot: Slot) -> bool:
    """Whether a field holds labels."""
    return FIELDS[slot.kind].holds == "classes"


def option_for(field: str, column: object) -> str:
    """What a user types to name the column of a field.

    >>> option_for("source", "en"), option_for("image", "my photo")
    ('--source en', "--column 'image=my photo'")
    """
    return (
        f"--{field} {_quoted(str(column))}"
        if field in OPTIONS
        else f"--column {_quoted(f'{field}={column}')}"
    )


def guess(slot: Slot, column: Profile) -> dict[str, Any] | None:
    """What the values of a column suggest for a field; nothing where it cannot be that field."""
    kinds = [value for value in column.values if isinstance(value, list)]
    values = (
        kinds
        if len(kinds) * 2 > len(column.values)
        else [v for v in column.values if not isinstance(v, list)]
    )
    if not values:
        return None
    kind = FIELDS[slot.kind]
    found = kind.guess(values)
    if found is None:  # a few may be bad rows, which readers tell of
        good = [value for value in values if kind.guess([value]) is not None]
        found = kind.guess(good) if len(good) >= LEAST_GOOD * len(values) else None
    return found


def choose(
    task: Task, sample: Sample, data: Path, wanted: Mapping[str, Column] | None = None
) -> Choice:
    """The columns of a task in a file: those that are `wanted`, then by name, then by content."""
    told, chosen, reasons = dict(wanted or {}), {}, {}
    for slot in task.slots:
        if slot.name in told:
            chosen[slot.name], reasons[slot.name] = (
                _named(sample, told.pop(slot.name), slot, data),
                "as you say",
            )
    if told:
        slots = [slot.name for slot in task.slots]
        raise DataError(
            f"{unknown('field', next(iter(told)), slots)} That is what {task.name} has."
        )
    open_slots = sorted(
        (s for s in task.slots if s.name not in chosen), key=lambda s: not FIELDS[s.kind].is_media
    )
    for slot in open_slots:
        found = _by_name(slot, _believable(task, slot, _free(sample, chosen)), data)
        if found is not None:
            chosen[slot.name], reasons[slot.name] = found, "by its name"
    for slot in open_slots:
        if slot.name not in chosen:
            chosen[slot.name], reasons[slot.name] = _by_content(task, slot, sample, chosen, data)
    _check_classes(task, chosen, data)
    return Choice({slot.name: chosen[slot.name] for slot in task.slots}, reasons)


def _named(sample: Sample, key: Column, slot: Slot, data: Path) -> Profile:
    """The column that the user names, or numbers."""
    same = [one for one in sample.columns if one.name == str(key)] or [
        one for one in sample.columns if str(one.number) == str(key)
    ]
    if not same:
        raise DataError(f"{data}: {unknown('column', key, [one.option for one in sample.columns])}")
    if guess(slot, same[0]) is None:
        raise DataError(
            f"{data}: column {key!r} cannot be the {slot.name}; it holds {same[0].holds or 'other values'}."
        )
    return same[0]


def _free(sample: Sample, chosen: Mapping[str, Profile]) -> list[Profile]:
    taken, kept = {one.number for one in chosen.values()}, (SPLIT, SPEAKERS, *ANNOTATIONS)
    return [one for one in sample.columns if one.number not in taken and one.name not in kept]


def _fits(slot: Slot, column: Profile, *, named: bool) -> bool:
    """Whether a column can be a field; of one that is `named` so, more is believed."""
    field = FIELDS[slot.kind]
    if guess(slot, column) is None:
        return field.is_media and named and all(isinstance(value, str) for value in column.values)
    if field.is_media:
        return True
    if is_label(slot):
        if column.holds in ("row numbers", "ids", "dates", "file names", "addresses"):
            return named and column.has_few
        few = column.distinct > 1 and (
            column.distinct * 2 <= len(column.values) or len(column.values) < FEW
        )
        lists = isinstance(column.values[0], list)
        return named or ((few or lists) and column.words <= MOST_WORDS)
    return not column.holds if _is_text(slot) else True


def _believable(task: Task, slot: Slot, free: Sequence[Profile]) -> Sequence[Profile]:
    """Columns whose names may be believed: with two texts there, `source` with five values is where they come from."""
    texts = [one for one in free if not one.has_few and not one.holds]
    needed = sum(_is_text(one) for one in task.slots)
    return texts if _is_text(slot) and len(texts) >= needed else free


def _by_name(slot: Slot, free: Sequence[Profile], data: Path) -> Profile | None:
    """The column that is called as such columns are; in the end also one with such a word in its name."""
    names = [((one.name or "").strip().lower().replace(" ", "_"), one) for one in free]
    exact = [
        one
        for name in dict.fromkeys(slot.columns)
        for called, one in names
        if called == name and _fits(slot, one, named=True)
    ]
    if len(exact) > 1 and exact[0].name == exact[1].name:
        raise _question(slot, [one for one in exact if one.name == exact[0].name], data)
    if len(exact) == 1 or (exact and (exact[0].name or "").lower() in slot.columns[:SURE]):
        return exact[0]
    if not exact:
        parted = [(one, {*re.split(r"[\W_]+", (one.name or "").lower())}) for one in free]
        exact = [
            one for one, words in parted if words & {*slot.columns} and _fits(slot, one, named=True)
        ]
    if len(exact) > 1 and is_label(slot):
        raise _question(slot, exact, data)
    return exact[0] if len(exact) == 1 else None


def _by_content(
    task: Task, slot: Slot, sample: Sample, chosen: Mapping[str, Profile], data: Path
) -> tuple[Profile, str]:
    """The column whose values are as those of such a field are."""
    free, field = _free(sample, chosen), FIELDS[slot.kind]
    fit: Sequence[Profile] = [one for one in free if _fits(slot, one, named=False)]
    left = [one for one in task.slots if one.name not in chosen]
    if is_label(slot):
        fit = _like_labels(fit, free)
    elif _is_text(slot):
        fit = _like_texts(fit, free, left)
        alike = [one for one in left if _is_text(one)]
        found = _text(task, slot, fit, alike)
        if found is not None:
            return found
    elif field.is_media and not fit:
        fit = [
            one
            for one in free
            if all(isinstance(value, str) for value in one.values) and not one.holds
        ]
    fit = fit or [one for one in free if one.name in slot.columns and guess(slot, one) is not None]
    if not fit:
        raise _missing(task, slot, sample, data)
    if len(fit) > 1 and is_label(slot) and (clear := _clear_label(fit)):
        return clear
    if len(fit) > 1 and (is_label(slot) or _is_text(slot)):
        raise _question(slot, fit, data)
    return fit[0], f"{fit[0].distinct} values in {len(fit[0].values)} rows" if is_label(
        slot
    ) else "its values"


def _like_labels(fit: Sequence[Profile], free: Sequence[Profile]) -> Sequence[Profile]:
    """Words before numbers; the last column that is left, where values come again."""
    if not fit and len(free) == 1 and not free[0].holds and free[0].distinct < len(free[0].values):
        return free
    return [one for one in fit if one.holds != "numbers"] or fit


def _clear_label(fit: Sequence[Profile]) -> tuple[Profile, str] | None:
    """The column whose few values come again and again, where those of all others hardly do; and the reason."""
    best, *others = sorted(fit, key=_share_distinct)
    if _share_distinct(best) * OFTEN > 1 or any(
        _share_distinct(one) * SELDOM < 1 for one in others
    ):
        return None
    named = " and ".join(f"{one.called} has {one.distinct}" for one in others)
    return best, f"{best.distinct} values in {len(best.values)} rows, where {named}"


def _share_distinct(column: Profile) -> float:
    return column.distinct / max(len(column.values), 1)


def _like_texts(
    fit: Sequence[Profile], free: Sequence[Profile], left: Sequence[Slot]
) -> Sequence[Profile]:
    """Columns with few values are none, if others are there; of texts and a label, the longer ones are the texts."""
    labels = [one for one in left if is_label(one)]
    texts, needed = [one for one in fit if not one.has_few], len(left) - len(labels)
    fit = texts if len(texts) >= needed else fit
    longest = sorted(fit, key=lambda one: -one.words)[:needed]
    return [one for one in fit if one in longest] if labels and len(free) == len(left) else fit


def _text(
    task: Task, slot: Slot, fit: Sequence[Profile], alike: Sequence[Slot]
) -> tuple[Profile, str] | None:
    """The text of a field, where it is clear."""
    by_length = sorted(fit, key=lambda one: -one.words)
    if len(fit) == 1:
        return fit[0], ONLY[any(map(_is_text, task.slots[: task.slots.index(slot)]))]
    if len(fit) == len(alike) == 2:
        return (by_length[0], "the longer text") if task.longer_source else (fit[0], FIRST)
    clear = len(fit) > 1 and by_length[0].words >= CLEAR * by_length[1].words
    if clear and len(alike) == 1 and (slot is not task.output or not task.longer_source):
        return by_length[0], "the longest text"
    return None


def _question(slot: Slot, columns: Sequence[Profile], data: Path) -> DataError:
    twice = len({one.name for one in columns}) < len(columns) and columns[0].name is not None
    *some, last = [
        f"column {one.number} ({one.name!r})" if twice else one.called for one in columns
    ]
    best = min(columns, key=_share_distinct) if is_label(slot) else columns[0]
    key = best.number if twice or best.name is None else best.name
    option = option_for(slot.name, best.number if twice else best.option)
    return DataError(
        f"{data}: it is not clear which column is the {slot.name}: {', '.join(some)} or {last}? "
        f"Say it, such as {option} (in Python: columns={{{slot.name!r}: {key!r}}})."
    )


def _missing(task: Task, slot: Slot, sample: Sample, data: Path) -> DataError:
    if len(sample.columns) == 1 and sample.dialect is not None and len(task.slots) > 1:
        lines = not any(FIELDS[one.kind].is_media for one in task.slots)
        files = f" Or name a file for each, line by line: --data {data}{' --data FILE' * (len(task.slots) - 1)}."
        return DataError(
            f"{data}: only one column was found, {sample.columns[0].called}, but {task.role()}. "
            "Columns may be separated by tabs, commas, semicolons or |, the same number in each line."
            f"{files if lines else ''}"
        )
    have = ", ".join(
        f"{one.called}{f' ({one.holds})' if one.holds else ''}" for one in sample.columns
    )
    return DataError(
        f"{data}: none of its columns ({have}) is left for the {slot.name} that {task.name} needs."
    )


def odd_labels(task: Task, choice: Choice, data: Path) -> list[str]:
    """A sentence where a few labels are numbers and all others words: most likely a mistake, and a class of its own."""
    column = choice.columns[task.output.name]
    odd = [str(value) for value in column.values if is_number(str(value))]
    if not is_label(task.output) or not 0 < len(odd) * 10 <= len(column.values):
        return []
    many = f"{len(odd)} labels are numbers" if len(odd) > 1 else "1 label is a number"
    return [
        f"{data}: {many} ({', '.join(dict.fromkeys(odd[:3]))}) where the others are words; each is a class too."
    ]


def _check_classes(task: Task, chosen: Mapping[str, Profile], data: Path) -> None:
    column = chosen[task.output.name]
    if is_label(task.output) and column.holds.startswith("always") and len(column.values) > FEW:
        raise DataError(
            f"{data}: the label, {column.called}, is {column.holds}, so there is nothing to tell apart; two classes or "
            f"more are needed. Name another column: {option_for(task.output.name, 'COLUMN')}."
        )
