"""The baselines of a run or a recipe: what costs nothing, scored on the rows that the model is scored on.

They learn from the training set alone, take at most a tenth of the time of the training or evaluation that they stand
beside (or 2 s, besides loading scikit-learn), and are kept in the run's folder.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.dataset import Dataset
from sixjars.data.readers.memory import given_tables, table_of, tables_of, with_tables
from sixjars.evaluation.baselines.budget import Budget
from sixjars.evaluation.baselines.problem import Problem
from sixjars.evaluation.baselines.result import Baseline, best_by
from sixjars.evaluation.baselines.table import load_library, measured
from sixjars.evaluation.metrics import METRICS, Metric, Score
from sixjars.evaluation.score import groups_of
from sixjars.progress import Reporter, listening
from sixjars.recipe.data import Column
from sixjars.recipe.files import listed_overrides
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.advice import advice_for
from sixjars.runs.baseline_file import Entry, keep_entry, kept_entry
from sixjars.runs.comparison import PAGE, in_time, rounded
from sixjars.runs.data import Blueprint, splits_of
from sixjars.runs.folder import RunFolder, noted
from sixjars.runs.folds import fold_recipes, mean_baselines
from sixjars.runs.recipes import metrics_of, read_recipe
from sixjars.runs.splits import SPLITS
from sixjars.runs.starter import started
from sixjars.tasks import TASKS
from sixjars.version import version_of

SHARE: Final = 0.1
"""Of the seconds of a training or an evaluation."""
LEAST: Final = 2.0
"""Seconds that baselines may take beside a short one: a tenth of ten seconds would score nothing."""
ALONE: Final = 600.0
"""Seconds that they may take where nothing stands beside them."""


@final
@dataclass(frozen=True)
class Beside:
    """Where baselines are wanted, and how long what they stand beside has taken."""

    recipe: Recipe
    metrics: Sequence[Metric]
    seconds: float
    """That they may take."""
    group: bool = False
    """Whether rows with the same input are one example."""

    @classmethod
    def of(cls, recipe: Recipe, metrics: Sequence[Metric], *, took: float, group: bool | None = None) -> "Beside":
        """Beside a training or an evaluation that took so many seconds."""
        chosen = recipe.evaluation.group if group is None else group
        return cls(recipe, by_importance(recipe, metrics), max(LEAST, SHARE * took), chosen)

    def key(self, train: str, scored: Dataset) -> dict[str, str]:
        """All that scores depend on; `train` is the fingerprint of the training set."""
        return {
            "train": train,
            "scored": scored.table.fingerprint,
            "metrics": ",".join(metric.name for metric in self.metrics),
            "group": str(self.group).lower(),
            "scikit-learn": version_of("scikit-learn"),
        }

    def measured(self, train: Dataset, scored: Dataset, clock: Callable[[], float] | None = None) -> Entry:
        """The baselines, computed now."""
        problem = Problem(
            train,
            scored,
            tuple(map(tuple, groups_of(scored, group=self.group))),
            most=max(metric.nbest for metric in self.metrics),
            longer_source=TASKS[self.recipe.task].longer_source,
        )
        load_library(problem)
        budget = Budget(self.seconds) if clock is None else Budget(self.seconds, clock)
        found, notes = measured(problem, self.metrics, budget)
        return Entry(self.key(train.table.fingerprint, scored), tuple(found), tuple(notes))


def baselines(  # noqa: PLR0913 - the options of one computation
    source: Any,
    overrides: Sequence[str] = (),
    *,
    task: str | None = None,
    columns: Mapping[str, Column] | None = None,
    data: Any = None,
    seconds: float = ALONE,
    reporter: Reporter | None = None,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> list[Baseline]:
    """What costs nothing, scored as a model would be: no network is trained.

    `source` is a recipe: a file, a name or a dict, with `overrides` and with `data` in memory as `train` takes them. Or
    it is data and `task` says what for: a file, parallel files or a folder as `new` takes them, with `columns`; or a
    table in memory. They take at most so many `seconds`.

    >>> import sixjars
    >>> few = ["data.sample.size=64", "data.sample.test=20"]
    >>> [one.name for one in sixjars.baselines("document_classification/sample_initial", few)]
    ['the most frequent label', 'a linear model on word counts']
    """
    outside, reporter = Outside(tuple(allow), tuple(components)), reporter or Reporter()
    tables = {} if data is None else tables_of(data, SPLITS)
    given = [*listed_overrides(overrides), *with_tables(tables)]
    try:
        with given_tables(tables), listening(reporter):
            if task is None:
                return _of_recipe(read_recipe(source, given, outside), outside, seconds, reporter)
            with tempfile.TemporaryDirectory(prefix="sixjars-") as folder:
                named = source if is_named(source) else written(source, Path(folder))
                recipe = started(Path(folder, "recipe.yaml"), task=task, data=named, columns=columns).path
                return _of_recipe(read_recipe(recipe, given, outside), outside, seconds, reporter)
    finally:
        reporter.end()


def is_named(source: Any) -> bool:
    """Whether data is given by the names of files."""
    several = [source]
    if isinstance(source, Mapping | list | tuple):
        several = [*source.values()] if isinstance(source, Mapping) else [*source]
    return all(isinstance(one, str | os.PathLike) for one in several)


def written(source: Any, folder: Path) -> Path:
    """A table in memory as a file, whose columns can be looked at."""
    import pyarrow
    from pyarrow import parquet

    table = table_of(source)
    path = folder / "table.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(table) if isinstance(table, list) else table, path)
    return path


def _of_recipe(recipe: Recipe, outside: Outside, seconds: float, reporter: Reporter) -> list[Baseline]:
    """Of its splits, or the means over its folds."""
    recipes = [recipe] if recipe.learning.folds is None else fold_recipes(recipe)
    found, notes = [], dict[str, None]()
    for one in recipes:
        splits = splits_of(Blueprint.of(one, outside, reporter=reporter))
        metrics = by_importance(one, metrics_of(one, outside))
        entry = Beside(one, metrics, seconds / len(recipes), one.evaluation.group).measured(splits.train, splits.scored)
        found.append(entry.baselines)
        notes |= dict.fromkeys(entry.notes)
    for sentence in notes:
        reporter.note(sentence)
    return list(found[0] if len(found) == 1 else mean_baselines(found))


def by_importance(recipe: Recipe, metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics, that which chooses the weights first."""
    return sorted(metrics, key=lambda metric: metric.name != recipe.learning.metric)


