"""The inputs of a caller: one, or several in a list, an iterator, a column or a table.

Tables and columns are known by what they offer, so that no library that makes them is needed:
pandas, Polars, Arrow, `datasets` and numpy all do.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sixjars_runtime.errors import DataError, shown, the

Key = str | int
"""The name of a column, or its number in a file without a header."""
Takes = Callable[[str, list[Any]], bool]
"""Whether a list is one value of a field, such as the sentences of a document."""
BYTES: Final = (bytes, bytearray, memoryview)
AS_LIST: Final = ("to_pylist", "to_list", "tolist")
"""What columns call the method that makes a list of them: Arrow; pandas and Polars; numpy, torch
and others."""
MISSING: Final = ("NAType", "NaTType")
"""The types that pandas has for a value that is not there; they cannot be compared."""
UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, NotImplementedError)
"""What a table may raise when it is asked for one of its columns."""


def is_table(value: object) -> bool:
    """Whether this has columns with names; its type is asked, as some would compute columns."""
    has_names = any(hasattr(type(value), name) for name in ("column_names", "columns"))
    return has_names and not isinstance(value, Mapping)


def is_column(value: object) -> bool:
    """Whether this is a column or an array, with a method that makes a list of its values."""
    return not isinstance(value, BYTES) and _lister(value) is not None


def is_missing(value: object) -> bool:
    """Whether a value is not there.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    is_nan = isinstance(value, float) and value != value
    return is_nan or value is None or type(value).__name__ in MISSING


def inputs_of(inputs: Any, columns: Mapping[str, Key], takes: Takes) -> tuple[list[Any], bool]:
    """Return the inputs that a caller gives, and whether it is one alone.

    `columns` are those of the fields.

    >>> def never(name, value):
    ...     return False
    >>> inputs_of("a text", {"source": "body"}, never)
    (['a text'], True)
    >>> inputs_of({"body": ["one", "two"]}, {"source": "body"}, never)
    ([{'source': 'one'}, {'source': 'two'}], False)
    """
    inputs = as_row(inputs, columns)
    if isinstance(inputs, str | os.PathLike):
        return [inputs], True
    if isinstance(inputs, Mapping):
        several = _columns_of_dict(inputs, columns, takes)
        return ([inputs], True) if several is None else (_rows(several), False)
    if is_table(inputs):
        return _rows(_columns_of_table(inputs, columns)), False
    items = several_of(inputs)
    if isinstance(items, str):  # an array without dimensions
        return [items], True
    if is_column(inputs) and len(columns) > 1:
        raise DataError(
            f"this run reads {' and '.join(columns)}, but one column is given "
            f"({type(inputs).__name__}); give a table that has them all, or a list of dicts."
        )
    return items, False


def several_of(inputs: Any) -> Any:
    """Return the values of a list, an iterator, a column or an array, and refuse anything else."""
    if isinstance(inputs, set | frozenset):
        raise DataError(
            "a set has no order, so nobody could tell which output is of which input; give a "
            "list, sorted(INPUTS)."
        )
    if is_column(inputs):
        return _values(inputs)
    if isinstance(inputs, BYTES) or not isinstance(inputs, Iterable):
        raise DataError(
            f"give a text, or a list of inputs, but not {shown(inputs)} ({type(inputs).__name__})."
        )
    items = list(inputs)
    for number, item in enumerate(items, start=1):
        if is_table(item):
            raise DataError(
                f"input {number} is a whole table ({type(item).__name__}); give each table alone, "
                "or all of them as one."
            )
    return items


def as_row(item: Any, columns: Mapping[str, Key]) -> Any:
    """Return a row of a table (a Series, a named tuple) as a dict, and anything else as it is."""
    named = getattr(item, "_asdict", None)
    if isinstance(item, tuple) and callable(named):
        return named()
    labels = getattr(item, "index", None)
    if isinstance(item, str | list | tuple) or callable(labels):
        return item
    if not is_column(item) or not is_column(labels):
        return item
    names = _values(labels)
    is_row = {*columns.values()} <= {name for name in names if isinstance(name, str)}
    return dict(zip(names, map(_cell, _values(item)), strict=True)) if is_row else item


def by_name(item: Any, columns: Mapping[str, Key]) -> Mapping[str, Any]:
    """Return one input with a value for each field; ValueError with the end of a sentence."""
    names, item = list(columns), as_row(item, columns)
    is_value = isinstance(item, str | list | os.PathLike) or is_missing(item)
    if not isinstance(item, Mapping) and not (is_value and len(names) == 1):
        if len(names) == 1:
            raise ValueError(f"{the(names[0])} must be a text, but is {shown(item)}.")
        raise ValueError(f"must be a dict of {' and '.join(names)}, but is {shown(item)}.")
    row = {names[0]: item} if is_value else _by_field(item, columns)
    if row is None:
        raise ValueError(
            f"must name {' and '.join(names)}, but has {', '.join(map(str, item)) or 'no key'}."
        )
    if empty := [name for name, value in row.items() if is_missing(value)]:
        raise ValueError(
            f"{' and '.join(map(the, empty))} {'has' if len(empty) == 1 else 'have'} no value."
        )
    paths = {key: os.fspath(value) for key, value in row.items() if isinstance(value, os.PathLike)}
    return {**row, **paths}


