"""Whole conversations, a list of turns on each line of JSON: every turn but the first answers those before it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow

from sixjars.data.parting import marked
from sixjars.data.readers.jsonl import check_name, listed, object_of, text_of, value_of
from sixjars.data.readers.lines import lines_of
from sixjars.data.readers.rows import Asked, Block, Examples, Fault, Key, Places, sieved
from sixjars.errors import DataError

_SOURCE, _TARGET = 1, 2
"""What the two texts of an example are called on their way; no key of JSON is a number."""
_FIELDS: Final = ("source", "target")

_Row = tuple[str | None, ...]


def read_dialogs(place: Places, asked: Asked) -> Examples:
    """An example for each turn but the first, all with the line of their conversation.

    The turns are a list of texts in the column of `source`; that of `target` is not read. The target is the turn, and
    the source is all turns before it, a line for each: `< ` stands before what the speaker of the target said, and `> `
    before what they heard. Who speaks is a list as long, in the column `asked.speakers`; without it two people take
    turns. White space inside a turn becomes one space. A conversation of one turn gives no example; if all are such,
    that is an error.
    """
    if isinstance(place, Mapping):
        raise DataError(
            f"Format dialogs is one file of JSON lines, but files are given for {', '.join(place)}; name one file."
        )
    if set(asked.fields) != set(_FIELDS):
        raise DataError(f"Format dialogs gives source and target, no more and no less, not {', '.join(asked.fields)}.")
    turns = asked.fields["source"]
    for key in [turns, *asked.where, *([] if asked.speakers is None else [asked.speakers])]:
        check_name(place, key)
    texts = replace(asked, fields={name: _SOURCE if name == "source" else _TARGET for name in asked.fields})
    return sieved(_blocks(place, str(turns), asked), texts, name=str(place))


def _blocks(path: Path, turns: str, asked: Asked) -> Iterator[Block]:
    keys: list[Key] = [_SOURCE, _TARGET, *asked.where]
    alone = answered = 0
    for lines in lines_of(path):
        rows: list[_Row] = []
        kept: list[int] = []
        faults = list(lines.faults)
        for text, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
            try:
                found = _examples(object_of(text), turns, asked)
                rows += found
                kept += [line] * len(found)
                alone += not found
            except ValueError as error:
                faults.append(Fault(line, str(error)))
        columns = {key: pyarrow.array((row[at] for row in rows), pyarrow.string()) for at, key in enumerate(keys)}
        yield Block(columns, numpy.array(kept, dtype=numpy.int64), faults)
        answered += sum(row[0] is not None for row in rows)
    if alone and not answered:
        which = "no conversation that fits 'where'" if asked.where else "no conversation"
        raise DataError(f"{path}: {which} has two turns or more, so there is no turn that answers another.")


def _examples(row: dict[str, Any], name: str, asked: Asked) -> list[_Row]:
    """Source, target and the values of `where`; a conversation that does not fit these is one row without texts."""
    values = tuple(text_of(value_of(row, str(key)), str(key)) for key in asked.where)
    if values != tuple(asked.where.values()):
        return [(None, None, *values)]
    turns = _turns(row, name)
    speakers = _speakers(row, str(asked.speakers), len(turns)) if asked.speakers is not None else None
    who = speakers or [str(at % 2) for at in range(len(turns))]
    heard = [marked(turn, said=False) for turn in turns]
    said = [marked(turn, said=True) for turn in turns]
    return [
        ("\n".join(said[at] if who[at] == who[now] else heard[at] for at in range(now)), turns[now], *values)
        for now in range(1, len(turns))
    ]


def _turns(row: dict[str, Any], name: str) -> list[str]:
    turns = [" ".join(turn.split()) for turn in listed(value_of(row, name), name)]
    for number, turn in enumerate(turns, 1):
        if not turn:
            raise ValueError(f"turn {number} is empty.")
    return turns


def _speakers(row: dict[str, Any], name: str, count: int) -> list[str]:
    speakers = listed(value_of(row, name), name)
    if len(speakers) != count:
        raise ValueError(f"has {count} turns, but key {name!r} names {len(speakers)} speakers.")
    return speakers
