"""The command that answers requests over HTTP: `serve`."""

from typing import Annotated

import typer

from sixjars.cli.options import AllowOption, DeviceOption, note, option
from sixjars.cli.predict import PrecisionOption
from sixjars.serving.server.settings import ServerSettings

USUAL = ServerSettings()


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Folders or packed runs; NAME=RUN names one."),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; another needs --token.")
    ] = USUAL.host,
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = USUAL.port,
    token: Annotated[
        str | None, option(help="What requests must carry.", envvar="SIXJARS_TOKEN")
    ] = USUAL.token,
    batch: Annotated[
        int, typer.Option(help="Most inputs that are computed together.")
    ] = USUAL.batch,
    wait_ms: Annotated[
        float, typer.Option(help="How long a batch waits for others.")
    ] = USUAL.wait_ms,
    queue: Annotated[int, typer.Option(help="Most inputs that wait; then 503.")] = USUAL.queue,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for a request; then 504.")
    ] = USUAL.time_limit,
    max_inputs: Annotated[int, typer.Option(help="Most inputs of a request.")] = USUAL.max_inputs,
    max_text: Annotated[int, typer.Option(help="Most characters of an input.")] = USUAL.max_text,
    max_upload_mb: Annotated[
        int, typer.Option(help="Most megabytes of uploaded files.")
    ] = USUAL.max_upload_mb,
    max_search: Annotated[
        int, typer.Option(help="The widest beam, and the most outputs.")
    ] = USUAL.max_search,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "32",
    allow: AllowOption = None,
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
