"""Records with values by name, as JSON lines, Parquet and the hub have them: they become columns of text."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow

from sixjars.data.readers.lines import AT_ONCE, decoded_lines
from sixjars.data.readers.rows import Block, Fault, Key, Wanted, column_named
from sixjars.data.text.files import check_file
from sixjars.data.text.segments import kind_of, texts_of
from sixjars.errors import DataError, MissingExtra, unknown

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""
HUB: Final = "hf:"
"""What the name of a dataset begins with: `hf:NAME[@CONFIG][:SPLIT]`."""

Record = tuple[int, Mapping[str, Any] | Fault]
"""Where it was, counted from 1, and its values by name."""


def blocks_of(records: Iterable[Record], wanted: Wanted, keys: list[Key] | None = None) -> Iterator[Block]:
    """Records as columns of text, some thousand at a time.

    `a.b` reaches into an object unless there is a name `a.b`. A list in a column of `wanted.as_text` is made a text. A
    list of texts in a column of `wanted.many` is as many rows, all with the same line.
    """
    names = wanted.keys if keys is None else keys
    stream = iter(records)
    while some := list(islice(stream, AT_ONCE)):
        rows: list[tuple[str | None, ...]] = []
        lines: list[int] = []
        faults = []
        for line, record in some:
            if isinstance(record, Fault):
                faults.append(record)
                continue
            try:
                found = list(product(*(_texts(value_of(record, str(key)), key, wanted) for key in names)))
                rows += found
                lines += [line] * len(found)
            except ValueError as error:
                faults.append(Fault(line, str(error)))
        columns = {key: pyarrow.array((row[at] for row in rows), pyarrow.string()) for at, key in enumerate(names)}
        yield Block(columns, numpy.array(lines, dtype=numpy.int64), faults)


def read_jsonl(path: Path, wanted: Wanted) -> Iterator[Block]:
    """One object on each line."""
    check_named(path, wanted.keys)
    return blocks_of(json_records(path), wanted)


def check_named(path: Path, keys: Iterable[Key]) -> None:
    """Refuses a column that is given by number."""
    for key in keys:
        if isinstance(key, int):
            raise DataError(f"{path}: JSON lines have names, not numbers, so column {key} is not there; give its name.")


def json_records(path: Path) -> Iterator[Record]:
    """The object on each line."""
    for line, text in decoded_lines(path):
        if isinstance(text, Fault):
            yield line, text
            continue
        try:
            yield line, object_of(text)
        except ValueError as error:
            yield line, Fault(line, str(error))


def object_of(text: str) -> dict[str, Any]:
    """The object of a JSON text; raises ValueError with a sentence where there is none."""
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


def read_parquet(path: Path, wanted: Wanted) -> Iterator[Block]:
    """Rows of a Parquet file; a column may also be given by its number."""
    import pyarrow.parquet

    check_file(path)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = _names(file.schema_arrow.names, wanted, str(path))
            tops = list(
                dict.fromkeys(
                    name if name in file.schema_arrow.names else name.partition(".")[0] for name in names.values()
                )
            )
            yield from _renamed(_arrow_records(file.iter_batches(AT_ONCE, columns=tops)), wanted, names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file or is damaged: {str(error).splitlines()[0]}") from error


def read_hub(name: str, wanted: Wanted, *, folder: Path) -> Iterator[Block]:
    """Rows of `datasets.load_dataset`; NAME may be `org/name`, or a folder on this machine.

    The split is `train` unless named, and may be any that the library understands: `hf:imdb:train[:10%]`.
    """
    dataset, _, split = name.removeprefix(HUB).partition(":")
    dataset, _, config = dataset.partition("@")
    if not dataset:
        raise DataError(f"{name!r} is no name of a dataset; write hf:NAME, hf:NAME:SPLIT or hf:NAME@CONFIG:SPLIT.")
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingExtra("datasets", "hub") from None
    here = folder / dataset
    try:
        place = str(here) if here.is_dir() else dataset
        found = load_dataset(place, config or None, split=split or "train").with_format("arrow")
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{name} cannot be loaded: {reason}") from error
    names = _names(found.column_names, wanted, name)
    yield from _renamed(_arrow_records(found.iter(batch_size=AT_ONCE)), wanted, names)


def _names(columns: list[str], wanted: Wanted, where: str) -> dict[Key, str]:
    """The name of every column that is wanted, which the table must have, or have a structure to reach into."""
    found: dict[Key, str] = {}
    for key in wanted.keys:
        if isinstance(key, int):
            if key > len(columns):
                raise DataError(f"{where}: column {key} is asked for, but there are {len(columns)}.")
            found[key] = columns[key - 1]
        elif key in columns or key.partition(".")[0] in columns:
            found[key] = key
        else:
            raise DataError(f"{where}: {unknown('column', key, columns)}")
    return found


def _arrow_records(batches: Iterable[Any]) -> Iterator[Record]:
    line = 0
    for batch in batches:
        try:
            rows: list[Any] = batch.to_pylist()
        except UnicodeDecodeError:  # Parquet may call bytes text that are none
            rows = [_decoded(batch, at, line + at + 1) for at in range(len(batch))]
        for row in rows:
            line += 1
            yield line, row


def _decoded(batch: Any, row: int, line: int) -> Mapping[str, Any] | Fault:
    try:
        found: Mapping[str, Any] = batch.slice(row, 1).to_pylist()[0]
    except UnicodeDecodeError as error:
        return Fault(line, f"byte {error.start + 1} of a text is not UTF-8.")
    return found


def _renamed(records: Iterator[Record], wanted: Wanted, names: Mapping[Key, str]) -> Iterator[Block]:
    """Blocks with the columns as they are wanted, by name or by number."""
    rows = (
        (line, row if isinstance(row, Fault) else {str(k): value_of(row, n) for k, n in names.items()})
        for line, row in records
    )
    return blocks_of(rows, wanted)


def value_of(row: Mapping[str, Any], name: str, above: str = "") -> Any:
    """The value of a name, or of a path of names; raises ValueError with a sentence where there is none."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if dot and isinstance(row.get(first), Mapping):
        return value_of(row[first], rest, f"{above}{first}.")
    raise ValueError(unknown("column", above + name, [above + key for key in row]))


def _texts(value: object, key: Key, wanted: Wanted) -> list[str | None]:
    """One text, or those of a list where that may be."""
    if not isinstance(value, list):
        return [text_of(value, key)]
    if key in wanted.as_text:
        with about(key):
            value = wanted.as_text[key](value)
        return [text_of(value, key)]
    return list(listed(value, key)) if key in wanted.many else [text_of(value, key)]


@contextmanager
def about(key: Key) -> Iterator[None]:
    """The end of a sentence that says what is wrong with a value gets its beginning: the column."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{column_named(key)} {error}") from error


def listed(value: object, key: Key) -> list[str]:
    """The texts of a list; raises ValueError with a sentence where it is none."""
    with about(key):
        texts = texts_of(value)
    for text in texts:
        text_of(text, key)
    return texts


def text_of(value: object, key: Key) -> str | None:
    """A value as text, where it is one; raises ValueError with a sentence where it is not."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start + 1} of {column_named(key)} is not UTF-8.") from None
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{column_named(key)} holds {kind_of(value)}, not text.")
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            told = f"{column_named(key)} holds half a character (a lone surrogate), which is no text."
            raise ValueError(told) from error
    return value
