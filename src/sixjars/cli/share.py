"""Commands that share a run: `pack` (one file), `push` (to the hub), `export`, and `serve` (over HTTP)."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from sixjars.cli import options
from sixjars.cli.options import argument, note, option
from sixjars.serving.server.settings import ServerSettings
from sixjars_runtime.errors import DataError, RecipeError, unknown

LicenceOption = Annotated[str, option(help="Its licence, for the model card.")]


def pack(
    run: options.Run,
    file: Annotated[Path, argument(metavar="FILE", help="What to write: NAME.sixjars")],
    licence: LicenceOption = "",
    allow: options.Allow = None,
) -> None:
    """Write a run into one file to share: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.folder.share import pack as pack_run

    written = pack_run(run, file, licence=licence, allow=allow or [])
    size = f"{written.stat().st_size:,} bytes"
    note(f"wrote {written} ({size}); use it: sixjars predict {written} INPUT")


def push(
    run: options.Run,
    name: Annotated[str, argument(metavar="USER/NAME", help="What to call it there.")],
    licence: LicenceOption = "",
    *,
    private: Annotated[bool, option("--private", help="Only for you.")] = False,
    allow: options.Allow = None,
) -> None:
    """Put a run on the Hugging Face hub: recipe, vocabularies, weights, and a model card."""
    from sixjars.runs.folder.share import push as push_run

    address = push_run(run, name, licence=licence, private=private, allow=allow or [])
    note(f"{address}; use it: sixjars predict hf:{name.removeprefix('hf:')} INPUT")


def export(
    run: options.Run,
    out: Annotated[Path, argument(metavar="OUT", help="A folder to make.")],
    precision: Annotated[
        Literal["32", "int8"], typer.Option(help="Bits of the matrices of the decoder's step.")
    ] = "32",
    whole: Annotated[
        Literal["greedy", "beam"] | None,
        option(help="Write encoder, decoder and this search as one graph."),
    ] = None,
    setting: options.Setting = None,
    data: Annotated[Path | None, option(help="Compare on a file with the same columns.")] = None,
    example: Annotated[
        str | None, option(metavar="TEXT", help="What the page of --web opens with.")
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the answers with torch's, on the test set.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Write a page that runs in a browser instead.")
    ] = False,
    allow: options.Allow = None,
) -> None:
    """Write a run as ONNX graphs, for the torch-free package sixjars-runtime, or as a web page."""
    if web:
        if check or data is not None or precision != "32" or whole is not None or setting:
            raise DataError(
                "--web writes a page of its own; "
                "leave --check, --data, --precision, --whole and --set out."
            )
        from sixjars.serving.web import export_web

        page = export_web(run, out, example)
        serving = f"python -m http.server -d {quote(str(page))}"
        note(f"wrote {page}; serve it: {serving}; or open index.html, which asks for the model")
        return
    if example is not None:
        raise DataError("--example is what a page opens with; say --web too.")
    from sixjars.serving.export.files import export as export_run

    options = _search(setting or []) | {"whole": whole, "check": check, "data": data}
    exported = export_run(run, out, precision=precision, allow=allow or [], **options)
    folder = exported.folder
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    use = f"sixjars_runtime.load({str(folder)!r}).predict(INPUT)"
    if whole is not None:
        use = f"{folder / 'whole.onnx'} in any ONNX runtime, as {folder / 'README.md'} says"
    note(f"wrote {folder} ({size:,} bytes); use it: {use}")
    if exported.agreement is not None:
        typer.echo(str(exported.agreement))


def _search(setting: list[str]) -> dict[str, Any]:
    """Settings of search as keyword arguments; refuse others."""
    from sixjars.recipe.files import overridden
    from sixjars.recipe.sections import SearchSettings

    given = overridden({}, setting)
    known = SearchSettings.model_fields
    if faults := [unknown("search: key", key, known) for key in given if key not in known]:
        raise RecipeError(faults, "the command line")
    return given


SERVER = ServerSettings()


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Folders or packed runs; NAME=RUN names one."),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; another needs --token.")
    ] = SERVER.host,
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = SERVER.port,
    token: Annotated[
        str | None, option(help="What requests must carry.", envvar="SIXJARS_TOKEN")
    ] = SERVER.token,
    batch: Annotated[
        int, typer.Option(help="Most inputs that are computed together.")
    ] = SERVER.batch,
    wait_ms: Annotated[
        float, typer.Option(help="How long a batch waits for others.")
    ] = SERVER.wait_ms,
    queue: Annotated[int, typer.Option(help="Most inputs that wait; then 503.")] = SERVER.queue,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for a request; then 504.")
    ] = SERVER.time_limit,
    max_inputs: Annotated[int, typer.Option(help="Most inputs of a request.")] = SERVER.max_inputs,
    max_text: Annotated[int, typer.Option(help="Most characters of an input.")] = SERVER.max_text,
    max_upload_mb: Annotated[
        int, typer.Option(help="Most megabytes of uploaded files.")
    ] = SERVER.max_upload_mb,
    max_search: Annotated[
        int, typer.Option(help="The widest beam, and the most outputs.")
    ] = SERVER.max_search,
    device: options.Device = "auto",
    precision: options.Precision = "32",
    allow: options.Allow = None,
) -> None:
    """Answer requests over HTTP, and show a live page: texts or files in, outputs with attention
    out.
    """  # noqa: D205 - one sentence of --help
    from sixjars.serving.server.run import serve as serve_them

    serve_them(
        runs,
        device=device,
        precision=precision,
        allow=allow or [],
        ready=lambda address: note(f"serving at {address} (Ctrl-C ends)"),
        host=host,
        port=port,
        token=token,
        batch=batch,
        wait_ms=wait_ms,
        queue=queue,
        time_limit=time_limit,
        max_inputs=max_inputs,
        max_text=max_text,
        max_upload_mb=max_upload_mb,
        max_search=max_search,
    )
