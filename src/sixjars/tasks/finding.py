"""What can be found out about the user's data before there is a recipe: its form, columns, files and sizes."""

import csv
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from sixjars.data.films import FILM_ENDINGS
from sixjars.data.media import Media
from sixjars.data.pictures import PICTURE_ENDINGS
from sixjars.data.readers import read
from sixjars.errors import DataError
from sixjars.recipe.fields import Column
from sixjars.recipe.jars import DataSettings
from sixjars.tasks.table import Task

ENDINGS = {"image": tuple(PICTURE_ENDINGS), "video": tuple(FILM_ENDINGS)}
ALSO_CALLED = {
    "image": ("image", "file_name", "filename", "file", "path"),
    "video": ("video", "clip", "file_name", "filename", "file", "path"),
    "target": ("captions", "caption", "sentences", "description"),
    "label": ("label", "answer", "class", "activity"),
}
"""What people call the columns where there are pictures or films."""
SPLIT = "split"
PARTS = {"train": ("train", "training"), "valid": ("valid", "val", "dev", "validation"), "test": ("test", "testing")}
"""What people write into a column that tells which part a row belongs to."""
NO_TEXT = (SPLIT, "alignment", "boxes")
"""Columns that are neither read nor said."""
FLICKR8K = re.compile(r"[^\t]+#\d+\t")
"""How a line of captions in the form of Flickr8k begins."""


