"""The splits of a recipe's files: read from files of their own, found by a column, or held out."""

from dataclasses import replace

import numpy as np
import pyarrow

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Fields
from sixjars.data.readers import read
from sixjars.data.storage.cache import LINE, Examples
from sixjars.errors import DataError
from sixjars.recipe.data import Column, Files
from sixjars.recipe.sections import Recipe

SPLITS = {"train": "training", "valid": "validation", "test": "test"}
"""The sets that data is split into, as recipes and as messages name them."""


def read_files(recipe: Recipe, fields: Fields, files: Files) -> Examples:
    """Examples of one file (or parallel files), in the columns of the recipe."""
    settings = recipe.data.fields
    columns: dict[str, Column] = {name: one.column for name, one in settings.items()}
    also = {key: getattr(recipe.data, key) for key in ANNOTATIONS}
    columns |= {name: column for name, column in also.items() if column is not None}
    lists = {name: field.lists for name, field in fields.all.items()}
    many = [name for name, meaning in lists.items() if meaning == "rows"]
    as_text = {name: fields.all[name].as_text for name, meaning in lists.items() if meaning == "value"}
    return read(files, columns, settings=recipe.data, many=many, as_text=as_text)


def read_splits(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The examples of every split, from files."""
    data = recipe.data
    assert data.train is not None
    if data.split is not None:
        return _by_column(recipe, fields)
    found = {"train": read_files(recipe, fields, data.train)}
    for name in ("valid", "test"):
        split = getattr(data, name)
        if isinstance(split, float):
            # All questions about an image stay together, and all turns of a conversation: the latter by their line.
            together = LINE if data.format == "dialogs" or not fields.inputs else next(iter(fields.inputs))
            where = f"data.{name}"
            found["train"], found[name] = _held_out(
                found["train"], together, fraction=split, seed=recipe.learning.seed, where=where
            )
        elif split is not None:
            found[name] = read_files(recipe, fields, split)
    return found


def _by_column(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The splits that one file holds, each with the rows that have its value."""
    data, found = recipe.data, {}
    assert data.split is not None
    assert data.train is not None
    for name, called in SPLITS.items():
        value = getattr(data.split, name)
        if value is not None:
            rows = {**data.filter, str(data.split.column): value}
            own = recipe.model_copy(update={"data": data.model_copy(update={"filter": rows})})
            split = read_files(own, fields, data.train)
            found[name] = replace(split, where=f"the {called} set of {split.where}")
    return found


def _held_out(
    examples: Examples, together: str, *, fraction: float, seed: int, where: str
) -> tuple[Examples, Examples]:
    """Hold out a fraction of the inputs, chosen by a seed; both sides keep the file's order.

    Rows with the same input (the captions of one image) stay together, so that none is held out and learned from.
    """
    codes = examples.table.column(together).combine_chunks().dictionary_encode().indices.to_numpy()
    group = np.unique(codes, return_inverse=True)[1]
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
