"""The command `report`: all that is known of a run, as one file to look at and to send."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import AllowOption, DeviceOption, RunArgument, note, notes


def report(
    run: RunArgument,
    data: Annotated[Path | None, typer.Option(help="Another file with the same columns.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    *,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Write one HTML file about a run: scores, learning curves, examples with attention, a map, how to repeat it."""
    from sixjars.progress import ConsoleProgress
    from sixjars.runs.report import report as report_run

    written = report_run(run, data=data, out=out, device=device, reporter=ConsoleProgress(notes()), allow=allow or [])
    note(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)")
