"""Work before training: extracting features of images and videos; writing a synthetic corpus."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sixjars.data.storage.features import FeatureStore
from sixjars.kernels.backends import Device, device_named
from sixjars.learning.checkpoints import write_whole
from sixjars.progress import Reporter
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.splits import admitted
from sixjars.runs.recipes import Blueprint
from sixjars.samples import SAMPLES, generate, materialise
from sixjars.tasks import own_name
from sixjars_runtime.errors import DataError, RecipeError, unknown


@final
@dataclass(frozen=True)
class ExtractionReport:
    """The number of extracted files, and the folders of their features."""

    files: int
    """Different files that can be used."""
    skipped: int
    """Rows whose file cannot be used."""
    folders: tuple[Path, ...]
    """The folders of the features."""


def extract_features(
    recipe: Recipe,
    *,
    device: Device = "auto",
    reporter: Reporter | None = None,
    outside: AllowedCode = NOTHING,
) -> ExtractionReport:
    """Extract the features of every file that a recipe names, so that training opens none."""
    reporter = reporter or Reporter()
    blueprint = Blueprint.of(recipe, outside, device=device_named(device), reporter=reporter)
    inputs = blueprint.fields.inputs.values()
    media: list[Any] = [field for field in inputs if "cells" in field.fact_names]
    if not media:
        fault = "is of images or videos, so there is nothing to extract."
        raise RecipeError([f"no field of this {recipe.task} {fault}"])
    try:
        splits = admitted(blueprint)
    finally:
        reporter.end()
    keys = set()
    for field in media:
        for split in splits.values():
            keys.update(split.table.column(field.key_column).to_pylist())
    stores = [field.store for field in media]
    folders = tuple(store.folder for store in stores if isinstance(store, FeatureStore))
    return ExtractionReport(len(keys), sum(split.skipped for split in splits.values()), folders)


def generate_sample(
    task: str,
    folder: str | Path,
    *,
    size: int = 100,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> list[Path]:
    """Write a synthetic corpus as JSON lines, with image or video files beside them.

    What is there is not overwritten.

    >>> import tempfile, sixjars
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in sixjars.generate_sample("translation", folder, size=10)]
    ['train.jsonl', 'valid.jsonl', 'test.jsonl']
    """
    task = own_name(task)
    if task not in SAMPLES:
        raise RecipeError([unknown("task", task, list(SAMPLES))], "the command line")
    place = Path(folder)
    held_out = max(1, size // 10)
    splits = generate(task, size=size, valid=held_out, test=held_out, seed=seed)
    paths = [place / f"{split}.jsonl" for split in splits]
    for path in paths:
        if path.exists():
            raise DataError(f"{path} exists already; choose another folder.")
    media = SAMPLES[task].media
    if media is not None:
        names = [row[media] for rows in splits.values() for row in rows]
        materialise(task, names, place, reporter or Reporter())
    for path, rows in zip(paths, splits.values(), strict=True):
        lines = [f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows]
        write_whole(path, "".join(lines).encode())
    return paths
