"""Tables that are stored by column: Parquet files, and what the `datasets` library loads."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow
import pyarrow.compute

from sixjars.data.readers.lines import check_file
from sixjars.data.readers.rows import Asked, Block, Fault, Key, Speller, spoken
from sixjars.errors import DataError, MissingExtra, unknown

HUB: Final = "hf:"
"""What the name of a dataset begins with: `hf:NAME[@CONFIG][:SPLIT]`."""
_ROWS = 1 << 16
_NAME = re.compile(r"hf:(?P<name>[^@:]+)(?:@(?P<config>[^@:]+))?(?::(?P<split>.+))?")


def read_parquet(path: Path, asked: Asked) -> Iterator[Block]:
    """Columns by name, by path into structures, or by number.

    A list in a column of `asked.spelled` is made a text; a list of texts in one of `asked.many` is as many rows.
    """
    import pyarrow.parquet

    check_file(path)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            paths = _paths(file.schema_arrow, asked, str(path))
            tops = list(dict.fromkeys(steps[0] for steps in paths.values()))
            first = 1
            for batch in file.iter_batches(_ROWS, columns=tops):
                yield _block(pyarrow.Table.from_batches([batch]), paths, asked, first, str(path))
                first += len(batch)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file or is damaged: {str(error).splitlines()[0]}") from error


def read_hub(name: str, asked: Asked, *, folder: Path) -> Iterator[Block]:
    """Rows of `datasets.load_dataset`; NAME may be `org/name`, or a folder on this machine.

    The split is `train` unless named, and may be any that the library understands: `hf:imdb:train[:10%]`.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise DataError(f"{name!r} is no name of a dataset; write hf:NAME, hf:NAME:SPLIT or hf:NAME@CONFIG:SPLIT.")
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingExtra("datasets", "hub") from None
    here = folder / found["name"]
    place = str(here) if here.is_dir() else found["name"]
    try:
        dataset = load_dataset(place, found["config"], split=found["split"] or "train").with_format("arrow")
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{name} cannot be loaded: {reason}") from error
    first = 1
    for table in dataset.iter(batch_size=_ROWS):
        yield _block(table, _paths(table.schema, asked, name), asked, first, name)
        first += len(table)


def _paths(schema: Any, asked: Asked, where: str) -> dict[Key, list[str]]:
    return {key: _path(schema, key, where, asked) for key in asked.keys}


def _path(schema: Any, key: Key, where: str, asked: Asked) -> list[str]:
    """The names to follow from the top to a column that holds text or numbers, or lists of them where they may be."""
    if isinstance(key, int):
        if key > len(schema.names):
            raise DataError(f"{where}: column {key} is asked for, but there are {len(schema.names)}.")
        steps, kind = [schema.names[key - 1]], schema.field(key - 1).type
    else:
        steps, kind = _steps(schema, key, where)
    listed = _is_any_list(kind) if key in asked.spelled else key in asked.many and _is_list(kind)
    if pyarrow.types.is_nested(kind) and not listed:
        inner = [f"{key}.{part.name}" for part in kind] if pyarrow.types.is_struct(kind) else []
        hint = f" Name one of its parts: {', '.join(inner)}." if inner else ""
        raise DataError(f"{where}: {spoken(key)} holds {kind}, not text.{hint}")
    return steps


def _is_any_list(kind: Any) -> bool:
    """Whether a column's values are lists, whatever is in them."""
    types = pyarrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_list(kind: Any) -> bool:
    """Whether a column's values are lists of text or numbers."""
    types = pyarrow.types
    if not types.is_list(kind) and not types.is_large_list(kind):
        return False
    held = kind.value_type
    return not (types.is_nested(held) or types.is_binary(held) or types.is_large_binary(held))


