"""`inspect --check`: whether the attention weights of a run can be trusted, as a table, a picture or numbers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from sixjars.cli.options import note, notes, results
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from sixjars.evaluation.agreement import Estimate
    from sixjars.learning.engine import Device
    from sixjars.runs.faithfulness import AttentionCheck

CheckOption = Annotated[
    bool,
    typer.Option("--check", help="Compare the weights with erasing the input and with gradients."),
]
CheckedDataOption = Annotated[
    Path | None,
    typer.Option(help="With --check: a file in place of the test set.", show_default=False),
]
ExamplesOption = Annotated[
    int | None,
    typer.Option(help="The most inputs that are shown, or checked.", min=1, show_default=False),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference", help="With --check: force the outputs of the data (teacher forcing)."
    ),
]


@final
@dataclass(frozen=True)
class CheckOptions:
    """Those that only a check has."""

    data: Path | None
    examples: int | None
    reference: bool

    def refuse_without_check(self) -> None:
        """They mean nothing where inputs are looked at."""
        if self.data is not None or self.reference:
            raise DataError(
                "--data and --reference belong to --check; inputs to look at are --input FILE."
            )


def check_weights(
    run: Path,
    options: CheckOptions,
    *,
    out: Path | None,
    alone: bool,
    device: "Device",
    allow: Sequence[str],
) -> None:
    """Check, show the table, and write the file; `alone` says that no other option was given."""
    from sixjars.progress import ConsoleProgress, number_of
    from sixjars.runs.faithfulness import EXAMPLES, check_attention

    if not alone:
        raise DataError(
            "--check measures a whole file: give --data FILE, and no inputs or options of one view."
        )
    if out is not None and out.suffix.lower() == ".html":
        raise DataError(
            f"--check writes a picture (.png, .svg, .pdf) or numbers (.json), but --out is {out}."
        )
    found = check_attention(
        run,
        data=options.data,
        examples=EXAMPLES if options.examples is None else options.examples,
        reference=options.reference,
        device=device,
        reporter=ConsoleProgress(notes()),
        allow=allow,
    )
    _show(results(), found)
    if found.examples < found.whole:
        note(
            f"note: {found.examples:,} of {found.whole:,} examples were drawn; --examples N checks more."
        )
    if found.skipped:
        many = f"{number_of(found.skipped, 'example')} {'has' if found.skipped == 1 else 'have'}"
        note(f"note: {many} one input position or no output, so nothing can be compared.")
    if out is None:
        return
    if out.suffix.lower() == ".json":
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found.to_json(), ensure_ascii=False, indent=1), encoding="utf-8")
    else:
        found.draw(out, f"Attention of {run.name}: {found.title}")
    note(f"wrote {out}")


def _show(console: "Console", found: "AttentionCheck") -> None:
    """One table, and what it means."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in (
        "compared with",
        "attention",
        "random order",
        "uniform",
        "same first",
        "by chance",
        "steps",
    ):
        table.add_column(name, justify="left" if name == "compared with" else "right", no_wrap=True)
    for one in found.measures.values():
        first = f"{one.first.mean:.0%} ({one.first.low:.0%} to {one.first.high:.0%})"
        table.add_row(
            one.name,
            _told(one.tau),
            _told(one.random),
            "0.00",
            first,
            f"{one.chance:.0%}",
            f"{one.steps:,}",
        )
    console.print(found.title)
    console.print(
        "Kendall's tau of the weights, with 95% intervals; 'same first': the largest weight is on the most"
    )
    console.print("important position:")
    console.print(table)
    for sentence in found.sentences:
        console.print(sentence)


def _told(estimate: "Estimate") -> str:
    """A mean with its interval."""
    return f"{estimate.mean:z.2f} ({estimate.low:z.2f} to {estimate.high:z.2f})"
