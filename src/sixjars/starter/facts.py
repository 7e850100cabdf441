"""The facts of a user's data before there is a recipe: its format, its columns, its size."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.data.media.files import MediaFiles
from sixjars.data.tables import read_rows
from sixjars.data.tables.rows import ReadSettings
from sixjars.data.text.files import ending_of, lines_of, opened
from sixjars.progress import number_of
from sixjars.recipe.data import Column, TableSettings
from sixjars.starter.columns import (
    SPEAKERS,
    SPLIT,
    ColumnChoice,
    TableSample,
    check_fields,
    guess,
    is_label,
    is_media,
    option_for,
    sample_of,
)
from sixjars.starter.notes import check_labels, unlabelled
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, shown, unknown

Data = Path | Mapping[str, Path]
"""The user's data: a file or a folder, or parallel files by the names of their columns."""
NAMES: Final = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test", "testing"),
}
"""Values that people write into a column of splits."""
FLICKR8K: Final = re.compile(r"[^\t]+#\d+\t")
"""The beginning of a line of captions in the format of Flickr8k."""
OUTPUTS: Final = {"folders": "label", "coco": "caption", "flickr8k": "caption"}
"""The column of the output in formats that name it themselves."""
SAYS: Final = {
    "dialogs": "each line is a whole conversation; every turn but the first is a target, "
    "those before it its source.",
    "folders": "the label of a file is the name of its folder.",
}
"""The meaning of formats without columns to choose."""
TABLES: Final = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".zip")
"""Endings of files that have several columns."""


@final
@dataclass(frozen=True)
class DataFacts:
    """The facts of a user's data."""

    columns: Mapping[str, Column]
    format: str = "table"
    """Its value of `data.format`."""
    rows: int | None = None
    """The number of rows; None where there is no data yet."""
    media: tuple[str, ...] = (".",)
    """The places of images or videos, from the folder of the data."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """The value of the split column for each split; empty where all rows have the same."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The settings that the values of each field suggest."""
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All values of each field."""
    speakers: bool = False
    """Whether whole conversations come with a list of who speaks."""
    split_column: Column | None = None
    """The column that says which split a row belongs to."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """Keys that say how lines become columns, where the ending of the file does not."""
    skipped: int = 0
    """Bad rows that were left out."""
    notes: tuple[str, ...] = ()
    """Sentences for a person, of bad rows for one."""
    chosen: str = ""
    """A sentence about the chosen columns, with the reasons."""


def named(data: object) -> Data | None:
    """The data that a user names: a file, several, or several by name; one alone is a file as well.

    >>> named(["c.en", "c.de"]) == {"en": Path("c.en"), "de": Path("c.de")}
    True
    """
    if data is None or isinstance(data, str | PathLike):
        return None if data is None else Path(data)
    files: list[object] = []
    if isinstance(data, Mapping | list | tuple):
        files = [*data.values()] if isinstance(data, Mapping) else [*data]
    paths = [Path(file) for file in files if isinstance(file, str | PathLike)]
    if not files or len(paths) < len(files):
        raise DataError(
            "data must be a file, a folder or several files, but is of type "
            f"{type(data).__name__}; give a table in memory to sixjars.train with a recipe as a "
            "dict, or save it as a .csv file first."
        )
    if len(paths) == 1:
        return paths[0]
    names = [*map(str, data)] if isinstance(data, Mapping) else _names(paths)
    return dict(zip(names, paths, strict=True))


def _names(files: Sequence[Path]) -> list[str]:
    """The names of the columns: the last part of the files' names in which all differ.

    >>> _names([Path("a/x.en.gz"), Path("a/x.de.gz")]), _names([Path("en.txt"), Path("de.txt")])
    (['en', 'de'], ['en', 'de'])
    """
    parts = [re.split(r"[./\\]", str(file).removesuffix(".gz"))[::-1] for file in files]
    for names in zip(*parts, strict=False):
        if len({*names}) == len(files) and all(names):
            return [*names]
    if same := [str(file) for file in files if files.count(file) > 1]:
        rule = "each parallel file has the lines of another column."
        raise DataError(f"{same[0]} is named twice; {rule}")
    return [str(file) for file in files]


def usual_columns(task: Task) -> dict[str, Column]:
    """The columns of a task's fields when nobody names others."""
    return {slot.name: slot.columns[0] for slot in task.slots}


