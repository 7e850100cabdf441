"""A commented starter recipe: its columns found in the user's data, its sizes chosen from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sixjars.errors import DataError, RecipeError, unknown
from sixjars.tasks.finding import SPEAKERS, SPLIT, Found, found_in, usual_columns
from sixjars.tasks.table import OF_SETS, TASKS, Task

LARGE_VOCABULARY = 15_000
"""With more distinct words than this, pieces of words serve better."""
MOST_TOKENS = 400
"""A longer text is cut there: a recurrent network reads one token after the other."""
MOST_TOKENS_OF_PARTS = 1_000
"""The same for a text in parts, which are read beside each other."""


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
learning: {{optimizer: adam, rate: 1.0e-3, {batch}, epochs: {sizes.epochs}, patience: 8}}
evaluation: {{{search}metrics: [{metrics}]}}
"""
ROWS = "# .tsv .csv .jsonl .parquet, also .gz; or {en: a.txt, de: b.txt} for parallel lines"
FILES = (
    "# .jsonl .tsv .csv .parquet, also .gz: each row names a file, which `media` (a folder, a .zip, a list of them) has"
)
HELD_OUT = "# a file, or the fraction of the training file to hold out\n  valid: 0.05"
SEEING = """\
# a pretrained network that stays as it is (pip install 'sixjars[vision]'); or small, which learns from your files
  # alone; or one that you have installed: torchvision/resnet50, timm/NAME, transformers/NAME"""


def write_starter(file: Path, *, task: str, data: Path | None = None) -> None:
    """Write the recipe; an existing file is never overwritten.

    `data` is a file of rows; for pictures and films it may be a folder (or .zip) with a folder for each label.
    """
    if task not in TASKS:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if file.exists():
        raise DataError(f"{file} exists already; choose another name.")
    declared = TASKS[task]
    found = _guessed(declared) if data is None else found_in(declared, data)
    text = _text(declared, data, found, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _guessed(task: Task) -> Found:
    """What is most likely where there is no data yet."""
    parts = ("turns" if task.output == "target" else "sentences") if task.encoder == "hierarchy" else "none"
    return Found(usual_columns(task), made_of=parts)


def _text(task: Task, data: Path | None, found: Found, file: Path) -> str:
    sizes = found.sizes
    examples = task.media or task.output != "target"
    smooth = task.inputs and task.output != "order" and not found.several
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {sizes.rows:,} rows" if data else "guesses until you give your data",
        rows="\n  ".join(_rows(task, data, found)),
        fields="\n  ".join(f"{name}: {_inline(_field(task, name, found))}" for name in found.columns),
        model="\n  ".join(_model(task, found)),
        smoothing=0.1 if smooth else 0.0,
        batch=f"batch_examples: {sizes.batch_examples}" if examples else f"batch_tokens: {sizes.batch_tokens}",
        sizes=sizes,
        search=_search(task),
        metrics=", ".join(OF_SETS if found.several else task.metrics),
    )


def _search(task: Task) -> str:
    """How outputs are chosen, where there is a choice."""
    if task.output == "label":
        return ""
    if not task.inputs:
        return "search: {kind: sample, temperature: 0.8}, "
    return f"search: {{kind: beam, width: 5}}, {'group: true, ' if task.media else ''}"


def _rows(task: Task, data: Path | None, found: Found) -> list[str]:
    """The lines that say which rows there are."""
    file = data or Path("train.jsonl" if task.media else "train.tsv")
    told = [FILES if task.media else ROWS] if found.form == "table" else [f"format: {found.form}"]
    if task.media and found.form != "folders" and file.parent != Path():
        told, file = [f"folder: {_inline(str(file.parent))}", *told], Path(file.name)
    told.append(f"train: {_inline(str(file))}")
    told += [f"speakers: {SPEAKERS}"] if found.speakers else []
    if {"train", "valid"} <= set(found.parts):
        return [*told, "# the column that says which part a row belongs to", f"split: {_inline(found.parts)}"]
    return [*told, *([f"where: {_inline({SPLIT: found.parts['train']})}"] if "train" in found.parts else []), HELD_OUT]


