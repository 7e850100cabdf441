"""Commands that create a recipe or a run: `demo`, `new`, `train`, `tune`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sixjars.cli import options
from sixjars.cli.options import argument, note, notes, option, print_json, results
from sixjars.progress import ConsoleProgress
from sixjars_runtime.errors import DataError, RunError

if TYPE_CHECKING:
    from sixjars.starter.race import Race


ColumnOption = Annotated[
    list[str] | None, option(metavar="COLUMN", help="Its column: a name, or a number from 1.")
]
MinutesOption = Annotated[
    float | None, option(help="Train a few candidates for so many minutes, and write the best one.")
]
DEMO = "translation/sample_attention"


def demo(
    out: Annotated[Path, typer.Option(help="Where the run and the picture go.")] = Path(
        "sixjars-demo"
    ),
) -> None:
    """Train English to romanised Hindi with attention on synthetic data, translate, and draw the
    attention.
    """  # noqa: D205 - one sentence of --help
    from sixjars.cli.show import show_demo, show_trained
    from sixjars.runs.folder.run_folder import open_run
    from sixjars.runs.recipes import read_recipe
    from sixjars.runs.train import train as train_recipe

    console = notes()
    recipe = read_recipe(DEMO)
    if (out / "recipe.yaml").is_file():
        if open_run(out).recipe != recipe:
            raise RunError(f"{out} holds another run. Choose another folder with --out.")
        _clear(out)
    pairs = recipe.data.sample.size if recipe.data.sample else 0
    data = f"{pairs:,} synthetic sentence pairs"
    console.print(f"[bold]sixjars[/] learns English → Hindi from {data}. About a minute.")
    reporter = ConsoleProgress(console)
    trained = train_recipe(DEMO, out=out, device="cpu", reporter=reporter, baselines=False)
    show_trained(results(), trained)
    show_demo(results(), trained.folder)


def _clear(folder: Path) -> None:
    """Remove an earlier demo, and nothing else."""
    from sixjars.runs.folder.archive import FILES

    paths = [folder / name for name in (*FILES, "curves.png", "attention.png")]
    paths += [*folder.glob("fields/*.json"), *folder.glob("checkpoints/*.safetensors")]
    for path in paths:
        path.unlink(missing_ok=True)


def new(
    file: Annotated[Path, argument(metavar="FILE", help="The recipe to write.")],
    task: Annotated[str, option(help="A system that `sixjars tasks` lists.")],
    data: Annotated[
        list[Path] | None,
        option(
            metavar="PATH",
            help="Your data; sizes are chosen from it. "
            "For parallel lines: --data c.en --data c.de.",
        ),
    ] = None,
    source: ColumnOption = None,
    target: ColumnOption = None,
    label: ColumnOption = None,
    column: Annotated[
        list[str] | None,
        option(metavar="FIELD=COLUMN", help="The column of any field: image=photo."),
    ] = None,
    minutes: MinutesOption = None,
    *,
    no_estimate: Annotated[
        bool,
        typer.Option(
            "--no-estimate", help="Do not measure in a few steps how long training will take."
        ),
    ] = False,
) -> None:
    """Write a commented starter recipe, its columns and sizes chosen from your data."""
    from sixjars.starter.write import started

    columns = _columns({"source": source, "target": target, "label": label}, column or [])
    if minutes is not None:
        from sixjars.starter.race import check_minutes

        check_minutes(minutes, data)
    starter = started(file, task=task, data=data, columns=columns)
    for sentence in starter.notes:
        note(sentence)
    in_a_hurry = minutes is not None and _race(file, minutes).stopped
    skip = " data.on_bad_row=skip" if starter.stops else ""
    note(f"wrote {file}; next: sixjars train {file}{skip}")
    if data and not no_estimate and not in_a_hurry:
        for sentence in estimated(file):
            note(sentence)


def _race(file: Path, minutes: float) -> "Race":
    from sixjars.cli.show import show_race
    from sixjars.starter.race import race

    result = race(file, minutes=minutes, reporter=ConsoleProgress(notes()))
    show_race(results(), result)
    for sentence in result.notes:
        note(f"note: {sentence}")
    return result


def estimated(file: Path) -> list[str]:
    """Sentences on how long training takes here, where a few seconds can tell that."""
    from sixjars.starter.training_time import budget_of

    budget = budget_of(file)
    return [] if budget is None else budget.sentences


def _columns(named: Mapping[str, Sequence[str] | None], pairs: Sequence[str]) -> dict[str, str]:
    """The column of each field, by the field's option or `--column`; two for one are refused."""
    choices = [(name, value) for name, values in named.items() for value in values or []]
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise DataError(f"--column {pair}: write FIELD=COLUMN, such as --column image=photo.")
        choices.append((name, value))
    columns: dict[str, str] = {}
    for name, value in choices:
        if columns.setdefault(name, value) != value:
            raise DataError(
                f"the {name} is given two columns, {columns[name]!r} and {value!r}, but a field is "
                "one column; join them into one first, as docs/faq.md shows."
            )
    return columns


def train(
    recipe: options.Recipe,
    overrides: options.Overrides = None,
    out: Annotated[Path | None, option(help="The run's folder.  [default: runs/NAME]")] = None,
    *,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on exactly where the run was stopped; begin it where there is none.",
        ),
    ] = False,
    from_run: options.From = None,
    seed: Annotated[int | None, option(help="The same as learning.seed=N.", min=0)] = None,
    device: options.Device = "auto",
    devices: Annotated[
        int, typer.Option(help="Processes that train one model together.", min=1)
    ] = 1,
    fsdp: Annotated[bool, option("--fsdp", help="Each has a share of the weights (FSDP).")] = False,
    no_baselines: options.NoBaselines = False,
    allow: options.Allow = None,
) -> None:
    """Train what a recipe describes."""
    from sixjars.recipe.files import find

    find(recipe)  # a wrong name is an error at once, before torch is loaded
    from sixjars.cli.show import show_trained
    from sixjars.runs.train import train as train_recipe

    trained = train_recipe(
        recipe,
        [*(overrides or []), *([] if seed is None else [f"learning.seed={seed}"])],
        out=out,
        resume=resume,
        from_run=from_run,
        device=device,
        devices=devices,
        fsdp=fsdp,
        reporter=ConsoleProgress(notes()),
        baselines=not no_baselines,
        allow=allow or [],
    )
    if trained.scores:
        show_trained(results(), trained)
        for sentence in trained.missed:
            note(f"note: {sentence}")


SpaceArgument = Annotated[
    list[str],
    argument(
        metavar="KEY=SPACE",
        help="'learning.rate=log(1e-4,1e-2)', 'model.encoder.dropout=uniform(0,0.5)', "
        "'model.encoder.size=int(64,512)', 'model.encoder.cell=[gru,lstm]'; "
        "KEY=VALUE is the same in all trials.",
    ),
]


def tune(
    recipe: options.Recipe,
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
    from_run: options.From = None,
    jobs: Annotated[
        int,
        typer.Option(help="Trials at once, each on a GPU of its own if there are several.", min=1),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Of the search; trainings have learning.seed.", min=0)
    ] = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
    allow: options.Allow = None,
) -> None:
    """Search for the best values of some keys, by the validation set."""
    from sixjars.recipe.files import find
    from sixjars.tuning.search_space import TRIALS, space_of

    find(recipe)  # wrong names and spaces are errors at once, before torch is loaded
    space_of(space)
    from sixjars.cli.show import show_tuning
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
        print_json(tuning.to_json())
    else:
        show_tuning(results(), tuning)
