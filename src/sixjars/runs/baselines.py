"""Baselines alone, before any network is trained: of a recipe, or of data and a task."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sixjars.data.readers.memory import given_tables, table_of, tables_of, with_tables
from sixjars.evaluation.baselines.result import Baseline
from sixjars.progress import Reporter, listening
from sixjars.recipe.data import Column
from sixjars.recipe.files import listed_overrides
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.beside import Beside, by_importance
from sixjars.runs.data import Blueprint, splits_of
from sixjars.runs.folds import fold_recipes, mean_baselines
from sixjars.runs.recipes import metrics_of, read_recipe
from sixjars.runs.splits import SPLITS
from sixjars.runs.starter import started

ALONE: Final = 600.0
"""Seconds that they may take where nothing stands beside them."""


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
