"""A server in a thread of the test, and raw requests to it."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, final

import uvicorn

import sixjars
from sixjars.runs.prediction.predictor import Predictor
from sixjars.serving.server.app import Serving, application
from sixjars.serving.server.connections import bounded, most_of
from sixjars.serving.server.served import ServedRun
from sixjars.serving.server.settings import ServerSettings


def a_request(inputs: list[str], settings: str, *, streams: bool = False) -> Any:
    """A request as far as a batcher knows it."""
    return SimpleNamespace(inputs=inputs, settings=settings, streams=streams, most=None)


@final
class Server:
    """Runs behind a port of this machine."""

    def __init__(
        self, runs: Mapping[str, Callable[[], Predictor]], settings: ServerSettings
    ) -> None:
        self.served = [ServedRun(name, opened, settings) for name, opened in runs.items()]
        self.running: list[Serving] = []
        self.app = application(self.served, settings, self.running.append)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self.socket.getsockname()[1])
        quiet: dict[str, Any] = {"log_config": None, "log_level": "critical", "access_log": False}
        http = bounded(most_of(settings))
        config = uvicorn.Config(self.app, http=http, ws="none", lifespan="on", **quiet)
        self.server = uvicorn.Server(config)
        self.app.ending = lambda: self.server.should_exit
        self.thread = Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        until = monotonic() + 30
        while not self.server.started and monotonic() < until:
            sleep(0.01)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        self.socket.close()

    def ask(
        self, path: str, body: Any = None, *, method: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers and what JSON there is; bytes are sent as they are."""
        sent = b"" if body is None else body
        if not isinstance(sent, bytes):
            sent = json.dumps(body).encode()
        own = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json"}
        own["Content-Length"] = str(len(sent))
        own |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        method = method or ("GET" if body is None else "POST")
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in own.items()
        )
        return answered(self.port, head.encode("latin-1") + b"Connection: close\r\n\r\n" + sent)

    def refused(self, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """The status and the sentence of a request that is refused."""
        status, _, told = self.ask(path, body, **headers)
        return status, told["detail"]

    def predictions(self, body: Any, **headers: str) -> list[Any]:
        """The rows of a prediction."""
        status, _, found = self.ask("/v1/predict", body, **headers)
        assert status == 200, found
        rows: list[Any] = found["predictions"]
        return rows


def answered(port: int, request: bytes) -> tuple[int, dict[str, str], Any]:
    """The answer to the bytes of a request."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was read
        whole = b""
        while some := connection.recv(1 << 16):
            whole += some
    head, _, body = whole.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(body.split(b"\r\n")[1::2])
    kind = headers.get("content-type", "")
    told = json.loads(body) if kind == "application/json" else body.decode()
    return int(first.split()[1]), headers, told


@contextmanager
def serving(runs: Mapping[str, Path], **settings: Any) -> Iterator[Server]:
    """A server of some runs."""
    opened = {
        name: lambda folder=folder: sixjars.load(folder, device="cpu")
        for name, folder in runs.items()
    }
    server = Server(opened, ServerSettings(**settings))
    try:
        yield server
    finally:
        server.stop()


def form(files: Mapping[str, bytes], request: Any = None) -> tuple[bytes, str]:
    """The body and the type of a form."""
    about = {'"request"': json.dumps(request or {}).encode()}
    about |= {f'"files"; filename="{name}"': content for name, content in files.items()}
    head = "--x\r\nContent-Disposition: form-data; name="
    parts = [f"{head}{name}\r\n\r\n".encode() + part for name, part in about.items()]
    return b"\r\n".join([*parts, b"--x--\r\n"]), "multipart/form-data; boundary=x"