def field_of(slot: Slot, guess: Mapping[str, Any] | None) -> Field:
    """A field with the settings of a guess, whose kind need not be the usual one of the task."""
    kind = FIELDS[(guess or {}).get("kind", slot.kind)]
    return kind(slot.name, kind.settings_class.model_validate(dict(guess or {})))


def facts_of(
    task: Task, data: Data | None, columns: Mapping[str, Column] | None = None
) -> DataFacts:
    """The facts of a file of rows, a folder (or .zip) with a folder for each label, or parallel files.

    `columns` has those that the user names; those of other fields are chosen.
    """
    if data is None:
        return DataFacts(usual_columns(task))
    if isinstance(data, Mapping):
        return _of_files(task, data, columns or {})
    return _of_file(task, data, columns or {})


def _of_file(task: Task, data: Path, named: Mapping[str, Column]) -> DataFacts:
    form, sample = _format(task, data, [*map(str, named.values())])
    columns = usual_columns(task)
    guesses: dict[str, dict[str, Any] | None] = {}
    split: Column | None = None
    table: dict[str, Any] = {}
    chosen = SAYS.get(form, "")
    odd: list[str] = []
    has_speakers = False
    if sample is None:
        columns[task.output.name] = OUTPUTS[form]
    elif form == "dialogs":
        turns = _turns(task, sample)
        columns = dict.fromkeys(columns, turns)
        guesses = {slot.name: FIELDS[slot.kind].guess([sample.first[turns]]) for slot in task.slots}
        has_speakers = isinstance(sample.first.get(SPEAKERS), list)
    else:
        choice = ColumnChoice(task, sample, data, named)
        columns, split, table = _keys(sample, choice, ending_of(data))
        guesses = {slot.name: guess(slot, choice.columns[slot.name].values) for slot in task.slots}
        chosen = choice.sentence
        odd = choice.odd_labels() if is_label(task.output) else []
    fields = {slot.name: field_of(slot, guesses.get(slot.name)) for slot in task.slots}
    output = fields[task.output.name]
    # A list of texts to output is several right answers; any other list is one value.
    plain = field_of(task.output, None).equipped(Equipment(target_options={}))
    many = [output.name] if plain.lists == "rows" else []
    values = [name for name in fields if name not in many and fields[name].lists == "value"]
    wanted = ReadSettings(
        columns if split is None else {**columns, SPLIT: split},
        many=[columns[name] for name in many],
        as_text={columns[name]: fields[name].as_text for name in values},
        on_bad_row="skip",
    )
    examples = read_rows(data, wanted, form, TableSettings.model_validate(table))
    rows = examples.table
    texts = {name: rows.column(name).to_pylist() for name in columns}
    notes = [*_unclear(sample, data), *examples.notes]
    if is_label(task.output):
        check_labels(output, texts[output.name], data)
        notes += [*unlabelled(output, columns[output.name], examples), *odd]
    return DataFacts(
        columns,
        form,
        rows=rows.num_rows,
        media=() if form == "folders" else _places(data.parent, fields, rows),
        split_column=split,
        splits={} if split is None else _splits({*rows.column(SPLIT).to_pylist()}),
        settings={name: guess or {} for name, guess in guesses.items() if name not in many},
        texts=texts,
        speakers=has_speakers,
        table=table,
        skipped=examples.skipped,
        notes=tuple(notes),
        chosen=chosen,
    )


