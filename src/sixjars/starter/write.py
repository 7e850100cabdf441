"""A commented starter recipe for a user's data: its columns are found, its sizes chosen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Final, final

from sixjars.data.field import Equipment
from sixjars.progress import Reporter, listening, number_of
from sixjars.recipe.data import Column
from sixjars.recipe.files import inline
from sixjars.starter.columns import is_media
from sixjars.starter.facts import Data, facts_of, field_of, named
from sixjars.starter.notes import FileFindings, label_notes, look_through
from sixjars.starter.sections import (
    MISSING,
    MOST_BAD,
    Plan,
    components,
    field_settings,
    learning_lines,
    loss_line,
    media_places,
    model_lines,
    rows_lines,
)
from sixjars.tasks import TASK_NAMED, TASKS
from sixjars_runtime.errors import DataError, RecipeError, shown, unknown

Given = str | Path | Sequence[str | Path] | Mapping[str, str | Path] | None
"""The data that a user may name."""
TEMPLATE: Final = """\
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
NAMED: Final = (
    "# a column is its name in the file's first line, "
    "or its number from 1 where that is an example already"
)
PARALLEL: Final = (
    "# a column is the name of its file in `train`; line by line, the files have the rows"
)
FEW_ROWS: Final = (
    "{facts.rows:,} rows are few, so the recipe cross-validates (learning.folds: {folds}): a score "
    "on a small part of them would be luck, and the model that is kept learns from all of them. "
    "For one model in about a {share} of the time write `folds: null` and `test: 0.1`."
)
SHARES: Final = {2: "third", 3: "quarter", 4: "fifth", 5: "sixth"}
"""The share of the time of so many folds and the model that is kept, which one model takes."""
MANY_BAD: Final = (
    "{bad} to {facts.rows:,} good ones are more than {most:.0%}, so the recipe does not skip them "
    "(on_bad_row: error): training stops at the first. Mend them, or write `on_bad_row: skip` "
    "to train without them."
)
LONG: Final = 500
"""Tokens of a text from which fewer are scored at once: of 128 texts of 2,000 tokens every tensor
would have 262 MB."""
FEW_AT_ONCE: Final = 32


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
        facts = facts_of(declared, place, columns)
    plan = Plan(declared, facts)
    many_bad = _many_bad(plan)
    files = _files(plan, place)
    if faults := sum(len(each.faults) for each in files):
        plan = Plan(declared, replace(facts, skipped=facts.skipped + faults))
    text = _text(plan, place, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    notes = [facts.chosen, *reporter.sentences, *facts.notes]
    notes += [MISSING] if plan.suits_vectors and not plan.has_vectors else []
    notes += many_bad
    if plan.output.single_label or plan.output.multi_label:
        notes += label_notes(plan.output, plan.outputs)
    if plan.folds:
        share = SHARES[plan.folds]
        notes.append(FEW_ROWS.format(facts=facts, folds=plan.folds, share=share))
    notes += [sentence for each in files for sentence in each.notes(plan.on_bad_row)]
    stops = plan.facts.skipped > 0 and plan.on_bad_row == "error"
    return StarterRecipe(path, tuple(filter(None, notes)), stops=stops)


@final
class _Notes(Reporter):
    """Keeps the notes on the data while it is read."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        """Keep a note."""
        self.sentences.append(sentence)


def _files(plan: Plan, data: Data | None) -> list[FileFindings]:
    """The sizes and the faults of the files that the rows name."""
    texts = plan.facts.texts
    places = tuple(media_places(data, plan.facts)) if data is not None else ()
    media = [slot for slot in plan.task.inputs if is_media(slot) and slot.name in texts]
    fields = [field_of(slot, plan.guess(slot)) for slot in media if places]
    kit = Equipment(places=places)
    return [look_through(field.equipped(kit), texts[field.name]) for field in fields]


def _text(plan: Plan, data: Data | None, file: Path) -> str:
    task, facts = plan.task, plan.facts
    searches = "" if plan.labels else "search: {kind: beam, width: 5}, "
    searches += "group: true, " if plan.media and searches else ""
    fields = {slot.name: field_settings(plan, slot) for slot in task.slots}
    longest = max((settings.get("max_length", 0) for settings in fields.values()), default=0)
    sections = components(plan)
    places = media_places(data, facts) if plan.media else []
    return TEMPLATE.format(
        task=task,
        file=file,
        chosen=f"chosen for {plan.rows:,} rows" if data else "guesses until you give your data",
        columns=f"# Columns {_plain(facts.chosen)}\n" if facts.chosen else "",
        bad=plan.on_bad_row,
        rows="\n  ".join(rows_lines(plan, data)),
        named=PARALLEL if isinstance(data, Mapping) else NAMED,
        fields="\n  ".join(f"{name}: {inline(settings)}" for name, settings in fields.items()),
        model="\n  ".join(model_lines(plan, sections, places)),
        loss=loss_line(plan),
        learning=learning_lines(plan, sections.get("learning", {})),
        search=searches if task.inputs else "search: {kind: sample, temperature: 0.8}, ",
        metrics=", ".join(_metrics(plan)),
        scored=f", batch_examples: {FEW_AT_ONCE}" if longest > LONG else "",
    )


def _metrics(plan: Plan) -> Sequence[str]:
    """The metrics of the output; BLEU counts runs of four words, and is 0 where most texts have fewer."""
    metrics = plan.output.default_metrics or plan.task.metrics
    are_short = sum(len(text.split()) < 4 for text in plan.outputs) * 2 > len(plan.outputs)
    return without_bleu(metrics) if metrics[0].startswith("bleu") and are_short else metrics


def without_bleu(metrics: Sequence[str]) -> list[str]:
    """The metrics for short outputs: the first, which chooses the checkpoint, is not BLEU.

    >>> without_bleu(["bleu", "rougeL", "exact_match"]), without_bleu(["bleu", "distinct1"])
    (['rougeL', 'exact_match'], ['chrf', 'distinct1'])
    """
    others = [name for name in metrics if not name.startswith("bleu")]
    usual = [name for name in ("chrf", "rougeL", "rougeL_coco", "exact_match") if name in others]
    first = usual[0] if usual else "chrf"
    return [first, *(name for name in others if name != first)]


def _many_bad(plan: Plan) -> Iterator[str]:
    """Why the recipe does not skip bad rows, where it does not."""
    if plan.facts.skipped and plan.on_bad_row == "error":
        bad = number_of(plan.facts.skipped, "bad row")
        yield MANY_BAD.format(bad=bad, facts=plan.facts, most=MOST_BAD)


def _plain(text: str) -> str:
    """A text as one line of a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
