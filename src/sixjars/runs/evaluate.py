"""Scoring a run after it was trained."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Field
from sixjars.data.tables.memory import MEMORY, given_tables, table_of, tables_of
from sixjars.data.tables.records import HUB
from sixjars.errors import DataError, RecipeError, RunError, SixJarsError
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.metrics import (
    ClassRow,
    Confusion,
    Metric,
    Score,
    confusion,
    per_class,
    why_zero,
)
from sixjars.evaluation.score import Judged, judged
from sixjars.learning.engine import Device, device_named
from sixjars.model.build import Network
from sixjars.progress import Reporter, listening
from sixjars.recipe.data import LinkFiles
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.beside import Beside, kept_baselines, sentence_of
from sixjars.runs.data import Blueprint, Splits, splits_of
from sixjars.runs.folder import RunFolder, open_run
from sixjars.runs.folds import note_of_folds
from sixjars.runs.notebook import baseline_table, score_table, table
from sixjars.runs.recipes import metrics_of, misfits, named_metrics
from sixjars.runs.scored_files import Scored, are_files, learned_from, scored_file, training_files
from sixjars.runs.splits import SPLITS
from sixjars.runs.trend import trend_of
from sixjars.runs.unknown_labels import unknown_labels

LARGEST: Final = 100_000_000
"""Bytes of training files that are read again for baselines beside other data: about ten seconds."""


@final
@dataclass(frozen=True)
class Evaluation:
    """Scores, and what they are of.

    >>> Evaluation((), 12, 0, "the test set of pairs.tsv").to_json()["examples"]
    12
    """

    scores: tuple[Score, ...]
    examples: int
    skipped: int
    where: str
    classes: tuple[ClassRow, ...] = ()
    """Of a model that chooses labels: precision and recall of each."""
    confusion: Confusion | None = None
    """And which is taken for which."""
    unknown: float | None = None
    """The share of `<unk>` among the tokens of the inputs, where they have tokens."""
    baselines: tuple[Baseline, ...] = ()
    """What costs nothing, scored on the same rows."""
    beside: str = ""
    """The best baseline beside this model in a sentence, and what to try where it is as good or better."""
    each: Callable[[], Iterator[dict[str, Any]]] = field(
        default=lambda: iter(()), compare=False, repr=False
    )
    """Gives every example: its input, references and output, and the scores that it has by itself."""

    def _repr_html_(self) -> str:
        """Scores, and those of each class, for a notebook."""
        rows = [(row.label, row.precision, row.recall, row.f1, row.count) for row in self.classes]
        classes = (
            table(["label", "precision", "recall", "F1", "examples"], rows, "classes")
            if rows
            else ""
        )
        return (
            score_table(self.scores, self.where)
            + baseline_table(self.baselines, self.beside)
            + classes
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        values: dict[str, Any] = {
            "data": self.where,
            "examples": self.examples,
            "skipped": self.skipped,
            "unknown": self.unknown,
            "scores": {score.name: asdict(score) for score in self.scores},
            "baselines": [one.to_json() for one in self.baselines],
        }
        if self.classes:
            values["classes"] = [asdict(row) for row in self.classes]
        return values if self.confusion is None else values | {"confusion": asdict(self.confusion)}


def evaluate(  # noqa: PLR0913 - the options of one evaluation
    folder: str | os.PathLike[str],
    *,
    data: Any = None,
    metrics: Sequence[str] | None = None,
    device: Device = "auto",
    reporter: Reporter | None = None,
    baselines: bool = True,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Evaluation:
    """The scores of a run, on its test set or on another file or table in memory with the same columns.

    Parallel files, a line of each for an example, are a list, as `new` takes them: `data=["t.en", "t.de"]`.
    A run that was trained on tables in memory is scored on the rows that were held out when they are given again, by
    split as `train` takes them: `data={"train": TABLE}`. `baselines` are scored too where the training set is at hand.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     found = sixjars.evaluate(run.folder, metrics=["accuracy@3"])
    >>> [score.name for score in found.scores], found.examples
    (['accuracy@3'], 200)
    """
    run = open_run(folder, Outside(tuple(allow), tuple(components)))
    wanted = wanted_metrics(run.recipe, metrics, run.outside)
    reporter = reporter or Reporter()
    found = judged_run(run, wanted, data=data, device=device, reporter=reporter)
    made, outcomes = evaluation_of(found.judged, wanted, found.dataset), found.judged.outcomes
    for sentence in found.dataset.notes:
        reporter.note(sentence)
    if data is not None and (strange := unknown_labels(found.dataset)):
        reporter.note(strange)
    for sentence in why_zero(wanted, made.scores, outcomes[min(outcomes)]):
        reporter.note(sentence)
    if not baselines:
        return made
    beside = baselines_beside(run, found, wanted, reporter)
    sentence = sentence_of(beside, made.scores, run.recipe, trend_of(run))
    return replace(made, baselines=beside, beside=sentence)


@final
@dataclass(frozen=True)
class JudgedRun:
    """What a run makes of some data, and how long that took."""

    judged: Judged
    dataset: Dataset
    parameters: int
    seconds: float
    network: Network
    splits: Splits | None = None
    """All of the run's data, where that was read."""
    learned_from: bool = False
    """Whether the run was trained on these rows."""

    @property
    def inputs(self) -> list[tuple[str, ...]]:
        """What each example that was scored was given; where nothing is, as with a language model, its target."""
        given, targets = self.dataset.inputs, self.dataset.targets
        return [tuple(given[row].values()) or (targets[row],) for row in self.judged.rows]