def _format(task: Task, data: Path, named: Sequence[str]) -> tuple[str, TableSample | None]:
    """The format of the data, and the first rows of a table or of conversations."""
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not is_media(task.inputs[0]) or not is_label(task.output):
            kind = "folder" if data.is_dir() else ".zip file"
            names = ", ".join(map(str, usual_columns(task).values()))
            needs = f"{task.name} needs a file with {names} in each row."
            raise DataError(f"{data} is a {kind}; {needs}")
        return "folders", None
    if not data.is_file():
        parts = [part.strip() for part in str(data).split(",")]
        hint = f" Name several files one by one: {' '.join(f'--data {part}' for part in parts)}."
        several = len(parts) > 1 and all(Path(part).is_file() for part in parts)
        raise DataError(f"data file {data} does not exist.{hint if several else ''}")
    ending = ending_of(data)
    if task.captioned and ending == ".json":
        with suppress(ValueError, TypeError, RecursionError), opened(data) as stream:
            if {"images", "annotations"} <= set(json.load(stream)):
                return "coco", None
    if task.captioned and ending not in (".parquet", ".xlsx"):
        first_line = next(line for _, line in lines_of(data)).decode(errors="replace")
        if FLICKR8K.match(first_line):
            return "flickr8k", None
    sample = sample_of(data, ending, named)
    is_json = ending in (".jsonl", ".json")
    is_dialog = task.conversation and is_json and _turns(task, sample)
    return ("dialogs" if is_dialog else "table"), sample


def _turns(task: Task, sample: TableSample) -> str:
    """The column with all turns of a conversation, where no other holds responses; or no name."""
    [source], outputs, first = task.inputs, task.output.columns, sample.first
    turns = [name for name in source.columns if name in first]
    if not turns or not isinstance(first[turns[0]], list) or set(outputs) & set(first):
        return ""
    return turns[0] if FIELDS[source.kind].guess([first[turns[0]]]) is not None else ""


def _keys(
    sample: TableSample, choice: ColumnChoice, ending: str
) -> tuple[dict[str, Column], Column | None, dict[str, Any]]:
    """The columns as a recipe names them, that of the splits, and the keys of the file's format."""
    taken = {column.number for column in choice.columns.values()}
    splits = []
    for column in sample.columns:
        is_split = column.name == SPLIT and isinstance(column.values[0], str)
        if is_split and column.number not in taken:
            splits.append(column)
    keys, header = sample.keys([*choice.columns.values(), *splits])
    table: dict[str, Any] = {"header": True} if header else {}
    table |= {"sheet": sample.sheet} if sample.sheet else {}
    dialect = sample.dialect
    if dialect is not None and dialect.delimiter and len(sample.columns) > 1:
        if dialect.delimiter != {".csv": ",", ".tsv": "\t"}.get(ending):
            table["delimiter"] = dialect.delimiter
        if dialect.quotes != (dialect.delimiter != "\t"):
            table["quotes"] = dialect.quotes
    return dict(zip(choice.columns, keys, strict=False)), (keys[-1] if splits else None), table


def _splits(values: set[Any]) -> dict[str, str]:
    """The value of each split in a column that has values of several."""
    splits = {}
    for name, spellings in NAMES.items():
        for value in spellings:
            if {value} < values:
                splits[name] = value
    return splits


def _unclear(sample: TableSample | None, data: Path) -> list[str]:
    """A sentence where a first line that is read as an example may be a header."""
    if sample is None or sample.dialect is None or not sample.dialect.unclear:
        return []
    cells = ", ".join(shown(cell.strip()) for cell in sample.dialect.rows[0])
    return [
        f"{data}: the first line ({cells}) may be a header, and is read as an example; write "
        "`data.header: true` if it is one, `data.header: false` if not."
    ]