def kept_baselines(
    run: RunFolder,
    beside: Beside,
    scored: Dataset,
    training: Callable[[], Dataset],
    reporter: Reporter,
) -> tuple[Baseline, ...]:
    """The baselines of a run: those that it keeps of this data, or else computed now and kept.

    `training` gives the training set, which is not read where nothing is computed.
    """
    known = noted(run.folder, "data")
    train = known.get("train") if isinstance(known, Mapping) else None
    # A function of yours may change between two calls, and its name stays.
    ours = all(one.name in METRICS or one.name.startswith("accuracy@") for one in beside.metrics)
    can_be_kept = isinstance(train, str) and ours
    entry = kept_entry(run.folder, beside.key(str(train), scored)) if can_be_kept else None
    if entry is None:
        entry = beside.measured(training(), scored)
        if can_be_kept and entry.key["train"] == train:
            keep_entry(run.folder, entry)
    for sentence in entry.notes:
        reporter.note(sentence)
    return entry.baselines


def sentence_of(baselines: Sequence[Baseline], scores: Sequence[Score], recipe: Recipe) -> str:
    """The best baseline beside a model, by the most important metric that both have; nothing where there is none.

    Where the model is no better, also what to try, in order.
    """
    metrics = sorted(scores, key=lambda score: score.name != recipe.learning.metric)
    for score in metrics:
        best = best_by(baselines, score.name)
        if best is not None and (score.value or best.value(score.name)):  # two zeros say nothing
            return _sentence(best, score, recipe)
    return ""


def _sentence(best: Baseline, score: Score, recipe: Recipe) -> str:
    value = best.value(score.name) or 0.0
    told, own = rounded(value), rounded(score.value, like=value)
    begins = f"{score.name}: {best.name} reaches {told} in {in_time(best.seconds)}; this model"
    better = (score.value > value) == (score.better == "higher")
    if told != own and better:
        return f"{begins} {own}."
    how = f"{own} too, so it has learned nothing more" if told == own else f"{own}, which is worse"
    tries = "; ".join(f"{number}. {says}" for number, says in enumerate(advice_for(best.topic, recipe), start=1))
    return f"{begins} {how}. Try, in this order: {tries}. {PAGE} says more." if tries else f"{begins} {how}."
