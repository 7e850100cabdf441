"""Options of several commands, and the consoles: results on stdout, all else on stderr."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, final

import typer

from sixjars.progress import Reporter, listening

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console


def option(*names: str, **settings: Any) -> Any:
    """An option whose default --help does not show."""
    return typer.Option(*names, show_default=False, **settings)


def argument(**settings: Any) -> Any:
    """An argument whose default --help does not show."""
    return typer.Argument(show_default=False, **settings)


def _found_here(packages: list[str] | None) -> list[str] | None:
    """Let packages of the current folder be found, after all that are installed."""
    if packages:
        sys.path.append(os.getcwd())
    return packages


# What commands have in common, by name of the parameter: `device: options.Device = "auto"`.
Allow = Annotated[
    list[str] | None,
    option(
        "--allow",
        metavar="PACKAGE",
        help="A package of yours that the recipe may take components from; its code is run.",
        callback=_found_here,
    ),
]
Data = Annotated[
    list[Path] | None,
    option(
        metavar="PATH",
        help="Another file with the same columns; or parallel lines: --data c.en --data c.de.",
    ),
]
Device = Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where to compute.")]
FILE: Final = (
    "A file: CSV, TSV, JSON, Parquet or Excel with the columns that the run was trained on (.gz "
    "too); any other has one input a line."
)
From = Annotated[
    Path | None, option("--from", metavar="RUN", help="Fine-tune: start from a run's weights.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Nbest = Annotated[int | None, option(help="Outputs for each input.", min=1)]
NoBaselines = Annotated[
    bool, option("--no-baselines", help="Without what costs nothing to compare with.")
]
Overrides = Annotated[
    list[str] | None, argument(metavar="KEY=VALUE", help="Any key: learning.rate=5e-4")
]
Precision = Annotated[
    Literal["32", "bf16", "int8"],
    typer.Option(
        help="Bits of matrix products: int8 (CPU) and bf16 are faster, and a little less exact."
    ),
]
Question = Annotated[list[str] | None, option(help="A question about each image.")]
Recipe = Annotated[
    str, argument(metavar="RECIPE", help="A file, or a name that `sixjars tasks` lists.")
]
Run = Annotated[
    Path, argument(metavar="RUN", help="A run's folder, a packed run, or hf:USER/NAME.")
]
Search = Annotated[
    Literal["greedy", "beam", "sample"] | None, option(help="How outputs are chosen.")
]
Setting = Annotated[list[str] | None, option("--set", help="A search setting: temperature=0.7")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit code 1 if any input was skipped, not only if all were; of predict also if a delimiter cut one.",
    ),
]
Texts = Annotated[
    list[str] | None,
    argument(
        metavar="INPUT",
        help="Texts; images and videos as files, folders, globs; "
        'or objects by column: {"body": "..."}',
    ),
]
TABLES: Final = (".csv", ".tsv", ".xlsx", ".parquet")
"""Endings of files that hold no JSON lines: other programs would not open them."""


def notes() -> "Console":
    """The console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def noting() -> "AbstractContextManager[None]":
    """Print what is reported on data meanwhile as notes; `rich` loads only for one."""
    return listening(_NotePrinter())


@final
class _NotePrinter(Reporter):
    def note(self, sentence: str) -> None:
        note(f"note: {sentence}")


def note(text: str) -> None:
    """Print a line that is no result."""
    notes().print(text, highlight=False, markup=False)


def print_json(values: Any) -> None:
    """Print a result for programs."""
    results().print(json.dumps(values, ensure_ascii=False))


def results() -> "Console":
    """The console for results; plain where it is not a terminal."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = 200  # nothing is cut short for a file or a pipe
    return console


def check_output(path: Path | None, option: str = "--output") -> None:
    """Refuse to overwrite a file, unless it is empty or a device."""
    from sixjars.runs.output_file import check_new

    if path is not None:
        check_new(path, f"{option} {path}")
