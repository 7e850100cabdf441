"""Commands around data: `features`, `sample`, `cache`."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import (
    AllowOption,
    DeviceOption,
    Overrides,
    RecipeArgument,
    notes,
    option,
    results,
)
from sixjars.progress import ConsoleProgress, number_of


def features(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    *,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Extract the features of all images or videos of a recipe ahead of training; one that is
    killed goes on.
    """  # noqa: D205 - one sentence of --help
    from sixjars.recipe.outside import Outside
    from sixjars.runs.prepare import extract_features
    from sixjars.runs.recipes import read_recipe

    outside = Outside(tuple(allow or []))
    reporter = ConsoleProgress(notes())
    settings = read_recipe(recipe, overrides or [], outside)
    extracted = extract_features(settings, device=device, reporter=reporter, outside=outside)
    console = results()
    ready = "1 file is" if extracted.files == 1 else f"{extracted.files} files are"
    skipped = f", {number_of(extracted.skipped, 'row')} skipped" if extracted.skipped else ""
    console.print(f"{ready} ready{skipped}")
    for folder in extracted.folders:
        console.print(f"stored in: {folder}")


def sample(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="A system that `sixjars tasks` lists, or TASK/KIND."),
    ],
    out: Annotated[Path, option(help="The folder to write.")],
    size: Annotated[
        int, typer.Option(help="Training examples; a tenth more for each other split.", min=1)
    ] = 100,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.", min=0)] = 0,
) -> None:
    """Write a synthetic corpus as files: JSON lines, and images or videos beside them."""
    from sixjars.runs.prepare import generate_sample

    for path in generate_sample(task, out, size=size, seed=seed, reporter=ConsoleProgress(notes())):
        results().print(str(path))


def cache(
    *,
    prune: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            help="Remove what was not used for longest until so much is left.",
            min=0.0,
        ),
    ] = None,
) -> None:
    """Show what the cache of encoded data and features holds, or make it smaller; nothing is lost
    but time.
    """  # noqa: D205 - one sentence of --help
    from sixjars.data.storage.cache import cache_folder
    from sixjars.data.storage.pruning import contents
    from sixjars.data.storage.pruning import prune as prune_to

    held = contents(cache_folder()) if prune is None else prune_to(cache_folder(), prune)
    results().print(f"{held.folder}: {held.files:,} files, {held.size / 1e9:.2f} GB")
