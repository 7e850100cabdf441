"""Files that a run is scored on beside its own: a table with its columns, or parallel files."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Field
from sixjars.recipe.data import Files
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.split_files import read_files
from sixjars.runs.recipes import media_places
from sixjars.samples import sample_columns
from sixjars_runtime.errors import DataError

Scored = str | Path | tuple[str, ...]
"""A file, or parallel files: line i of each is example i."""

PARALLEL: Final = (
    " The run was trained on parallel files; to score it on others, name them one after the other: "
    "--data FILE --data FILE (in Python: data=['FILE', 'FILE'])."
)


def are_files(data: object) -> bool:
    """Whether this is a list of file names, and not of rows."""
    if not isinstance(data, list | tuple) or not data:
        return False
    return all(isinstance(name, str | os.PathLike) for name in data)


def training_files(recipe: Recipe) -> Iterator[str]:
    """The files that a recipe trains on, as it names them."""
    for part in recipe.data.training_files:
        yield from [part.file] if isinstance(part.file, str) else part.file.values()


def learned_from(recipe: Recipe, files: Scored) -> bool:
    """Whether a file is one of those that the recipe trains on."""
    paths = map(recipe.data.path, training_files(recipe))
    places = [place for place in paths if place.exists()]
    named = map(Path, files if isinstance(files, tuple) else (files,))
    return any(file.exists() and any(place.samefile(file) for place in places) for file in named)


def file_dataset(
    trained: Recipe, fields: Fields, data: Scored, annotations: Collection[str] = ()
) -> Dataset:
    """A file with the columns of a `trained` recipe and some annotations, or parallel files."""
    files: Files
    if isinstance(data, tuple):
        recipe, files = _of_parallel(trained, data, annotations)
    else:
        recipe, files = _from_here(trained, annotations), str(data)
    first = Path(data[0] if isinstance(data, tuple) else data)
    local = fields.mapped(lambda field: _found_from_here(field, trained, first))
    examples = local.admit(read_files(recipe, local, files), skip=recipe.data.on_bad_row == "skip")
    return Dataset.stored(examples, local)


def scored_file(
    recipe: Recipe, fields: Fields, data: Scored, annotations: Collection[str]
) -> Dataset:
    """The same for commands that take parallel files, where an error says how to name them."""
    try:
        return file_dataset(recipe, fields, data, annotations)
    except DataError as error:
        parts = recipe.data.training_files
        alone = "ending" in str(error) and any(isinstance(part.file, Mapping) for part in parts)
        raise DataError(f"{error}{PARALLEL if alone else ''}") from None


def _of_parallel(
    recipe: Recipe, files: tuple[str, ...], annotations: Collection[str]
) -> tuple[Recipe, dict[str, str]]:
    """The recipe for parallel files, and the file of each field, in the order of training."""
    data, trained = recipe.data, recipe.data.training_files
    if annotations:
        lack = f"have no column for the {min(annotations)} of this run"
        raise DataError(f"parallel files {lack}; score it on a table, or name metrics without.")
    names = [*data.fields]
    parallel = next((part.file for part in trained if isinstance(part.file, Mapping)), None)
    if parallel is not None:
        by_column = {settings.column: name for name, settings in data.fields.items()}
        names = [by_column[column] for column in parallel if column in by_column]
    if len(files) != len(names):
        raise DataError(
            f"several files are parallel lines, a file for each of {', '.join(names)}, in this "
            f"order, but {len(files)} are given: {', '.join(files)}."
        )
    columns = {name: name for name in data.fields}
    changes: dict[str, Any] = {"sample": None, "format": "table", "filter": {}, "folder": "."}
    changes |= {"fields": _with_columns(recipe, columns), **dict.fromkeys(ANNOTATIONS)}
    changed = recipe.model_copy(update={"data": data.model_copy(update=changes)})
    return changed, dict(zip(names, files, strict=True))


def _with_columns(recipe: Recipe, columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = recipe.data.fields
    return {name: fields[name].model_copy(update={"column": columns[name]}) for name in fields}


def _found_from_here(field: Field, recipe: Recipe, file: Path) -> Field:
    """A field whose images or videos may be beside a file, or where those of training are."""
    places = [file.parent, *media_places(recipe, field)] if field.is_media else []
    places = [place for place in places if place.exists()]
    return field.equipped(replace(field.equipment, places=tuple(places)))


def _from_here(recipe: Recipe, annotations: Collection[str]) -> Recipe:
    """The recipe for a file named on the command line, with the columns that the run has."""
    data = recipe.data
    columns: dict[str, Any] = {name: settings.column for name, settings in data.fields.items()}
    columns |= {key: getattr(data, key) for key in ANNOTATIONS}
    if data.sample is not None:
        columns |= sample_columns(recipe)
    fields = _with_columns(recipe, columns)
    changes: dict[str, Any] = {"folder": ".", "sample": None, "fields": fields}
    changes["train"] = None  # this file may be written in another way than that of training
    changes |= {key: columns[key] if key in annotations else None for key in ANNOTATIONS}
    return recipe.model_copy(update={"data": data.model_copy(update=changes)})
