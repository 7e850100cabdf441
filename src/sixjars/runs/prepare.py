"""What can be done before training: extract features of images and videos; write a synthetic corpus as files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from sixjars.data.storage.features import FeatureStore
from sixjars.learning.checkpoints import write_whole
from sixjars.learning.engine import Device, device_named
from sixjars.progress import Reporter
from sixjars.recipe.outside import NOTHING, Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint, admitted
from sixjars.samples import SAMPLES, generate, materialise
from sixjars.tasks import own_name
from sixjars_runtime.errors import DataError, RecipeError, unknown


@final
@dataclass(frozen=True)
class Extracted:
    """What was extracted."""

    files: int
    """Different files that can be used."""
    skipped: int
    """Rows whose file cannot be used."""
    folders: tuple[Path, ...]
    """Where the features are stored."""


def extract_features(
    recipe: Recipe,
    *,
    device: Device = "auto",
    reporter: Reporter | None = None,
    outside: Outside = NOTHING,
) -> Extracted:
    """Extract the features of every file that a recipe names, so that training opens none."""
    reporter = reporter or Reporter()
    blueprint = Blueprint.of(recipe, outside, device=device_named(device), reporter=reporter)
    media = {
        name: field
        for name, field in blueprint.fields.inputs.items()
        if "cells" in field.fact_names
    }
    if not media:
        raise RecipeError(
            [
                f"no field of this {recipe.task} is of images or videos, so there is nothing to extract."
            ]
        )
    try:
        splits = admitted(blueprint)
    finally:
        reporter.end()
    keys = {
        key
        for field in media.values()
        for split in splits.values()
        for key in split.table.column(field.key_column).to_pylist()  # type: ignore[attr-defined]
    }
    stores = [field.store for field in media.values()]  # type: ignore[attr-defined]
    folders = tuple(store.folder for store in stores if isinstance(store, FeatureStore))
    return Extracted(len(keys), sum(split.skipped for split in splits.values()), folders)


def generate_sample(
    task: str,
    folder: str | Path,
    *,
    size: int = 100,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> list[Path]:
    """A synthetic corpus as JSON lines, its images or videos as files beside them; what is there is not overwritten.

    >>> import tempfile, sixjars
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in sixjars.generate_sample("translation", folder, size=10)]
    ['train.jsonl', 'valid.jsonl', 'test.jsonl']
    """
    task = own_name(task)
    if task not in SAMPLES:
        raise RecipeError([unknown("task", task, list(SAMPLES))], "the command line")
    place, reporter, held_out = Path(folder), reporter or Reporter(), max(1, size // 10)
    made = generate(task, size=size, valid=held_out, test=held_out, seed=seed)
    paths = [place / f"{split}.jsonl" for split in made]
    for path in paths:
        if path.exists():
            raise DataError(f"{path} exists already; choose another folder.")
    media = SAMPLES[task].media
    if media is not None:
        names = [row[media] for rows in made.values() for row in rows]
        materialise(task, names, place, reporter)
    for path, rows in zip(paths, made.values(), strict=True):
        write_whole(
            path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
        )
    return paths
