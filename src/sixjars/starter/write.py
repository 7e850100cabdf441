"""A commented starter recipe: its columns found in the user's data, its sizes chosen from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import final

from sixjars.data.field import Equipment
from sixjars.data.fields import FIELDS
from sixjars.model.decoders import DECODERS
from sixjars.progress import Reporter, listening, number_of
from sixjars.recipe.data import Column
from sixjars.recipe.files import inline
from sixjars.starter.data_facts import Found, field_of, found_in, is_media, usual_columns
from sixjars.starter.data_notes import (
    LookedThrough,
    check_labels,
    counts_of,
    label_notes,
    look_through,
    unbalanced,
)
from sixjars.starter.data_section import (
    NAMED,
    PARALLEL,
    field_settings,
    media_places,
    output_of,
    rows_lines,
)
from sixjars.starter.learning_section import learning_lines
from sixjars.starter.model_section import model_lines
from sixjars.starter.parallel_files import Data, found_in_files, named
from sixjars.starter.text_settings import choice_for
from sixjars.tasks import TASK_NAMED, TASKS, Task
from sixjars_runtime.errors import DataError, RecipeError, shown, unknown

Given = str | Path | Sequence[str | Path] | Mapping[str, str | Path] | None
"""What a user may name as data."""
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
  {named}
  {fields}
model:
  {model}
{loss}
{learning}
evaluation: {{{search}metrics: [{metrics}]{scored}}}
"""
FOLDS = 5
"""Models of a cross-validation of very few rows; of more, fewer folds tell enough."""
FOLDS_OF_MORE = 3
MORE_ROWS = 1_000
"""Rows from which there are fewer folds."""
FEW_ROWS = (
    "{found.rows:,} rows are few, so the recipe cross-validates (learning.folds: {folds}): a score on a small part of "
    "them would be luck, and the model that is kept learns from all of them. For one model in about a {share} of the "
    "time write `folds: null` and `test: 0.1`."
)
SHARES = {2: "third", 3: "quarter", 4: "fifth", 5: "sixth"}
"""Of the time of so many folds and the model that is kept, what one model takes."""
MANY_BAD = (
    "{bad} to {found.rows:,} good ones are more than {most:.0%}, so the recipe does not skip them "
    "(on_bad_row: error): training stops at the first. Mend them, or write `on_bad_row: skip` to train without them."
)
TINY = 100
"""Rows of labelled examples below which a starter recipe cross-validates."""
FEW_TEXTS = 6_000
"""The same where all inputs are texts, which are quick to train on: rows that are held out for validation and test are
missed in training, and the best of 30 epochs on 80 rows is chance."""


def new(
    file: str | Path,
    *,
    task: str,
    data: Given = None,
    columns: Mapping[str, Column] | None = None,
    minutes: float | None = None,
) -> Path:
    """Write a starter recipe; an existing file is never overwritten.

    `data` is a file of rows; for images and videos it may be a folder (or .zip) with a folder for each label. Parallel
    files, a line of each for a row, are a list, inputs first, or are given by name: `{"en": "a.en", "de": "a.de"}`.
    `columns` names the column of a field, such as `{"source": "review"}`; those of other fields are chosen.
    With `minutes`, a few candidates for this kind of data are trained for so long, and the best one is written.

    >>> import tempfile, sixjars
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sixjars.new(f"{folder}/mine.yaml", task="dialog")
    ...     path.read_text().splitlines()[0]
    '# dialog: an utterance in, a response out.'
    """
    if minutes is None:
        return started(file, task=task, data=data, columns=columns).path
    from sixjars.starter.race import check_minutes, race  # brings all that trains

    check_minutes(minutes, data)
    path = started(file, task=task, data=data, columns=columns).path
    race(path, minutes=minutes)
    return path


@final
@dataclass(frozen=True)
class Started:
    """A starter recipe that was written."""

    path: Path
    notes: tuple[str, ...]
    """Which columns were chosen and why, and what a person should know of the data; a sentence each."""
    stops: bool = False
    """Whether training stops at a bad row, unless it is told to skip."""


