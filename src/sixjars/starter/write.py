"""A commented starter recipe for a user's data: its columns are found, its sizes chosen."""

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
from sixjars.starter.data_facts import DataFacts, field_of, found_in, is_media, usual_columns
from sixjars.starter.data_notes import (
    FileFindings,
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
from sixjars.starter.model_section import model_lines, sections_of
from sixjars.starter.parallel_files import Data, found_in_files, named
from sixjars.starter.text_settings import choice_for
from sixjars.tasks import TASK_NAMED, TASKS, Task
from sixjars_runtime.errors import DataError, RecipeError, shown, unknown

Given = str | Path | Sequence[str | Path] | Mapping[str, str | Path] | None
"""The data that a user may name."""
ASSUMED_ROWS = 10_000
"""Rows that sizes are chosen for where there is no data."""
MOST_BAD = 0.1
"""The share of bad rows up to which a starter recipe skips them; of more they are errors."""
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
    "{facts.rows:,} rows are few, so the recipe cross-validates (learning.folds: {folds}): a score "
    "on a small part of them would be luck, and the model that is kept learns from all of them. "
    "For one model in about a {share} of the time write `folds: null` and `test: 0.1`."
)
SHARES = {2: "third", 3: "quarter", 4: "fifth", 5: "sixth"}
"""The share of the time of so many folds and the model that is kept, which one model takes."""
MANY_BAD = (
    "{bad} to {facts.rows:,} good ones are more than {most:.0%}, so the recipe does not skip them "
    "(on_bad_row: error): training stops at the first. Mend them, or write `on_bad_row: skip` "
    "to train without them."
)
TINY = 100
"""Rows of labelled examples below which a starter recipe cross-validates."""
FEW_TEXTS = 6_000
"""The same where all inputs are texts, which are quick to train on: rows that are held out for
validation and test are missed in training, and the best of 30 epochs on 80 rows is chance."""


