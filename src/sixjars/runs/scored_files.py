"""Files that a run is scored on beside its own: a table with its columns, or parallel files."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Field
from sixjars.data.tables.dialect import refitted
from sixjars.recipe.data import Files
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import media_places
from sixjars.runs.folder import RunFolder
from sixjars.runs.splits import read_files
from sixjars.samples import sample_columns
from sixjars_runtime.errors import DataError

Scored = str | Path | tuple[str, ...]
"""A file, or parallel files: line i of each is example i."""


PARALLEL: Final = (
    " The run was trained on parallel files; to score it on others, name them one after the other: --data FILE --data "
    "FILE (in Python: data=['FILE', 'FILE'])."
)


def are_files(data: object) -> bool:
    """Whether this is a list of file names, and not of rows."""
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(one, str | os.PathLike) for one in data)
    )


def training_files(recipe: Recipe) -> Iterator[str]:
    """The files that a recipe trains on, as it names them."""
    for one in recipe.data.training_files:
        yield from [one.file] if isinstance(one.file, str) else one.file.values()


def learned_from(recipe: Recipe, files: Scored) -> bool:
    """Whether a file is one of those that the recipe trains on."""
    places = [
        place for name in training_files(recipe) if (place := recipe.data.path(name)).exists()
    ]
    named = map(Path, files if isinstance(files, tuple) else (files,))
    return any(file.exists() and any(place.samefile(file) for place in places) for file in named)


def file_dataset(
    run: RunFolder, fields: Fields, data: Scored, annotations: Collection[str] = ()
) -> Dataset:
    """A file with the columns that the run was trained on, and those of some annotations; or parallel files."""
    files: Files
    if isinstance(data, tuple):
        recipe, files = _of_parallel(run.recipe, data, annotations)
    else:
        recipe, files = _from_here(run.recipe, str(data), annotations), str(data)
    first = Path(data[0] if isinstance(data, tuple) else data)
    own = fields.mapped(lambda one: _found_from_here(one, run.recipe, first))
    examples = own.admit(read_files(recipe, own, files), skip=recipe.data.on_bad_row == "skip")
    return Dataset.stored(examples, own)


def scored_file(
    run: RunFolder, fields: Fields, data: Scored, annotations: Collection[str]
) -> Dataset:
    """The same for commands that take parallel files: the error for one of them alone says how to name the others."""
    try:
        return file_dataset(run, fields, data, annotations)
    except DataError as error:
        trained = run.recipe.data.training_files
        alone = "ending" in str(error) and any(isinstance(one.file, Mapping) for one in trained)
        raise DataError(f"{error}{PARALLEL if alone else ''}") from None


def _of_parallel(
    recipe: Recipe, files: tuple[str, ...], annotations: Collection[str]
) -> tuple[Recipe, dict[str, str]]:
    """The recipe for parallel files, and the file of each field: in the order of those it was trained on, if any."""
    data, trained = recipe.data, recipe.data.training_files
    if annotations:
        raise DataError(
            f"parallel files have no column for the {min(annotations)} of this run; score it on a table, or name "
            "metrics without."
        )
    by_column = {settings.column: name for name, settings in data.fields.items()}
    parallel = next((one.file for one in trained if isinstance(one.file, Mapping)), None)
    names = (
        [*data.fields]
        if parallel is None
        else [by_column[column] for column in parallel if column in by_column]
    )
    if len(files) != len(names):
        raise DataError(
            f"several files are parallel lines, a file for each of {', '.join(names)}, in this order, but "
            f"{len(files)} are given: {', '.join(files)}."
        )
    fields = {name: one.model_copy(update={"column": name}) for name, one in data.fields.items()}
    changes: dict[str, Any] = {
        "folder": ".",
        "sample": None,
        "format": "table",
        "filter": {},
        "fields": fields,
    }
    changes |= dict.fromkeys(ANNOTATIONS)
    return recipe.model_copy(update={"data": data.model_copy(update=changes)}), dict(
        zip(names, files, strict=True)
    )


def _found_from_here(own: Field, recipe: Recipe, file: Path) -> Field:
    """A field whose images or videos may be beside a file, or where those of the training data are."""
    places = [
        place
        for place in (file.parent, *media_places(recipe, own))
        if own.is_media and place.exists()
    ]
    return own.equipped(replace(own.equipment, places=tuple(places)))


def _from_here(recipe: Recipe, file: str, annotations: Collection[str]) -> Recipe:
    """The recipe for a file named on the command line: found from here, its columns those that it was trained on."""
    data = recipe.data
    columns: dict[str, Any] = {name: settings.column for name, settings in data.fields.items()}
    columns |= {key: getattr(data, key) for key in ANNOTATIONS}
    if data.sample is not None:
        columns |= sample_columns(recipe)
    fields = {
        name: one.model_copy(update={"column": columns[name]}) for name, one in data.fields.items()
    }
    changes: dict[str, Any] = {"folder": ".", "sample": None, "train": file, "fields": fields}
    changes |= {key: columns[key] if key in annotations else None for key in ANNOTATIONS}
    if data.format == "table":
        changes |= refitted(Path(file), [columns[name] for name in (*fields, *annotations)], data)
    return recipe.model_copy(update={"data": data.model_copy(update=changes)})
