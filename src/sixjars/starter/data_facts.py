"""What can be found out about a user's data before there is a recipe: its format, its columns, its size."""

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
from sixjars.data.tables import read
from sixjars.data.text.files import ending_of, lines_of, opened
from sixjars.recipe.data import Column
from sixjars.recipe.sections import DataSettings
from sixjars.starter.choose_columns import (
    SPEAKERS,
    SPLIT,
    Choice,
    choose,
    guess,
    is_label,
    odd_labels,
)
from sixjars.starter.data_notes import unlabelled
from sixjars.starter.first_rows import Sample, sample_of
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, shown

NAMES = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test", "testing"),
}
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
    split_column: Column | None = None
    """The column that says which split a row belongs to."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """Keys that say how lines become columns, where the ending of the file does not."""
    skipped: int = 0
    """Bad rows that were left out."""
    notes: tuple[str, ...] = ()
    """What a person should know, a sentence each: bad rows, for one."""
    chosen: str = ""
    """Which columns were chosen, and why."""


SAYS = {
    "dialogs": "each line is a whole conversation; every turn but the first is a target, those before it its source.",
    "folders": "the label of a file is the name of its folder.",
}
"""What is read as what, where it is not a matter of columns."""


def usual_columns(task: Task) -> dict[str, Column]:
    """What the fields of a task are called when nobody says otherwise."""
    return {slot.name: slot.columns[0] for slot in task.slots}


def found_in(task: Task, data: Path, wanted: Mapping[str, Column] | None = None) -> Found:
    """What a file of rows tells, or a folder (or .zip) with a folder for each label.

    `wanted` has the columns that the user names; those of other fields are chosen.
    """
    form, sample = _format(task, data, [*map(str, (wanted or {}).values())])
    choice: Choice | None = None
    table: dict[str, Any] = {}
    split: Column | None = None
    if form == "dialogs":
        assert sample is not None
        columns: dict[str, Column] = dict.fromkeys(usual_columns(task), _turns(task, sample))
        guesses = {
            slot.name: FIELDS[slot.kind].guess([sample.first[_turns(task, sample)]])
            for slot in task.slots
        }
    elif form == "table":
        assert sample is not None
        choice = choose(task, sample, data, wanted)
        columns, split, table = _keys(sample, choice, ending_of(data))
        guesses = {slot.name: guess(slot, choice.columns[slot.name]) for slot in task.slots}
    else:
        columns, guesses = usual_columns(task) | {task.output.name: OUTPUTS[form]}, {}
    fields = {slot.name: field_of(slot, guesses.get(slot.name)) for slot in task.slots}
    # A list of texts to output is several right answers; any other list is one value.
    output = field_of(task.output, None)
    many = [output.name] if output.equipped(Equipment(target_options={})).lists == "rows" else []
    as_text = {
        name: one.as_text
        for name, one in fields.items()
        if name not in many and one.lists == "value"
    }
    settings = DataSettings.model_validate(
        {"train": str(data), "format": form, "on_bad_row": "skip", **table}
    )
    read_columns = columns if split is None else {**columns, SPLIT: split}
    examples = read(str(data), read_columns, settings=settings, many=many, as_text=as_text)
    rows = examples.table
    values = set(rows.column(SPLIT).to_pylist()) if split is not None else set()
    files = [
        f
        for name, one in fields.items()
        if one.is_media
        for f in rows.column(name).unique().to_pylist()
    ]
    return Found(
        columns,
        form,
        rows=rows.num_rows,
        media=_places(data.parent, files) if files and form != "folders" else (),
        split_column=split,
        splits={
            name: value for name, values_ in NAMES.items() for value in values_ if {value} < values
        },
        settings={name: guess or {} for name, guess in guesses.items() if name not in many},
        texts={name: rows.column(name).to_pylist() for name in columns},
        speakers=form == "dialogs"
        and sample is not None
        and isinstance(sample.first.get(SPEAKERS), list),
        table=table,
        skipped=examples.skipped,
        notes=(
            *_unclear(sample, data),
            *examples.notes,
            *unlabelled(fields[task.output.name], columns[task.output.name], examples),
            *(odd_labels(task, choice, data) if choice is not None else ()),
        ),
        chosen=choice.told(sample)
        if choice is not None and sample is not None
        else SAYS.get(form, ""),
    )


def _keys(
    sample: Sample, choice: Choice, ending: str
) -> tuple[dict[str, Column], Column | None, dict[str, Any]]:
    """Columns as the recipe names them, that of the splits too, and the keys that say how lines become columns."""
    taken = {column.number for column in choice.columns.values()}
    splits = [
        one
        for one in sample.columns
        if one.name == SPLIT and isinstance(one.values[0], str) and one.number not in taken
    ]
    keys, header = sample.keys([*choice.columns.values(), *splits])
    table: dict[str, Any] = ({"header": True} if header else {}) | (
        {"sheet": sample.sheet} if sample.sheet else {}
    )
    dialect = sample.dialect
    if dialect is not None and dialect.delimiter and len(sample.columns) > 1:
        if dialect.delimiter != {".csv": ",", ".tsv": "\t"}.get(ending):
            table["delimiter"] = dialect.delimiter
        if dialect.quotes != (dialect.delimiter != "\t"):
            table["quotes"] = dialect.quotes
    return dict(zip(choice.columns, keys, strict=False)), (keys[-1] if splits else None), table


def _unclear(sample: Sample | None, data: Path) -> list[str]:
    """A sentence where a first line that is read as an example may be a header."""
    if sample is None or sample.dialect is None or not sample.dialect.unclear:
        return []
    cells = ", ".join(shown(cell.strip()) for cell in sample.dialect.rows[0])
    return [
        f"{data}: the first line ({cells}) may be a header, and is read as an example; write `data.header: true` if it "
        "is one, `data.header: false` if not."
    ]


def field_of(slot: Slot, guess: Mapping[str, Any] | None) -> Field:
    """A field with the settings of a guess, which may be of another kind than the task has by itself."""
    kind = FIELDS[(guess or {}).get("kind", slot.kind)]
    return kind(slot.name, kind.settings_class.model_validate(dict(guess or {})))


def _format(task: Task, data: Path, named: Sequence[str]) -> tuple[str, Sample | None]:
    """How the data is written down, and the first rows of a table or of conversations."""
    media = [slot for slot in task.inputs if is_media(slot)]
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not media or not is_label(task.output):
            kind = "folder" if data.is_dir() else ".zip file"
            names = ", ".join(str(name) for name in usual_columns(task).values())
            raise DataError(
                f"{data} is a {kind}; {task.name} needs a file with {names} in each row."
            )
        return "folders", None
    if not data.is_file():
        parts = str(data).split(",")
        several = len(parts) > 1 and all(Path(part.strip()).is_file() for part in parts)
        hint = f" Name several files one by one: {' '.join(f'--data {part.strip()}' for part in parts)}."
        raise DataError(f"data file {data} does not exist.{hint if several else ''}")
    if task.captioned and ending_of(data) == ".json":
        with suppress(ValueError, TypeError, RecursionError), opened(data) as stream:
            if {"images", "annotations"} <= set(json.load(stream)):
                return "coco", None
    if (
        task.captioned
        and ending_of(data) not in (".parquet", ".xlsx")
        and FLICKR8K.match(_first_line(data))
    ):
        return "flickr8k", None
    sample = sample_of(data, ending_of(data), named)
    by_name = ending_of(data) in (".jsonl", ".json")
    return (
        "dialogs" if task.conversation and by_name and _turns(task, sample) else "table"
    ), sample


def is_media(slot: Slot) -> bool:
    """Whether a field holds names of files."""
    return FIELDS[slot.kind].is_media


def _turns(task: Task, sample: Sample) -> str:
    """The column with all turns of a conversation: a list, and nothing called a response; else no name."""
    [source], outputs, first = task.inputs, task.output.columns, sample.first
    turns = [name for name in source.columns if name in first]
    whole = (
        turns
        and isinstance(first[turns[0]], list)
        and FIELDS[source.kind].guess([first[turns[0]]]) is not None
    )
    return turns[0] if whole and not set(outputs) & set(first) else ""


def _places(folder: Path, files: Sequence[str]) -> tuple[str, ...]:
    """Where the files are: beside the data, or in folders and .zip files there."""
    if all(map(MediaFiles([folder], memory=folder).has, files)):
        return (".",)
    near = [
        place
        for place in sorted(folder.iterdir())
        if place.is_dir() or place.suffix.lower() == ".zip"
    ]
    return tuple(place.name for place in near if _has_some(place, files)) or (".",)


def _has_some(place: Path, files: Sequence[str]) -> bool:
    """Whether a neighbour has one of the files; a broken archive beside the data has none."""
    with suppress(DataError):
        return any(map(MediaFiles([place], memory=place.parent).has, files))
    return False


def _first_line(data: Path) -> str:
    """Whatever is in it."""
    return next(line for _, line in lines_of(data)).decode(errors="replace")
