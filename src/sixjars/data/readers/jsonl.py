"""JSON lines: one object on each line."""

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow

from sixjars.data.readers.lines import lines_of
from sixjars.data.readers.rows import Block, Fault, Key
from sixjars.errors import DataError, unknown

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""


def read_jsonl(path: Path, keys: Sequence[Key], many: Collection[Key] = ()) -> Iterator[Block]:
    """Values by key; `a.b` reaches into an object unless there is a key `a.b`.

    A list of texts under a key of `many` is as many rows, all with the same line.
    """
    for key in keys:
        if isinstance(key, int):
            raise DataError(f"{path}: JSON lines have names, not numbers, so column {key} is not there; give its name.")
    names = [str(key) for key in keys]
    for lines in lines_of(path):
        rows: list[tuple[str | None, ...]] = []
        kept: list[int] = []
        faults = list(lines.faults)
        for text, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
            try:
                found = _values(text, names, many)
                rows += found
                kept += [line] * len(found)
            except ValueError as error:
                faults.append(Fault(line, str(error)))
        columns = [pyarrow.array((row[place] for row in rows), pyarrow.string()) for place in range(len(keys))]
        yield Block(dict(zip(keys, columns, strict=True)), numpy.array(kept, dtype=numpy.int64), faults)


def _values(text: str, names: Sequence[str], many: Collection[Key]) -> list[tuple[str | None, ...]]:
    """The rows of a line: one, or as many as there are combinations of the texts in lists."""
    if not text or text.isspace():
        raise ValueError("the line is empty.")
    try:
        parsed = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at column {error.colno}; each line is one object.") from error
    except RecursionError as error:
        raise ValueError("is not JSON that can be read: too many brackets inside brackets.") from error
    if not isinstance(parsed, dict):
        raise ValueError('is JSON, but not an object; each line is one object, like {"text": "..."}.')
    return list(product(*(_texts(_found(parsed, name), name, many=name in many) for name in names)))


def _texts(value: object, name: str, *, many: bool) -> list[str | None]:
    """One text, or those of a list where that may be."""
    if not many or not isinstance(value, list):
        return [text_of(value, name)]
    if not value:
        raise ValueError(f"key {name!r} holds an empty list.")
    for one in value:
        if one is None or isinstance(one, list | dict):
            raise ValueError(f"key {name!r} holds a list with {_kind(one)} in it; it may hold texts alone.")
    return [text_of(one, name) for one in value]


def _found(row: dict[str, Any], name: str, above: str = "") -> Any:
    """The value of a key, or of a path of keys."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if dot and isinstance(row.get(first), dict):
        return _found(row[first], rest, f"{above}{first}.")
    raise ValueError(unknown("key", above + name, [above + key for key in row]))


def _kind(value: object) -> str:
    return "null" if value is None else "a list" if isinstance(value, list) else "an object"


def text_of(value: object, name: str) -> str | None:
    """A value of JSON as text, where it is one; raises ValueError with a sentence where it is not."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is not None and not isinstance(value, str):
        raise ValueError(f"key {name!r} holds {_kind(value)}, not text.")
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"key {name!r} holds half a character (a lone surrogate), which is no text.") from error
    return value