def _steps(schema: Any, name: str, where: str) -> tuple[list[str], Any]:
    steps: list[str] = []
    known = {part.name: part.type for part in schema}
    rest = name
    while rest not in known:
        first, dot, after = rest.partition(".")
        if not dot or first not in known or not pyarrow.types.is_struct(known[first]):
            prefix = "".join(f"{step}." for step in steps)
            raise DataError(f"{where}: {unknown('column', name, [prefix + other for other in known])}")
        steps.append(first)
        known = {part.name: part.type for part in known[first]}
        rest = after
    return [*steps, rest], known[rest]


def _block(table: Any, paths: dict[Key, list[str]], asked: Asked, first: int, where: str) -> Block:
    lines = numpy.arange(first, first + len(table), dtype=numpy.int64)
    columns: dict[Key, Any] = {}
    faults: list[Fault] = []
    good = numpy.ones(len(table), dtype=bool)
    for key, steps in paths.items():
        column = table.column(steps[0]).combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):
            column = pyarrow.concat_arrays(column.chunks) if column.num_chunks else column.type.wrap_array([])
        if len(steps) > 1:
            column = pyarrow.compute.struct_field(column, steps[1:])
        if key in asked.spelled and _is_any_list(column.type):
            columns[key] = _spelled(column, key, asked.spelled[key], (lines, good, faults))
        else:
            columns[key] = _as_text(column, key, where, (lines, good, faults))
    if not good.all():
        keep = pyarrow.array(good)
        columns, lines = {key: column.filter(keep) for key, column in columns.items()}, lines[good]
    for key in [key for key, column in columns.items() if _is_list(column.type)]:
        columns, lines = _spread(columns, key, lines, faults)
    return Block(columns, lines, faults)


def _spread(columns: dict[Key, Any], key: Key, lines: Any, faults: list[Fault]) -> tuple[dict[Key, Any], Any]:
    """A row for each text in a column of lists; the other columns are repeated."""
    texts: list[str | None] = []
    rows: list[int] = []
    for row, found in enumerate(columns[key].to_pylist()):
        if found == [] or (found and None in found):
            what = "a list with null in it; it may hold texts alone" if found else "an empty list"
            faults.append(Fault(int(lines[row]), f"{spoken(key)} holds {what}."))
            continue
        many = [None] if found is None else found
        texts += many
        rows += [row] * len(many)
    places = pyarrow.array(rows, pyarrow.int64())
    repeated = {other: column.take(places) for other, column in columns.items() if other != key}
    return {**repeated, key: pyarrow.array(texts, pyarrow.string())}, lines[rows]


def _spelled(column: Any, key: Key, speller: Speller, bad: tuple[Any, Any, list[Fault]]) -> Any:
    """A column of lists as strings, one for each."""
    lines, good, faults = bad
    texts: list[str | None] = []
    for row, value in enumerate(column.to_pylist()):
        try:
            texts.append(None if value is None else speller(value))
        except ValueError as error:
            texts.append(None)
            good[row] = False
            faults.append(Fault(int(lines[row]), f"{spoken(key)} {error}"))
    return pyarrow.array(texts, pyarrow.string())


def _as_text(column: Any, key: Key, where: str, bad: tuple[Any, Any, list[Fault]]) -> Any:
    """A column as strings, or as lists of them; bytes that are no UTF-8 are bad rows."""
    kind = pyarrow.list_(pyarrow.string()) if _is_list(column.type) else pyarrow.string()
    try:
        return column.cast(kind)
    except pyarrow.ArrowNotImplementedError as error:
        raise DataError(f"{where}: {spoken(key)} holds {column.type}, not text.") from error
    except pyarrow.ArrowInvalid:
        lines, good, faults = bad
        texts = []
        for row, value in enumerate(column.to_pylist()):
            try:
                texts.append(value.decode() if isinstance(value, bytes) else value)
            except UnicodeDecodeError as error:
                texts.append(None)
                good[row] = False
                faults.append(Fault(int(lines[row]), f"byte {error.start + 1} of {spoken(key)} is not UTF-8."))
        return pyarrow.array(texts, pyarrow.string())
