"""Rows on their way from a file to a table: what a reader yields, and the sieve that keeps the good ones."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

import numpy
import pyarrow
import pyarrow.compute

from sixjars.errors import DataError, unknown

LINE: Final = "line"
"""The column of an example that says where in its file it was."""
MAY_BE_EMPTY: Final = ("alignment", "boxes", "keys")
"""The fields that a row may leave empty: no links or places are known there."""

Key = str | int
"""A column as the user names it: its name, or its number from 1."""
Places = Path | Mapping[str, Path]
"""Where a part of the data is: one place, or several by name."""
Speller = Callable[[object], str]
"""Makes one text of a list; where it cannot, it raises ValueError with the end of a sentence: `holds ...`."""


@final
@dataclass(frozen=True)
class Examples:
    """The rows of one file, as text."""

    table: Any
    """A `pyarrow.Table`: a string column for each field asked for, in that order, then `line`, from 1."""
    skipped: int
    """Bad rows that were left out."""
    where: str
    """The file's name, for messages."""


def examples_of(columns: Mapping[str, Sequence[str]], *, where: str) -> Examples:
    """Examples that come from no file, numbered from 1.

    >>> examples_of({"source": ["a", "b"], "target": ["c", "d"]}, where="a test").table.column_names
    ['source', 'target', 'line']
    """
    arrays = {name: pyarrow.array(texts, pyarrow.string()) for name, texts in columns.items()}
    count = len(next(iter(arrays.values())))
    return Examples(pyarrow.table({**arrays, LINE: numpy.arange(1, count + 1, dtype=numpy.int64)}), 0, where)


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
    """A `pyarrow` string array for each column asked for (or more); null where there is no value."""
    lines: "numpy.ndarray[Any, numpy.dtype[numpy.int64]]"
    """Where each row was in its file, counted from 1."""
    faults: Sequence[Fault] = ()
    """Rows that could not be read, and are not in the columns."""


@final
@dataclass(frozen=True)
class Asked:
    """What the user wants of a file."""

    fields: Mapping[str, Key]
    """Our field -> their column."""
    where: Mapping[Key, str]
    """Keep only rows with these values."""
    on_bad_row: str
    """`error` or `skip`."""
    files: Mapping[Key, str] = field(default_factory=dict)
    """The file of each column, where there is more than one."""
    many: Collection[Key] = ()
    """Columns in which a list of texts makes a row for each of them."""
    spelled: Mapping[Key, Speller] = field(default_factory=dict)
    """Columns in which a list is one value, and what makes a text of it."""
    speakers: Key | None = None
    """The column of who speaks each turn, where rows are conversations."""

    @property
    def keys(self) -> list[Key]:
        """Every column to read, each once."""
        return list(dict.fromkeys([*self.fields.values(), *self.where]))


def spoken(key: Key) -> str:
    """A column in a sentence.

    >>> spoken("en"), spoken(2)
    ("column 'en'", 'column 2')
    """
    return f"column {key!r}"


def check_columns(asked: Asked, known: Sequence[str], where: object) -> None:
    """Refuses columns that a format does not have."""
    for key in asked.keys:
        if key not in known:
            raise DataError(f"{where}: {unknown('column', key, known)}")


def sieved(blocks: Iterable[Block], asked: Asked, *, name: str, unit: str = "line") -> Examples:
    """The good rows of all blocks; a bad one is an error or is counted, as the settings say."""
    tables, skipped, seen = [], 0, 0
    for block in blocks:
        table, faults = _sifted(block, asked)
        if faults and asked.on_bad_row == "error":
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
        raise DataError(f"{name}: no row is left of {seen}; {skipped} were bad and {unfit} did not fit 'where'.")
    return Examples(table, skipped, name)


def _sifted(block: Block, asked: Asked) -> tuple[Any, list[Fault]]:
    compute = pyarrow.compute
    good = numpy.ones(len(block.lines), dtype=bool)
    for key, value in asked.where.items():
        good &= _plain(compute.equal(block.columns[key], value))
    faults = list(block.faults)
    columns = {}
    for name, key in asked.fields.items():
        column = block.columns[key]
        if name in MAY_BE_EMPTY:
            columns[name] = column.fill_null("")
            continue
        missing = _plain(column.is_null())
        empty = _plain(compute.equal(compute.binary_length(column), 0)) | _plain(compute.utf8_is_space(column))
        for row in numpy.flatnonzero(good & (missing | empty)):
            what = "has no value" if missing[row] else "is empty"
            faults.append(Fault(int(block.lines[row]), f"{spoken(key)} {what}.", asked.files.get(key)))
        good &= ~(missing | empty)
        columns[name] = column
    table = pyarrow.table({**columns, LINE: block.lines})
    return (table if good.all() else table.filter(pyarrow.array(good))), faults


def _plain(truth: Any) -> "numpy.ndarray[Any, numpy.dtype[numpy.bool_]]":
    """A pyarrow truth array for numpy, unknown taken for false."""
    return numpy.asarray(truth.fill_null(fill_value=False), dtype=numpy.bool_)
