"""The command that searches for hyperparameters: `tune`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sixjars.cli.options import (
    AllowOption,
    DeviceOption,
    FromOption,
    JsonOption,
    RecipeArgument,
    argument,
    notes,
    option,
    results,
)

if TYPE_CHECKING:
    from rich.console import Console

    from sixjars.tuning.result import Tuning

SpaceArgument = Annotated[
    list[str],
    argument(
        metavar="KEY=SPACE",
        help="'learning.rate=log(1e-4,1e-2)', 'model.encoder.dropout=uniform(0,0.5)', "
        "'model.encoder.size=int(64,512)', 'model.encoder.cell=[gru,lstm]'; "
        "KEY=VALUE is the same in all trials.",
    ),
]
SHOWN = 20
"""Lines of the table of trials."""


def tune(
    recipe: RecipeArgument,
    space: SpaceArgument,
    trials: Annotated[int | None, option(help="How many in all.  [default: 30]", min=1)] = None,
    out: Annotated[
        Path | None, option(help="The search's folder.  [default: runs/NAME-tune]")
    ] = None,
    *,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the trials of the folder; begin where there are none."
        ),
    ] = False,
    from_run: FromOption = None,
    jobs: Annotated[
        int,
        typer.Option(help="Trials at once, each on a GPU of its own if there are several.", min=1),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Of the search; trainings have learning.seed.", min=0)
    ] = 0,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    allow: AllowOption = None,
) -> None:
    """Search for the best values of some keys, by the validation set."""
    from sixjars.recipe.files import find
    from sixjars.tuning.space import TRIALS, space_of

    find(recipe)  # wrong names and spaces are errors at once, before torch is loaded
    space_of(space)
    from sixjars.progress import ConsoleProgress
    from sixjars.tuning.tune import tune as search

    tuning = search(
        recipe,
        space,
        trials=TRIALS if trials is None else trials,
        out=out,
        resume=resume,
        from_run=from_run,
        jobs=jobs,
        seed=seed,
        device=device,
        reporter=ConsoleProgress(notes()),
        allow=allow or [],
    )
    if as_json:
        results().print(json.dumps(tuning.to_json(), ensure_ascii=False))
    else:
        show_tuning(results(), tuning)


def show_tuning(console: "Console", tuning: "Tuning") -> None:
    """A line for each trial, the best one first; then what to do next."""
    from rich.table import Table

    from sixjars.tuning.result import TABLE, text_of

    grid = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in ("trial", *tuning.axes, tuning.metric, "epochs", "seconds"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True)
    for row in tuning.ranked[:SHOWN]:
        values = [text_of("", row[key]).strip() for key in tuning.axes]
        score = "–" if row["score"] is None else f"{row['score']:.4g}"
        state = "" if row["state"] == "complete" else row["state"]
        cost = f"{row['epochs']:.3g}", f"{row['seconds']:.0f}"
        grid.add_row(f"{row['number']}", *values, score, *cost, state)
    scored = f"{tuning.metric} on the validation set ({tuning.better} is better)"
    console.print(f"{scored}; the test set was not scored")
    console.print(grid)
    if len(tuning.trials) > SHOWN:
        console.print(f"and {len(tuning.trials) - SHOWN} more")
    console.print(f"table:   {tuning.folder / TABLE}")
    console.print(f"picture: {tuning.picture}")
    if tuning.tied:
        console.print(f"tie:     {tuning.tie_in_words}", soft_wrap=True)
    best = ", ".join(text_of(key, value) for key, value in tuning.best.items())
    console.print(f"best:    {best}")
    console.print(f"train and score it: {tuning.command}")
