"""The command that aligns words: `align`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sixjars.cli.options import argument, check_output, note, notes, option
from sixjars.data.alignment.symmetry import USUAL, Symmetrization

if TYPE_CHECKING:
    from sixjars.runs.align import Alignment


DiagonalOption = Annotated[
    float | None,
    typer.Option(
        help="Preference for links near the diagonal; 0.1 or 0 where word order differs.",
        show_default="that of data.alignment.diagonal",
    ),
]
GoldOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="True links (0-0 1-2, or lines: sentence, word of A, word of B, S or P): "
        "print the error rate.",
    ),
]


def align(
    first: Annotated[
        Path,
        typer.Argument(metavar="A", help="A sentence in each line; or a table (see --columns)."),
    ],
    second: Annotated[
        Path | None, argument(metavar="B", help="The same sentences in another language.")
    ] = None,
    *,
    columns: Annotated[
        str | None,
        option(metavar="NAME,NAME", help="A is a table: its two columns, or their numbers."),
    ] = None,
    also: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="A B", help="Two more files to learn from; their links are not written."
        ),
    ] = None,
    symmetrize: Annotated[
        Symmetrization, typer.Option(help="How the links of both directions become one.")
    ] = USUAL,
    diagonal: DiagonalOption = None,
    gold: GoldOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the links; without it and --gold, they are printed.",
        ),
    ] = None,
) -> None:
    """Align the words of parallel texts: print which word belongs to which, 0-0 1-2, a line for
    each pair of lines.
    """  # noqa: D205 - one sentence of --help
    from sixjars.data.text.files import check_file
    from sixjars.progress import ConsoleProgress, number_of
    from sixjars.runs.align import align as align_texts
    from sixjars.runs.output_file import check_writable

    check_output(output, "--out")
    if output is not None:
        check_writable(output, f"--out {output}")
    if gold is not None:
        check_file(gold)
    names = columns.split(",") if columns else []
    alignment = align_texts(
        first,
        second,
        columns=[int(name) if name.isdigit() else name for name in names],
        also=also,
        symmetrize=symmetrize,
        reporter=ConsoleProgress(notes()),
        **({} if diagonal is None else {"diagonal": diagonal}),
    )
    if output is not None:
        alignment.save(output)
        pairs = number_of(len(alignment), "pair")
        note(f"wrote {output}: a line of links for each of {pairs} of lines")
    if gold is not None:
        _show(alignment, gold)
    elif output is None:
        for line in alignment.to_pharaoh():
            typer.echo(line)


def _show(alignment: "Alignment", gold: Path) -> None:
    methods: tuple[Symmetrization, ...] = "forward", "backward", alignment.symmetrize
    for method in dict.fromkeys(methods):
        score = replace(alignment, symmetrize=method).score(gold)
        rate = f"alignment error rate {score.error_rate:.4f}"
        rest = f"precision {score.precision:.4f}  recall {score.recall:.4f}  ({score.lines} lines)"
        typer.echo(f"{method:20} {rate}  {rest}")
