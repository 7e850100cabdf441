"""Tables in memory: rows of a pandas or Arrow table, or dicts, in place of a file.

A recipe calls such a table `memory:train`; whoever uses the recipe gives the table again.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow

from sixjars.data.storage.cache import Examples
from sixjars.data.tables.parquet import table_rows
from sixjars.data.tables.rows import ReadSettings, Record, RowFault, kept
from sixjars_runtime.errors import DataError, first_line, shown

MEMORY: Final = "memory:"  # prefix of the names of tables in memory
WANTED: Final = "data must be a pandas or Arrow table, or a list of dicts"
_GIVEN: ContextVar[Mapping[str, Any]] = ContextVar("tables in memory", default=MappingProxyType({}))


@contextmanager
def given_tables(tables: Mapping[str, Any]) -> Iterator[None]:
    """Make these tables known to recipes, by their names."""
    before = _GIVEN.set({**_GIVEN.get(), **tables})
    try:
        yield
    finally:
        _GIVEN.reset(before)


def tables_of(data: object, splits: Collection[str]) -> dict[str, Any]:
    """The tables that a caller gives, by name: one for training, or one for each named split."""
    if data is None:
        return {}
    named = data if isinstance(data, Mapping) else {"train": data}
    if not named or not set(named) <= set(splits):
        raise DataError(
            f"{WANTED}, or one of these for each of {', '.join(splits)}; but it has "
            f"{shown([*named])}."
        )
    return {f"{MEMORY}{name}": table_of(table) for name, table in named.items()}


def table_of(data: Any) -> Any:
    """One table: Arrow's, or a list of dicts, or one that offers itself to Arrow, as pandas' do."""
    if isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data):
        return list(data)
    if isinstance(data, str | os.PathLike):
        raise DataError(
            f"data is a table in memory, but {shown(os.fspath(data))} names a file; name it in the "
            f"recipe, data: {{train: FILE}}, or in the overrides, ['data.train=FILE']."
        )
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pyarrow.table(data)
        to_dict = getattr(data, "to_dict", None)
        if hasattr(data, "columns") and callable(to_dict):  # pandas before 2.2
            return list(data.to_dict("records"))
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the table cannot be read: {first_line(error)}.") from error
    raise DataError(f"{WANTED}, but is {shown(data)} ({type(data).__name__}).")


def read_memory(name: str, wanted: ReadSettings) -> Examples:
    """Read the rows of a table in memory."""
    table = _GIVEN.get().get(name)
    if table is None:
        split = name.removeprefix(MEMORY)
        raise DataError(
            f"{name} is data that was in memory, not a file; give it again from Python: "
            f"data={{{split!r}: TABLE}}."
        )
    is_list = isinstance(table, list)
    rows = _records(table, name, wanted) if is_list else table_rows(table, wanted, name)
    return kept(rows, wanted, name=name, unit="row")


def _records(rows: list[Mapping[str, Any]], name: str, wanted: ReadSettings) -> Iterator[Record]:
    numbers = [key for key in wanted.keys if isinstance(key, int)]
    if numbers:
        raise DataError(
            f"{name}: dicts have names, not numbers, so column {numbers[0]} is not there; give its "
            "name."
        )
    for number, row in enumerate(rows, start=1):
        try:
            yield number, {key: _plain(value) for key, value in row.items()}
        except ValueError as error:
            yield number, RowFault(number, str(error))


def _plain(value: Any) -> Any:
    """A value as a file would have it: numbers and paths as texts, and no value for NaN."""
    value = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(Path(value))
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def with_tables(tables: Iterable[str]) -> list[str]:
    """Overrides that put tables in memory in the place of a recipe's files."""
    named = [f"data.{name.removeprefix(MEMORY)}={name}" for name in tables]
    return ["data.sample=null", *named] if named else []
