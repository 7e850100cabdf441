"""Rows of Arrow: Parquet files, datasets of the hub, and tables in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import pyarrow
import pyarrow.compute

from sixjars.data.tables.rows import (
    AT_ONCE,
    Key,
    ReadSettings,
    Record,
    RowFault,
    path_of,
    text_of,
    value_of,
)
from sixjars.data.tables.table_file import Cell, RowWriter, TableFile, TableRow
from sixjars_runtime.errors import DataError, MissingExtra, first_line

HUB: Final = "hf:"  # prefix of datasets of the hub: `hf:NAME[@CONFIG][:SPLIT]`
_ROWS: Final = 1024  # rows of a file that are decoded together for prediction


@final
class ParquetFile(TableFile):
    """Row groups; a column may also be given by its number. A file cut short cannot be opened."""

    unit = "row"

    def records(self, wanted: ReadSettings) -> Iterator[Record]:
        """The wanted columns of all rows; no other is decoded."""
        with opened_parquet(self.path) as file:
            paths = _paths(file.schema_arrow, wanted.keys, str(self.path))
            tops = list(dict.fromkeys(first for first, *_ in paths.values()))
            yield from _rows(file.iter_batches(AT_ONCE, columns=tops), lambda _: paths)

    def rows(self) -> Iterator[TableRow]:
        """The rows, of which `_ROWS` are decoded together."""
        with opened_parquet(self.path) as file:
            self.schema, self.names = file.schema_arrow, file.schema_arrow.names
            self.size = self.count = file.metadata.num_rows
            for field, key in self.columns.items():
                self.used[field] = self._named(key) or self._column(field, self.names)
            paths = _paths(self.schema, list(self.used.values()), str(self.path))
            for batch in file.iter_batches(_ROWS):
                for at, record in enumerate(_records(batch, paths)):
                    self.read += 1
                    yield TableRow(self._values(record), batch.slice(at, 1))

    def _values(self, record: Mapping[Key, Any]) -> Mapping[str, Any] | RowFault:
        """The value of each field: a text, or a list as it is."""
        values = {}
        for field, key in self.used.items():
            value = record[key]
            try:
                values[field] = value if isinstance(value, list) else text_of(value, key) or ""
            except ValueError as error:
                return RowFault(self.read, str(error))
        return values

    def _named(self, key: Key) -> str:
        return "".join(self.names[key - 1 : key]) if isinstance(key, int) else ""

    def writer(self, path: Path, added: Mapping[str, type]) -> "ParquetWriter":
        """The same schema with columns added."""
        return ParquetWriter(path, self.schema, added)


@final
class ParquetWriter(RowWriter):
    """Row groups; such a file can be opened once it was closed."""

    def __init__(self, path: Path, schema: Any, added: Mapping[str, type]) -> None:
        import pyarrow.parquet

        types = {str: pyarrow.string(), float: pyarrow.float64()}
        self.schema = schema
        self.added = [pyarrow.field(name, types[kind]) for name, kind in added.items()]
        whole = pyarrow.schema([*schema, *self.added], schema.metadata)
        self.file = pyarrow.parquet.ParquetWriter(path, whole)

    def append(self, rows: Sequence[TableRow], cells: Sequence[Sequence[Cell]]) -> None:
        """Append rows as a row group."""
        table = pyarrow.Table.from_batches([row.whole for row in rows], schema=self.schema)
        for at, field in enumerate(self.added):
            values = pyarrow.array([added[at] for added in cells], field.type)
            table = table.append_column(field, values)
        self.file.write_table(table)

    def close(self) -> None:
        """Without this, the file cannot be opened."""
        self.file.close()


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


def read_hub(name: str, wanted: ReadSettings, *, folder: Path) -> Iterator[Record]:
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
    yield from _rows(batches, lambda batch: _paths(batch.schema, wanted.keys, name))


def table_rows(table: Any, wanted: ReadSettings, where: str) -> Iterator[Record]:
    """Rows of an Arrow table in memory."""
    paths = _paths(table.schema, wanted.keys, where)
    return _rows(table.to_batches(AT_ONCE), lambda _: paths)


def _paths(schema: Any, keys: Iterable[Key], where: str) -> dict[Key, list[Any]]:
    """Where each column is in a table, by name, by path into structures, or by number."""
    tree = _tree(schema)
    paths: dict[Key, list[Any]] = {}
    for key in keys:
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
        for record in _records(batch, paths_in(batch)):
            line += 1
            yield line, record


def _records(batch: Any, paths: Mapping[Key, list[Any]]) -> Iterator[dict[Key, Any]]:
    columns = [_values(batch.column(first), inside) for first, *inside in paths.values()]
    for values in zip(*columns, strict=True):
        yield dict(zip(paths, values, strict=True))


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
