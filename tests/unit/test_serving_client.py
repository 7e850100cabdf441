"""The client of a server, where an answer is left, breaks off or comes later."""

import json
import socket
from pathlib import Path
from threading import Thread

import pytest

from sixjars.errors import RequestError
from sixjars.serving.client import Client, Token, _body
from tests.unit.serving import serving


def test_a_stream_can_be_left_and_others_asked_meanwhile(run: Path) -> None:
    with serving({"hi": run}) as server, Client(server.address) as client:
        steps = client.stream("namaste")
        assert isinstance(next(steps), Token)
        assert client.predict(["ghar"])[0][0].ok
        steps.close()  # type: ignore[attr-defined]
        assert client.predict(["ghar"])[0][0].ok


def test_a_client_tells_of_answers_that_break_off() -> None:
    """And comes again after a second where it cannot read when."""
    busy = b"HTTP/1.1 503 x\r\nRetry-After: Mon, 16 Nov 2026 10:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
    half = b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"models"'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                for told in (busy, half):
                    connection.recv(1 << 16)
                    connection.sendall(told)

        thread = Thread(target=answer)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with (
            Client(address) as client,
            pytest.raises(RequestError, match=f"^{address} does not answer: IncompleteRead"),
        ):
            client.models()
        thread.join(20)


def test_a_client_renames_files_that_a_form_cannot_name(tmp_path: Path) -> None:
    path = tmp_path / 'a"b\n.png'
    path.write_bytes(b"x")
    body, _ = _body([path], {})
    assert b'filename="a_b_.png"' in body
    assert json.dumps({"inputs": ["a_b_.png"]}).encode() in body
