"""The data section of a starter recipe: its files, its splits, and the settings of each field."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sixjars.data.field import Field
from sixjars.data.fields import FIELDS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import inline
from sixjars.starter.choose_columns import SPEAKERS
from sixjars.starter.data_facts import DataFacts, field_of, is_media
from sixjars.starter.data_notes import drops_single
from sixjars.starter.model_section import encoder_of, is_flat
from sixjars.starter.parallel_files import Data
from sixjars.starter.text_settings import TextChoice, text_settings
from sixjars.tasks import Slot, Task

ROWS = (
    "# .tsv .csv .jsonl .json .parquet .xlsx, also .gz; "
    "or {en: a.txt, de: b.txt} for parallel lines"
)
FILES = (
    "# .jsonl .tsv .csv .parquet, also .gz: each row names a file, "
    "which `media` (a folder, a .zip, a list of them) has"
)
NAMED = (
    "# a column is its name in the file's first line, "
    "or its number from 1 where that is an example already"
)
PARALLEL = "# a column is the name of its file in `train`; line by line, the files have the rows"
HELD_OUT = """\
# validation and test set: a file, or a fraction to hold out; \
without `valid`, 5 %, but at least 20 rows
  # and 2 of each label
  {test}"""
BY_FOLDS = (
    "# learning.folds trains several models; each row is held out by one of them, "
    "so no valid or test is named"
)
FEW = 200
"""Rows below which none are held out for a test set."""


def output_of(task: Task, facts: DataFacts) -> Field:
    """The field of the output, with the settings that its values suggest."""
    return field_of(task.output, facts.settings.get(task.output.name))


def media_places(data: Data | None, facts: DataFacts) -> list[Path]:
    """The places of the files that the data names; parallel files name none."""
    if isinstance(data, Mapping):
        return []
    if data is None or facts.format == "folders":
        return [data or Path()]
    return [data.parent / place for place in facts.media]


def rows_lines(data: Data | None, facts: DataFacts, *, media: bool, folds: bool) -> list[str]:
    """The lines of a recipe about its files and splits."""
    lines = [f"format: {facts.format}"]
    if facts.format == "table":
        lines = [FILES if media else ROWS]
    if isinstance(data, Mapping):
        lines.append(f"train: {inline({name: str(file) for name, file in data.items()})}")
    else:
        file = data or Path("train.jsonl" if media else "train.tsv")
        if media and facts.format != "folders" and file.parent != Path():
            lines, file = [f"folder: {inline(str(file.parent))}", *lines], Path(file.name)
        lines.append(f"train: {inline(str(file))}")
    lines += [f"{key}: {inline(value)}" for key, value in facts.table.items()]
    lines += [f"speakers: {SPEAKERS}"] if facts.speakers else []
    if {"train", "valid"} <= set(facts.splits):
        comment = "# the column that says which split a row belongs to"
        split = {"column": facts.split_column, **facts.splits}
        return [*lines, comment, f"split: {inline(split)}"]
    kept = {str(facts.split_column): facts.splits["train"]} if "train" in facts.splits else {}
    only = [f"filter: {inline(kept)}"] if kept else []
    if folds:
        return [*lines, *only, BY_FOLDS]
    small = facts.rows is not None and facts.rows < FEW
    return [*lines, *only, HELD_OUT.format(test="# test: 0.1" if small else "test: 0.1")]


def field_settings(task: Task, slot: Slot, facts: DataFacts, choice: TextChoice) -> dict[str, Any]:
    """The settings of one field."""
    guess = dict(facts.settings.get(slot.name, {}))
    column: dict[str, Any] = {"kind": guess["kind"]} if "kind" in guess else {}
    column["column"] = facts.columns[slot.name]
    if is_media(slot):
        places = facts.media[0] if len(facts.media) == 1 else facts.media or "."
        column |= {} if facts.format == "folders" else {"media": places}
    first = bool(task.inputs) and slot is task.inputs[0]
    if first and task.segments != "none" and (task.segments == "turns" or "segments" not in guess):
        guess |= {} if is_flat(task, facts) else {"segments": task.segments}
    long = "segments" in guess and task.segments != "none"
    together = ENCODERS[encoder_of(task, facts)].learned_from(slot.name)
    texts = [text for name in together for text in facts.texts.get(name, ())]
    kind = FIELDS[guess.get("kind", slot.kind)]
    suggested = kind.suggest(texts, tokens=task.tokens, long=long)
    if slot is task.output and drops_single(output_of(task, facts), facts.texts.get(slot.name, ())):
        suggested["min_count"] = 2
    return {**column, **text_settings(task, slot, suggested, texts, choice), **guess}
