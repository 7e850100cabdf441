"""Rows on their way from a file to a table: the records of readers, and the good rows."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final, final

import numpy
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.bad_rows import SHOWN, note_on
from sixjars.data.storage.cache import LINE, Examples
from sixjars.data.storage.spool import Spool
from sixjars.progress import counted
from sixjars_runtime.errors import DataError, unknown
from sixjars_runtime.text.segments import kind_of, texts_of

Key = str | int  # a column as the user names it: its name, or its number from 1
Places = Path | Mapping[str, Path]  # the place of a split, or several by name
ToText = Callable[[object], str]
"""Makes one text of a list, or raises ValueError with the end of a sentence: `holds ...`."""
_REASONS = 100  # reasons that are kept, the most frequent ones
AT_ONCE = 1 << 14  # records that become a piece of the table together


@final
@dataclass(frozen=True)
class RowFault:
    """One bad row: where it is, and what is wrong with it."""

    line: int
    sentence: str
    file: str | None = None
    """The file, if it is one of several parallel files."""
    cells: Sequence[str] | None = field(default=None, compare=False)
    """The cells of a row whose bytes are not all UTF-8; such a byte is a lone surrogate there."""


Record = tuple[int, Mapping[Any, Any] | RowFault]
"""The line of a record, counted from 1, and its values by column; or what is wrong with it."""
Fields = tuple[
    int, list[str] | RowFault
]  # the number of the first line of a record, and its fields


ESCAPED: Final = re.compile("[\udc80-\udcff]")
"""The lone surrogates that stand for bytes that are not UTF-8, so that they can be written again."""


def escaped(raw: bytes) -> str:
    """A line without its end, whatever its bytes are."""
    return raw.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def decoded(number: int, raw: bytes) -> str | RowFault:
    r"""A line of UTF-8 without its end, which is `\n` or `\r\n`."""
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1} of the line (0x{raw[error.start]:02x})"
        return RowFault(number, f"{place} is not UTF-8; save the file as UTF-8.")


@final
@dataclass(frozen=True)
class RecordBlock:
    """Many records at once: a `pyarrow` array for each column, their lines, and bad records."""

    columns: Mapping[Key, Any]
    lines: "NDArray[numpy.int64]"
    faults: Sequence[RowFault] = ()


Source = Iterable[Record] | Iterable[RecordBlock]  # the records or pieces of a reader


@final
@dataclass(frozen=True)
class ReadSettings:
    """What to read from a file: columns, a filter, and how to treat bad rows and lists."""

    fields: Mapping[str, Key]
    """Our field -> their column."""
    filter: Mapping[Key, str] = field(default_factory=dict)
    """Keep only rows with these values."""
    on_bad_row: str = "error"
    """`error` or `skip`."""
    files: Mapping[Key, str] = field(default_factory=dict)
    """The file of each column, where there is more than one."""
    many: Collection[Key] = ()
    """Columns in which a list of texts makes a row for each of them."""
    as_text: Mapping[Key, ToText] = field(default_factory=dict)
    """Columns in which a list is one value, and what makes a text of it."""
    speakers: Key | None = None
    """The column of who speaks each turn, where rows are conversations."""
    empty: bool = False
    """Whether a text may be empty."""

    @property
    def keys(self) -> list[Key]:
        """Every column to read, each once."""
        return list(dict.fromkeys([*self.fields.values(), *self.filter]))


def check_columns(wanted: ReadSettings, known: Sequence[str], where: object) -> None:
    """Refuse columns that a format does not have."""
    for key in wanted.keys:
        if key not in known:
            raise DataError(f"{where}: {unknown('column', key, known)}")


def kept(records: Source, wanted: ReadSettings, *, name: str, unit: str = "line") -> Examples:
    """The good rows of all records; a bad one is an error or is counted, as the settings say."""
    skipped = seen = 0
    bad: list[RowFault] = []
    reasons = Counter[str]()

    def good_rows() -> Iterator[Any]:
        nonlocal skipped, seen, bad
        pieces = _pieces(records, wanted)
        for piece in counted(pieces, f"reading {name}", rows=lambda piece: len(piece.lines)):
            seen += len(piece.lines) + len(piece.faults)
            table, empty = _good_rows(piece.columns, piece.lines, wanted)
            faults = [*piece.faults, *empty]
            bad = sorted([*bad, *faults], key=lambda fault: fault.line)[:SHOWN]
            if bad and wanted.on_bad_row == "error":
                place = f"{bad[0].file or name}, {unit} {bad[0].line}"
                raise DataError.of_row(f"{place}: {bad[0].sentence}")
            reasons.update(fault.sentence for fault in faults)
            skipped += len({(fault.file, fault.line) for fault in faults})
            yield table

    table = _joined(good_rows())
    if not seen:
        raise DataError(f"{name} has no rows.")
    if not len(table):
        were = "was" if skipped == 1 else "were"
        why = f"{skipped} {were} bad and {seen - skipped} did not fit 'filter'."
        if bad:
            why += f" The first bad one is {unit} {bad[0].line}: {bad[0].sentence}"
        raise DataError(f"{name}: no row is left of {seen}; {why}")
    named = [(fault.line, fault.sentence) for fault in bad]
    others = skipped > len(bad)
    notes = (note_on(named, skipped, name=name, unit=unit, others=others),) if bad else ()
    return Examples(table, skipped, name, notes, unit, dict(reasons.most_common(_REASONS)))


def _joined(tables: Iterator[Any]) -> Any:
    """All tables as one, in a file where it is large; one alone is what it is."""
    first, second = next(tables, None), next(tables, None)
    if second is None:
        return first
    spool = Spool()
    for table in chain((first, second), tables):
        spool.add(table)
    return spool.table()


def _pieces(records: Iterable[Any], wanted: ReadSettings) -> Iterator[RecordBlock]:
    """Group records into pieces; pieces stay as they are."""
    stream = iter(records)
    for item in stream:
        if isinstance(item, RecordBlock):
            yield item
        else:
            yield piece_of([item, *islice(stream, AT_ONCE - 1)], wanted)


def piece_of(records: Sequence[Record], wanted: ReadSettings) -> RecordBlock:
    """Records as one piece; a value is null where there is none."""
    faults = [record for _, record in records if isinstance(record, RowFault)]
    good = [(line, record) for line, record in records if not isinstance(record, RowFault)]
    keys = wanted.keys
    lines = [line for line, _ in good]
    try:  # most records have texts alone, by the wanted names: a column is made in one step
        columns = {key: _strings(record[key] for _, record in good) for key in keys}
        return RecordBlock(columns, numpy.array(lines, dtype=numpy.int64), faults)
    except (KeyError, UnicodeEncodeError, pyarrow.ArrowException):
        rows: list[tuple[str | None, ...]] = []
        lines = []
    for line, record in good:
        try:
            texts = [_texts(value_of(record, key), key, wanted) for key in keys]
            combined = list(product(*texts))
            rows += combined
            lines += [line] * len(combined)
        except ValueError as error:
            faults.append(RowFault(line, str(error)))
    columns = {key: _strings(row[at] for row in rows) for at, key in enumerate(keys)}
    return RecordBlock(columns, numpy.array(lines, dtype=numpy.int64), faults)


def _strings(texts: Iterable[Any]) -> Any:
    return pyarrow.array(list(texts), pyarrow.string())


def _good_rows(
    columns: Mapping[Key, Any], lines: "NDArray[numpy.int64]", wanted: ReadSettings
) -> tuple[Any, list[RowFault]]:
    """The rows that fit the filter and have a text in every column, and the others' faults."""
    compute = pyarrow.compute
    good = numpy.ones(len(lines), dtype=bool)
    for key, value in wanted.filter.items():
        good &= _plain(compute.equal(columns[key], value))
    faults: list[RowFault] = []
    table = {}
    for name, key in wanted.fields.items():
        column = columns[key]
        if name in ANNOTATIONS or wanted.empty:  # an annotation may be missing in some rows
            table[name] = column.fill_null("")
            continue
        missing = _plain(column.is_null())
        empty = _plain(compute.equal(compute.binary_length(column), 0))
        empty |= _plain(compute.utf8_is_space(column))
        for row in numpy.flatnonzero(good & (missing | empty)):
            what = "has no value" if missing[row] else "is empty"
            faults.append(
                RowFault(int(lines[row]), f"column {key!r} {what}.", wanted.files.get(key))
            )
        good &= ~(missing | empty)
        table[name] = column
    rows = pyarrow.table({**table, LINE: lines})
    return (rows if good.all() else rows.filter(pyarrow.array(good))), faults


