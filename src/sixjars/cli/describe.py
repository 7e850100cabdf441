"""Commands that show systems, recipes and runs: `tasks`, `explain`, `compare`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli import options
from sixjars.cli.options import note, notes, option, print_json, results


def tasks(*, as_json: options.Json = False) -> None:
    """List the systems, with the recipes that come with them."""
    from sixjars.recipe.files import packaged
    from sixjars.tasks import TASKS

    names = list(packaged())
    listed = {task: [name for name in names if name.startswith(f"{task}/")] for task in TASKS}
    console = results()
    if as_json:
        keys = ("name", "also", "number", "title")
        rows = [
            {**{key: getattr(task, key) for key in keys}, "recipes": listed[task.name]}
            for task in TASKS.values()
        ]
        console.print(json.dumps(rows, ensure_ascii=False))
        return
    for task in TASKS.values():
        also = f" (also: {', '.join(task.also)})" if task.also else ""
        console.print(f"{task.number:4}{task.name:16}  {task.title}{also}", style="bold")
        for name in listed[task.name]:
            console.print(f"      {name}")


def explain(
    what: Annotated[
        str,
        typer.Argument(metavar="RECIPE|RUN", help="A recipe's file or name, or a run's folder."),
    ],
    overrides: options.Overrides = None,
    *,
    as_json: options.Json = False,
    allow: options.Allow = None,
) -> None:
    """Print the six sections: equations with their letters, and every parameter's name, letter,
    shape and count.
    """  # noqa: D205 - one sentence of --help
    from sixjars.cli.show import show_explanation
    from sixjars.runs.explanation.explain import explain as explain_it

    explanation = explain_it(what, overrides or [], allow=allow or [])
    if as_json:
        print_json(explanation.to_json())
    else:
        show_explanation(results(), explanation)


def compare(
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RUN|RECIPE...", help="Two or more; recipes are trained first."),
    ],
    data: options.Data = None,
    out: Annotated[
        Path,
        typer.Option(
            help="A folder; or a table (.md, .csv, .json), or the picture (.png, .svg, .pdf)."
        ),
    ] = Path("runs/compare"),
    metric: Annotated[
        str | None, option(help="Of the curves and the examples; the first run's own.")
    ] = None,
    *,
    as_json: options.Json = False,
    no_baselines: options.NoBaselines = False,
    device: options.Device = "auto",
    allow: options.Allow = None,
) -> None:
    """Compare runs: scores with intervals, significance, cost, score by length; recipes are trained
    first.
    """  # noqa: D205 - one sentence of --help
    from sixjars.cli.show import show_comparison
    from sixjars.comparison.compare import compare as compare_them
    from sixjars.comparison.tables import ComparisonOutput
    from sixjars.progress import ConsoleProgress, listening

    with listening(ConsoleProgress(notes())):
        comparison = compare_them(
            recipes,
            data=data or None,
            out=out,
            metric=metric,
            device=device,
            baselines=not no_baselines,
            allow=allow or [],
        )
    if as_json:
        print_json(comparison.to_json())
    else:
        show_comparison(results(), comparison)
    for file in (ComparisonOutput(out).table, comparison.picture):
        if file is not None:
            note(f"wrote {file}")
