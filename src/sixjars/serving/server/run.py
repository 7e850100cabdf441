"""`serve`: read runs, open a socket, and answer requests until the process is told to end."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixjars.kernels.backends import Device, compile_ahead, device_named
from sixjars.kernels.products import Precision
from sixjars.runs.prediction.predictor import Predictor, load
from sixjars.serving.server.settings import ServerSettings
from sixjars_runtime.errors import DataError, need

if TYPE_CHECKING:
    from sixjars.serving.server.app import Serving
    from sixjars.serving.server.guard import RequestGuard

SWITCHING = 0.001
"""Seconds after which the computing thread makes way for the one that reads requests; with Python's
own 0.005 the slowest of a hundred answers takes twice as long."""
BLOCKS = "40m"
"""The blocks of Pillow's memory: those of more than 32 megabytes go back to the system with their
image; smaller ones pile up, to gigabytes after a few very large images."""
BACKLOG = 2048
"""Connections that the system keeps until they are accepted."""


def serve(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    device: Device = "auto",
    precision: Precision = "32",
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
    ready: Callable[[str], None] = lambda address: None,
    **settings: Any,
) -> None:
    """Answer requests for runs until Ctrl-C or SIGTERM, and what was accepted by then.

    A run is a folder or a packed file, and its name is that of the file; `NAME=RUN` gives it
    another. `settings` are those of `ServerSettings`: host, port, token, batch and others. `ready`
    is called with the address. SIGHUP reads the runs again.

    >>> serve([])
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: name at least one run to serve.
    """
    try:
        checked = ServerSettings(**settings)
    except TypeError as error:
        raise DataError(f"serve: {error}.") from None
    places = named([runs] if isinstance(runs, str | os.PathLike) else runs)
    for library in ("fastapi", "prometheus_client", "python_multipart", "uvicorn"):
        need(library, "serve")
    os.environ.setdefault("PILLOW_BLOCK_SIZE", BLOCKS)
    # the response names the fault of a form
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    options: dict[str, Any] = {"device": device, "precision": precision}
    options |= {"allow": tuple(allow), "components": tuple(components)}
    compile_ahead(device_named(device).type)
    with listening(checked) as listener:
        openers = {name: partial(load, place, **options) for name, place in places.items()}
        app = app_of(openers, checked)
        host, port = listener.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        run_until_told(app, listener, checked)


def named(runs: Sequence[str | os.PathLike[str]]) -> dict[str, Path]:
    """The place of each run by its name.

    >>> named(["runs/en-hi", "other=runs/x.sixjars"])
    {'en-hi': PosixPath('runs/en-hi'), 'other': PosixPath('runs/x.sixjars')}
    """
    places: dict[str, Path] = {}
    for run in runs:
        name, equals, place = str(run).partition("=")
        path = Path(place)
        if not equals or Path(run).exists():
            path = Path(run)
            name = path.resolve().name.removesuffix(".sixjars")
        if name in places:
            raise DataError(f"two runs are called {name}; give one another name: NAME={path}.")
        places[name] = path
    if not places:
        raise DataError("name at least one run to serve.")
    return places


def listening(settings: ServerSettings) -> socket.socket:
    """A socket that waits for connections."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        address = settings.host, settings.port
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or error
        place = f"{settings.host}, port {settings.port}"
        message = f"cannot listen on {place}: {reason}; choose another --port or --host."
        raise DataError(message) from None
    # Connections inherit both. A response is two writes, and without this the second may wait 40 ms
    # for the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # a response that nobody reads would be kept for ever
        limit = int(1000 * max(settings.time_limit, 1))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
    return listener


def app_of(runs: Mapping[str, Callable[[], Predictor]], settings: ServerSettings) -> "RequestGuard":
    """The application; a signal SIGHUP reads the runs again."""
    from sixjars.serving.server.app import application
    from sixjars.serving.server.served import ServedRun

    def started(serving: "Serving") -> None:
        loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        def again() -> None:
            task = loop.create_task(_reloaded(serving))
            tasks.add(task)  # or it may be collected before it ends
            task.add_done_callback(tasks.discard)

        # signals are refused in another thread, and on Windows
        with suppress(RuntimeError, ValueError, NotImplementedError, AttributeError):
            loop.add_signal_handler(signal.SIGHUP, again)

    served = [ServedRun(name, opened, settings) for name, opened in runs.items()]
    return application(served, settings, started)


async def _reloaded(serving: "Serving") -> None:
    """Read all runs again; whatever is wrong is logged, and the old ones stay."""
    from fastapi import HTTPException
    from uvicorn.config import logger

    try:
        logger.warning("read again: %s", ", ".join(await serving.reload(None)))
    except HTTPException as error:
        logger.error("%s", error.detail)


def run_until_told(app: "RequestGuard", listener: socket.socket, settings: ServerSettings) -> None:
    """Answer until a signal says to end; a second one ends at once."""
    import uvicorn

    from sixjars.serving.server.connections import bounded, most_of

    config = uvicorn.Config(
        app,
        http=bounded(most_of(settings)),
        ws="none",
        log_config=None,  # its own would close the handlers that others in this process have
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=int(2 * settings.time_limit) + 5,  # to arrive, and to be computed
    )
    server = uvicorn.Server(config)
    app.ending = lambda: server.should_exit
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCHING)
    try:
        with suppress(KeyboardInterrupt):  # raised again by uvicorn after it has ended in order
            server.run(sockets=[listener])
    finally:
        sys.setswitchinterval(before)