def judged_run(
    run: RunFolder,
    metrics: Sequence[Metric],
    *,
    data: Any,
    device: Device,
    reporter: Reporter,
    group: bool | None = None,
    with_loss: bool = False,
) -> JudgedRun:
    """All that the metrics need to know of a run; rows with the same input are put together as its recipe says.

    `with_loss`, also how probable the references are.
    """
    blueprint = Blueprint.of(
        run.recipe, run.outside, device=device_named(device), reporter=reporter
    )
    run.check_backbones(blueprint.fingerprints)
    fields = run.restored(blueprint.fields)
    network = run.network(blueprint, fields).to(device_named(device))
    file, tables = _given(run, data)
    settings = (
        run.recipe.evaluation
        if group is None
        else run.recipe.evaluation.model_copy(update={"group": group})
    )
    try:
        with given_tables(tables), listening(reporter):
            dataset, splits = _datasets(run, blueprint, fields, data=file, metrics=metrics)
            training = None if splits is None else splits.train
    except DataError as error:
        raise DataError(
            f"{error}{_elsewhere(run.recipe, tables) if file is None else ''}"
        ) from None
    else:
        learned = file is not None and learned_from(run.recipe, file)
        if learned:
            reporter.note(
                "the run was trained on rows of this file; a score on them says little of new ones."
            )
        if file is None and run.recipe.learning.folds is not None:
            learned = True
            reporter.note(note_of_folds(run))
        began, progress = time.monotonic(), f"scoring {run.folder}"
        with listening(reporter):
            found = judged(
                network,
                dataset,
                settings,
                metrics,
                training=training,
                with_loss=with_loss,
                progress=progress,
            )
        seconds = time.monotonic() - began
    finally:
        reporter.end()
    return JudgedRun(
        found,
        dataset,
        sum(one.numel() for one in network.parameters()),
        seconds,
        network,
        splits,
        learned,
    )


def baselines_beside(
    run: RunFolder, found: JudgedRun, metrics: Sequence[Metric], reporter: Reporter
) -> tuple[Baseline, ...]:
    """What costs nothing, on the rows that a run was scored on; a note where the training set is not at hand."""
    if found.learned_from:
        return ()  # rows that were learned from say nothing of new ones
    model = found.judged
    beside = Beside.of(
        run.recipe, metrics, took=found.seconds, group=model.settings.group, model=model
    )

    def training() -> Dataset:
        return training_set(run) if found.splits is None else found.splits.train

    try:
        return kept_baselines(run, beside, found.dataset, training, reporter)
    except SixJarsError as error:  # the scores of the model stand without them
        reporter.note(f"no baselines beside it, for they learn from the training set: {error}")
        return ()


def training_set(run: RunFolder) -> Dataset:
    """The rows that a run learned from; what takes long is not read only to be compared with."""
    names = [*training_files(run.recipe)]
    if on_hub := [name for name in names if name.startswith(HUB)]:
        raise DataError(f"{on_hub[0]} is on the hub, and is not fetched for that.")
    files = [run.recipe.data.path(name) for name in names]
    size = sum(file.stat().st_size for file in files if file.is_file())
    if size > LARGEST:
        raise DataError(f"{size / 1e6:,.0f} MB of it are too many to read for that.")
    blueprint = Blueprint.of(run.recipe, run.outside)
    stored = replace(blueprint, fields=blueprint.fields.mapped(_as_stored))
    splits = splits_of(stored, run.restored(stored.fields))
    run.check_data(splits.fingerprints)
    return splits.train


def _as_stored(input_field: Field) -> Field:
    """A field that decodes no images or videos, and computes no features of them: that may take hours."""

    def check() -> None:
        raise RunError(
            f"what was read of the {input_field.name} files is not in the cache any more."
        )

    return input_field.equipped(replace(input_field.equipment, check=check))