def new(
    file: str | Path,
    *,
    task: str,
    data: Given = None,
    columns: Mapping[str, Column] | None = None,
    minutes: float | None = None,
) -> Path:
    """Write a starter recipe; an existing file is never overwritten.

    `data` is a file of rows; for images and videos it may be a folder (or .zip) with a folder for
    each label. Parallel files, a line of each for a row, are a list, inputs first, or are given by
    name: `{"en": "a.en", "de": "a.de"}`. `columns` names the column of a field, such as `{"source":
    "review"}`; those of other fields are chosen. With `minutes`, a few candidates for this kind of
    data are trained for so long, and the best one is written.

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
class StarterRecipe:
    """A starter recipe that was written."""

    path: Path
    notes: tuple[str, ...]
    """Sentences about the chosen columns, with reasons, and about the data."""
    stops: bool = False
    """Whether training stops at a bad row, unless its recipe is changed to skip."""


def started(
    file: str | Path, *, task: str, data: Given = None, columns: Mapping[str, Column] | None = None
) -> StarterRecipe:
    """Write a starter recipe, with notes on what was chosen."""
    if not isinstance(file, str | PathLike):
        raise DataError(f"the recipe to write is given by its file, but this is {shown(file)}.")
    path = Path(file)
    place = named(data)
    declared = TASK_NAMED.get(str(task))
    if declared is None:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if path.exists():
        raise DataError(f"{path} exists already; choose another name.")
    if place is None and columns:
        fields = ", ".join(columns)
        raise DataError(
            f"a column for {fields} is named, but no data; name the file with --data FILE."
        )
    reporter = _Notes()
    with listening(reporter):
        facts = _found(declared, place, columns)
    files = _files(declared, place, facts)
    many_bad = _many_bad(facts)
    facts = replace(facts, skipped=facts.skipped + sum(len(each.faults) for each in files))
    text = _text(declared, place, facts, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    vectors = choice_for(declared, facts).note
    notes = [
        *filter(None, [facts.chosen, *reporter.sentences, *facts.notes, vectors]),
        *many_bad,
        *label_notes(output_of(declared, facts), facts.texts.get(declared.output.name, ())),
        *_few_rows(declared, facts),
        *(sentence for each in files for sentence in each.notes(_on_bad_row(facts))),
    ]
    stops = facts.skipped > 0 and _on_bad_row(facts) == "error"
    return StarterRecipe(path, tuple(notes), stops=stops)


def _found(task: Task, data: Data | None, columns: Mapping[str, Column] | None) -> DataFacts:
    """The facts of the data, wherever it is."""
    if data is None:
        return DataFacts(usual_columns(task))
    name = task.output.name
    if isinstance(data, Mapping):
        facts = found_in_files(task, data, columns)
        file = data[str(facts.columns[name])]
    else:
        facts, file = found_in(task, data, columns), data
    check_labels(output_of(task, facts), facts.texts[name], file)
    return facts


@final
class _Notes(Reporter):
    """Keeps the notes on the data while it is read."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        """Keep a note."""
        self.sentences.append(sentence)


def _files(task: Task, data: Data | None, facts: DataFacts) -> list[FileFindings]:
    """The sizes and the faults of the files that the rows name."""
    if data is None:
        return []
    kit = Equipment(places=tuple(media_places(data, facts)))
    media = [slot for slot in task.inputs if is_media(slot) and slot.name in facts.texts]
    fields = [field_of(slot, facts.settings.get(slot.name)).equipped(kit) for slot in media]
    return [look_through(field, facts.texts[field.name]) for field in fields if kit.places]


def _text(task: Task, data: Data | None, facts: DataFacts, file: Path) -> str:
    rows = facts.rows or ASSUMED_ROWS
    text = choice_for(task, facts)
    media = any(is_media(slot) for slot in task.inputs)
    several = bool(facts.settings.get(task.output.name, {}).get("multi_label"))
    output, outputs = output_of(task, facts), facts.texts.get(task.output.name, ())
    metrics = list(output.default_metrics or task.metrics)
    uneven = unbalanced(counts_of(output, outputs))
    if metrics[0].startswith("bleu") and _are_short(outputs):
        metrics = without_bleu(metrics)
    folds = _cross_validates(task, facts)
    search = "search: {kind: beam, width: 5}, " if DECODERS[task.decoder].searches else ""
    search += "group: true, " if media and search else ""
    fields = {slot.name: field_settings(task, slot, facts, text) for slot in task.slots}
    longest = max((settings.get("max_length", 0) for settings in fields.values()), default=0)
    places = media_places(data, facts) if media else []
    sections = sections_of(task, facts, rows, text)
    cross_validated = _folds(facts) if folds else None
    suited = sections.get("learning")
    learning = learning_lines(task, facts, rows, folds=cross_validated, suited=suited)
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {rows:,} rows" if data else "guesses until you give your data",
        columns=f"# Columns {_plain(facts.chosen)}\n" if facts.chosen else "",
        bad=_on_bad_row(facts),
        rows="\n  ".join(rows_lines(data, facts, media=media, folds=folds)),
        named=PARALLEL if isinstance(data, Mapping) else NAMED,
        fields="\n  ".join(f"{name}: {inline(settings)}" for name, settings in fields.items()),
        model="\n  ".join(model_lines(task, facts, sections, places)),
        loss=_loss_line(task, several=several, uneven=uneven),
        learning=learning,
        search=search if task.inputs else "search: {kind: sample, temperature: 0.8}, ",
        metrics=", ".join(metrics),
        scored=f", batch_examples: {FEW_AT_ONCE}" if longest > LONG else "",
    )


LONG = 500
"""Tokens of a text from which fewer are scored at once: of 128 texts of 2,000 tokens every tensor
would have 262 MB."""
FEW_AT_ONCE = 32
UNEVEN = (
    " # some labels are rare: class_weights: balanced finds more of them, at the cost of accuracy"
)
SMOOTHING = 0.1
"""Of texts that are written, as in every recipe of ours for real text, and of the relation of two
sentences: 0.852 in place of 0.842 on SICK, 0.741 in place of 0.727 on SNLI. The label of a text is
not smoothed: 0.878 in place of 0.883 on news. Nor are classes weighted: that cost 14 points of
accuracy on SICK."""


def _loss_line(task: Task, *, several: bool, uneven: bool) -> str:
    """Cross entropy, smoothed where that was measured to help."""
    holds = FIELDS[task.output.kind].holds
    of_pair = holds == "classes" and len(task.inputs) > 1 and not several
    smoothing = SMOOTHING if task.inputs and (holds == "tokens" or of_pair) else 0.0
    return f"loss: {{kind: cross_entropy, smoothing: {smoothing}}}{UNEVEN if uneven else ''}"


def _are_short(texts: Sequence[str]) -> bool:
    """Whether most texts have fewer than four words: BLEU counts runs of four, and is 0 then."""
    return sum(len(text.split()) < 4 for text in texts) * 2 > len(texts)


def without_bleu(metrics: Sequence[str]) -> list[str]:
    """The metrics for short outputs: the first, which chooses the checkpoint, is not BLEU.

    >>> without_bleu(["bleu", "rougeL", "exact_match"]), without_bleu(["bleu", "distinct1"])
    (['rougeL', 'exact_match'], ['chrf', 'distinct1'])
    """
    others = [name for name in metrics if not name.startswith("bleu")]
    usual = [name for name in ("chrf", "rougeL", "rougeL_coco", "exact_match") if name in others]
    first = usual[0] if usual else "chrf"
    return [first, *(name for name in others if name != first)]


def _cross_validates(task: Task, facts: DataFacts) -> bool:
    limit = TINY if any(is_media(slot) for slot in task.inputs) else FEW_TEXTS
    are_few = (facts.rows or ASSUMED_ROWS) < limit
    return output_of(task, facts).single_label and are_few and not facts.splits


def _few_rows(task: Task, facts: DataFacts) -> list[str]:
    """Why the recipe trains several models, where it does."""
    if not _cross_validates(task, facts):
        return []
    folds = _folds(facts)
    return [FEW_ROWS.format(facts=facts, folds=folds, share=SHARES[folds])]


def _folds(facts: DataFacts) -> int:
    rows = facts.rows or ASSUMED_ROWS
    return max(2, min(FOLDS, rows)) if rows < MORE_ROWS else FOLDS_OF_MORE


def _on_bad_row(facts: DataFacts) -> str:
    return "skip" if 0 < facts.skipped <= MOST_BAD * (facts.rows or 0) else "error"


def _many_bad(facts: DataFacts) -> list[str]:
    """Why the recipe does not skip bad rows, where it does not."""
    bad = number_of(facts.skipped, "bad row")
    many = facts.skipped and _on_bad_row(facts) == "error"
    return [MANY_BAD.format(bad=bad, facts=facts, most=MOST_BAD)] if many else []


def _plain(text: str) -> str:
    """A text as one line of a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
