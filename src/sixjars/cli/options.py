"""Options that several commands share, and the two consoles: results go to stdout, everything else to stderr."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, final

import typer

from sixjars.progress import Reporter, listening

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console


def _found_here(packages: list[str] | None) -> list[str] | None:
    """Packages in the current folder are found too; after all that is installed, so that they replace nothing."""
    if packages:
        sys.path.append(os.getcwd())
    return packages


AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PACKAGE",
        help="A package of yours that the recipe may take components from; its code is run.",
        callback=_found_here,
        show_default=False,
    ),
]
DataOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH",
        help="Another file with the same columns; or parallel lines: --data c.en --data c.de.",
        show_default=False,
    ),
]
TABLES: Final = (".csv", ".tsv", ".xlsx", ".parquet")
"""Endings of files that hold no JSON lines: other programs would not open those under such a name."""
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where to compute.")
]
FromOption = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="RUN", help="Fine-tune: start from a run's weights.", show_default=False
    ),
]
NoBaselinesOption = Annotated[
    bool,
    typer.Option(
        "--no-baselines", help="Without what costs nothing to compare with.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Any key: learning.rate=5e-4", show_default=False),
]
RecipeArgument = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="A file, or a name that `sixjars tasks` lists.", show_default=False
    ),
]
RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A run's folder, a packed run, or hf:USER/NAME.", show_default=False
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit code 1 if any input was skipped, not only if all were; of predict also if a delimiter cut one.",
    ),
]


def notes() -> "Console":
    """The console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def noting() -> "AbstractContextManager[None]":
    """Whatever is told meanwhile about the data is a note; without a bar, so that `rich` loads only for a note."""
    return listening(_Noting())


@final
class _Noting(Reporter):
    def note(self, sentence: str) -> None:
        note(f"note: {sentence}")


def note(text: str) -> None:
    """One line that is no result."""
    notes().print(text, highlight=False, markup=False)


def results() -> "Console":
    """The console for results; plain where it is not a terminal."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = 200  # nothing is cut short for a file or a pipe
    return console


def check_output(path: Path | None, option: str = "--output") -> None:
    """Refuse to write over a file that holds something; an empty one, or a device, may be written to."""
    from sixjars.runs.output_file import check_new

    if path is not None:
        check_new(path, f"{option} {path}")
