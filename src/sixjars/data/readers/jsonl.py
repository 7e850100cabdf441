"""JSON lines: one object on each line."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pyarrow

from sixjars.data.readers.lines import lines_of
from sixjars.data.readers.rows import Block, Fault, Key
from sixjars.errors import DataError, unknown

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)  # numbers stay as they are written


def read_jsonl(path: Path, keys: Sequence[Key]) -> Iterator[Block]:
    """Values by key; `a.b` reaches into an object unless there is a key `a.b`."""
    for key in keys:
        if isinstance(key, int):
            raise DataError(f"{path}: JSON lines have names, not numbers, so column {key} is not there; give its name.")
    names = [str(key) for key in keys]
    for lines in lines_of(path):
        rows: list[list[str | None]] = []
        kept: list[int] = []
        faults = list(lines.faults)
        for text, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
            try:
                rows.append(_values(text, names))
                kept.append(line)
            except ValueError as error:
                faults.append(Fault(line, str(error)))
        columns = [pyarrow.array((row[place] for row in rows), pyarrow.string()) for place in range(len(keys))]
        yield Block(dict(zip(keys, columns, strict=True)), numpy.array(kept, dtype=numpy.int64), faults)


def _values(text: str, names: Sequence[str]) -> list[str | None]:
    if not text or text.isspace():
        raise ValueError("the line is empty.")
    try:
        parsed = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at column {error.colno}; each line is one object.") from error
    except RecursionError as error:
        raise ValueError("is not JSON that can be read: too many brackets inside brackets.") from error
    if not isinstance(parsed, dict):
        raise ValueError('is JSON, but not an object; each line is one object, like {"text": "..."}.')
    return [_text(_found(parsed, name), name) for name in names]


def _found(row: dict[str, Any], name: str, above: str = "") -> Any:
    """The value of a key, or of a path of keys."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if dot and isinstance(row.get(first), dict):
        return _found(row[first], rest, f"{above}{first}.")
    raise ValueError(unknown("key", above + name, [above + key for key in row]))


def _text(value: object, name: str) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if value is not None and not isinstance(value, str):
        raise ValueError(f"key {name!r} holds {'a list' if isinstance(value, list) else 'an object'}, not text.")
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"key {name!r} holds half a character (a lone surrogate), which is no text.") from error
    return value