def _field(task: Task, name: str, found: Found) -> dict[str, Any]:
    column, sizes = {"column": found.columns[name]}, found.sizes
    if name in ("label", "order"):
        return column | ({"several": True} if found.several else {})
    if name == "points":
        return column | {"numbers": found.numbers}
    if name in task.media:
        media = {} if found.form == "folders" else {"media": found.media if len(found.media) > 1 else found.media[0]}
        return column | media | ({"frames": 16} if name == "video" else {})
    tokens = task.tokens if task.tokens == "characters" else "bpe" if sizes.words > LARGE_VOCABULARY else "words"
    most = {"characters": 1_000, "bpe": 8_000, "words": 20_000}[tokens]
    parts = {"parts": found.made_of} if name == "source" and found.made_of != "none" else {}
    limit = MOST_TOKENS_OF_PARTS if parts and task.encoder == "hierarchy" else MOST_TOKENS
    longest = min(limit, max(50, sizes.longest * (12 if tokens == "characters" else 2)))
    case = {"lowercase": True} if task.media else {}
    return {**column, "tokens": tokens, **parts, "size": most, **case, "max_length": longest}


def _model(task: Task, found: Found) -> list[str]:
    """The lines of the model jar."""
    size, half, dropout = found.sizes.state, found.sizes.state // 2, {"dropout": found.sizes.dropout}
    reading = {"cell": "gru", "size": half, "direction": "both", **dropout}
    words, cells = {"embedding": {"size": half}}, {"backbone": {"name": "efficientnet_lite0", "layer": "head"}}
    kinds: dict[str, dict[str, Any]] = {
        "none": {"size": size},
        "text": reading | words,
        "image": cells | dropout,
        "image_question": {"image": cells | dropout, "question": reading | words},
        "video": {"backbone": "efficientnet_lite0"} | reading,
        "hierarchy": {"words": reading | words, "size": size, **dropout},
        "points": {"embedding": half} | reading,
    }
    if task.output == "label" and task.encoder == "hierarchy":
        kinds["hierarchy"] |= {"size": half, "direction": "both", "pool": "attention"}
    decoders: dict[str, dict[str, Any]] = {
        "sequence": {"cell": "gru", "size": size, **dropout, **words},
        "label": {"size": size, **dropout},
        "pointer": {"cell": "gru", "size": size, "attention": size, **dropout, "visits": found.visits},
    }
    decoder = {"kind": task.decoder, **decoders[task.decoder]}
    learned = "" if task.inputs else " # s_0 is learned"
    encoder = {"kind": task.encoder, **kinds[task.encoder]}
    read = [f"encoder: {_inline(encoder)}{learned}"]
    if len(task.inputs) > 1:  # too much for one line
        read = ["encoder:", *(f"  {key}: {_inline(inner)}" for key, inner in encoder.items())]
    return [*([SEEING] if task.media else []), *read, f"bridge: {_bridge(task)}", f"decoder: {_inline(decoder)}"]


def _bridge(task: Task) -> str:
    """The kind of bridge, and what else would do."""
    if not task.inputs:
        return "{kind: initial}"
    if task.output == "order":
        return "{kind: initial} # or {kind: attention, score: additive}"
    if task.output == "label" and len(task.inputs) == 1:
        return "{kind: pooling} # or {kind: initial}"
    if task.encoder == "hierarchy":
        return "{kind: two_level} # or {kind: initial}, {kind: attention, score: additive}"
    every_step = ", or {kind: every_step}" if task.output == "target" else ""
    return f"{{kind: attention, score: additive}} # or {{kind: initial}}{every_step}"


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
        inside = yaml.safe_load(f"{{one: {plain}, two: 2}}") == {"one": value, "two": 2}
        if inside and yaml.safe_load(f"one: {plain}") == {"one": value} and plain.isprintable():
            return plain
    except (yaml.YAMLError, ValueError):
        pass
    return str(yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")
