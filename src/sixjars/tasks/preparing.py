"""What can be done before training: see all pictures and films of a recipe; write a made-up corpus as files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from sixjars.data.samples import SAMPLES, make, materialise
from sixjars.errors import DataError, RecipeError, unknown
from sixjars.learning.checkpoints import write_whole
from sixjars.learning.progress import Reporter
from sixjars.recipe import Recipe
from sixjars.tasks.corpus import seeing_of, seen_parts
from sixjars.tasks.part import KEY


@final
@dataclass(frozen=True)
class Prepared:
    """What was seen."""

    files: int
    """Different files that can be used."""
    skipped: int
    """Rows whose file cannot be used."""
    folders: tuple[Path, ...]
    """Where the numbers are kept."""


def features_of(recipe: Recipe, *, reporter: Reporter) -> Prepared:
    """See every file that a recipe names, so that training opens none."""
    fields = seeing_of(recipe)
    if not fields:
        raise RecipeError([f"{recipe.task} reads no pictures or films, so there is nothing to prepare."])
    try:
        parts = seen_parts(recipe, recipe.learning.seed, reporter)
    finally:
        reporter.end()
    keys = {
        key for name in fields for part in parts.values() for key in part.table.column(KEY.format(name)).to_pylist()
    }
    folders = tuple(seeing.store.folder for seeing in fields.values())
    return Prepared(len(keys), sum(part.skipped for part in parts.values()), folders)


def write_sample(task: str, folder: Path, *, size: int, seed: int, reporter: Reporter) -> list[Path]:
    """A made-up corpus as JSON lines, its pictures or films as files beside them; what is there is not overwritten."""
    if task not in SAMPLES:
        raise RecipeError([unknown("task", task, list(SAMPLES))], "the command line")
    held_out = max(1, size // 10)
    made = make(task, size=size, valid=held_out, test=held_out, seed=seed)
    paths = [folder / f"{part}.jsonl" for part in made]
    for path in paths:
        if path.exists():
            raise DataError(f"{path} exists already; choose another folder.")
    media = SAMPLES[task].media
    if media is not None:
        names = [row[media] for rows in made.values() for row in rows]

        def told(done: int, total: int) -> None:
            reporter.prepared("drawing made-up files", done=done, total=total)

        materialise(task, names, folder, told)
    for path, rows in zip(paths, made.values(), strict=True):
        write_whole(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())
    return paths
