"""Scoring a run after it was trained."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Field
from sixjars.data.tables.memory import MEMORY, given_tables, table_of, tables_of
from sixjars.data.tables.parquet import HUB
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
from sixjars.evaluation.score import JudgedOutputs, judged
from sixjars.kernels.backends import Device, device_named
from sixjars.model.build import Network
from sixjars.progress import Reporter, listening
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.data import LinkFiles
from sixjars.recipe.sections import Recipe
from sixjars.runs.baselines.run_baselines import BaselineScoring, kept_baselines, sentence_of
from sixjars.runs.data.scored_files import (
    Scored,
    are_files,
    learned_from,
    scored_file,
    training_files,
)
from sixjars.runs.data.split_files import SPLITS
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.notebook import baseline_table, score_table, table
from sixjars.runs.recipes import Blueprint, metrics_of, misfits, named_metrics
from sixjars.runs.training.folds import note_of_folds
from sixjars.runs.training.trend import trend_of
from sixjars_runtime.errors import DataError, RecipeError, RunError, SixJarsError

LEARNED: Final = (
    "the run was trained on rows of this file; a score on them says little of new ones."
)
LARGEST: Final = 100_000_000
"""Bytes of training files that are read again for baselines beside other data: about 10 s."""


@final
@dataclass(frozen=True)
class Evaluation:
    """The scores of a run, and the data that they are of.

    >>> Evaluation((), 12, 0, "the test set of pairs.tsv").to_json()["examples"]
    12
    """

    scores: tuple[Score, ...]
    examples: int
    skipped: int
    where: str
    classes: tuple[ClassRow, ...] = ()
    """Precision and recall of each label, where the model chooses labels."""
    confusion: Confusion | None = None
    """How often each label is taken for each other one."""
    unknown: float | None = None
    """The share of `<unk>` among the tokens of the inputs, where they have tokens."""
    baselines: tuple[Baseline, ...] = ()
    """Simple methods without a network, scored on the same rows."""
    beside: str = ""
    """Compares the best baseline with this model, and says what to try where that is no better."""
    each: Callable[[], Iterator[dict[str, Any]]] = field(
        default=lambda: iter(()), compare=False, repr=False
    )
    """Gives every example: its input, references and output, and the scores of it alone."""

    def _repr_html_(self) -> str:
        """Scores, and those of each class, for a notebook."""
        html = score_table(self.scores, self.where) + baseline_table(self.baselines, self.beside)
        if not self.classes:
            return html
        rows = [(row.label, row.precision, row.recall, row.f1, row.count) for row in self.classes]
        return html + table(["label", "precision", "recall", "F1", "examples"], rows, "classes")

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        values: dict[str, Any] = {
            "data": self.where,
            "examples": self.examples,
            "skipped": self.skipped,
            "unknown": self.unknown,
            "scores": {score.name: asdict(score) for score in self.scores},
            "baselines": [baseline.to_json() for baseline in self.baselines],
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
    """Score a run on its test set, or on another file or table in memory with the same columns.

    Parallel files, a line of each for an example, are a list, as `new` takes them: `data=["t.en",
    "t.de"]`. A run that was trained on tables in memory is scored on the rows that were held out
    when they are given again, by split as `train` takes them: `data={"train": TABLE}`. `baselines`
    are scored too where the training set is at hand.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     evaluation = sixjars.evaluate(run.folder, metrics=["accuracy@3"])
    >>> [score.name for score in evaluation.scores], evaluation.examples
    (['accuracy@3'], 200)
    """
    run = open_run(folder, AllowedCode(tuple(allow), tuple(components)))
    chosen = wanted_metrics(run.recipe, metrics, run.outside)
    reporter = reporter or Reporter()
    scored = judged_run(run, chosen, data=data, device=device, reporter=reporter)
    evaluation = evaluation_of(scored.judged, chosen, scored.dataset)
    for sentence in scored.dataset.notes:
        reporter.note(sentence)
    dataset = scored.dataset
    if data is not None and (unknown := dataset.fields.output.note_on_unknown(dataset.table)):
        reporter.note(unknown)
    outcomes = scored.judged.outcomes
    for sentence in why_zero(chosen, evaluation.scores, outcomes[min(outcomes)]):
        reporter.note(sentence)
    if not baselines:
        return evaluation
    beside = baselines_beside(run, scored, chosen, reporter)
    sentence = sentence_of(beside, evaluation.scores, run.recipe, trend_of(run))
    return replace(evaluation, baselines=beside, beside=sentence)


@final
@dataclass(frozen=True)
class JudgedRun:
    """The outputs of a run for some data, judged, and how long that took."""

    judged: JudgedOutputs
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
        """The inputs of each scored example; without any, as in a language model, its target."""
        inputs, targets = self.dataset.inputs, self.dataset.targets
        return [tuple(inputs[row].values()) or (targets[row],) for row in self.judged.rows]


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
    """Judge the outputs of a run on some data; `with_loss`, also how probable the references are.

    Rows with the same input are one example where `group` says so, or else the recipe.
    """
    blueprint, fields, network = run.loaded(device_named(device), reporter=reporter)
    file, tables = _given(run, data)
    settings = run.recipe.evaluation
    if group is not None:
        settings = settings.model_copy(update={"group": group})
    try:
        with given_tables(tables), listening(reporter):
            dataset, splits = _datasets(run, blueprint, fields, data=file, metrics=metrics)
            training = None if splits is None else splits.train
    except DataError as error:
        remedy = _elsewhere(run.recipe, tables) if file is None else ""
        raise DataError(f"{error}{remedy}") from None
    else:
        learned = file is not None and learned_from(run.recipe, file)
        if learned:
            reporter.note(LEARNED)
        if file is None and run.recipe.learning.folds is not None:
            learned = True
            reporter.note(note_of_folds(run))
        began = time.monotonic()
        with listening(reporter):
            result = judged(
                network,
                dataset,
                settings,
                metrics,
                training=training,
                with_loss=with_loss,
                progress=f"scoring {run.folder}",
            )
        seconds = time.monotonic() - began
    finally:
        reporter.end()
    parameters = sum(weight.numel() for weight in network.parameters())
    return JudgedRun(result, dataset, parameters, seconds, network, splits, learned)


def baselines_beside(
    run: RunFolder, scored: JudgedRun, metrics: Sequence[Metric], reporter: Reporter
) -> tuple[Baseline, ...]:
    """Score baselines on the rows of a run, or note that the training set is not at hand."""
    if scored.learned_from:
        return ()  # rows that were learned from say nothing of new ones
    model = scored.judged
    group = model.settings.group
    beside = BaselineScoring.of(run.recipe, metrics, took=scored.seconds, group=group, model=model)

    def training() -> Dataset:
        return training_set(run) if scored.splits is None else scored.splits.train

    try:
        return kept_baselines(run, beside, scored.dataset, training, reporter)
    except SixJarsError as error:  # the scores of the model stand without them
        reporter.note(f"no baselines beside it, for they learn from the training set: {error}")
        return ()


def training_set(run: RunFolder) -> Dataset:
    """The rows that a run learned from, unless they take long to read."""
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
    """A field that refuses to decode images and videos, or compute features: it may take hours."""

    def check() -> None:
        lost = f"what was read of the {input_field.name} files is not in the cache any more."
        raise RunError(lost)

    return input_field.equipped(replace(input_field.equipment, check=check))


def evaluation_of(model: JudgedOutputs, metrics: Sequence[Metric], dataset: Dataset) -> Evaluation:
    """The scores of judged outputs; of labels also those of each."""
    fields, scores = dataset.fields, tuple(model.scores(metrics))
    outcomes = model.outcomes[min(model.outcomes)]
    evaluation = Evaluation(
        scores,
        scores[0].count,
        dataset.skipped,
        dataset.where,
        unknown=dataset.unknown,
        each=partial(model.each, metrics),
    )
    if fields.output.holds != "classes" or not outcomes[0].candidates:
        return evaluation
    classes = tuple(per_class(outcomes, multi_label=fields.output.multi_label))
    matrix = None if fields.output.multi_label else confusion(outcomes)
    return replace(evaluation, classes=classes, confusion=matrix)


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
            f"{run.folder} was not trained on a table in memory for {foreign[0]!r}, so its "
            "held-out rows are not in one; give the table alone to score all of its rows: "
            "data=TABLE."
        )
    return None, tables


def _own_files(recipe: Recipe) -> list[str]:
    files = [*training_files(recipe)]
    for split in (recipe.data.valid, recipe.data.test):
        if isinstance(split, str | Mapping):
            files.extend([split] if isinstance(split, str) else split.values())
    return files


def _elsewhere(recipe: Recipe, tables: Collection[str]) -> str:
    """A remedy where the files of a run are not at hand, as on another machine; or nothing."""
    files = (name for name in _own_files(recipe) if name not in tables and not name.startswith(HUB))
    if all(recipe.data.path(name).exists() for name in files):
        return ""
    remedy = "To score the run on another file with the same columns, say --data FILE"
    return f" {remedy} (in Python: data='FILE')."


def wanted_metrics(
    recipe: Recipe, names: Sequence[str] | None, outside: AllowedCode
) -> list[Metric]:
    """The metrics by name, or the recipe's; refuse those that do not fit, before computing."""
    if not names:
        return metrics_of(recipe, outside)
    named, faults = named_metrics([("--metrics", name) for name in names], outside)
    faults += misfits(recipe, named, outside)
    if faults:
        raise RecipeError(faults, "the command line")
    return [metric for _, metric in named]


def without_annotations(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that need no annotations, as alignments."""
    needs = {truth.need for truth in ANNOTATIONS.values()}
    return [metric for metric in metrics if not metric.needs & needs]


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
    """The rows to score, and all of the run's data where that is at hand or needed."""
    if data is None:
        splits = splits_of(blueprint, fields)
        run.check_data(splits.fingerprints)
        return splits.scored, splits
    needs = {need for metric in metrics for need in metric.needs}
    alignment = run.recipe.data.alignment
    if "links" in needs and isinstance(alignment, LinkFiles) and run.recipe.data.sample is None:
        raise DataError(
            f"{data}: the links of this run are in files of their own (data.alignment), not in a "
            "column; leave --data out, or name metrics without alignment_error_rate."
        )
    keys = {truth.key for truth in ANNOTATIONS.values() if truth.need in needs}
    dataset = scored_file(run.recipe, fields, data, keys)
    dataset.usable  # noqa: B018 - refuses a file of which nothing can be scored
    needs_training = any("familiar" in metric.needs for metric in metrics)
    return dataset, splits_of(blueprint, fields) if needs_training else None
