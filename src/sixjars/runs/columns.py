"""What can be found out about a user's data before there is a recipe: its format, its columns, its size."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.field import Equipment
from sixjars.data.fields import FIELDS
from sixjars.data.media.files import MediaFiles
from sixjars.data.readers import read
from sixjars.data.text.files import opened
from sixjars.errors import DataError
from sixjars.recipe.sections import Column, DataSettings
from sixjars.tasks import Slot, Task

SPEAKERS = "speakers"
SPLIT = "split"
NAMES = {"train": ("train", "training"), "valid": ("valid", "val", "dev", "validation"), "test": ("test", "testing")}
"""What people write into a column that tells which split a row belongs to."""
FLICKR8K = re.compile(r"[^\t]+#\d+\t")
"""How a line of captions in the format of Flickr8k begins."""
OUTPUTS = {"folders": "label", "coco": "caption", "flickr8k": "caption"}
"""The column of the output in formats that name it themselves."""


@final
@dataclass(frozen=True)
class Found:
    """What was found out about the data."""

    columns: Mapping[str, Column]
    format: str = "table"
    """How it is written down, as `data.format` calls it."""
    rows: int | None = None
    """How many there are; nothing where there is no data yet."""
    media: tuple[str, ...] = (".",)
    """Where images or videos are, from the folder of the data."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """The values of the column `split`, by the split that each means; nothing where all rows have the same."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the values of each field suggest."""
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All values of each field."""
    speakers: bool = False
    """Whether whole conversations come with a list of who speaks."""


def usual_columns(task: Task) -> dict[str, Column]:
    """What the fields of a task are called when nobody says otherwise."""
    return {slot.name: slot.columns[0] for slot in task.slots}


def found_in(task: Task, data: Path) -> Found:
    """What a file of rows tells, or a folder (or .zip) with a folder for each label."""
    form = _format(task, data)
    first = first_row(task, data) if form in ("table", "dialogs") else {}
    if form == "dialogs":
        columns: dict[str, Column] = dict.fromkeys(usual_columns(task), _turns(task, first))
    elif form == "table":
        columns = _columns(task, data, first)
    else:
        columns = usual_columns(task) | {task.output.name: OUTPUTS[form]}
    split = isinstance(first.get(SPLIT), str) and SPLIT not in columns.values() and form == "table"
    guesses = {slot.name: _guess(slot, first[columns[slot.name]]) for slot in task.slots if first}
    fields = {slot.name: FIELDS[slot.kind](slot.name, settings_of(slot, guesses.get(slot.name))) for slot in task.slots}
    # A list of texts to output is several right answers; any other list is one value.
    output = FIELDS[task.output.kind](task.output.name, settings_of(task.output, None))
    many = [output.name] if output.equipped(Equipment(target_options={})).lists == "rows" else []
    as_text = {name: one.as_text for name, one in fields.items() if name not in many and one.lists == "value"}
    wanted = {**columns, SPLIT: SPLIT} if split else columns
    settings = DataSettings.model_validate({"train": str(data), "format": form, "on_bad_row": "skip"})
    table = read(str(data), wanted, settings=settings, many=many, as_text=as_text).table
    values = set(table.column(SPLIT).to_pylist()) if split else set()
    files = [f for name, one in fields.items() if one.is_media for f in table.column(name).unique().to_pylist()]
    return Found(
        columns,
        form,
        rows=table.num_rows,
        media=_places(data.parent, files) if files and form != "folders" else (),
        splits={name: value for name, values_ in NAMES.items() for value in values_ if {value} < values},
        settings={name: guess or {} for name, guess in guesses.items() if name not in many},
        texts={name: table.column(name).to_pylist() for name in columns},
        speakers=form == "dialogs" and isinstance(first.get(SPEAKERS), list),
    )


def settings_of(slot: Slot, guess: Mapping[str, Any] | None) -> Any:
    """The settings of a field, from a guess."""
    return FIELDS[slot.kind].settings_class.model_validate(dict(guess or {}))


def _guess(slot: Slot, value: object) -> dict[str, Any] | None:
    return FIELDS[slot.kind].guess([value])


def _format(task: Task, data: Path) -> str:
    media = [slot for slot in task.inputs if is_media(slot)]
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not media:
            kind = "folder" if data.is_dir() else ".zip file"
            names = ", ".join(str(name) for name in usual_columns(task).values())
            raise DataError(f"{data} is a {kind}; {task.name} needs a file with {names} in each row.")
        return "folders"
    if not data.is_file():
        raise DataError(f"data file {data} does not exist.")
    if task.conversation and ending_of(data) in (".jsonl", ".json"):
        return "dialogs" if _turns(task, first_row(task, data)) else "table"
    if not task.captioned or ending_of(data) == ".parquet":
        return "table"
    if ending_of(data) == ".json":
        with suppress(ValueError, TypeError, RecursionError), opened(data) as stream:
            if {"images", "annotations"} <= set(json.load(stream)):
                return "coco"
    return "flickr8k" if FLICKR8K.match(first_lines(data)[0]) else "table"


def is_media(slot: Slot) -> bool:
    """Whether a field holds names of files."""
    return FIELDS[slot.kind].is_media


def _turns(task: Task, first: Mapping[Column, Any]) -> str:
    """The column with all turns of a conversation: a list, and nothing called a response; else no name."""
    [source], outputs = task.inputs, task.output.columns
    turns = [name for name in source.columns if name in first]
    whole = turns and isinstance(first[turns[0]], list) and _guess(source, first[turns[0]]) is not None
    return turns[0] if whole and not set(outputs) & set(first) else ""


def _columns(task: Task, data: Path, first: Mapping[Column, Any]) -> dict[str, Column]:
    """The task's usual names where the file has them; else its first columns, by name or by number."""
    known: dict[str, Column] = {}
    for slot in task.slots:
        known |= [(slot.name, column) for column in slot.columns if column in first][:1]
    others = [slot for slot in task.slots if slot.name not in known]
    for slot in sorted(others, key=lambda slot: not is_media(slot)):  # names of files are known by their endings
        taken = (*known.values(), SPLIT, SPEAKERS, *ANNOTATIONS)
        free = [column for column in first if column not in taken]
        fit = [column for column in free if _guess(slot, first[column]) is not None]
        if is_media(slot):
            fit = fit or [column for column in free if isinstance(first[column], str)]
        elif len(others) < len(task.slots):  # the other column is most likely the one with the most text
            fit.sort(key=lambda column: -len(str(first[column])))
        if not fit:
            have = ", ".join(repr(column) for column in first)
            raise DataError(f"{data}: none of its columns ({have}) is left for the {slot.name} that {task.name} needs.")
        known[slot.name] = fit[0]
    return {slot.name: known[slot.name] for slot in task.slots}


