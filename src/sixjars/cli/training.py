"""Commands that make something: `demo`, `new`, `train`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sixjars.cli.options import DeviceOption, Overrides, results, talk
from sixjars.errors import RunError

if TYPE_CHECKING:
    from sixjars.tasks.training import Trained

DEMO = "translation/sample_attention"


def demo(
    out: Annotated[Path, typer.Option(help="Where the run and the picture go.")] = Path("sixjars-demo"),
) -> None:
    """Train English to romanised Hindi with attention on a made-up corpus, translate, and draw what it looks at."""
    from sixjars.cli.show import show_demo, show_trained
    from sixjars.learning.progress import OnConsole
    from sixjars.tasks.reading import read_recipe
    from sixjars.tasks.runs import open_run
    from sixjars.tasks.training import train as train_it

    console = talk()
    recipe = read_recipe(DEMO)
    if (out / "recipe.yaml").is_file():
        if open_run(out).recipe != recipe:
            raise RunError(f"{out} holds another run. Choose another folder with --out.")
        _clear(out)
    pairs = recipe.data.sample.size if recipe.data.sample else 0
    console.print(f"[bold]sixjars[/] learns English → Hindi from {pairs:,} made-up sentence pairs. About a minute.")
    trained = train_it(DEMO, out=out, device="cpu", reporter=OnConsole(console))
    show_trained(results(), trained)
    show_demo(results(), trained.folder)


def _clear(folder: Path) -> None:
    """Take away an earlier demo, and nothing else."""
    ours = ("recipe.yaml", "run.json", "model.safetensors", "log.jsonl", "scores.json", "attention.png")
    for path in [
        *(folder / name for name in ours),
        *folder.glob("tokens/*.json"),
        *folder.glob("checkpoints/*.safetensors"),
    ]:
        path.unlink(missing_ok=True)


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The recipe to write.", show_default=False)],
    task: Annotated[str, typer.Option(help="A system that `sixjars tasks` lists.", show_default=False)],
    data: Annotated[Path | None, typer.Option(help="Your data; sizes are chosen from it.", show_default=False)] = None,
) -> None:
    """Write a commented starter recipe, its sizes chosen from your data."""
    from sixjars.tasks.starter import write_starter

    write_starter(file, task=task, data=data)
    talk().print(f"wrote {file}; next: sixjars train {file}", highlight=False, markup=False)


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A file, or a name that `sixjars tasks` lists.")],
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder.  [default: runs/NAME]", show_default=False)
    ] = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Go on exactly where the run was stopped.")] = False,
    seed: Annotated[int | None, typer.Option(help="The same as learning.seed=N.", min=0, show_default=False)] = None,
    device: DeviceOption = "auto",
    devices: Annotated[int, typer.Option(help="Processes that train one model together.", min=1)] = 1,
) -> None:
    """Train what a recipe describes."""
    from sixjars.recipe.reading import find

    find(recipe)  # a name that is wrong is told at once, before torch is loaded
    from sixjars.cli.show import show_trained
    from sixjars.learning.progress import OnConsole
    from sixjars.tasks.training import train as train_it

    changes = [*(overrides or []), *([] if seed is None else [f"learning.seed={seed}"])]
    trained: Trained = train_it(
        recipe, changes, out=out, resume=resume, device=device, devices=devices, reporter=OnConsole(talk())
    )
    if trained.scores:
        show_trained(results(), trained)
        for sentence in trained.missed:
            talk().print(f"note: {sentence}", highlight=False, markup=False)
