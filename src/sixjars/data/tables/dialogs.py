"""Conversations, a list of turns on each line: every turn but the first is a response."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sixjars.data.storage.cache import Examples
from sixjars.data.tables.json_objects import check_named, json_records, json_unit
from sixjars.data.tables.rows import (
    Key,
    ReadSettings,
    Record,
    RowFault,
    kept,
    listed,
    text_of,
    value_of,
)
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import marked

_COLUMNS: Final[dict[str, Key]] = {"source": 1, "target": 2}  # no name of JSON is a number


def read_dialogs(place: Path, wanted: ReadSettings) -> Examples:
    """Make an example of each turn but the first of every conversation.

    The turns are a list of texts in the column of `source`; that of `target` is not read. The
    target is the turn, and the source is all turns before it, a line for each: `< ` stands before
    what the speaker of the target said, and `> ` before what the other said. Who speaks is a list
    as long, in the column `wanted.speakers`; without it two people take turns. White space inside a
    turn becomes one space. A conversation of one turn gives no example; if all are such, that is an
    error.
    """
    if set(wanted.fields) != set(_COLUMNS):
        raise DataError(
            "Format dialogs gives source and target, no more and no less, not "
            f"{', '.join(wanted.fields)}."
        )
    turns = wanted.fields["source"]
    speakers = [] if wanted.speakers is None else [wanted.speakers]
    check_named(place, [turns, *wanted.filter, *speakers])
    pairs = replace(wanted, fields={name: _COLUMNS[name] for name in wanted.fields})
    return kept(_records(place, turns, wanted), pairs, name=str(place), unit=json_unit(place))


def _records(path: Path, turns: Key, wanted: ReadSettings) -> Iterator[Record]:
    alone = answered = 0
    for line, record in json_records(path):
        try:
            if isinstance(record, RowFault):
                raise ValueError(record.sentence)
            values = {key: text_of(value_of(record, key), key) for key in wanted.filter}
            if values != wanted.filter:  # is counted as a row that does not fit
                yield line, dict.fromkeys(_COLUMNS.values()) | values
                continue
            examples = _examples(record, turns, wanted.speakers)
            alone += not examples
            answered += len(examples)
            yield from ((line, example | values) for example in examples)
        except ValueError as error:
            answered += wanted.on_bad_row == "error"  # then that row is named
            yield line, RowFault(line, str(error))
    if alone and not answered:
        which = "no conversation that fits 'filter'" if wanted.filter else "no conversation"
        raise DataError(
            f"{path}: {which} has two turns or more, so there is no turn that answers another."
        )


def _examples(
    record: Mapping[Any, Any], key: Key, speakers: Key | None
) -> list[dict[Key, str | None]]:
    """A source and a target for each turn but the first."""
    turns = [" ".join(turn.split()) for turn in listed(value_of(record, key), key)]
    for number, turn in enumerate(turns, 1):
        if not turn:
            raise ValueError(f"turn {number} is empty.")
    who = [str(at % 2) for at in range(len(turns))]
    if speakers is not None:
        who = listed(value_of(record, speakers), speakers)
        if len(who) != len(turns):
            raise ValueError(
                f"has {len(turns)} turns, but column {speakers!r} names {len(who)} speakers."
            )
    examples: list[dict[Key, str | None]] = []
    for number in range(1, len(turns)):
        before = zip(turns[:number], who, strict=False)
        context = "\n".join(marked(turn, own=speaker == who[number]) for turn, speaker in before)
        examples.append({_COLUMNS["source"]: context, _COLUMNS["target"]: turns[number]})
    return examples
