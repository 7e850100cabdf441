"""The client of a server, where an answer is left, breaks off or comes later."""

import json
import socket
from pathlib import Path
from threading import Thread

import pytest

import sixjars
from sixjars.errors import RequestError
from sixjars.serving.client import Answer, Client, Token, _body
from tests.unit.conftest import Recipe
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
    busy = b"HTTP/1.1 503 x\r\nRetry-After: Mon, 16 Nov 2026\r\nContent-Length: 0\r\n\r\n"
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
        with pytest.raises(RequestError, match=f"^{address} does not answer: IncompleteRead"):
            Client(address).models()
        thread.join(20)


def test_a_client_renames_files_that_a_form_cannot_name(tmp_path: Path) -> None:
    path = tmp_path / 'a"b\n.png'
    path.write_bytes(b"x")
    body, _ = _body([path], {})
    assert b'filename="a_b_.png"' in body
    assert json.dumps({"inputs": ["a_b_.png"]}).encode() in body


@pytest.mark.parametrize(
    ("name", "reason"), [("nope.png", "No such file or directory"), ("folder", "Is a directory")]
)
def test_a_file_that_cannot_be_read_is_one_sentence(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(RequestError) as caught:
        Client("http://127.0.0.1:1").predict([tmp_path / name])
    assert str(caught.value) == f"{tmp_path / name} cannot be read: {reason}."


def test_one_input_may_be_given_alone(run: Path) -> None:
    with serving({"hi": run}) as server, Client(server.address) as client:
        wanted = client.predict(["ghar"])
        assert client.predict("ghar") == client.predict({"source": "ghar"}) == wanted
        assert len(wanted) == 1


def test_an_answer_tells_that_its_input_was_cut_or_is_unknown(run: Path) -> None:
    """In the words of `predict`."""
    with serving({"hi": run}) as server, Client(server.address) as client:
        [[plain], [cut], [unknown]] = client.predict(["ghar", "a" * 500, "ЖЖ"])
        [*_, last] = client.stream("ЖЖ")
    assert plain.notes == ()
    [note] = cut.notes
    assert note == "the input was cut, because it is longer than the run reads (max_length)."
    poor = "100 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    assert unknown.notes == (poor,)
    assert isinstance(last, Answer)
    assert last.notes == (poor,)


def test_a_stream_is_greedy_where_the_run_itself_searches_with_a_beam(
    recipe: Recipe, tmp_path: Path
) -> None:
    beam = {"search": {"kind": "beam", "width": 3, "nbest": 2}}
    made = recipe(learning={"epochs": 1}, evaluation=beam)
    run = sixjars.train(made, out=tmp_path / "run").folder
    with serving({"hi": run}) as server, Client(server.address) as client:
        [*_, last] = client.stream("ghar")
        [[greedy]] = client.predict(["ghar"], kind="greedy", nbest=1)
        assert last.text == greedy.text
        told = "^a stream has one output, of greedy search or sampling; ask"
        for own in ({"kind": "beam"}, {"width": 2}, {"kind": "beam", "nbest": 1}):
            with pytest.raises(RequestError, match=told):
                next(client.stream("ghar", **own))
