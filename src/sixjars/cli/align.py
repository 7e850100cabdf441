"""The command that aligns words: `align`."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import check_output, notes
from sixjars.data.alignment.symmetry import USUAL, Symmetrization


def align(
    first: Annotated[Path, typer.Argument(metavar="A", help="A sentence in each line; or a table (see --columns).")],
    second: Annotated[
        Path | None, typer.Argument(metavar="B", help="The same sentences in another language.", show_default=False)
    ] = None,
    *,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="A is a table: its two columns, or their numbers.", show_default=False),
    ] = None,
    also: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Two more files to learn from; their links are not written."),
    ] = None,
    symmetrize: Annotated[Symmetrization, typer.Option(help="How the links of both directions become one.")] = USUAL,
    output: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the links; else they are printed.")
    ] = None,
) -> None:
    """Align the words of parallel texts: print which word belongs to which, 0-0 1-2, a line for each pair of lines."""
    from sixjars.progress import ConsoleProgress
    from sixjars.runs.align import align as align_texts

    check_output(output, "--out")
    named = [int(name) if name.isdigit() else name for name in columns.split(",")] if columns else []
    found = align_texts(
        first,
        second,
        columns=named,
        also=also,
        symmetrize=symmetrize,
        reporter=ConsoleProgress(notes()),
    )
    if output is not None:
        found.save(output)
        return
    for line in found.to_pharaoh():
        typer.echo(line)
