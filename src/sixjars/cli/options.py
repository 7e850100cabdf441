"""Options that several commands share, and the two consoles: results go to stdout, talk to stderr."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

DeviceOption = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Any key: learning.rate=5e-4", show_default=False),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)]


def talk() -> "Console":
    """The console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def results() -> "Console":
    """The console for what was asked for; plain where it is not a terminal."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = 200  # nothing is cut short for a file or a pipe
    return console
