"""Baselines alone, before any network is trained: of a recipe, or of data and a task."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sixjars.data.tables.memory import given_tables, table_of, tables_of, with_tables
from sixjars.evaluation.baselines.result import Baseline
from sixjars.progress import Reporter, listening, usual_reporter
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.data import Column
from sixjars.recipe.files import listed_overrides
from sixjars.recipe.sections import Recipe
from sixjars.runs.baselines.run_baselines import BaselineScoring, by_importance
from sixjars.runs.data.split_files import SPLITS
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, metrics_of, read_recipe
from sixjars.runs.training.folds import fold_recipes, mean_baselines
from sixjars.starter.write import started
from sixjars_runtime.errors import DataError

ALONE: Final = 600.0
"""Seconds that baselines may take where no training or evaluation stands beside them."""


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
    """Scores of simple methods on the rows of a model's scores; no network is trained.

    `source` is a recipe: a file, a name or a dict, with `overrides` and with `data` in memory as
    `train` takes them. Or it is data and `task` says what for: a file, parallel files or a folder
    as `new` takes them, with `columns`; or a table in memory. They take at most so many `seconds`.

    >>> import sixjars
    >>> few = ["data.sample.size=64", "data.sample.test=20"]
    >>> scored = sixjars.baselines("document_classification/sample_initial", few)
    >>> [baseline.name for baseline in scored]
    ['the most frequent label', 'a linear model on word counts']
    """
    _check_source(source, task, columns)
    outside = AllowedCode(tuple(allow), tuple(components))
    reporter = reporter or usual_reporter()
    tables = {} if data is None else tables_of(data, SPLITS)
    overrides = [*listed_overrides(overrides), *with_tables(tables)]
    try:
        with given_tables(tables), listening(reporter):
            if task is None:
                recipe = read_recipe(source, overrides, outside)
                return _of_recipe(recipe, outside, seconds, reporter)
            with tempfile.TemporaryDirectory(prefix="sixjars-") as folder:
                path = Path(folder, "recipe.yaml")
                with _as_file(source, Path(folder)) as file:
                    for sentence in started(path, task=task, data=file, columns=columns).notes:
                        is_own = file is source
                        reporter.note(
                            sentence if is_own else sentence.replace(str(file), "the table")
                        )
                    recipe = read_recipe(path, overrides, outside)
                    return _of_recipe(recipe, outside, seconds, reporter)
    finally:
        reporter.end()


def _check_source(source: Any, task: str | None, columns: Mapping[str, Column] | None) -> None:
    """Refuse columns for a recipe, and data in memory without a task."""
    is_recipe = isinstance(source, str | os.PathLike | Mapping)
    if task is None and not is_recipe:
        example = "sixjars.baselines(TABLE, task='document_classification')"
        raise DataError(f"data in memory needs a task: {example}.")
    if task is None and columns is not None:
        raise DataError("columns are for data with a task; a recipe names its own.")


def is_named(source: Any) -> bool:
    """Whether data is given by the names of files."""
    names = [source]
    if isinstance(source, Mapping | list | tuple):
        names = [*source.values()] if isinstance(source, Mapping) else [*source]
    return all(isinstance(name, str | os.PathLike) for name in names)


@contextmanager
def _as_file(source: Any, folder: Path) -> Iterator[Any]:
    """The names of files as they are; a table in memory as a file, whose name no error mentions."""
    if is_named(source):
        yield source
        return
    import pyarrow
    from pyarrow import parquet

    table = table_of(source)
    path = folder / "table.parquet"
    rows = pyarrow.Table.from_pylist(table) if isinstance(table, list) else table
    parquet.write_table(rows, path)
    try:
        yield path
    except DataError as error:
        raise DataError(str(error).replace(str(path), "the table")) from None


def _of_recipe(
    recipe: Recipe, outside: AllowedCode, seconds: float, reporter: Reporter
) -> list[Baseline]:
    """The baselines on the splits of a recipe, or their means over its folds."""
    recipes = [recipe] if recipe.learning.folds is None else fold_recipes(recipe)
    folds = []
    notes = dict[str, None]()
    for part in recipes:
        splits = splits_of(Blueprint.of(part, outside, reporter=reporter))
        metrics = by_importance(part, metrics_of(part, outside))
        beside = BaselineScoring(part, metrics, seconds / len(recipes), part.evaluation.group)
        entry = beside.measured(splits.train, splits.scored)
        folds.append(entry.baselines)
        notes |= dict.fromkeys(entry.notes)
    for sentence in notes:
        reporter.note(sentence)
    return list(folds[0] if len(folds) == 1 else mean_baselines(folds))