def started(
    file: str | Path, *, task: str, data: Given = None, columns: Mapping[str, Column] | None = None
) -> Started:
    """Write a starter recipe, and tell what was chosen."""
    if not isinstance(file, str | PathLike):
        raise DataError(f"the recipe to write is given by its file, but this is {shown(file)}.")
    path, place = Path(file), named(data)
    declared = TASK_NAMED.get(str(task))
    if declared is None:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if path.exists():
        raise DataError(f"{path} exists already; choose another name.")
    if place is None and columns:
        raise DataError(
            f"a column for {', '.join(columns)} is named, but no data; name the file with --data FILE."
        )
    told = _Told()
    with listening(told):
        found = _found(declared, place, columns)
    files = _files(declared, place, found)
    found, many_bad = (
        replace(found, skipped=found.skipped + sum(len(one.faults) for one in files)),
        _many_bad(found),
    )
    text = _text(declared, place, found, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Started(
        path,
        (
            *([found.chosen] if found.chosen else []),
            *told.sentences,
            *found.notes,
            *([note] if (note := choice_for(declared, found).note) else []),
            *many_bad,
            *label_notes(output_of(declared, found), found.texts.get(declared.output.name, ())),
            *_few_rows(declared, found),
            *(sentence for one in files for sentence in one.notes(_on_bad_row(found))),
        ),
        stops=found.skipped > 0 and _on_bad_row(found) == "error",
    )


def _found(task: Task, data: Data | None, columns: Mapping[str, Column] | None) -> Found:
    """What the data tells, wherever it is."""
    if data is None:
        return Found(usual_columns(task))
    found = (
        found_in_files(task, data, columns)
        if isinstance(data, Mapping)
        else found_in(task, data, columns)
    )
    name = task.output.name
    file = data[str(found.columns[name])] if isinstance(data, Mapping) else data
    check_labels(output_of(task, found), found.texts[name], file)
    return found


@final
class _Told(Reporter):
    """Keeps what is told while the data is read."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        """Once more."""
        self.sentences.append(sentence)


def _files(task: Task, data: Data | None, found: Found) -> list[LookedThrough]:
    """What there is to know of the files that the rows name."""
    if data is None:
        return []
    kit = Equipment(places=tuple(media_places(data, found)))
    media = [slot for slot in task.inputs if is_media(slot) and slot.name in found.texts]
    fields = [field_of(slot, found.settings.get(slot.name)).equipped(kit) for slot in media]
    return [look_through(field, found.texts[field.name]) for field in fields if kit.places]


def _text(task: Task, data: Data | None, found: Found, file: Path) -> str:
    rows = found.rows or ASSUMED_ROWS
    text = choice_for(task, found)
    media = any(is_media(slot) for slot in task.inputs)
    several = bool(found.settings.get(task.output.name, {}).get("multi_label"))
    searches = DECODERS[task.decoder].searches
    made = output_of(task, found)
    metrics = list(made.default_metrics or task.metrics)
    uneven = unbalanced(counts_of(made, found.texts.get(task.output.name, ())))
    if metrics[0].startswith("bleu") and _are_short(found.texts.get(task.output.name, ())):
        metrics = without_bleu(metrics)
    folds = _cross_validates(task, found)
    search = "search: {kind: beam, width: 5}, " if searches else ""
    search += "group: true, " if media and search else ""
    fields = {slot.name: field_settings(task, slot, found, text) for slot in task.slots}
    longest = max((settings.get("max_length", 0) for settings in fields.values()), default=0)
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {rows:,} rows" if data else "guesses until you give your data",
        columns=f"# Columns {_plain(found.chosen)}\n" if found.chosen else "",
        bad=_on_bad_row(found),
        rows="\n  ".join(rows_lines(data, found, media=media, folds=folds)),
        named=PARALLEL if isinstance(data, Mapping) else NAMED,
        fields="\n  ".join(f"{name}: {inline(settings)}" for name, settings in fields.items()),
        model="\n  ".join(
            model_lines(
                task, found, rows, places=media_places(data, found) if media else [], text=text
            )
        ),
        loss=_loss_line(task, several=several, uneven=uneven),
        learning=learning_lines(task, found, rows, folds=_folds(found) if folds else None),
        search=search if task.inputs else "search: {kind: sample, temperature: 0.8}, ",
        metrics=", ".join(metrics),
        scored=f", batch_examples: {FEW_AT_ONCE}" if longest > LONG else "",
    )


LONG = 500
"""Tokens of a text from which fewer are scored at once: of 128 texts of 2,000 tokens every tensor would have 262 MB."""
FEW_AT_ONCE = 32
UNEVEN = (
    " # some labels are rare: class_weights: balanced finds more of them, at the cost of accuracy"
)
SMOOTHING = 0.1
"""Of texts that are written, as in every recipe of ours for real text, and of the relation of two sentences: 0.852 in
place of 0.842 on SICK, 0.741 in place of 0.727 on SNLI. The label of a text is not smoothed: 0.878 in place of 0.883 on
news. Nor are classes weighted: that cost 14 points of accuracy on SICK."""


def _loss_line(task: Task, *, several: bool, uneven: bool) -> str:
    """Cross entropy, smoothed where that was measured to help."""
    holds = FIELDS[task.output.kind].holds
    of_pair = holds == "classes" and len(task.inputs) > 1 and not several
    smoothing = SMOOTHING if task.inputs and (holds == "tokens" or of_pair) else 0.0
    return f"loss: {{kind: cross_entropy, smoothing: {smoothing}}}{UNEVEN if uneven else ''}"


def _are_short(texts: Sequence[str]) -> bool:
    """Whether most texts have fewer than four words: BLEU, which counts runs of four, is 0 however good they are."""
    return sum(len(text.split()) < 4 for text in texts) * 2 > len(texts)


def without_bleu(metrics: Sequence[str]) -> list[str]:
    """The metrics of a task for short outputs: the first one chooses the checkpoint, so it is not BLEU.

    >>> without_bleu(["bleu", "rougeL", "exact_match"]), without_bleu(["bleu", "distinct1"])
    (['rougeL', 'exact_match'], ['chrf', 'distinct1'])
    """
    others = [name for name in metrics if not name.startswith("bleu")]
    first = next(
        (name for name in ("chrf", "rougeL", "rougeL_coco", "exact_match") if name in others),
        "chrf",
    )
    return [first, *(name for name in others if name != first)]


def _cross_validates(task: Task, found: Found) -> bool:
    limit = TINY if any(is_media(slot) for slot in task.inputs) else FEW_TEXTS
    return (
        output_of(task, found).single_label
        and (found.rows or ASSUMED_ROWS) < limit
        and not found.splits
    )


def _few_rows(task: Task, found: Found) -> list[str]:
    """Why the recipe trains several models, where it does."""
    folds = _folds(found)
    return (
        [FEW_ROWS.format(found=found, folds=folds, share=SHARES[folds])]
        if _cross_validates(task, found)
        else []
    )


def _folds(found: Found) -> int:
    rows = found.rows or ASSUMED_ROWS
    return max(2, min(FOLDS, rows)) if rows < MORE_ROWS else FOLDS_OF_MORE


def _on_bad_row(found: Found) -> str:
    return "skip" if 0 < found.skipped <= MOST_BAD * (found.rows or 0) else "error"


def _many_bad(found: Found) -> list[str]:
    """Why the recipe does not skip rows that cannot be read, where it does not."""
    bad = number_of(found.skipped, "bad row")
    many = found.skipped and _on_bad_row(found) == "error"
    return [MANY_BAD.format(bad=bad, found=found, most=MOST_BAD)] if many else []


def _plain(text: str) -> str:
    """A text for a comment: one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