def _places(folder: Path, fields: Mapping[str, Field], rows: Any) -> tuple[str, ...]:
    """The places of images and videos: beside the data, or in folders and .zip files there."""
    media = [name for name, each in fields.items() if each.is_media]
    files = [file for name in media for file in rows.column(name).unique().to_pylist()]
    if not files:
        return ()
    if all(map(MediaFiles([folder], memory=folder).has, files)):
        return (".",)
    places = []
    for place in sorted(folder.iterdir()):
        if place.is_dir() or place.suffix.lower() == ".zip":
            with suppress(DataError):  # a broken archive has none of the files
                has_some = any(map(MediaFiles([place], memory=folder).has, files))
                places += [place.name] if has_some else []
    return tuple(places) or (".",)


def _of_files(task: Task, files: Mapping[str, Path], named: Mapping[str, Column]) -> DataFacts:
    """The facts of parallel files, a line of each for a row."""
    _check_parallel(task, files)
    columns = _parallel_columns(task, files, named)
    examples = read_rows(files, ReadSettings(columns, on_bad_row="skip"))
    texts = {name: examples.table.column(name).to_pylist() for name in columns}
    settings = {}
    for slot in task.slots:
        suggested = guess(slot, texts[slot.name])
        file = files[str(columns[slot.name])]
        if suggested is None:
            raise DataError(f"{file} cannot be the {slot.name}; it holds other values.")
        settings[slot.name] = suggested
    output = task.output
    if is_label(output):
        file = files[str(columns[output.name])]
        check_labels(field_of(output, settings[output.name]), texts[output.name], file)
    chosen = ", ".join(f"{name} = {key!r} ({files[str(key)]})" for name, key in columns.items())
    chosen += ", as you say" if named else ", in the order of the files"
    if len(columns) == 2 and len({slot.kind for slot in task.slots}) == 1:
        turned = " ".join(map(option_for, columns, [*columns.values()][::-1]))
        chosen += f"; the other way round: {turned}."
    else:
        chosen += "."
    return DataFacts(
        columns,
        rows=examples.table.num_rows,
        media=(),
        settings=settings,
        texts=texts,
        skipped=examples.skipped,
        notes=examples.notes,
        chosen=chosen,
    )


def _check_parallel(task: Task, files: Mapping[str, Path]) -> None:
    """Refuse files that cannot be the columns of a task."""
    fields = ", ".join(slot.name for slot in task.slots)
    for file in files.values():
        if ending_of(file) in TABLES or file.is_dir():
            kind = "a folder" if file.is_dir() else "a table of its own"
            raise DataError(
                f"several files are parallel lines, a file for each of {fields}, but {file} is "
                f"{kind}; give one to --data, and name files of other splits in the recipe "
                "(valid: FILE, test: FILE)."
            )
    if any(map(is_media, task.slots)):
        table = "its data is one table with both in each row; name one file."
        raise DataError(f"{task.role()}, so {table}")
    if len(files) != len(task.slots):
        need = f"{number_of(len(task.slots), 'file')} with a line for each row"
        raise DataError(f"{task.role()}, which is {need}, but {len(files)} are named.")


def _parallel_columns(
    task: Task, files: Mapping[str, Path], named: Mapping[str, Column]
) -> dict[str, Column]:
    """The name of the file of each field: as the user says, else in the order of the fields."""
    names = list(files)
    chosen: dict[str, str] = {}
    for field_name, key in named.items():
        check_fields(task, {field_name: key})
        number = str(key) not in names and str(key).isdecimal() and 0 < int(key) <= len(names)
        name = chosen[field_name] = names[int(key) - 1] if number else str(key)
        if name not in names:
            raise DataError(f"Parallel files: {unknown('column', key, names)}")
        if [*chosen.values()].count(name) > 1:
            owners = " and ".join(chosen)
            raise DataError(f"{files[name]} is named for {owners}; each has a file of its own.")
    left = iter(name for name in names if name not in chosen.values())
    return {slot.name: chosen.get(slot.name) or next(left) for slot in task.slots}
