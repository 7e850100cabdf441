"""Records with values by name: JSON lines, Parquet, and datasets of the hub."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.compute

from sixjars.data.tables.delimited import decoded_lines
from sixjars.data.tables.rows import AT_ONCE, Fault, Key, Record, Wanted, path_of, value_of
from sixjars.data.text.files import check_file, ending_of, lines_of
from sixjars_runtime.errors import DataError, MissingExtra, first_line

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""
HUB: Final = "hf:"  # prefix of datasets of the hub: `hf:NAME[@CONFIG][:SPLIT]`


def read_jsonl(path: Path, wanted: Wanted) -> Iterator[Record]:
    """JSON lines; a `.json` file may also be one list of objects, or an object with such a list."""
    check_named(path, wanted.keys)
    return json_records(path)


def check_named(path: Path, keys: Iterable[Key]) -> None:
    """Refuse a column that is given by number."""
    for key in keys:
        if isinstance(key, int):
            raise DataError(
                f"{path}: JSON lines have names, not numbers, so column {key} is not there; give "
                "its name."
            )


def json_records(path: Path) -> Iterator[Record]:
    """Each object with the line that it begins on; or as `json_unit` says."""
    if _may_be_list(path) and (text := _list_in(path)):
        yield from _listed_objects(path, text)
        return
    for number, line in decoded_lines(path):
        try:
            yield number, line if isinstance(line, Fault) else _object(line)
        except ValueError as error:
            yield number, Fault(number, str(error))


def json_unit(path: Path) -> str:
    """The unit of a JSON file: `line`, or `row` where a list has all records on one line."""
    if not _may_be_list(path):
        return "line"
    lines = _first_lines(path)
    return "row" if len(lines) == 1 and lines[0].startswith((b"[", b"{")) else "line"


def _may_be_list(path: Path) -> bool:
    return ending_of(path) == ".json"


def _first_lines(path: Path) -> list[bytes]:
    """The first two lines that are not blank, without white space before them."""
    stripped = (line.lstrip() for _, line in lines_of(path))
    return list(islice(filter(None, stripped), 2))


def _list_in(path: Path) -> str:
    """The whole file where it begins as a list does, or the one list of an object; else nothing."""
    first = _first_lines(path)
    return _whole(path) if first and first[0].startswith(b"[") else wrapped_list(path)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def wrapped_list(path: Path) -> str:
    """The list of objects in a `.json` file with an object around it, `{"data": [...]}`.

    Empty lines stand for what is before it, so that errors name the right line.
    """
    first = _first_lines(path)
    lines = not _may_be_list(path) or (len(first) > 1 and _is_json(first[0]))
    if lines or not first or not first[0].startswith(b"{"):
        return ""
    text = _whole(path)
    lists: dict[str, str] = {}
    try:
        at = _skip(text, _skip(text, 0) + 1)
        while text[at : at + 1] == '"':
            name, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # behind the colon
            value, end = DECODER.raw_decode(text, at)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                lists[name] = "\n" * text.count("\n", 0, at) + text[at:end]
            at = _skip(text, end)
            at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    except (ValueError, RecursionError):  # lines, maybe
        return ""
    if len(lists) > 1:
        names = ", ".join(lists)
        raise DataError(
            f"{path} is an object with several lists ({names}); save the one that is meant as a "
            "file."
        )
    return next(iter(lists.values()), "")


def _whole(path: Path) -> str:
    content = b"".join(line for _, line in lines_of(path))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: is not UTF-8; save the file as UTF-8.") from None


def _listed_objects(path: Path, text: str) -> Iterator[Record]:
    """The objects of a list, one after the other."""
    at = _skip(text, _skip(text, 0) + 1)
    line, counted, row = 1, 0, 0
    by_row = "\n" not in text.strip()
    while text[at : at + 1] != "]":
        line += text.count("\n", counted, at)
        counted = at
        row += 1
        number = row if by_row else line
        try:
            value, end = DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}, line {error.lineno}: is not JSON: {error.msg} at column {error.colno}."
            ) from None
        except RecursionError:
            raise DataError(
                f"{path}, line {line}: has too many brackets inside brackets."
            ) from None
        fault = Fault(number, "is no object; a list holds objects here.")
        yield number, value if isinstance(value, dict) else fault
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            broken = text.count("\n", 0, at) + 1
            raise DataError(
                f"{path}, line {broken}: is not JSON: a comma or the end of the list is missing."
            )


def _skip(text: str, at: int) -> int:
    """The place of the next character that is no white space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _object(text: str) -> dict[str, Any]:
    if not text or text.isspace():
        raise ValueError("the line is empty.")
    try:
        parsed = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not JSON: {error.msg} at column {error.colno}; each line is one object."
        ) from error
    except RecursionError as error:
        raise ValueError(
            "is not JSON that can be read: too many brackets inside brackets."
        ) from error
    if not isinstance(parsed, dict):
        raise ValueError(
            'is JSON, but not an object; each line is one object, like {"text": "..."}.'
        )
    return parsed


