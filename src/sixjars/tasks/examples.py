"""The examples of a recipe as texts: read from files or made up, and split into parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow

from sixjars.data.parting import spelled_labels, spelled_parts
from sixjars.data.pointing import counted, order_of, points_of, spelled_order, spelled_points
from sixjars.data.readers import Examples, examples_of, read
from sixjars.data.readers.rows import LINE
from sixjars.data.samples import make, sample_named
from sixjars.errors import DataError
from sixjars.recipe import Recipe
from sixjars.recipe.fields import Column, Files, LabelSettings, OrderSettings, PointsSettings, TextSettings
from sixjars.recipe.jars import FieldSettings, SplitSettings
from sixjars.tasks.table import TASKS

TRUE_PLACES = ("alignment", "boxes", "keys")
"""Keys of the data jar that name a column of where a model should look."""


def examples_for(recipe: Recipe, seed: int) -> dict[str, Examples]:
    """The examples of every part."""
    return _sampled(recipe) if recipe.data.sample else _read(recipe, seed)


def columns_of(recipe: Recipe) -> dict[str, Column]:
    """Which column each field is."""
    columns: dict[str, Column] = {name: settings.column for name, settings in recipe.data.fields().items()}
    also = {key: getattr(recipe.data, key) for key in TRUE_PLACES}
    return columns | {name: column for name, column in also.items() if column is not None}


def read_files(recipe: Recipe, files: Files) -> Examples:
    """Examples of one file (or parallel files), in the columns of the recipe."""
    spelled = {name: how for name, settings in recipe.data.fields().items() if (how := _spelling(settings))}
    found = read(files, columns_of(recipe), settings=recipe.data, many=("target",), spelled=spelled)
    return found if recipe.data.points is None else _with_good_points(found, recipe)


def _with_good_points(examples: Examples, recipe: Recipe) -> Examples:
    """The rows whose points are points, and whose order is one of them."""
    assert recipe.data.points is not None
    table, numbers = examples.table, recipe.data.points.numbers
    rows = zip(*(table.column(name).to_pylist() for name in ("points", "order", LINE)), strict=True)
    good = []
    for points, order, line in rows:
        try:
            found = points_of(points)
            visited = order_of(order, len(found))
            if len(found[0]) != numbers:
                raise ValueError(f"a point has {counted(len(found[0]))}, but data.points.numbers is {numbers}.")
            _check_visits(len(visited), len(found), recipe)
            good.append(True)
        except ValueError as error:
            good.append(False)
            if recipe.data.on_bad_row == "error":
                raise DataError(f"{examples.where}, line {line}: {error}") from None
    if not any(good):
        raise DataError(f"{examples.where}: no row is left of {len(good)}; all were bad.")
    return replace(examples, table=table.filter(pyarrow.array(good)), skipped=examples.skipped + good.count(False))


def _check_visits(visited: int, points: int, recipe: Recipe) -> None:
    """Refuses an order that leaves a point out where the decoder stops only when none is left."""
    if visited < points and recipe.model.decoder.get("visits") == "all":
        raise ValueError(
            f"the order has {visited} of {points} points, but model.decoder.visits is all; say visits: some."
        )


def _spelling(settings: FieldSettings) -> Callable[[object], str] | None:
    """How a list of a file becomes the text of a field, where it is one example and not several."""
    if isinstance(settings, PointsSettings):
        return spelled_points
    if isinstance(settings, OrderSettings):
        return spelled_order
    if isinstance(settings, LabelSettings):
        return spelled_labels if settings.several else None
    return spelled_parts if isinstance(settings, TextSettings) and settings.parts != "none" else None


def _read(recipe: Recipe, seed: int) -> dict[str, Examples]:
    data = recipe.data
    assert data.train is not None
    if data.split is not None:
        return _by_column(recipe, data.split, data.train)
    found = {"train": read_files(recipe, data.train)}
    for name in ("valid", "test"):
        part = getattr(data, name)
        if isinstance(part, float):
            inputs = TASKS[recipe.task].inputs[:1]  # all questions about a picture stay together
            inputs = () if data.format == "dialogs" else inputs  # all turns of a conversation too: by their line
            found["train"], found[name] = _split(found["train"], inputs, fraction=part, seed=seed, where=f"data.{name}")
        elif part is not None:
            found[name] = read_files(recipe, part)
    return found


def _by_column(recipe: Recipe, split: SplitSettings, file: Files) -> dict[str, Examples]:
    """The parts that one file holds, each with the rows that have its value."""
    values = {"train": split.train, "valid": split.valid, "test": split.test}
    found = {}
    for name, value in values.items():
        if value is not None:
            where = {**recipe.data.where, str(split.column): value}
            own = recipe.model_copy(update={"data": recipe.data.model_copy(update={"where": where})})
            part = read_files(own, file)
            found[name] = replace(part, where=f"the {name} part of {part.where}")
    return found


def _split(
    examples: Examples, inputs: Sequence[str], *, fraction: float, seed: int, where: str
) -> tuple[Examples, Examples]:
    """Hold out a fraction of the inputs, chosen by a seed; both sides keep the file's order.

    Rows with the same input (the captions of one picture) stay together, so that none is held out and learned from.
    """
    group = np.zeros(examples.table.num_rows, dtype=np.int64)
    for name in inputs or (LINE,):
        codes = examples.table.column(name).combine_chunks().dictionary_encode().indices.to_numpy()
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    groups = int(group.max(initial=-1)) + 1
    count = max(1, round(groups * fraction))
    if count >= groups:
        raise DataError(
            f"{where}: a fraction of {fraction} leaves nothing to train on; {examples.where} has {groups} inputs."
        )
    held = np.zeros(groups, dtype=bool)
    held[np.random.default_rng(seed).permutation(groups)[:count]] = True
    chosen = held[group]
    return (
        replace(examples, table=examples.table.filter(pyarrow.array(~chosen))),
        replace(examples, table=examples.table.filter(pyarrow.array(chosen)), skipped=0),
    )


def _sampled(recipe: Recipe) -> dict[str, Examples]:
    sample = recipe.data.sample
    assert sample is not None
    made = make(
        recipe.task,
        size=sample.size,
        valid=sample.valid,
        test=sample.test,
        seed=sample.seed,
        longest=sample.longest,
        kind=sample.kind,
    )
    columns = sample_columns(recipe)
    if recipe.data.points is not None:
        _check_sample(made["train"], columns, recipe)
    return {
        part: examples_of({f: [row[c] for row in rows] for f, c in columns.items()}, where=f"the sample's {part} part")
        for part, rows in made.items()
    }


def _check_sample(rows: Sequence[Mapping[str, str]], columns: Mapping[str, str], recipe: Recipe) -> None:
    """Refuses a made-up corpus of points that is not what the recipe says of it."""
    assert recipe.data.points is not None
    for row in rows:
        points, wanted = row[columns["points"]].split(), recipe.data.points.numbers
        try:
            if points[0].count(",") + 1 != wanted:
                found = counted(points[0].count(",") + 1)
                raise ValueError(f"a point has {found}, but data.points.numbers is {wanted}.")
            _check_visits(len(row[columns["order"]].split()), len(points), recipe)
        except ValueError as error:
            raise DataError(f"the made-up corpus of {recipe.task}: {error}") from None


def sample_columns(recipe: Recipe) -> dict[str, str]:
    """The columns of the made-up corpus, by field."""
    assert recipe.data.sample is not None
    declared, task = sample_named(recipe.task, recipe.data.sample.kind), TASKS[recipe.task]
    named = {**dict(zip(task.inputs, declared.inputs, strict=True)), task.output: declared.target}
    also = {key: getattr(declared, key) for key in TRUE_PLACES}
    return named | {name: column for name, column in also.items() if column is not None}
