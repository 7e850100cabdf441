"""What a server refuses: strangers, too much, too slow, and files that are none. Nothing that it accepts is lost."""

import asyncio
import io
import json
import os
import shutil
import signal
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

import sixjars
from sixjars.errors import DataError, RequestError
from sixjars.serving.client import Answer, Client
from sixjars.serving.server.batcher import Batcher, QueueClosed, QueueFull, WaitingRequest
from sixjars.serving.server.guard import RequestGuard
from sixjars.serving.server.metrics import ServerMetrics
from sixjars.serving.server.run import named
from sixjars.serving.server.settings import ServerSettings
from tests.unit import conftest
from tests.unit.serving import Server, a_request, answered, form, serving
from tests.unit.test_visual_commands import recipe as visual_recipe

PREDICT = {"inputs": ["ghar"]}


@pytest.fixture(scope="module")
def guarded(run: Path) -> Iterator[Server]:
    """With a token, and small limits."""
    with serving({"hi": run}, token="s3cret", max_upload_mb=1, time_limit=1.0) as made:
        yield made


def allowed(**headers: str) -> dict[str, str]:
    return {"authorization": "Bearer s3cret", **headers}


def test_a_token_is_needed(guarded: Server) -> None:
    for given in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "s3cret"},
        {"authorization": "Basic s3cret"},
    ):
        status, headers, told = guarded.ask("/v1/predict", PREDICT, **given)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert told["detail"] == "send the token of this server: Authorization: Bearer TOKEN."
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        assert guarded.ask(path)[0] == 401
    for path in ("/", "/healthz", "/readyz"):
        assert guarded.ask(path)[0] == 200
    assert guarded.ask("/v1/predict", PREDICT, **allowed())[0] == 200
    with Client(guarded.address, token="s3cret") as client:
        assert client.predict(["ghar"])[0][0].ok


def test_pages_of_others_cannot_write(guarded: Server) -> None:
    own = f"http://127.0.0.1:{guarded.port}"
    assert guarded.ask("/v1/predict", PREDICT, **allowed(origin=own))[0] == 200
    for other in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[bad"):
        status, headers, told = guarded.ask("/v1/predict", PREDICT, **allowed(origin=other))
        assert (status, told["detail"]) == (
            403,
            "a page of another origin may not send requests to this server.",
        )
        assert "access-control-allow-origin" not in headers
    assert guarded.ask("/v1/predict", PREDICT, **allowed(sec_fetch_site="cross-site"))[0] == 403
    assert guarded.ask("/v1/reload", {}, **allowed(origin="http://evil.example"))[0] == 403


def test_a_name_that_somebody_made_point_here_is_refused() -> None:
    guard = RequestGuard(None, ServerSettings(), ServerMetrics())  # type: ignore[arg-type]
    for host in ("localhost", "127.0.0.1:8000", "[::1]:80"):
        assert guard.refused("GET", "/healthz", {"host": host}) is None
    sentence = "this server answers on loopback only: ask for http://127.0.0.1 or http://localhost."
    assert guard.refused("GET", "/healthz", {"host": "evil.org:80"}) == (403, sentence)
    open_to_all = RequestGuard(None, ServerSettings(host="0.0.0.0", token="x"), ServerMetrics())  # type: ignore[arg-type]
    assert open_to_all.refused("GET", "/healthz", {"host": "my.server"}) is None
    open_to_all.in_progress = 2000
    told = open_to_all.refused(
        "POST", "/v1/predict", {"host": "my.server", "authorization": "Bearer x"}
    )
    assert told == (503, "too many requests at once; try again later.")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"host": "0.0.0.0"},
            "others can reach 0.0.0.0, so requests need a token: add --token, or listen on 127.",
        ),
        ({"host": "my.server"}, "others can reach my.server, so requests need a token"),
        (
            {"token": ""},
            "the token must be made of ASCII letters, digits and signs, without spaces.",
        ),
        ({"token": "a b"}, "the token must be made of ASCII letters"),
        ({"port": 70000}, "port must lie between 0 and 65535, but is 70000."),
        ({"batch": 0}, "batch must be at least 1, but is 0."),
        (
            {"time_limit": 0.0},
            "time_limit must lie between 0 seconds and a day, and wait_ms between 0 and 1000.",
        ),
        ({"queue": 5}, "queue is 5, but one request may have 256 inputs (max_inputs)."),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        ServerSettings(**settings)
    assert str(caught.value).startswith(sentence)