def read_parquet(path: Path, wanted: Wanted) -> Iterator[Record]:
    """Rows of a Parquet file; a column may also be given by its number."""
    check_file(path)
    with opened_parquet(path) as file:
        paths = _paths(file.schema_arrow, wanted, str(path))
        tops = list(dict.fromkeys(first for first, *_ in paths.values()))
        yield from _rows(file.iter_batches(AT_ONCE, columns=tops), lambda _: paths)


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; every way this can fail is a sentence."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} is not a Parquet file or is damaged: {first_line(error)}."
        ) from error


def read_hub(name: str, wanted: Wanted, *, folder: Path) -> Iterator[Record]:
    """Rows of `datasets.load_dataset`; NAME may be `org/name`, or a folder on this machine.

    The split is `train` unless named, and may be any that the library understands:
    `hf:imdb:train[:10%]`.
    """
    dataset, _, split = name.removeprefix(HUB).partition(":")
    dataset, _, config = dataset.partition("@")
    if not dataset:
        raise DataError(
            f"{name!r} is no name of a dataset; write hf:NAME, hf:NAME:SPLIT or "
            "hf:NAME@CONFIG:SPLIT."
        )
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingExtra("datasets", "hub") from None
    here = folder / dataset
    try:
        place = str(here) if here.is_dir() else dataset
        table = load_dataset(place, config or None, split=split or "train").with_format("arrow")
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{name} cannot be loaded: {reason}") from error
    batches = table.iter(batch_size=AT_ONCE)
    yield from _rows(batches, lambda batch: _paths(batch.schema, wanted, name))


def table_rows(table: Any, wanted: Wanted, where: str) -> Iterator[Record]:
    """Rows of an Arrow table in memory."""
    paths = _paths(table.schema, wanted, where)
    return _rows(table.to_batches(AT_ONCE), lambda _: paths)


def _paths(schema: Any, wanted: Wanted, where: str) -> dict[Key, list[Any]]:
    """Where each wanted column is in a table, by name, by path into structures, or by number."""
    tree = _tree(schema)
    paths: dict[Key, list[Any]] = {}
    for key in wanted.keys:
        if isinstance(key, int) and key > len(schema.names):
            raise DataError(
                f"{where}: column {key} is asked for, but there are {len(schema.names)}."
            )
        name = schema.names[key - 1] if isinstance(key, int) else key
        try:
            inside, paths[key] = value_of(tree, name), path_of(tree, name)
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        if schema.names.count(paths[key][0]) > 1:
            raise DataError(f"{where}: column {paths[key][0]!r} is there twice; rename one.")
        if inside is not None:
            names = ", ".join(f"{name}.{field}" for field in inside)
            raise DataError(
                f"{where}: column {key!r} holds an object, not text; name what is in it: {names}."
            )
    return paths


def _tree(fields: Iterable[Any]) -> dict[str, Any]:
    """Names of columns, with those inside of structures."""
    is_struct = pyarrow.types.is_struct
    return {field.name: _tree(field.type) if is_struct(field.type) else None for field in fields}


def _rows(
    batches: Iterable[Any], paths_in: Callable[[Any], dict[Key, list[Any]]]
) -> Iterator[Record]:
    line = 0
    for batch in batches:
        paths = paths_in(batch)
        columns = [_values(batch.column(first), inside) for first, *inside in paths.values()]
        for values in zip(*columns, strict=True):
            line += 1
            yield line, dict(zip(paths, values, strict=True))


def _values(column: Any, inside: Sequence[str]) -> list[Any]:
    """The values of a column: texts, numbers, dates as texts; lists and structures as they are."""
    if inside:
        column = pyarrow.compute.struct_field(column, inside)
    try:
        if not pyarrow.types.is_nested(column.type):
            column = column.cast(pyarrow.string())
        values: list[Any] = column.to_pylist()
    except (UnicodeDecodeError, pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        return list(map(_value, column))
    return values


def _value(scalar: Any) -> Any:
    """The value of a scalar; a UnicodeDecodeError in place of bytes that are no text."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error
