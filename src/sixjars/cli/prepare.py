"""Commands around data: `features`, `sample`, `cache`, `align`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sixjars.cli import options
from sixjars.cli.options import argument, check_output, note, notes, option, results
from sixjars.data.alignment.symmetry import USUAL, Symmetrization
from sixjars.progress import ConsoleProgress, number_of

if TYPE_CHECKING:
    from sixjars.runs.align import Alignment


def features(
    recipe: options.Recipe,
    overrides: options.Overrides = None,
    *,
    device: options.Device = "auto",
    allow: options.Allow = None,
) -> None:
    """Extract the features of all images or videos of a recipe ahead of training; one that is
    killed goes on.
    """  # noqa: D205 - one sentence of --help
    from sixjars.recipe.allowed_code import AllowedCode
    from sixjars.runs.data.prepare import extract_features
    from sixjars.runs.recipes import read_recipe

    outside = AllowedCode(tuple(allow or []))
    reporter = ConsoleProgress(notes())
    settings = read_recipe(recipe, overrides or [], outside)
    extracted = extract_features(settings, device=device, reporter=reporter, outside=outside)
    console = results()
    ready = "1 file is" if extracted.files == 1 else f"{extracted.files} files are"
    skipped = f", {number_of(extracted.skipped, 'row')} skipped" if extracted.skipped else ""
    console.print(f"{ready} ready{skipped}")
    for folder in extracted.folders:
        console.print(f"stored in: {folder}")


def sample(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="A system that `sixjars tasks` lists, or TASK/KIND."),
    ],
    out: Annotated[Path, option(help="The folder to write.")],
    size: Annotated[
        int, typer.Option(help="Training examples; a tenth more for each other split.", min=1)
    ] = 100,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.", min=0)] = 0,
) -> None:
    """Write a synthetic corpus as files: JSON lines, and images or videos beside them."""
    from sixjars.runs.data.prepare import generate_sample

    for path in generate_sample(task, out, size=size, seed=seed, reporter=ConsoleProgress(notes())):
        results().print(str(path))


def cache(
    *,
    prune: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            help="Remove what was not used for longest until so much is left.",
            min=0.0,
        ),
    ] = None,
) -> None:
    """Show what the cache of encoded data and features holds, or make it smaller; nothing is lost
    but time.
    """  # noqa: D205 - one sentence of --help
    from sixjars.data.storage.cache import cache_folder
    from sixjars.data.storage.pruning import contents
    from sixjars.data.storage.pruning import prune as prune_to

    held = contents(cache_folder()) if prune is None else prune_to(cache_folder(), prune)
    results().print(f"{held.folder}: {held.files:,} files, {held.size / 1e9:.2f} GB")


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
