"""A commented starter recipe: its columns found in the user's data, its sizes chosen from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, final

from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.errors import DataError, RecipeError, shown, unknown
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.progress import Reporter, listening, number_of
from sixjars.recipe.data import Column
from sixjars.recipe.files import inline
from sixjars.runs.choice import SPEAKERS
from sixjars.runs.columns import Found, field_of, found_in, is_media, usual_columns
from sixjars.runs.starter_model import by_rows, is_flat, model_lines
from sixjars.runs.starter_notes import LookedThrough, counts_of, label_notes, look_through, single, unbalanced
from sixjars.tasks import TASK_NAMED, TASKS, Slot, Task

ASSUMED_ROWS = 10_000
MOST_BAD = 0.1
"""A starter recipe skips bad rows where so large a share of rows is bad, or a smaller one; else they are errors."""
TEMPLATE = """\
# {task.name}: {task.title}.
# Run     sixjars train {file}
{columns}# Sizes   {chosen}; change any of them, here or on the command line: learning.rate=5e-4
task: {task.name}
data:
  {rows}
  # what a malformed row does: error or skip
  on_bad_row: {bad}
  # a column is its name in the file's first line, or its number from 1 where that is an example already
  {fields}
model:
  {model}
loss: {{kind: cross_entropy, smoothing: {smoothing}{balanced}}}
learning: {{optimizer: adam, rate: 1.0e-3, {batch}, epochs: {epochs}, patience: 8{choice}}}
evaluation: {{{search}metrics: [{metrics}]}}
"""
ROWS = "# .tsv .csv .jsonl .json .parquet .xlsx, also .gz; or {en: a.txt, de: b.txt} for parallel lines"
FILES = (
    "# .jsonl .tsv .csv .parquet, also .gz: each row names a file, which `media` (a folder, a .zip, a list of them) has"
)
HELD_OUT = """\
# validation and test set: a file, or a fraction to hold out; without `valid`, 5 %, but at least 20 rows
  # and 2 of each label
  {test}"""
FOLDS = 5
"""Models of a cross-validation."""
BY_FOLDS = "# learning.folds trains several models; each row is held out by one of them, so no valid or test is named"
FEW_ROWS = (
    "{found.rows} rows are few, so the recipe cross-validates (learning.folds: {folds}): a score on a small part of "
    "them would be luck."
)
MANY_BAD = (
    "{bad} to {found.rows:,} good ones are more than {most:.0%}, so the recipe does not skip them "
    "(on_bad_row: error): training stops at the first. Mend them, or write `on_bad_row: skip` to train without them."
)
TINY = 100
"""Rows of labelled examples below which a starter recipe cross-validates."""
FEW = 200
"""Rows below which none are held out for a test set."""
FEW_WORDS = 5_000
"""Labelled texts below which words are lowercased: there are too few to learn a word twice."""


def new(
    file: str | Path,
    *,
    task: str,
    data: str | Path | None = None,
    columns: Mapping[str, Column] | None = None,
) -> Path:
    """Write a starter recipe; an existing file is never overwritten.

    `data` is a file of rows; for images and videos it may be a folder (or .zip) with a folder for each label.
    `columns` names the column of a field, such as `{"source": "review"}`; those of other fields are chosen.

    >>> import tempfile, sixjars
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sixjars.new(f"{folder}/mine.yaml", task="dialog")
    ...     path.read_text().splitlines()[0]
    '# dialog: an utterance in, a response out.'
    """
    return started(file, task=task, data=data, columns=columns).path


@final
@dataclass(frozen=True)
class Started:
    """A starter recipe that was written."""

    path: Path
    notes: tuple[str, ...]
    """Which columns were chosen and why, and what a person should know of the data; a sentence each."""


def started(
    file: str | Path, *, task: str, data: str | Path | None = None, columns: Mapping[str, Column] | None = None
) -> Started:
    """Write a starter recipe, and tell what was chosen."""
    _check_types(file, data)
    path = Path(file)
    declared = TASK_NAMED.get(str(task))
    if declared is None:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if path.exists():
        raise DataError(f"{path} exists already; choose another name.")
    if data is None and columns:
        raise DataError(f"a column for {', '.join(columns)} is named, but no data; name the file with --data FILE.")
    told = _Told()
    with listening(told):
        found = Found(usual_columns(declared)) if data is None else found_in(declared, Path(data), columns)
    files = _files(declared, data, found)
    found, many_bad = replace(found, skipped=found.skipped + sum(len(one.faults) for one in files)), _many_bad(found)
    text = _text(declared, None if data is None else Path(data), found, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Started(
        path,
        (
            *([found.chosen] if found.chosen else []),
            *told.sentences,
            *found.notes,
            *many_bad,
            *label_notes(_output(declared, found), found.texts.get(declared.output.name, ())),
            *([FEW_ROWS.format(found=found, folds=_folds(found))] if _cross_validates(declared, found) else []),
            *(sentence for one in files for sentence in one.notes(_on_bad_row(found))),
        ),
    )


def _check_types(file: object, data: object) -> None:
    """Refuse what is no name of a file."""
    if not isinstance(file, str | PathLike):
        raise DataError(f"the recipe to write is given by its file, but this is {shown(file)}.")
    if data is not None and not isinstance(data, str | PathLike):
        raise DataError(
            f"data must be a file or a folder, but is of type {type(data).__name__}; give a table in memory to "
            "sixjars.train with a recipe as a dict, or save it as a .csv file first."
        )


@final
class _Told(Reporter):
    """Keeps what is told while the data is read."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        """Once more."""
        self.sentences.append(sentence)


def _files(task: Task, data: str | Path | None, found: Found) -> list[LookedThrough]:
    """What there is to know of the files that the rows name."""
    if data is None:
        return []
    kit = Equipment(places=tuple(_media_places(Path(data), found)))
    media = [slot for slot in task.inputs if is_media(slot) and slot.name in found.texts]
    fields = [field_of(slot, found.settings.get(slot.name)).equipped(kit) for slot in media]
    return [look_through(field, found.texts[field.name]) for field in fields if kit.places]


def _media_places(data: Path | None, found: Found) -> list[Path]:
    """Where the files that the data names are."""
    if data is None or found.format == "folders":
        return [data or Path()]
    return [data.parent / place for place in found.media]


def _text(task: Task, data: Path | None, found: Found, file: Path) -> str:
    rows = found.rows or ASSUMED_ROWS
    output, media = FIELDS[task.output.kind], any(is_media(slot) for slot in task.inputs)
    several = bool(found.settings.get(task.output.name, {}).get("multi_label"))
    searches, generates = DECODERS[task.decoder].searches, output.holds == "tokens"
    made = _output(task, found)
    metrics = list(made.default_metrics or task.metrics)
    weighted = unbalanced(counts_of(made, found.texts.get(task.output.name, ())))
    if weighted:  # the share of right answers says little there
        metrics.sort(key=lambda name: name != "macro_f1")
    if metrics[0].startswith("bleu") and _are_short(found.texts.get(task.output.name, ())):
        metrics = without_bleu(metrics)
    folds = _cross_validates(task, found)
    examples = f"batch_examples: {by_rows(rows, 8, 32, 64, 128)}"
    search = "search: {kind: beam, width: 5}, " if searches else ""
    search += "group: true, " if media and search else ""
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {rows:,} rows" if data else "guesses until you give your data",
        columns=f"# Columns {_plain(found.chosen)}\n" if found.chosen else "",
        bad=_on_bad_row(found),
        rows="\n  ".join(_rows(data, found, media=media, folds=folds)),
        fields="\n  ".join(f"{slot.name}: {inline(_field(task, slot, found))}" for slot in task.slots),
        model="\n  ".join(model_lines(task, found, rows, places=_media_places(data, found) if media else [])),
        balanced=", class_weights: balanced" if weighted else "",
        smoothing=0.1 if task.inputs and output.holds != "positions" and not several else 0.0,
        batch=examples if media or not generates else f"batch_tokens: {by_rows(rows, 250, 1_000, 2_500, 6_000)}",
        epochs=min(200, max(10, 200_000 // rows)),
        choice=f", folds: {_folds(found)}, metric: loss" if folds else "",
        search=search if task.inputs else "search: {kind: sample, temperature: 0.8}, ",
        metrics=", ".join(metrics),
    )


def _are_short(texts: Sequence[str]) -> bool:
    """Whether most texts have fewer than four words: BLEU, which counts runs of four, is 0 however good they are."""
    return sum(len(text.split()) < 4 for text in texts) * 2 > len(texts)


def without_bleu(metrics: Sequence[str]) -> list[str]:
    """The metrics of a task for short outputs: the first one chooses the checkpoint, so it is not BLEU.

    >>> without_bleu(["bleu", "rougeL", "exact_match"]), without_bleu(["bleu", "distinct1"])
    (['rougeL', 'exact_match'], ['chrf', 'distinct1'])
    """
    others = [name for name in metrics if not name.startswith("bleu")]
    first = next((name for name in ("chrf", "rougeL", "rougeL_coco", "exact_match") if name in others), "chrf")
    return [first, *(name for name in others if name != first)]


def _cross_validates(task: Task, found: Found) -> bool:
    return _output(task, found).single_label and (found.rows or ASSUMED_ROWS) < TINY and not found.splits


def _folds(found: Found) -> int:
    return max(2, min(FOLDS, found.rows or FOLDS))


def _on_bad_row(found: Found) -> str:
    return "skip" if 0 < found.skipped <= MOST_BAD * (found.rows or 0) else "error"


def _many_bad(found: Found) -> list[str]:
    """Why the recipe does not skip rows that cannot be read, where it does not."""
    bad = number_of(found.skipped, "bad row")
    many = found.skipped and _on_bad_row(found) == "error"
    return [MANY_BAD.format(bad=bad, found=found, most=MOST_BAD)] if many else []


def _output(task: Task, found: Found) -> Field:
    """The field of the output, as its values suggest it."""
    return field_of(task.output, found.settings.get(task.output.name))


def _rows(data: Path | None, found: Found, *, media: bool, folds: bool) -> list[str]:
    """The lines that say which rows there are."""
    file = data or Path("train.jsonl" if media else "train.tsv")
    lines = [FILES if media else ROWS] if found.format == "table" else [f"format: {found.format}"]
    if media and found.format != "folders" and file.parent != Path():
        lines, file = [f"folder: {inline(str(file.parent))}", *lines], Path(file.name)
    lines.append(f"train: {inline(str(file))}")
    lines += [f"{key}: {inline(value)}" for key, value in found.table.items()]
    lines += [f"speakers: {SPEAKERS}"] if found.speakers else []
    if {"train", "valid"} <= set(found.splits):
        split = {"column": found.split_column, **found.splits}
        return [*lines, "# the column that says which split a row belongs to", f"split: {inline(split)}"]
    kept = {str(found.split_column): found.splits["train"]} if "train" in found.splits else {}
    only = [f"filter: {inline(kept)}"] if kept else []
    if folds:
        return [*lines, *only, BY_FOLDS]
    small = found.rows is not None and found.rows < FEW
    return [*lines, *only, HELD_OUT.format(test="# test: 0.1" if small else "test: 0.1")]


def _field(task: Task, slot: Slot, found: Found) -> dict[str, Any]:
    """The settings of one field."""
    guess = dict(found.settings.get(slot.name, {}))
    own = {"kind": guess["kind"]} if "kind" in guess else {}
    column: dict[str, Any] = {**own, "column": found.columns[slot.name]}
    if is_media(slot):
        places = found.media if len(found.media) > 1 else found.media[0] if found.media else "."
        column |= {} if found.format == "folders" else {"media": places}
    first = bool(task.inputs) and slot is task.inputs[0]
    if first and task.segments != "none" and (task.segments == "turns" or "segments" not in guess):
        guess |= {} if is_flat(task, found) else {"segments": task.segments}
    long = "segments" in guess and task.segments != "none"
    texts = [text for name in ENCODERS[task.encoder].learned_from(slot.name) for text in found.texts.get(name, ())]
    suggested = FIELDS[guess.get("kind", slot.kind)].suggest(texts, tokens=task.tokens, long=long)
    few = not DECODERS[task.decoder].searches and 0 < (found.rows or 0) < FEW_WORDS
    lower = {"lowercase": True} if "tokens" in suggested and (few or any(map(is_media, task.inputs))) else {}
    if slot is not task.output and suggested.get("tokens") == "words":
        suggested["word_dropout"] = 0.1  # so that <unk> is learned
    counts = counts_of(_output(task, found), found.texts.get(slot.name, ())) if slot is task.output else {}
    if unbalanced(counts) and single(counts):  # else the weight of that row would be the weight of a whole class
        suggested["min_count"] = 2
    return {**column, **suggested, **guess, **lower}


def _plain(text: str) -> str:
    """A text for a comment: one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
