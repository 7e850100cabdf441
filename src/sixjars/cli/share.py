"""Commands that give a run away: `pack` (one file), `push` (to the hub), `export` (for programs without torch)."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from sixjars.cli.options import AllowOption, RunArgument, note
from sixjars.cli.predict import SettingOption
from sixjars_runtime.errors import DataError, RecipeError, unknown

LicenceOption = Annotated[
    str, typer.Option(help="Its licence, for the model card.", show_default=False)
]


def pack(
    run: RunArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What to write: NAME.sixjars", show_default=False)
    ],
    licence: LicenceOption = "",
    allow: AllowOption = None,
) -> None:
    """Write a run into one file to share: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.share import pack as pack_run

    written = pack_run(run, file, licence=licence, allow=allow or [])
    note(
        f"wrote {written} ({written.stat().st_size:,} bytes); use it: sixjars predict {written} INPUT"
    )


def push(
    run: RunArgument,
    name: Annotated[
        str, typer.Argument(metavar="USER/NAME", help="What to call it there.", show_default=False)
    ],
    licence: LicenceOption = "",
    *,
    private: Annotated[
        bool, typer.Option("--private", help="Only for you.", show_default=False)
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Put a run on the Hugging Face hub: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.share import push as push_run

    address = push_run(run, name, licence=licence, private=private, allow=allow or [])
    note(f"{address}; use it: sixjars predict hf:{name.removeprefix('hf:')} INPUT")


def export(
    run: RunArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder to make.", show_default=False)
    ],
    precision: Annotated[
        Literal["32", "int8"], typer.Option(help="Bits of the matrices of the decoder's step.")
    ] = "32",
    whole: Annotated[
        Literal["greedy", "beam"] | None,
        typer.Option(
            help="Write encoder, decoder and this search as one graph.", show_default=False
        ),
    ] = None,
    setting: SettingOption = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Compare on a file with the same columns.", show_default=False),
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the page of --web opens with.", show_default=False),
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the answers with torch's, on the test set.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Write a page that runs in a browser instead.")
    ] = False,
    allow: AllowOption = None,
) -> None:
    """Write a run as ONNX graphs, for the torch-free package sixjars-runtime, or as a web page."""
    if web:
        if check or data is not None or precision != "32" or whole is not None or setting:
            raise DataError(
                "--web writes a page of its own; leave --check, --data, --precision, --whole and --set out."
            )
        from sixjars.serving.web import export_web

        page = export_web(run, out, example)
        serving = f"python -m http.server -d {quote(str(page))}"
        note(f"wrote {page}; serve it: {serving}; or open index.html, which asks for the model")
        return
    if example is not None:
        raise DataError("--example is what a page opens with; say --web too.")
    from sixjars.serving.export.files import export as export_run

    search = _search(setting or [])
    made = export_run(
        run,
        out,
        precision=precision,
        whole=whole,
        check=check,
        data=data,
        allow=allow or [],
        **search,
    )
    size = sum(file.stat().st_size for file in made.folder.rglob("*") if file.is_file())
    use = f"sixjars_runtime.load({str(made.folder)!r}).predict(INPUT)"
    if whole is not None:
        use = (
            f"{made.folder / 'whole.onnx'} in any ONNX runtime, as {made.folder / 'README.md'} says"
        )
    note(f"wrote {made.folder} ({size:,} bytes); use it: {use}")
    if made.agreement is not None:
        typer.echo(str(made.agreement))


def _search(setting: list[str]) -> dict[str, Any]:
    """Settings of search, and no others: they become keyword arguments."""
    from sixjars.recipe.files import overridden
    from sixjars.recipe.sections import SearchSettings

    given, known = overridden({}, setting), SearchSettings.model_fields
    if faults := [unknown("search: key", key, known) for key in given if key not in known]:
        raise RecipeError(faults, "the command line")
    return given
