"""What can be found out about the user's data before there is a recipe: its form, columns, files and sizes."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from sixjars.data.media import Media
from sixjars.data.parting import spelled_labels, spelled_parts
from sixjars.data.pointing import points_of, spelled_order, spelled_points, whole_numbers
from sixjars.data.readers import read
from sixjars.errors import DataError
from sixjars.recipe.fields import Column
from sixjars.recipe.jars import DataSettings
from sixjars.tasks.first_rows import ENDINGS, ending_of, first_lines, first_row
from sixjars.tasks.table import Task

ALSO_CALLED = {
    "image": ("image", "file_name", "filename", "file", "path"),
    "video": ("video", "clip", "file_name", "filename", "file", "path"),
    "target": ("captions", "caption", "sentences", "description"),
    "label": ("label", "answer", "class", "activity"),
}
"""What people call the columns where there are pictures or films."""
CALLED = {
    "conversation": {"source": ("context", "history", "dialog", "dialogue"), "target": ("responses", "reply")},
    "document_classification": {
        "source": ("text", "sentences", "paragraphs", "article"),
        "label": ("labels", "topic", "topics", "class", "category"),
    },
}
"""What people call the columns of a task besides their usual names."""
DIALOGS = ("turns", "dialog", "dialogue", "utterances")
"""What people call the list of all turns of a conversation."""
SPEAKERS = "speakers"
SPLIT = "split"
PARTS = {"train": ("train", "training"), "valid": ("valid", "val", "dev", "validation"), "test": ("test", "testing")}
"""What people write into a column that tells which part a row belongs to."""
NO_TEXT = (SPLIT, "alignment", "boxes", "keys", SPEAKERS)
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
    made_of: str = "none"
    """The parts of the source, as `data.source.parts` calls them."""
    several: bool = False
    """Whether an example has a list of labels."""
    numbers: int = 2
    """Of each point."""
    visits: str = "all"
    """Whether all points are in every order, as a decoder that points calls it."""
    speakers: bool = False
    """Whether whole conversations come with a list of who speaks."""


def usual_columns(task: Task) -> dict[str, Column]:
    """What the fields of a task are called when nobody says otherwise."""
    return dict(zip(task.fields, task.columns, strict=True))


def found_in(task: Task, data: Path) -> Found:
    """What a file of rows tells, or a folder (or .zip) with a folder for each label."""
    form = _form(task, data)
    first = first_row(task, data) if form in ("table", "dialogs") else {}
    said = {"folders": "label", "coco": "caption", "flickr8k": "caption"}
    if form == "dialogs":
        columns: dict[str, Column] = dict.fromkeys(task.fields, next(name for name in DIALOGS if name in first))
    else:
        columns = _columns(task, data, first) if form == "table" else usual_columns(task) | {task.output: said[form]}
    split = isinstance(first.get(SPLIT), str) and SPLIT not in columns.values() and form == "table"
    settings = DataSettings.model_validate({"train": str(data), "format": form, "on_bad_row": "skip"})
    asked = {**columns, SPLIT: SPLIT} if split else columns
    whole = [name for name in columns if name != "target" and (name != "label" or not task.media)]
    spelled = {name: SPELLED[name] for name in whole if isinstance(first.get(columns[name]), list)}
    table = read(str(data), asked, settings=settings, many=("target",), spelled=spelled).table
    values = set(table.column(SPLIT).to_pylist()) if split else set()
    parts = {part: name for part, names in PARTS.items() for name in names if {name} < values}
    texts = {name: table.column(name).to_pylist() for name in columns if name not in (*task.media, "label")}
    files = [file for name in task.media for file in table.column(name).unique().to_pylist()]
    media = _places(data.parent, files) if files and form != "folders" else ()
    return Found(
        columns,
        form,
        _sizes(table.num_rows, list(texts.values())),
        media,
        parts,
        made_of=_made_of(task, listed="source" in spelled),
        several="label" in spelled,
        speakers=form == "dialogs" and isinstance(first.get(SPEAKERS), list),
        **(_pointed(texts["points"], texts["order"]) if "points" in texts else {}),
    )


SPELLED: Mapping[str, Callable[[object], str]] = {
    "source": spelled_parts,
    "label": spelled_labels,
    "points": spelled_points,
    "order": spelled_order,
    "target": spelled_parts,
}
"""How a list in a file becomes the text of a field."""


def _made_of(task: Task, *, listed: bool) -> str:
    """The parts of a source: those of a list; sentences, which end at lines too, where a task reads parts of a text."""
    if task.encoder != "hierarchy":
        return "lines" if listed else "none"
    if task.output == "target":
        return "turns"
    return "lines" if listed else "sentences"


def _pointed(points: Sequence[str], orders: Sequence[str]) -> dict[str, Any]:
    """How many numbers a point has, and whether every order visits all points."""
    every = all(len(row.split()) == len(order.split()) for row, order in zip(points, orders, strict=True))
    numbers = len(points[0].split()[0].split(","))
    return {"numbers": numbers, "visits": "all" if every else "some"}


def _form(task: Task, data: Path) -> str:
    if data.is_dir() or data.suffix.lower() == ".zip":
        if len(task.inputs) != 1 or not task.media:
            kind = "folder" if data.is_dir() else ".zip file"
            raise DataError(f"{data} is a {kind}; {task.name} needs a file with {', '.join(task.columns)} in each row.")
        return "folders"
    if not data.is_file():
        raise DataError(f"data file {data} does not exist.")
    if task.name == "conversation" and ending_of(data) in (".jsonl", ".json"):
        return "dialogs" if _is_dialog(first_row(task, data)) else "table"
    if task.inputs != ("image",) or ending_of(data) == ".parquet":
        return "table"
    if ending_of(data) == ".json":
        with suppress(ValueError, TypeError):
            if {"images", "annotations"} <= set(json.loads(data.read_bytes())):
                return "coco"
    return "flickr8k" if FLICKR8K.match(first_lines(data)[0]) else "table"


def _is_dialog(first: Mapping[Column, Any]) -> bool:
    """Whether a row is a whole conversation: a list of turns, and nothing called a response."""
    answers = ("response", *CALLED["conversation"]["target"])
    turns = [first[name] for name in DIALOGS if name in first]
    return bool(turns) and _fits(turns[0], "source") and isinstance(turns[0], list) and not set(answers) & set(first)


def _columns(task: Task, data: Path, first: Mapping[Column, Any]) -> dict[str, Column]:
    """The task's usual names where the file has them; else its first columns, by name or by number."""
    known: dict[str, Column] = {}
    for name, usual in usual_columns(task).items():
        also = ALSO_CALLED if task.media else CALLED.get(task.name, {})
        known |= [(name, column) for column in (usual, *also.get(name, ())) if column in first][:1]
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
    if name in ("points", "order"):
        try:
            text = SPELLED[name](value)
            return bool(points_of(text) if name == "points" else whole_numbers(text))
        except ValueError:
            return False
    if isinstance(value, list):
        return name in SPELLED and bool(value) and all(isinstance(one, str) for one in value)
    return isinstance(value, str | int if name == "label" else str)


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
        lengths = sorted(map(len, words))
        longest = max(longest, lengths[rows * 99 // 100])
    return Sizes(rows, distinct, longest)
