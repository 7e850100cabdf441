"""Rows on their way from a file to a table: what a reader yields, and what keeps the good ones."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy
import pyarrow
import pyarrow.compute

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.storage.cache import LINE, Examples
from sixjars.errors import DataError, unknown

Key = str | int
"""A column as the user names it: its name, or its number from 1."""
Places = Path | Mapping[str, Path]
"""Where a split of the data is: one place, or several by name."""
ToText = Callable[[object], str]
"""Makes one text of a list; where it cannot, it raises ValueError with the end of a sentence: `holds ...`."""


@final
@dataclass(frozen=True)
class Fault:
    """One bad row: where it is, and what is wrong with it."""

    line: int
    sentence: str
    file: str | None = None
    """Where it is not the file that is being read: one of several parallel files."""


@final
@dataclass(frozen=True)
class Block:
    """Some rows of a file, in its order."""

    columns: Mapping[Key, Any]
    """A `pyarrow` string array for each column wanted for (or more); null where there is no value."""
    lines: "numpy.ndarray[Any, numpy.dtype[numpy.int64]]"
    """Where each row was in its file, counted from 1."""
    faults: Sequence[Fault] = ()
    """Rows that could not be read, and are not in the columns."""


@final
@dataclass(frozen=True)
class Wanted:
    """What the user wants of a file."""

    fields: Mapping[str, Key]
    """Our field -> their column."""
    filter: Mapping[Key, str]
    """Keep only rows with these values."""
    on_bad_row: str
    """`error` or `skip`."""
    files: Mapping[Key, str] = field(default_factory=dict)
    """The file of each column, where there is more than one."""
    many: Collection[Key] = ()
    """Columns in which a list of texts makes a row for each of them."""
    as_text: Mapping[Key, ToText] = field(default_factory=dict)
    """Columns in which a list is one value, and what makes a text of it."""
    speakers: Key | None = None
    """The column of who speaks each turn, where rows are conversations."""

    @property
    def keys(self) -> list[Key]:
        """Every column to read, each once."""
        return list(dict.fromkeys([*self.fields.values(), *self.filter]))


def column_named(key: Key) -> str:
    """A column in a sentence.

    >>> column_named("en"), column_named(2)
    ("column 'en'", 'column 2')
    """
    return f"column {key!r}"


def check_columns(wanted: Wanted, known: Sequence[str], where: object) -> None:
    """Refuses columns that a format does not have."""
    for key in wanted.keys:
        if key not in known:
            raise DataError(f"{where}: {unknown('column', key, known)}")


def kept(blocks: Iterable[Block], wanted: Wanted, *, name: str, unit: str = "line") -> Examples:
    """The good rows of all blocks; a bad one is an error or is counted, as the settings say."""
    tables, skipped, seen = [], 0, 0
    for block in blocks:
        table, faults = _good_rows(block, wanted)
        if faults and wanted.on_bad_row == "error":
            first = min(faults, key=lambda fault: fault.line)
            raise DataError(f"{first.file or name}, {unit} {first.line}: {first.sentence}")
        skipped += len({fault.line for fault in faults})
        seen += len(block.lines) + len(block.faults)
        tables.append(table)
    if not seen:
        raise DataError(f"{name} has no rows.")
    table = pyarrow.concat_tables(tables)
    if not len(table):
        unfit = seen - skipped
        raise DataError(f"{name}: no row is left of {seen}; {skipped} were bad and {unfit} did not fit 'filter'.")
    return Examples(table, skipped, name)


def _good_rows(block: Block, wanted: Wanted) -> tuple[Any, list[Fault]]:
    compute = pyarrow.compute
    good = numpy.ones(len(block.lines), dtype=bool)
    for key, value in wanted.filter.items():
        good &= _plain(compute.equal(block.columns[key], value))
    faults = list(block.faults)
    columns = {}
    for name, key in wanted.fields.items():
        column = block.columns[key]
        if name in ANNOTATIONS:  # where nothing is known, it may be empty
            columns[name] = column.fill_null("")
            continue
        missing = _plain(column.is_null())
        empty = _plain(compute.equal(compute.binary_length(column), 0)) | _plain(compute.utf8_is_space(column))
        for row in numpy.flatnonzero(good & (missing | empty)):
            what = "has no value" if missing[row] else "is empty"
            faults.append(Fault(int(block.lines[row]), f"{column_named(key)} {what}.", wanted.files.get(key)))
        good &= ~(missing | empty)
        columns[name] = column
    table = pyarrow.table({**columns, LINE: block.lines})
    return (table if good.all() else table.filter(pyarrow.array(good))), faults


def _plain(truth: Any) -> "numpy.ndarray[Any, numpy.dtype[numpy.bool_]]":
    """A pyarrow truth array for numpy, unknown taken for false."""
    return numpy.asarray(truth.fill_null(fill_value=False), dtype=numpy.bool_)
