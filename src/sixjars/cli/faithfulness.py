"""`inspect --check`: the faithfulness of attention weights as a table, a picture or numbers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sixjars.cli.options import note, notes, results
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from sixjars.evaluation.agreement import MeanEstimate
    from sixjars.kernels.backends import Device
    from sixjars.runs.faithfulness import AttentionCheck


def check_weights(
    run: Path,
    out: Path | None,
    *,
    data: Path | None,
    examples: int | None,
    reference: bool,
    device: "Device",
    allow: Sequence[str],
) -> None:
    """Check the weights, show the table, and write the file."""
    from sixjars.progress import ConsoleProgress, number_of
    from sixjars.runs.faithfulness import EXAMPLES, check_attention

    if out is not None and out.suffix.lower() == ".html":
        raise DataError(
            f"--check writes a picture (.png, .svg, .pdf) or numbers (.json), but --out is {out}."
        )
    checked = check_attention(
        run,
        data=data,
        examples=EXAMPLES if examples is None else examples,
        reference=reference,
        device=device,
        reporter=ConsoleProgress(notes()),
        allow=allow,
    )
    _show(results(), checked)
    if checked.examples < checked.whole:
        drawn = f"{checked.examples:,} of {checked.whole:,} examples were drawn"
        note(f"note: {drawn}; --examples N checks more.")
    if checked.skipped:
        has = "has" if checked.skipped == 1 else "have"
        note(
            f"note: {number_of(checked.skipped, 'example')} {has} one input position or no output, "
            "so nothing can be compared."
        )
    if out is None:
        return
    if out.suffix.lower() == ".json":
        text = json.dumps(checked.to_json(), ensure_ascii=False, indent=1)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    else:
        checked.draw(out, f"Attention of {run.name}: {checked.title}")
    note(f"wrote {out}")


def _show(console: "Console", checked: "AttentionCheck") -> None:
    from sixjars.cli.show import plain_table

    numbers = ("attention", "random order", "uniform", "same first", "by chance", "steps")
    table = plain_table("compared with", *numbers)
    for row in checked.measures.values():
        first = f"{row.first.mean:.0%} ({row.first.low:.0%} to {row.first.high:.0%})"
        taus = _spelled(row.tau), _spelled(row.random), "0.00"
        table.add_row(row.name, *taus, first, f"{row.chance:.0%}", f"{row.steps:,}")
    console.print(checked.title)
    console.print(
        "Kendall's tau of the weights, with 95% intervals; 'same first': "
        "the largest weight is on the most"
    )
    console.print("important position:")
    console.print(table)
    for sentence in checked.sentences:
        console.print(sentence)


def _spelled(estimate: "MeanEstimate") -> str:
    return f"{estimate.mean:z.2f} ({estimate.low:z.2f} to {estimate.high:z.2f})"
