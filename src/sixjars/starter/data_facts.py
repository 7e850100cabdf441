"""The facts of a user's data before there is a recipe: its format, its columns, its size."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.data.media.files import MediaFiles
from sixjars.data.storage.cache import Examples
from sixjars.data.tables import read
from sixjars.data.text.files import ending_of, lines_of, opened
from sixjars.recipe.data import Column
from sixjars.recipe.sections import DataSettings
from sixjars.starter.choose_columns import (
    SPEAKERS,
    SPLIT,
    ColumnChoice,
    choose,
    guess,
    is_label,
    odd_labels,
)
from sixjars.starter.data_notes import unlabelled
from sixjars.starter.first_rows import TableSample, sample_of
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, shown

NAMES = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test", "testing"),
}
"""Values that people write into a column of splits."""
FLICKR8K = re.compile(r"[^\t]+#\d+\t")
"""The beginning of a line of captions in the format of Flickr8k."""
OUTPUTS = {"folders": "label", "coco": "caption", "flickr8k": "caption"}
"""The column of the output in formats that name it themselves."""


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


SAYS = {
    "dialogs": "each line is a whole conversation; every turn but the first is a target, "
    "those before it its source.",
    "folders": "the label of a file is the name of its folder.",
}
"""The meaning of formats without columns to choose."""


def usual_columns(task: Task) -> dict[str, Column]:
    """The columns of a task's fields when nobody names others."""
    return {slot.name: slot.columns[0] for slot in task.slots}


def found_in(task: Task, data: Path, named: Mapping[str, Column] | None = None) -> DataFacts:
    """The facts of a file of rows, or of a folder (or .zip) with a folder for each label.

    `named` has the columns that the user names; those of other fields are chosen.
    """
    form, sample = _format(task, data, [*map(str, (named or {}).values())])
    columns: dict[str, Column] = usual_columns(task)
    guesses: dict[str, dict[str, Any] | None] = {}
    split: Column | None = None
    keys: dict[str, Any] = {}
    chosen = SAYS.get(form, "")
    notes = _unclear(sample, data)
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
        choice = choose(task, sample, data, named)
        columns, split, keys = _keys(sample, choice, ending_of(data))
        guesses = {slot.name: guess(slot, choice.columns[slot.name]) for slot in task.slots}
        chosen = choice.sentence(sample)
        odd = odd_labels(task, choice, data)
    fields = {slot.name: field_of(slot, guesses.get(slot.name)) for slot in task.slots}
    read_columns = columns if split is None else {**columns, SPLIT: split}
    examples, many = _read(task, data, fields, read_columns, {"format": form, **keys})
    rows = examples.table
    output = task.output.name
    notes += [*examples.notes, *unlabelled(fields[output], columns[output], examples), *odd]
    return DataFacts(
        columns,
        form,
        rows=rows.num_rows,
        media=() if form == "folders" else _places(data.parent, fields, rows),
        split_column=split,
        splits={} if split is None else _splits({*rows.column(SPLIT).to_pylist()}),
        settings={name: guess or {} for name, guess in guesses.items() if name not in many},
        texts={name: rows.column(name).to_pylist() for name in columns},
        speakers=has_speakers,
        table=keys,
        skipped=examples.skipped,
        notes=tuple(notes),
        chosen=chosen,
    )


def _read(
    task: Task,
    data: Path,
    fields: Mapping[str, Field],
    columns: Mapping[str, Column],
    keys: Mapping[str, Any],
) -> tuple[Examples, list[str]]:
    """The rows of the data, and the field with several values in a row, if there is one."""
    # A list of texts to output is several right answers; any other list is one value.
    output = field_of(task.output, None)
    many = [output.name] if output.equipped(Equipment(target_options={})).lists == "rows" else []
    as_text = {}
    for name, each in fields.items():
        if name not in many and each.lists == "value":
            as_text[name] = each.as_text
    settings = DataSettings.model_validate({"train": str(data), "on_bad_row": "skip", **keys})
    return read(str(data), columns, settings=settings, many=many, as_text=as_text), many


def _splits(values: set[Any]) -> dict[str, str]:
    """The value of each split in a column that has values of several."""
    splits = {}
    for name, spellings in NAMES.items():
        for value in spellings:
            if {value} < values:
                splits[name] = value
    return splits


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


def _unclear(sample: TableSample | None, data: Path) -> list[str]:
    """A sentence where a first line that is read as an example may be a header."""
    if sample is None or sample.dialect is None or not sample.dialect.unclear:
        return []
    cells = ", ".join(shown(cell.strip()) for cell in sample.dialect.rows[0])
    return [
        f"{data}: the first line ({cells}) may be a header, and is read as an example; write "
        "`data.header: true` if it is one, `data.header: false` if not."
    ]


def field_of(slot: Slot, guess: Mapping[str, Any] | None) -> Field:
    """A field with the settings of a guess, whose kind need not be the usual one of the task."""
    kind = FIELDS[(guess or {}).get("kind", slot.kind)]
    return kind(slot.name, kind.settings_class.model_validate(dict(guess or {})))


def _format(task: Task, data: Path, named: Sequence[str]) -> tuple[str, TableSample | None]:
    """The format of the data, and the first rows of a table or of conversations."""
    media = [slot for slot in task.inputs if is_media(slot)]
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not media or not is_label(task.output):
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
    has_lines = ending not in (".parquet", ".xlsx")
    if task.captioned and has_lines and FLICKR8K.match(_first_line(data)):
        return "flickr8k", None
    sample = sample_of(data, ending, named)
    is_json = ending in (".jsonl", ".json")
    is_dialog = task.conversation and is_json and _turns(task, sample)
    return ("dialogs" if is_dialog else "table"), sample


def is_media(slot: Slot) -> bool:
    """Whether a field holds names of files."""
    return FIELDS[slot.kind].is_media


def _turns(task: Task, sample: TableSample) -> str:
    """The column with all turns of a conversation, where no other holds responses; or no name."""
    [source], outputs, first = task.inputs, task.output.columns, sample.first
    turns = [name for name in source.columns if name in first]
    if not turns or not isinstance(first[turns[0]], list) or set(outputs) & set(first):
        return ""
    return turns[0] if FIELDS[source.kind].guess([first[turns[0]]]) is not None else ""


def _places(folder: Path, fields: Mapping[str, Field], rows: Any) -> tuple[str, ...]:
    """The places of images and videos: beside the data, or in folders and .zip files there."""
    files: list[str] = []
    for name, each in fields.items():
        files += rows.column(name).unique().to_pylist() if each.is_media else []
    if not files:
        return ()
    if all(map(MediaFiles([folder], memory=folder).has, files)):
        return (".",)
    places = []
    for place in sorted(folder.iterdir()):
        if place.is_dir() or place.suffix.lower() == ".zip":
            places += [place.name] if _has_some(place, files) else []
    return tuple(places) or (".",)


def _has_some(place: Path, files: Sequence[str]) -> bool:
    """Whether a folder or archive has one of the files; a broken archive has none."""
    with suppress(DataError):
        return any(map(MediaFiles([place], memory=place.parent).has, files))
    return False


def _first_line(data: Path) -> str:
    """The first line, whatever is in it."""
    return next(line for _, line in lines_of(data)).decode(errors="replace")