@final
@dataclass(frozen=True)
class Sizes:
    """What the data suggests."""

    rows: int
    words: int
    """Distinct words of the text that has most of them."""
    longest: int
    """Words of all but the longest hundredth of the texts."""

    @property
    def state(self) -> int:
        """Size of the recurrent states."""
        return 128 if self.rows < 5_000 else 256 if self.rows < 50_000 else 512

    @property
    def epochs(self) -> int:
        """Passes over the data: more over little; early stopping ends them sooner."""
        return min(200, max(10, 200_000 // self.rows))

    @property
    def batch_tokens(self) -> int:
        """Small batches where there is little data, so that there are enough updates."""
        return 250 if self.rows < 500 else 1_000 if self.rows < 5_000 else 2_500 if self.rows < 50_000 else 6_000

    @property
    def batch_examples(self) -> int:
        """The same for pictures and films."""
        return 8 if self.rows < 500 else 32 if self.rows < 5_000 else 64 if self.rows < 50_000 else 128

    @property
    def dropout(self) -> float:
        """More where there is little data."""
        return 0.3 if self.rows < 50_000 else 0.1


@final
@dataclass(frozen=True)
class Found:
    """What was found out about the data."""

    columns: Mapping[str, Column]
    form: str = "table"
    """How it is written down, as `data.format` calls it."""
    sizes: Sizes = Sizes(rows=10_000, words=8_000, longest=50)
    media: tuple[str, ...] = (".",)
    """Where the pictures or films are, from the folder of the data."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The values of the column `split`, by the part that each means; nothing where all rows have the same."""


def usual_columns(task: Task) -> dict[str, Column]:
    """What the fields of a task are called when nobody says otherwise."""
    return dict(zip(task.fields, task.columns, strict=True))


def found_in(task: Task, data: Path) -> Found:
    """What a file of rows tells, or a folder (or .zip) with a folder for each label."""
    form = _form(task, data)
    first = _first_row(task, data) if form == "table" else {}
    said = {"folders": "label", "coco": "caption", "flickr8k": "caption"}
    columns = _columns(task, data, first) if form == "table" else usual_columns(task) | {task.output: said[form]}
    split = isinstance(first.get(SPLIT), str) and SPLIT not in columns.values()
    settings = DataSettings.model_validate({"train": str(data), "format": form, "on_bad_row": "skip"})
    asked = {**columns, SPLIT: SPLIT} if split else columns
    table = read(str(data), asked, settings=settings, many=("target",)).table
    values = set(table.column(SPLIT).to_pylist()) if split else set()
    parts = {part: name for part, names in PARTS.items() for name in names if {name} < values}
    texts = [table.column(name).to_pylist() for name in columns if name not in (*task.media, "label")]
    files = [file for name in task.media for file in table.column(name).unique().to_pylist()]
    media = _places(data.parent, files) if files and form != "folders" else ()
    return Found(columns, form, _sizes(table.num_rows, texts), media, parts)


def _form(task: Task, data: Path) -> str:
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not task.media:
            kind = "folder" if data.is_dir() else ".zip file"
            raise DataError(f"{data} is a {kind}; {task.name} needs a file with {', '.join(task.columns)} in each row.")
        return "folders"
    if not data.is_file():
        raise DataError(f"data file {data} does not exist.")
    if task.inputs != ("image",) or _kind(data) == ".parquet":
        return "table"
    if _kind(data) == ".json":
        with suppress(ValueError, TypeError):
            if {"images", "annotations"} <= set(json.loads(data.read_bytes())):
                return "coco"
    return "flickr8k" if FLICKR8K.match(_first_lines(data)[0]) else "table"


def _columns(task: Task, data: Path, first: Mapping[Column, Any]) -> dict[str, Column]:
    """The task's usual names where the file has them; else its first columns, by name or by number."""
    known: dict[str, Column] = {}
    for name, usual in usual_columns(task).items():
        called = (usual, *ALSO_CALLED[name]) if task.media and name in ALSO_CALLED else (usual,)
        known |= [(name, column) for column in called if column in first][:1]
    others = [name for name in task.fields if name not in known]
    for name in sorted(others, key=lambda name: name not in task.media):
        taken = (*known.values(), *NO_TEXT)
        fit = [column for column, value in first.items() if column not in taken and _fits(value, name)]
        if name in task.media:  # names of files end as such
            fit = [column for column in fit if str(first[column]).lower().endswith(ENDINGS[name])] or fit
        elif len(others) < len(task.fields):  # the other column is most likely the one with the most text
            fit.sort(key=lambda column: -len(str(first[column])))
        if not fit:
            have = ", ".join(repr(column) for column in first)
            raise DataError(f"{data}: none of its columns ({have}) is left for the {name} that {task.name} needs.")
        known[name] = fit[0]
    return {name: known[name] for name in task.fields}


def _fits(value: object, name: str) -> bool:
    """Whether a value can be one of that field."""
    if name == "target" and isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str | int if name == "label" else str)


def _kind(data: Path) -> str:
    return data.with_suffix("").suffix if data.suffix == ".gz" else data.suffix


def _first_row(task: Task, data: Path) -> dict[Column, Any]:
    """The first values, by the names of their columns, or by their numbers where the file has no names."""
    if _kind(data) == ".parquet":
        return _first_parquet_row(data)
    lines = _first_lines(data)
    try:
        if _kind(data) in (".jsonl", ".json"):
            return dict(json.loads(lines[0]))
        cells, below, *_ = [*csv.reader(lines), []] if _kind(data) == ".csv" else [line.split("\t") for line in lines]
    except (ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    endings = tuple(ending for name in task.media for ending in ENDINGS[name])
    files = [any(cell.lower().endswith(endings) for cell in line) for line in (cells, below)]
    if set(task.columns) <= set(cells) or files == [False, True]:
        return dict(zip(cells, [*below, *cells[len(below) :]], strict=False))
    return dict(enumerate(cells, start=1))


def _first_lines(data: Path) -> list[str]:
    """Two lines, the second empty where there is none."""
    try:
        with (
            gzip.open(data, "rt", encoding="utf-8-sig")
            if data.suffix == ".gz"
            else data.open(encoding="utf-8-sig") as lines
        ):
            found = [next(lines, "") for _ in range(2)]
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    if not found[0]:
        raise DataError(f"{data} has no rows.")
    return [line.rstrip("\r\n") for line in found]


def _first_parquet_row(data: Path) -> dict[Column, Any]:
    """That row alone: the file may be large."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(data) as file:
            batch = next(file.iter_batches(batch_size=1), None)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{data} is not a Parquet file or is damaged: {reason}.") from error
    if not batch:
        raise DataError(f"{data} has no rows.")
    return dict(batch.to_pylist()[0])


def _places(folder: Path, files: Sequence[str]) -> tuple[str, ...]:
    """Where the files are: beside the data, or in folders and .zip files there."""
    if all(map(Media([folder], memory=folder).has, files)):
        return (".",)
    near = [place for place in sorted(folder.iterdir()) if place.is_dir() or place.suffix.lower() == ".zip"]
    return tuple(place.name for place in near if _has_some(place, files)) or (".",)


def _has_some(place: Path, files: Sequence[str]) -> bool:
    """Whether a neighbour has one of the files; a broken archive beside the data has none."""
    with suppress(DataError):
        return any(map(Media([place], memory=place.parent).has, files))
    return False


def _sizes(rows: int, texts: Sequence[Sequence[str]]) -> Sizes:
    distinct, longest = 0, 0
    for column in texts:
        words = [text.split() for text in column]
        distinct = max(distinct, len({word for text in words for word in text}))
        longest = max(longest, sorted(map(len, words))[rows * 99 // 100])
    return Sizes(rows, distinct, longest)