def _by_field(row: Mapping[Any, Any], columns: Mapping[str, Key]) -> dict[str, Any] | None:
    """Return the values of a row by field, or None where it names neither fields nor columns.

    A number is a column of a file, counted from 1: the keys of a dict mean something else, even if
    they are numbers.
    """
    if {*row} == {*columns}:
        return {name: row[name] for name in columns}
    if all(isinstance(key, str) and key in row for key in columns.values()):
        return {name: row[key] for name, key in columns.items()}
    return None


def _columns_of_dict(
    row_or_columns: Mapping[Any, Any], columns: Mapping[str, Key], takes: Takes
) -> dict[str, list[Any]] | None:
    """Return the columns of a dict with a list for each field, or None where it is one input."""
    tables = [name for name, value in row_or_columns.items() if is_table(value)]
    if tables:
        raise DataError(f"{shown(tables[0])} of the dict is a whole table; give that table alone.")
    row = _by_field(row_or_columns, columns) or {}
    several = [isinstance(value, list | tuple) or is_column(value) for value in row.values()]
    if not row or not all(several):
        return None
    lists = {name: _values(value) for name, value in row.items()}
    for name, values in lists.items():
        # A Series or an Arrow array is always a column; else a field may take all of it.
        is_series = _lister(row[name], AS_LIST[:2]) is not None
        if not is_series and (not isinstance(values, list) or takes(name, values)):
            return None
    counts = {name: len(values) for name, values in lists.items()}
    if len({*counts.values()}) > 1:
        lengths = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise DataError(f"the lists of a dict must have equally many values, but {lengths}.")
    return lists


def _columns_of_table(table: Any, columns: Mapping[str, Key]) -> dict[str, list[Any]]:
    """Return the column of each field in a table, or the objects in one at the path of its key.

    These are the columns that the run was trained on. Names of fields count only where the table
    has no other columns, as in a dict: `source` is what many tables call where a text is from.
    """
    # The type is asked, because pandas has each column as an attribute too.
    names = table.column_names if hasattr(type(table), "column_names") else table.columns
    if names is None:
        kind = type(table).__name__
        raise DataError(
            f"the columns of this {kind} are not known; make a pandas or Arrow table of it."
        )
    names = list(names)
    if {*names} == {*columns}:
        return {name: _column(table, names, name) for name in columns}
    # Every name is looked for before the first column is read.
    paths, there = {}, ", ".join(map(repr, names)) or "none"
    for name, key in columns.items():
        if isinstance(key, int):
            raise DataError(
                f"this run was trained on column {key} of a file without a header; call the "
                f"columns of the table {' and '.join(map(repr, columns))}, and leave out all "
                f"others; its columns: {there}."
            )
        paths[name] = [key] if key in names else key.split(".")
        if paths[name][0] not in names:
            raise DataError(
                f"the table has no column {key!r}, which this run reads; its columns: {there}."
            )
    return {name: _column(table, names, *path) for name, path in paths.items()}


def _column(table: Any, names: Sequence[Any], name: str, *inside: str) -> list[Any]:
    """Return the values of a column; with names `inside`, those of the objects in it."""
    if names.count(name) > 1:
        raise DataError(f"the table has the column {name!r} {names.count(name)} times; rename one.")
    values: list[Any]
    try:
        values = _values(table[name])
    except UNREADABLE as error:
        raise DataError(
            f"the column {name!r} cannot be read from a {type(table).__name__}; make a pandas or "
            "Arrow table of it."
        ) from error
    for step in inside:
        values = [value.get(step) if isinstance(value, Mapping) else None for value in values]
    return values


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, map(_cell, row), strict=True)) for row in rows]


def _values(column: Any) -> Any:
    """Return a column as a list, or as one text where an array has no dimensions."""
    method = _lister(column)
    return list(column) if method is None else method()


def _lister(column: Any, names: Sequence[str] = AS_LIST) -> Callable[[], Any] | None:
    """Return the method that makes a list of a column, or None where it has none."""
    methods = (getattr(column, name, None) for name in names)
    return next((method for method in methods if callable(method)), None)


def _cell(value: Any) -> Any:
    """Return a value as a table for training has it: numbers as they are written."""
    if is_missing(value):
        return None
    if is_column(value):  # numbers of numpy are one too
        value = _values(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
