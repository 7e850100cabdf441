"""Files become rows of text: TSV, CSV, JSON, Parquet, Excel, plain text, the hub, and datasets.

A bad row is named by file and line, or counted and left out; nothing is guessed. Each format is one
class of `FORMATS`: `read` takes its `records` for training and scoring; `table_file` opens it for
prediction, which reads its `rows` and appends them, with the outputs, to a file of its kind.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from sixjars.data.storage.cache import Examples
from sixjars.data.tables.captions import read_coco, read_flickr8k
from sixjars.data.tables.delimited import DelimitedFile, read_parallel
from sixjars.data.tables.dialect import notes_on, refitted, unsaid_header
from sixjars.data.tables.dialogs import read_dialogs
from sixjars.data.tables.excel import ExcelFile
from sixjars.data.tables.folders import read_folders
from sixjars.data.tables.json_objects import JsonFile
from sixjars.data.tables.memory import MEMORY, read_memory
from sixjars.data.tables.parquet import HUB, ParquetFile, read_hub
from sixjars.data.tables.rows import Key, Places, ReadSettings, ToText, kept
from sixjars.data.tables.table_file import TableFile
from sixjars.data.text.files import ending_of, is_gzipped
from sixjars.recipe.data import LEARN, Column, Files, TableSettings
from sixjars.recipe.sections import DataSettings
from sixjars_runtime.errors import DataError, unknown

__all__ = ["FORMATS", "Examples", "header_as_data", "read", "read_rows", "table_file"]

FORMATS: Final[dict[str, type[TableFile]]] = {
    ".csv": DelimitedFile,
    ".tsv": DelimitedFile,
    ".json": JsonFile,
    ".jsonl": JsonFile,
    ".parquet": ParquetFile,
    ".txt": DelimitedFile,
    ".xlsx": ExcelFile,
}
"""The formats of files with rows, by the ending of their names."""
_PACKED: Final = tuple(ending for ending in FORMATS if ending not in (".parquet", ".xlsx"))
"""Endings that `.gz` may follow."""
_ONE_FILE: Final = "files are given for {}; name one file."
_SPECIAL: Final[dict[str, tuple[Callable[[Any, ReadSettings], Examples], str]]] = {
    "coco": (read_coco, f"one .json file, but {_ONE_FILE}"),
    "dialogs": (read_dialogs, f"one file of JSON lines, but {_ONE_FILE}"),
    "flickr8k": (read_flickr8k, ""),
    "folders": (read_folders, "one folder (or .zip), but {} are given; name one folder."),
}
"""Other formats, and what each is instead of several files, where it may not be several."""


def read(
    files: Files,
    columns: Mapping[str, Column],
    *,
    settings: DataSettings,
    many: Collection[str] = (),
    as_text: Mapping[str, ToText] | None = None,
    empty: bool = False,
) -> Examples:
    """The rows of a file (or of parallel files) as a table of text.

    `columns` has the user's column for each field. If all are numbers, TSV and CSV files have no
    header. `a.b` reaches into a structure (JSON lines, Parquet, hub). A dataset of the hub is
    `hf:NAME`, `hf:NAME:SPLIT` or `hf:NAME@CONFIG:SPLIT`, NAME being `name`, `org/name` or a folder.
    For a field in `many`, a list of texts is a row for each of them, all with the same line. For
    one in `as_text`, which goes before `many`, the function makes one text of a list. With `empty`,
    a text may be empty.
    """
    as_text = as_text or {}
    try:
        wanted = ReadSettings(
            columns,
            _filter(columns, settings),
            settings.on_bad_row,
            many=[key for name, key in columns.items() if name in many],
            as_text={key: as_text[name] for name, key in columns.items() if name in as_text},
            speakers=settings.speakers,
            empty=empty,
        )
        return _read(files, settings, wanted)
    except DataError as error:
        links = columns.get("alignment")
        if links is None or repr(links) not in str(error):
            raise
        if not get_close_matches(str(links).lower(), [LEARN]):
            raise
        raise DataError(
            f"{error} For links that are learned, write `data.alignment: {LEARN}`."
        ) from None


def _read(files: Files, settings: DataSettings, wanted: ReadSettings) -> Examples:
    """The rows of a dataset of the hub, a table in memory, or files."""
    if not isinstance(files, str):
        places = {key: settings.path(file) for key, file in files.items()}
        return read_rows(places, wanted, settings.format, settings)
    if settings.format == "table":
        if files.startswith(HUB):
            folder = Path(settings.folder).expanduser()
            return kept(read_hub(files, wanted, folder=folder), wanted, name=files, unit="row")
        if files.startswith(MEMORY):
            return read_memory(files, wanted)
        if files != settings.train:  # the delimiter of the recipe may be that of another file
            changes = refitted(settings.path(files), wanted.keys, settings)
            settings = settings.model_copy(update=changes)
    return read_rows(settings.path(files), wanted, settings.format, settings)


def read_rows(
    place: Places, wanted: ReadSettings, form: str = "table", settings: TableSettings | None = None
) -> Examples:
    """The wanted columns of a file, of parallel files, or of the format `form`."""
    if form != "table":
        reader, single = _SPECIAL[form]
        if single and isinstance(place, Mapping):
            raise DataError(f"Format {form} is {single.format(', '.join(place))}")
        return reader(place, wanted)
    if isinstance(place, Mapping):
        return _parallel(place, wanted)
    settings = settings or TableSettings()
    kind = _format_of(place)
    if settings.sheet is not None and kind is not ExcelFile:
        raise DataError(
            f"'sheet' names a sheet of an .xlsx workbook, but the data is {place}; remove it."
        )
    table = kind(place, wanted.fields, settings)
    records = table.records(wanted)  # before the unit, which a JSON file finds then
    examples = kept(records, wanted, name=str(place), unit=table.unit)
    return replace(examples, notes=(*notes_on(table), *examples.notes))


def table_file(
    path: Path, columns: Mapping[str, Key], settings: TableSettings | None = None
) -> TableFile | None:
    """A file with columns to predict from; None for plain text, which has one input a line.

    `columns` has the one of each field, by name or number; `settings` how the data of the run is
    written. The file may be written in another way, and call a column by the name of its field.
    """
    ending = ending_of(path)
    if not _is_known(path) or ending == ".txt":
        return None
    settings = settings or TableSettings()
    names = [key if isinstance(key, int) else (key, field) for field, key in columns.items()]
    changes = refitted(path, names, settings)
    return FORMATS[ending](path, columns, settings.model_copy(update=changes))


def _is_known(path: Path) -> bool:
    return ending_of(path) in (_PACKED if is_gzipped(path) else FORMATS)


def header_as_data(path: Path, settings: TableSettings) -> list[str]:
    """The cells of a first line that looks like names of columns and need not be a header."""
    return unsaid_header(_format_of(path)(path, {}, settings))


def _filter(columns: Mapping[str, Column], settings: DataSettings) -> dict[Key, str]:
    """The values of columns that rows must have; columns are all named, or all numbered."""
    numbered = [key for key in columns.values() if isinstance(key, int)]
    named = [key for key in columns.values() if not isinstance(key, int)]
    if numbered and named:
        raise DataError(
            f"Columns are given by name ({named[0]!r}) and by number ({numbered[0]}); "
            "use names alone, or numbers alone (then the file has no header)."
        )
    for name in settings.filter if numbered else ():
        if not (name.isascii() and name.isdigit() and int(name)):
            raise DataError(
                f"'filter' names column {name!r}, but the other columns are given by number; give "
                "its number from 1."
            )
    return {int(name) if numbered else name: value for name, value in settings.filter.items()}


def _format_of(path: Path) -> type[TableFile]:
    """The format of a file with rows, by its ending."""
    if _is_known(path):
        return FORMATS[ending_of(path)]
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name a file in it (or write hf:FOLDER).")
    ending = "".join(path.suffixes[-2:]) if is_gzipped(path) else path.suffix
    endings = [*FORMATS, *(f"{ending}.gz" for ending in _PACKED)]
    raise DataError(f"{path}: {unknown('ending', ending, endings)}")


def _parallel(paths: Mapping[str, Path], wanted: ReadSettings) -> Examples:
    for key in wanted.keys:
        if key not in paths:
            raise DataError(f"Parallel files: {unknown('column', key, list(paths))}")
    files: dict[Key, Path] = {key: paths[str(key)] for key in wanted.keys}
    names = {key: str(path) for key, path in files.items()}
    records = read_parallel(files, wanted)
    return kept(records, replace(wanted, files=names), name=" + ".join(names.values()))