def _plain(truth: Any) -> "numpy.ndarray[Any, numpy.dtype[numpy.bool_]]":
    """A `pyarrow` truth array for numpy; unknown is false."""
    return numpy.asarray(truth.fill_null(fill_value=False), dtype=numpy.bool_)


# Values: what is wrong with one is a ValueError with a sentence.


def path_of(names: Mapping[Any, Any], key: Key, above: str = "") -> list[Key]:
    """The steps to a value: its name, or else those of `a.b` into an object."""
    if key in names:
        return [key]
    first, dot, rest = str(key).partition(".")
    if dot and isinstance(names.get(first), Mapping):
        return [first, *path_of(names[first], rest, f"{above}{first}.")]
    raise ValueError(unknown("column", f"{above}{key}", [f"{above}{name}" for name in names]))


def value_of(record: Mapping[Any, Any], key: Key) -> Any:
    """The value of a column, which may be inside an object."""
    value: Any = record
    for step in path_of(record, key):
        value = value[step]
    return value


def _texts(value: object, key: Key, wanted: ReadSettings) -> list[str | None]:
    """The texts of a value: one, or those of a list where that is allowed."""
    if isinstance(value, list) and key in wanted.as_text:
        with about(key):
            value = wanted.as_text[key](value)
    elif isinstance(value, list) and key in wanted.many:
        return [*listed(value, key)]
    return [text_of(value, key)]


@contextmanager
def about(key: Key) -> Iterator[None]:
    """Begin sentences about a wrong value with its column."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"column {key!r} {error}") from error


def listed(value: object, key: Key) -> list[str]:
    """The texts of a list."""
    with about(key):
        texts = texts_of(value)
    for text in texts:
        text_of(text, key)
    return texts


def text_of(value: object, key: Key) -> str | None:
    """A value as text; ValueError where it is none."""
    try:
        if isinstance(value, UnicodeDecodeError):
            raise value
        text = value.decode() if isinstance(value, bytes) else value
        if isinstance(text, bool):
            text = str(text).lower()
        if text is None or (isinstance(text, str) and (text.isascii() or text.encode())):
            return text
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} of column {key!r} is not UTF-8.") from None
    except UnicodeEncodeError:
        raise ValueError(
            f"column {key!r} holds half a character (a lone surrogate), which is no text."
        ) from None
    raise ValueError(f"column {key!r} holds {kind_of(value)}, not text.")