def _places(folder: Path, files: Sequence[str]) -> tuple[str, ...]:
    """Where the files are: beside the data, or in folders and .zip files there."""
    if all(map(MediaFiles([folder], memory=folder).has, files)):
        return (".",)
    near = [place for place in sorted(folder.iterdir()) if place.is_dir() or place.suffix.lower() == ".zip"]
    return tuple(place.name for place in near if _has_some(place, files)) or (".",)


def _has_some(place: Path, files: Sequence[str]) -> bool:
    """Whether a neighbour has one of the files; a broken archive beside the data has none."""
    with suppress(DataError):
        return any(map(MediaFiles([place], memory=place.parent).has, files))
    return False


def ending_of(data: Path) -> str:
    """What the name of a file ends in, packed or not."""
    return Path(data.stem if data.suffix.lower() == ".gz" else data.name).suffix.lower()


def first_row(task: Task, data: Path) -> dict[Column, Any]:
    """The first values, by the names of their columns, or by their numbers where the file has no names."""
    if ending_of(data) == ".parquet":
        return _first_parquet_row(data)
    lines = first_lines(data)
    try:
        if ending_of(data) in (".jsonl", ".json"):
            return dict(json.loads(lines[0]))
        commas = ending_of(data) == ".csv"
        cells, below, *_ = [*csv.reader(lines), []] if commas else [line.split("\t") for line in lines]
    except (ValueError, TypeError, csv.Error, RecursionError) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    media = [slot for slot in task.inputs if is_media(slot)]
    files = [any(_guess(slot, cell) is not None for slot in media for cell in line) for line in (cells, below)]
    if set(usual_columns(task).values()) <= set(cells) or files == [False, True]:
        return dict(zip(cells, [*below, *cells[len(below) :]], strict=False))
    return dict(enumerate(cells, start=1))


def first_lines(data: Path) -> list[str]:
    """Two lines, the second empty where there is none."""
    with opened(data) as stream:
        found = [stream.readline() for _ in range(2)]
    if not found[0]:
        raise DataError(f"{data} has no rows.")
    try:
        return [line.decode("utf-8-sig").rstrip("\r\n") for line in found]
    except UnicodeDecodeError as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None


def _first_parquet_row(data: Path) -> dict[Column, Any]:
    """That row alone: the file may be large."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(data) as file:
            batch = next(file.iter_batches(batch_size=1), None)
            if not batch:
                raise DataError(f"{data} has no rows.")
            return dict(batch.to_pylist()[0])
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{data} is not a Parquet file or is damaged: {reason}.") from error
