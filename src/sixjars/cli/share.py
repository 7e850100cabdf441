"""The commands that share a run: `pack` makes one file of it, `push` puts it on the hub."""

from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.options import AllowOption, RunArgument, note

LicenceOption = Annotated[str, typer.Option(help="Its licence, for the model card.", show_default=False)]


def pack(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write: NAME.sixjars", show_default=False)],
    licence: LicenceOption = "",
    allow: AllowOption = None,
) -> None:
    """Write a run into one file to share: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.pack import pack as pack_run

    written = pack_run(run, file, licence=licence, allow=allow or [])
    note(f"wrote {written} ({written.stat().st_size:,} bytes); use it: sixjars predict {written} INPUT")


def push(
    run: RunArgument,
    name: Annotated[str, typer.Argument(metavar="USER/NAME", help="What to call it there.", show_default=False)],
    licence: LicenceOption = "",
    *,
    private: Annotated[bool, typer.Option("--private", help="Only for you.", show_default=False)] = False,
    allow: AllowOption = None,
) -> None:
    """Put a run on the Hugging Face hub: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.push import push as push_run

    address = push_run(run, name, licence=licence, private=private, allow=allow or [])
    note(f"{address}; use it: sixjars predict hf:{name.removeprefix('hf:')} INPUT")