def evaluation_of(found: Judged, metrics: Sequence[Metric], dataset: Dataset) -> Evaluation:
    """The scores; of labels also those of each."""
    fields, scores = dataset.fields, tuple(found.scores(metrics))
    outcomes = found.outcomes[min(found.outcomes)]
    each = partial(found.each, metrics)
    if fields.output.holds != "classes" or not outcomes[0].candidates:
        return Evaluation(
            scores,
            scores[0].count,
            dataset.skipped,
            dataset.where,
            unknown=dataset.unknown,
            each=each,
        )
    table = tuple(per_class(outcomes, multi_label=fields.output.multi_label))
    taken = None if fields.output.multi_label else confusion(outcomes)
    return Evaluation(
        scores,
        scores[0].count,
        dataset.skipped,
        dataset.where,
        table,
        taken,
        dataset.unknown,
        each=each,
    )


def _given(run: RunFolder, data: Any) -> tuple[Scored | None, dict[str, Any]]:
    """The file or files to score, or nothing for the run's own; and tables in memory, by name."""
    if data is None or isinstance(data, str | Path):
        return data, {}
    if are_files(data):
        files = tuple(map(os.fspath, data))
        return (files[0] if len(files) == 1 else files), {}
    if not isinstance(data, Mapping):
        return f"{MEMORY}data", {f"{MEMORY}data": table_of(data)}
    tables = tables_of(data, SPLITS)
    foreign = [name.removeprefix(MEMORY) for name in tables if name not in _own_files(run.recipe)]
    if foreign:
        raise DataError(
            f"{run.folder} was not trained on a table in memory for {foreign[0]!r}, so its held-out rows are not "
            "in one; give the table alone to score all of its rows: data=TABLE."
        )
    return None, tables


def _own_files(recipe: Recipe) -> list[str]:
    """Those of the other splits too."""
    others = [
        one for one in (recipe.data.valid, recipe.data.test) if isinstance(one, str | Mapping)
    ]
    return [
        *training_files(recipe),
        *chain(*([one] if isinstance(one, str) else one.values() for one in others)),
    ]


def _elsewhere(recipe: Recipe, tables: Collection[str]) -> str:
    """What to do where the files of a run are not at hand, as on another machine; nothing where they are."""
    own = (name for name in _own_files(recipe) if name not in tables and not name.startswith(HUB))
    if all(recipe.data.path(name).exists() for name in own):
        return ""
    return " To score the run on another file with the same columns, say --data FILE (in Python: data='FILE')."


def wanted_metrics(recipe: Recipe, names: Sequence[str] | None, outside: Outside) -> list[Metric]:
    """The metrics that are wanted; refuse what a run cannot be measured by, before anything is computed."""
    if not names:
        return metrics_of(recipe, outside)
    named, faults = named_metrics([("--metrics", name) for name in names], outside)
    faults += misfits(recipe, named, outside)
    if faults:
        raise RecipeError(faults, "the command line")
    return [metric for _, metric in named]


def without_annotations(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that need no annotations, as alignments."""
    return [
        metric
        for metric in metrics
        if not metric.needs & {truth.need for truth in ANNOTATIONS.values()}
    ]


def scored_dataset(
    run: RunFolder, blueprint: Blueprint | None = None, fields: Fields | None = None
) -> Dataset:
    """The examples that a run is scored on."""
    blueprint = blueprint or Blueprint.of(run.recipe, run.outside)
    return _datasets(run, blueprint, fields or run.restored(blueprint.fields))[0]


def _datasets(
    run: RunFolder,
    blueprint: Blueprint,
    fields: Fields,
    *,
    data: Scored | None = None,
    metrics: Sequence[Metric] = (),
) -> tuple[Dataset, Splits | None]:
    """What is scored, and all of the run's data where that is at hand or needed."""
    if data is None:
        splits = splits_of(blueprint, fields)
        run.check_data(splits.fingerprints)
        return splits.scored, splits
    needs = {need for metric in metrics for need in metric.needs}
    if (
        "links" in needs
        and isinstance(run.recipe.data.alignment, LinkFiles)
        and run.recipe.data.sample is None
    ):
        raise DataError(
            f"{data}: the links of this run are in files of their own (data.alignment), not in a column; leave --data "
            "out, or name metrics without alignment_error_rate."
        )
    dataset = scored_file(
        run, fields, data, {truth.key for truth in ANNOTATIONS.values() if truth.need in needs}
    )
    dataset.usable  # noqa: B018 - refuses a file of which nothing can be scored
    needs_training = any("familiar" in metric.needs for metric in metrics)
    return dataset, splits_of(blueprint, fields) if needs_training else None