def test_what_serve_itself_refuses(call: conftest.Call, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    assert call("serve", run, tmp_path / "run").sentence.startswith(
        "two runs are called run; give one another name: "
    )
    assert (
        call("serve", tmp_path / "no").sentence == f"run folder {tmp_path / 'no'} does not exist."
    )
    assert named([run, f"other={run}"]) == {"run": run, "other": run}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = call("serve", run, "--port", port).sentence
    assert (
        told
        == f"cannot listen on 127.0.0.1, port {port}: Address already in use; choose another --port or --host."
    )
    with pytest.raises(DataError, match=r"^serve: .*unexpected keyword argument 'prot'\.$"):
        sixjars.serve(run, prot=1)


def test_too_large_a_request_is_refused(guarded: Server) -> None:
    sentence = "the request is larger than the {} megabytes that this server allows; send less."
    status, _, told = guarded.ask("/v1/predict", b" " * (5 << 20), **allowed())
    assert (status, told["detail"]) == (413, sentence.format(4))
    body, kind = form({"big.bin": bytes(6 << 20)})
    assert guarded.ask("/v1/predict", body, **allowed(content_type=kind))[2][
        "detail"
    ] == sentence.format(5)
    # Nobody said how large it would be.
    head = f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer s3cret\r\nContent-Type: {kind}\r\n"
    chunked = f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    chunked += f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    status, _, told = answered(guarded.port, chunked)
    assert (status, told["detail"]) == (413, sentence.format(5))


def test_a_request_that_arrives_too_slowly_is_refused(guarded: Server) -> None:
    head = "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer s3cret\r\nConnection: close\r\n"
    status, _, told = answered(
        guarded.port,
        f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode(),
    )
    assert (status, told["detail"]) == (408, "the request took longer than 1 seconds to arrive.")


def slowed(server: Server, release: Event, begun: Event | None = None) -> Callable[[], None]:
    """Let the first run compute only when it is released, and tell when it has begun; returns what undoes it."""
    served = server.served[0]
    quick = served._answers

    def slow(*given: Any) -> Any:
        if begun is not None:
            begun.set()
        release.wait(20)
        return quick(*given)

    served._answers = slow  # type: ignore[method-assign, assignment]
    return lambda: setattr(served, "_answers", quick)


def test_too_slow_an_answer_is_504(guarded: Server) -> None:
    release = Event()
    undo = slowed(guarded, release)
    try:
        status, _, told = guarded.ask("/v1/predict", PREDICT, **allowed())
        assert (status, told["detail"]) == (504, "this took longer than 1 seconds.")
    finally:
        release.set()
        undo()
    assert guarded.ask("/v1/predict", PREDICT, **allowed())[0] == 200


def test_a_full_queue_is_503_and_what_was_accepted_is_answered_at_the_end(run: Path) -> None:
    with serving({"hi": run}, queue=4, max_inputs=4, batch=2) as server:
        release, begun, found = Event(), Event(), list[int]()
        slowed(server, release, begun)
        batcher = server.running[0].batchers["hi"]
        threads = [
            Thread(target=lambda: found.append(server.ask("/v1/predict", PREDICT)[0]), daemon=True)
            for _ in range(5)
        ]
        for number, thread in enumerate(threads):  # the first is computed, the others wait
            thread.start()
            assert begun.wait(20)
            wait_until(partial(lambda wanted: batcher.waiting == wanted, number))
        status, headers, told = server.ask("/v1/predict", PREDICT)
        assert (status, headers["retry-after"]) == (503, "1")
        assert told["detail"] == "too many inputs wait; try again later."
        with (
            Client(server.address, tries=1) as client,
            pytest.raises(RequestError, match="too many inputs wait"),
        ):
            client.predict(["a"])
        server.server.should_exit = True
        sleep(0.1)
        release.set()
        for thread in threads:
            thread.join(20)
        assert found == [200] * 5


def wait_until(true: Callable[[], bool]) -> None:
    until = monotonic() + 20
    while not true() and monotonic() < until:
        sleep(0.005)
    assert true()


def test_answers_tell_that_the_server_ends(guarded: Server) -> None:
    """So that nobody sends another request on a connection that will be closed."""
    before, guarded.app.ending = guarded.app.ending, lambda: True
    try:
        status, headers, _ = answered(
            guarded.port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
    finally:
        guarded.app.ending = before
    assert (status, headers["connection"]) == (200, "close")


def test_a_reload_loses_nothing(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    with serving({"hi": folder}) as server:
        stop, found = Event(), list[Answer]()

        def ask() -> None:
            with Client(server.address) as client:
                while not stop.is_set():
                    found.extend(client.predict(["ghar"])[0])

        threads = [Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        with Client(server.address) as client:
            before = server.served[0].predictor
            assert client.reload() == client.reload("hi") == ["hi"]
            assert server.served[0].predictor is not before
            (folder / "model.safetensors").write_bytes(b"damaged")
            kept = server.served[0].predictor
            with pytest.raises(RequestError, match=r"^hi stays as it was: ") as caught:
                client.reload()
            assert caught.value.status == 409
            assert server.served[0].predictor is kept
            with pytest.raises(RequestError, match="there is no model 'x'"):
                client.reload("x")
        stop.set()
        for thread in threads:
            thread.join()
        assert len(found) > 4
        assert len({one.text for one in found}) == 1


def test_one_request_that_fails_does_not_spoil_its_batch(run: Path) -> None:
    with serving({"hi": run}) as server:
        quick = server.served[0]._answers

        def sometimes(asked: Any, *given: Any) -> Any:
            if any("bad" in own.request.inputs for own in asked):
                raise ZeroDivisionError
            return quick(asked, *given)

        server.served[0]._answers = sometimes  # type: ignore[method-assign, assignment]
        jobs = [
            WaitingRequest(request, Future())  # type: ignore[arg-type]
            for request in _asked(server, ["ghar", "bad", "pani"])
        ]
        results = [result for _, result in server.served[0].work(jobs, lambda: None)]
        assert [isinstance(result, Exception) for result in results] == [False, True, False]


def _asked(server: Server, texts: list[str]) -> list[Any]:
    from sixjars.serving.server.messages import PredictRequest
    from sixjars.serving.server.requests import CheckedRequest

    how = server.served[0].settings_of(PredictRequest())
    return [CheckedRequest([text], how) for text in texts]


def test_batches_hold_what_is_asked_the_same_way() -> None:
    batches: list[list[Any]] = []
    first, go = Event(), Event()

    def work(jobs: Any, between: Any) -> Any:
        batches.append([job.request.inputs for job in jobs])
        first.set()
        go.wait(10)
        return [(job, len(jobs)) for job in jobs]

    async def main() -> None:
        settings = ServerSettings(batch=4, queue=8, max_inputs=4)
        batcher = Batcher(work, settings, lambda jobs, seconds: None)
        waiting = [asyncio.create_task(batcher.answer(a_request(["a"], "x")))]
        await asyncio.to_thread(first.wait, 10)
        for inputs, how in (
            (["b"], "x"),
            (["c"], "y"),
            (["d", "e"], "x"),
            (["f", "g"], "x"),
            (["h"], "x"),
            (["i"], "y"),
        ):
            waiting.append(asyncio.create_task(batcher.answer(a_request(inputs, how))))
        await asyncio.sleep(0)
        assert batcher.waiting == 8
        with pytest.raises(QueueFull):
            await batcher.answer(a_request(["j"], "x"))
        waiting[-1].cancel()  # nobody waits for it any longer
        await asyncio.sleep(0)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(QueueClosed):
            await batcher.answer(a_request(["k"], "x"))
        go.set()
        await closing
        await asyncio.gather(*waiting[:-1])

    asyncio.run(main())
    assert batches == [[["a"]], [["b"], ["d", "e"], ["h"]], [["c"]], [["f", "g"]]]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Captions, and answers to questions."""
    folder = tmp_path_factory.mktemp("images")
    made = {}
    for task in ("image_captioning", "image_question_answering"):
        values = visual_recipe(task, sample={"size": 30, "valid": 4, "test": 8})
        (folder / f"{task}.yaml").write_text(yaml.safe_dump(values))
        made[task] = sixjars.train(folder / f"{task}.yaml", out=folder / task).folder
    with serving(made) as server:
        yield server


def png(width: int = 24, height: int = 24) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((height, width, 3), 90, np.uint8)).save(stream, "png")
    return stream.getvalue()


def bomb() -> bytes:
    """A small file of very many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


def test_uploads_are_inputs_and_errors_name_them(images: Server) -> None:
    files = {"cat.png": png(), "no.png": b"hello", "../../bomb.png": bomb(), "empty.jpg": b""}
    body, kind = form(files, {"model": "image_captioning"})
    status, _, found = images.ask("/v1/predict", body, content_type=kind)
    rows = found["predictions"]
    assert status == 200
    assert [bool(row["outputs"]) for row in rows] == [True, False, False, False]
    assert rows[1]["error"].startswith(
        "input 2: the image: no.png is not an image, or damaged from its first bytes; "
    )
    assert rows[2]["error"].startswith("input 3: the image: bomb.png has ")
    assert rows[3]["error"] == "input 4: the image: empty.jpg is empty."
    assert "sixjars-" not in json.dumps(found)
    assert "on_bad_row" not in json.dumps(found)


def test_files_of_this_machine_cannot_be_named(images: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png())
    for one in (
        str(secret),
        {"image": str(secret)},
        {"image": "up.png", "file_name": str(secret)},
        {"image": ["x"]},
    ):
        body, kind = form({"up.png": png()}, {"model": "image_captioning", "inputs": [one]})
        [row] = images.ask("/v1/predict", body, content_type=kind)[2]["predictions"]
        assert row["outputs"] == []
        [row] = images.ask("/v1/predict", {"model": "image_captioning", "inputs": [one]})[2][
            "predictions"
        ]
        assert row["outputs"] == []
    assert row["error"] == "input 1: the image ['x'] is no uploaded file; no file was uploaded."


def test_files_beside_texts_are_named(images: Server, tmp_path: Path) -> None:
    request = {
        "model": "image_question_answering",
        "inputs": [
            {"image": "a.png", "question": "what is it"},
            {"image": "b.png", "question": "?"},
            {"image": "a.png"},
        ],
        "view": True,
    }
    body, kind = form({"a.png": png()}, request)
    rows = images.ask("/v1/predict", body, content_type=kind)[2]["predictions"]
    assert rows[0]["outputs"][0]["text"]
    assert "a.png" in rows[0]["html"]
    assert (
        rows[1]["error"] == "input 2: the image 'b.png' is no uploaded file; uploaded are: a.png."
    )
    assert rows[2]["error"] == "input 3: must name image and question."
    (tmp_path / "x.png").write_bytes(png())
    with Client(images.address) as client:
        [[answer]] = client.predict(
            [{"image": tmp_path / "x.png", "question": "what is it"}],
            model="image_question_answering",
        )
        assert answer.text == rows[0]["outputs"][0]["text"]
        *tokens, last = client.stream(tmp_path / "x.png", model="image_captioning")
    assert tokens
    assert isinstance(last, Answer)
    status, _, told = images.ask(
        "/v1/predict", b"--x\r\nnonsense", content_type="multipart/form-data; boundary=x"
    )
    assert status in (400, 422)
    assert told["detail"]


def test_files_are_not_decoded_for_nobody(images: Server, tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(png())
    run, calls = images.served[0].predictor, list[int]()

    def check() -> None:
        calls.append(1)
        if len(calls) == 3:  # before the batch, and before its first file
            raise InterruptedError

    path_2 = path.with_name("dog.png")
    path_2.write_bytes(png(25))
    requests = [run.prepare(str(one)) for one in (path, path_2)]
    with pytest.raises(InterruptedError):
        run.predictions(requests, run.recipe.evaluation.search, details=False, check=check)


def test_forms_of_other_parts_are_refused(images: Server) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="'
    for part, sentence in (
        (
            b'reqest"\r\n\r\n{}',
            "a form has the parts 'request' and 'files', but this has 'reqest'.",
        ),
        (b'files"\r\n\r\ntext', "the part 'files' of the form must be files, but is a text."),
        (
            b'request"; filename="x"\r\n\r\n{}',
            "the part 'request' of the form must be JSON, but is a file.",
        ),
    ):
        body = head + part + b"\r\n--x--\r\n"
        status, _, told = images.ask(
            "/v1/predict", body, content_type="multipart/form-data; boundary=x"
        )
        assert (status, told["detail"]) == (422, sentence)


def test_the_command_answers_and_ends_in_order(server: conftest.Server, run: Path) -> None:
    """SIGHUP reads the run again, SIGTERM ends; the exit code is 0."""
    port = conftest.free_port()
    process = server.start("serve", run, "--port", port, env={"SIXJARS_TOKEN": "t0ken"})
    with Client(f"http://127.0.0.1:{port}", token="t0ken") as client:
        wait_until(lambda: process.err.exists() and "serving at" in process.err.read_text())
        assert f"serving at http://127.0.0.1:{port}/ (Ctrl-C ends)" in process.err.read_text()
        assert client.predict(["ghar"])[0][0].ok
        process.kill(signal.SIGHUP)
        wait_until(lambda: "read again: run" in process.err.read_text())
        assert client.predict(["ghar"])[0][0].ok
    os.kill(process.number, signal.SIGTERM)
    said = process.wait()
    assert said.code == 0, said
