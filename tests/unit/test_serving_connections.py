"""Connections that ask for nothing are closed, and there are never more than some."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest
import uvicorn

from sixjars.serving.server.connections import bounded, most_of
from sixjars.serving.server.settings import ServerSettings

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def listening(most: int, head: float, release: Event) -> Iterator[int]:
    """The port of a server that answers when it is released."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(release.wait, 20)
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app, http=bounded(most, head), log_config=None, lifespan="off", timeout_keep_alive=1
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            release.set()
            server.should_exit = True
            thread.join(20)


def connected(port: int, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    made.sendall(sent)
    return made


def end_of(connection: socket.socket) -> tuple[bytes, float]:
    """What still comes, and the seconds until its end."""
    began, whole = monotonic(), b""
    try:
        while some := connection.recv(1 << 16):
            whole += some
    except ConnectionResetError:
        pass
    return whole, monotonic() - began


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHos", GET + b"GET / HT"])
def test_what_asks_for_nothing_is_closed(sent: bytes) -> None:
    release = Event()
    release.set()
    with listening(9, 0.2, release) as port, connected(port, sent) as connection:
        whole, seconds = end_of(connection)
        assert whole.endswith(b"ok") == sent.startswith(GET)
        assert 0.1 < seconds < (8 if sent.startswith(GET) else 4)


def test_a_slow_head_is_not_prolonged_by_more_of_it() -> None:
    with listening(9, 0.3, Event()) as port, connected(port, GET[:20]) as connection:
        for letter in b"abcd":
            sleep(0.05)
            connection.sendall(bytes([letter]))
        assert end_of(connection)[1] < 4


def test_a_slow_answer_keeps_its_connection() -> None:
    release = Event()
    with listening(9, 0.1, release) as port, connected(port, GET) as connection:
        sleep(0.4)
        release.set()
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_for_one_too_many_the_longest_idle_goes() -> None:
    release = Event()
    with listening(2, 20, release) as port, connected(port) as idle, connected(port, GET) as asking:
        with connected(port, GET) as third:
            assert end_of(idle)[1] < 4
            with connected(port, GET) as refused:
                head, _, body = end_of(refused)[0].partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1" in head
            assert json.loads(body) == {"detail": "too many connections; try again later."}
            release.set()
            for one in (asking, third):
                assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_many_idle_connections_keep_nobody_out() -> None:
    release = Event()
    release.set()
    with listening(20, 20, release) as port, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(port))
        with connected(port, GET) as connection:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_there_are_as_many_as_files_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    some = [(1024, 896), (256, 128), (100, 50), (10_000, 2176), (resource.RLIM_INFINITY, 2176)]
    for files, most in some:
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert most_of(ServerSettings()) == most
