"""Commands that prepare data: `features`, `sample`."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import Overrides, results, talk


def features(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A file, or a name that `sixjars tasks` lists.")],
    overrides: Overrides = None,
) -> None:
    """See all pictures or films of a recipe ahead of training, once; a killed extraction goes on where it was."""
    from sixjars.learning.progress import OnConsole
    from sixjars.tasks.preparing import features_of
    from sixjars.tasks.reading import read_recipe

    made = features_of(read_recipe(recipe, overrides or []), reporter=OnConsole(talk()))
    console = results()
    console.print(f"{made.files} files are ready" + (f", {made.skipped} rows skipped" if made.skipped else ""))
    for folder in made.folders:
        console.print(f"kept in: {folder}")


def sample(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A system that `sixjars tasks` lists, or TASK/KIND.")],
    out: Annotated[Path, typer.Option(help="The folder to write.", show_default=False)],
    size: Annotated[int, typer.Option(help="Training examples; a tenth more for each other part.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.", min=0)] = 0,
) -> None:
    """Write a made-up corpus as real files: JSON lines, and pictures or films beside them."""
    from sixjars.learning.progress import OnConsole
    from sixjars.tasks.preparing import write_sample

    for path in write_sample(task, out, size=size, seed=seed, reporter=OnConsole(talk())):
        results().print(str(path))
