"""Files become rows of text: TSV, CSV, JSON lines, Parquet, plain text, parallel files, the hub, and known datasets.

A bad row is named by file and line, or counted and left out; nothing is guessed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy
import pyarrow

from sixjars.data.readers.captions import read_coco, read_flickr8k
from sixjars.data.readers.delimited import TEXT, read_csv, read_text, read_tsv
from sixjars.data.readers.dialogs import read_dialogs
from sixjars.data.readers.folders import read_folders
from sixjars.data.readers.records import HUB, read_hub, read_jsonl, read_parquet
from sixjars.data.readers.rows import Block, Fault, Key, Places, ToText, Wanted, kept
from sixjars.data.storage.cache import Examples
from sixjars.errors import DataError, unknown
from sixjars.recipe.sections import Column, DataSettings, Files

__all__ = ["Examples", "read"]

_Reader = Callable[[Path, Wanted], Iterator[Block]]


def _flat(reader: Callable[[Path, Sequence[Key]], Iterator[Block]]) -> _Reader:
    """A reader of files that cannot hold lists."""
    return lambda path, wanted: reader(path, wanted.keys)


_PACKED: dict[str, _Reader] = {
    ".csv": _flat(read_csv),
    ".json": read_jsonl,
    ".jsonl": read_jsonl,
    ".tsv": _flat(read_tsv),
    ".txt": _flat(read_text),
}
_READERS: dict[str, _Reader] = {
    **_PACKED,
    **{f"{ending}.gz": reader for ending, reader in _PACKED.items()},
    ".parquet": read_parquet,
}
_FORMATS: dict[str, Callable[[Places, Wanted], Examples]] = {
    "coco": read_coco,
    "dialogs": read_dialogs,
    "flickr8k": read_flickr8k,
    "folders": read_folders,
}


def read(
    files: Files,
    columns: Mapping[str, Column],
    *,
    settings: DataSettings,
    many: Collection[str] = (),
    as_text: Mapping[str, ToText] | None = None,
) -> Examples:
    """The rows of a file (or of parallel files) as a table of text.

    `columns` says which of the user's columns fills each of our fields. If all are numbers, TSV and CSV files
    have no header; otherwise the first line is the header. `a.b` reaches into a structure (JSON lines,
    Parquet, hub). A dataset of the hub is `hf:NAME`, `hf:NAME:SPLIT` or `hf:NAME@CONFIG:SPLIT`, NAME being
    `name`, `org/name` or a folder. For a field in `many`, a list of texts (JSON lines, Parquet, hub) is a row for
    each of them, all with the same line. For a field in `as_text`, a list is one value, and the function makes a text
    of it; this goes before `many`.
    """
    wanted = _wanted(columns, settings, many, as_text or {})
    if settings.format != "table":
        return _FORMATS[settings.format](_places(files, settings), wanted)
    if isinstance(files, dict):
        return _read_parallel({key: settings.path(name) for key, name in files.items()}, wanted)
    if files.startswith(HUB):
        folder = Path(settings.folder).expanduser()
        return kept(read_hub(files, wanted, folder=folder), wanted, name=files, unit="row")
    path = settings.path(files)
    reader = _reader(path)
    unit = "row" if reader is read_parquet else "line"
    return kept(reader(path, wanted), wanted, name=str(path), unit=unit)


def _places(files: Files, settings: DataSettings) -> Places:
    if isinstance(files, dict):
        return {key: settings.path(name) for key, name in files.items()}
    return settings.path(files)


def _wanted(
    columns: Mapping[str, Column], settings: DataSettings, many: Collection[str], as_text: Mapping[str, ToText]
) -> Wanted:
    numbered = [key for key in columns.values() if isinstance(key, int)]
    if numbered and len(numbered) < len(columns):
        named = [key for key in columns.values() if not isinstance(key, int)]
        raise DataError(
            f"Columns are given by name ({named[0]!r}) and by number ({numbered[0]}); "
            "use names alone, or numbers alone (then the file has no header)."
        )
    kept_rows: dict[Key, str] = {}
    for name, value in settings.filter.items():
        if numbered and not (name.isascii() and name.isdigit() and int(name)):
            raise DataError(
                f"'filter' names column {name!r}, but the other columns are given by number; give its number from 1."
            )
        kept_rows[int(name) if numbered else name] = value
    lists = [key for name, key in columns.items() if name in many]
    texts = {key: as_text[name] for name, key in columns.items() if name in as_text}
    return Wanted(columns, kept_rows, settings.on_bad_row, many=lists, as_text=texts, speakers=settings.speakers)


def _reader(path: Path) -> _Reader:
    ending = "".join(path.suffixes[-2:]) if path.suffix.lower() == ".gz" else path.suffix
    reader = _READERS.get(ending.lower())
    if reader is None:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a file; name a file in it (or write hf:FOLDER).")
        raise DataError(f"{path}: {unknown('ending', ending, list(_READERS))}")
    return reader


def _read_parallel(paths: Mapping[str, Path], wanted: Wanted) -> Examples:
    """Line i of each file is row i."""
    for key in wanted.keys:
        if key not in paths:
            raise DataError(f"Parallel files: {unknown('column', key, list(paths))}")
    files: dict[Key, Path] = {key: paths[str(key)] for key in wanted.keys}
    whole = {key: _whole(path) for key, path in files.items()}
    (first, one), *others = ((key, len(block.lines)) for key, block in whole.items())
    for key, count in others:
        if count != one:
            raise DataError(
                f"Parallel files must have equally many lines: {files[first]} has {one}, but {files[key]} has {count}."
            )
    faults = [Fault(fault.line, fault.sentence, str(files[key])) for key in whole for fault in whole[key].faults]
    good = numpy.ones(one, dtype=bool)
    good[[fault.line - 1 for fault in faults]] = False
    keep = pyarrow.array(good)
    columns = {key: block.columns[TEXT].filter(keep) for key, block in whole.items()}
    block = Block(columns, numpy.flatnonzero(good) + 1, faults)
    names = {key: str(path) for key, path in files.items()}
    return kept([block], replace(wanted, files=names), name=" + ".join(names.values()))


def _whole(path: Path) -> Block:
    """A text file in one block; a line that is no UTF-8 has no value and is a fault."""
    blocks = list(read_text(path, [TEXT]))
    faults = [fault for block in blocks for fault in block.faults]
    lines = numpy.concatenate([block.lines for block in blocks])
    texts = pyarrow.chunked_array([block.columns[TEXT] for block in blocks], pyarrow.string())
    if faults:
        gap = pyarrow.nulls(len(faults), pyarrow.string())
        lines = numpy.concatenate([lines, [fault.line for fault in faults]])
        order = numpy.argsort(lines, kind="stable")
        texts = pyarrow.chunked_array([*texts.chunks, gap]).take(pyarrow.array(order))
        lines = lines[order]
    return Block({TEXT: texts}, lines, faults)
