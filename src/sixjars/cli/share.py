"""The command that makes one file of a run: `pack`."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import AllowOption, RunArgument, note


def pack(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write: NAME.sixjars", show_default=False)],
    licence: Annotated[str, typer.Option(help="Its licence, for the model card.", show_default=False)] = "",
    allow: AllowOption = None,
) -> None:
    """Write a run into one file to share: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.pack import pack as pack_run

    written = pack_run(run, file, licence=licence, allow=allow or [])
    note(f"wrote {written} ({written.stat().st_size:,} bytes); use it: sixjars predict {written} INPUT")
