"""JSON lines: one object on each line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow

from sixjars.data.parting import kind_of, texts_of
from sixjars.data.readers.lines import lines_of
from sixjars.data.readers.rows import Asked, Block, Fault, Key
from sixjars.errors import DataError, unknown

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""


def read_jsonl(path: Path, asked: Asked) -> Iterator[Block]:
    """Values by key; `a.b` reaches into an object unless there is a key `a.b`.

    A list under a key of `asked.spelled` is made a text. A list of texts under a key of `asked.many` is as many rows,
    all with the same line.
    """
    keys = asked.keys
    for key in keys:
        check_name(path, key)
    for lines in lines_of(path):
        rows: list[tuple[str | None, ...]] = []
        kept: list[int] = []
        faults = list(lines.faults)
        for text, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
            try:
                found = _values(text, asked)
                rows += found
                kept += [line] * len(found)
            except ValueError as error:
                faults.append(Fault(line, str(error)))
        columns = [pyarrow.array((row[place] for row in rows), pyarrow.string()) for place in range(len(keys))]
        yield Block(dict(zip(keys, columns, strict=True)), numpy.array(kept, dtype=numpy.int64), faults)


def check_name(path: Path, key: Key) -> None:
    """Refuses a column that is given by number."""
    if isinstance(key, int):
        raise DataError(f"{path}: JSON lines have names, not numbers, so column {key} is not there; give its name.")


def object_of(text: str) -> dict[str, Any]:
    """The object on a line; raises ValueError with a sentence where there is none."""
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
    return parsed


def _values(text: str, asked: Asked) -> list[tuple[str | None, ...]]:
    """The rows of a line: one, or as many as there are combinations of the texts in lists."""
    row = object_of(text)
    return list(product(*(_texts(value_of(row, str(key)), str(key), asked) for key in asked.keys)))


def _texts(value: object, name: str, asked: Asked) -> list[str | None]:
    """One text, or those of a list where that may be."""
    if not isinstance(value, list):
        return [text_of(value, name)]
    if name in asked.spelled:
        with about(name):
            value = asked.spelled[name](value)
        return [text_of(value, name)]
    return list(listed(value, name)) if name in asked.many else [text_of(value, name)]


@contextmanager
def about(name: str) -> Iterator[None]:
    """The end of a sentence that says what is wrong with a value gets its beginning: the name of the key."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"key {name!r} {error}") from error


def listed(value: object, name: str) -> list[str]:
    """The texts of a list; raises ValueError with a sentence where it is none."""
    with about(name):
        texts = texts_of(value)
    for text in texts:
        text_of(text, name)
    return texts


def value_of(row: dict[str, Any], name: str, above: str = "") -> Any:
    """The value of a key, or of a path of keys; raises ValueError with a sentence where there is none."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if dot and isinstance(row.get(first), dict):
        return value_of(row[first], rest, f"{above}{first}.")
    raise ValueError(unknown("key", above + name, [above + key for key in row]))


def text_of(value: object, name: str) -> str | None:
    """A value of JSON as text, where it is one; raises ValueError with a sentence where it is not."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is not None and not isinstance(value, str):
        raise ValueError(f"key {name!r} holds {kind_of(value)}, not text.")
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"key {name!r} holds half a character (a lone surrogate), which is no text.") from error
    return value
