"""What a server refuses: strangers, too much, too slow, and files that are none. Nothing that it accepts is lost."""

import asyncio
import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest
import yaml
from PIL import Image

import sixjars
from sixjars.errors import DataError, RequestError
from sixjars.serving.client import Answer, Client
from sixjars.serving.server.batcher import Batcher, QueueClosed, QueueFull, WaitingRequest
from sixjars.serving.server.guard import RequestGuard
from sixjars.serving.server.messages import PredictRequest
from sixjars.serving.server.metrics import ServerMetrics
from sixjars.serving.server.requests import CheckedRequest
from sixjars.serving.server.run import named
from sixjars.serving.server.settings import ServerSettings
from tests.unit import conftest
from tests.unit.serving import Server, a_request, answered, form, serving
from tests.unit.test_bad_images import headed, saved
from tests.unit.test_visual_commands import recipe as visual_recipe

PREDICT = {"inputs": ["ghar"]}
HEAD = (
    "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer s3cret\r\n"
    "Connection: close\r\n"
)


@pytest.fixture(scope="module")
def guarded(run: Path) -> Iterator[Server]:
    """With a token, and small limits."""
    with serving({"hi": run}, token="s3cret", max_upload_mb=1, time_limit=1.0) as made:
        yield made


def allowed(**headers: str) -> dict[str, str]:
    return {"authorization": "Bearer s3cret", **headers}


def test_a_token_is_needed(guarded: Server) -> None:
    for sent in ("", "Bearer wrong", "s3cret", "Basic s3cret"):
        given = {"authorization": sent} if sent else {}
        status, headers, told = guarded.ask("/v1/predict", PREDICT, **given)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert told["detail"] == "send the token of this server: Authorization: Bearer TOKEN."
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        assert guarded.ask(path)[0] == 401
    for path in ("/", "/healthz", "/readyz"):
        assert guarded.ask(path)[0] == 200
    assert guarded.predictions(PREDICT, **allowed())
    with Client(guarded.address, token="s3cret") as client:
        assert client.predict(["ghar"])[0][0].ok


def test_pages_of_others_cannot_write(guarded: Server) -> None:
    assert guarded.predictions(PREDICT, **allowed(origin=f"http://127.0.0.1:{guarded.port}"))
    refused = (403, "a page of another origin may not send requests to this server.")
    for other in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[bad"):
        status, headers, told = guarded.ask("/v1/predict", PREDICT, **allowed(origin=other))
        assert (status, told["detail"]) == refused
        assert "access-control-allow-origin" not in headers
    assert (
        guarded.refused("/v1/predict", PREDICT, **allowed(sec_fetch_site="cross-site")) == refused
    )
    assert guarded.refused("/v1/reload", {}, **allowed(origin="http://evil.example")) == refused


def test_a_name_that_somebody_made_point_here_is_refused() -> None:
    guard = RequestGuard(None, ServerSettings(), ServerMetrics())  # type: ignore[arg-type]
    for host in ("localhost", "127.0.0.1:8000", "[::1]:80"):
        assert guard.refused("GET", "/healthz", {"host": host}) is None
    sentence = "this server answers on loopback only: ask for http://127.0.0.1 or http://localhost."
    assert guard.refused("GET", "/healthz", {"host": "evil.org:80"}) == (403, sentence)
    open_to_all = RequestGuard(None, ServerSettings(host="0.0.0.0", token="x"), ServerMetrics())  # type: ignore[arg-type]
    assert open_to_all.refused("GET", "/healthz", {"host": "my.server"}) is None
    open_to_all.in_progress = 2000
    headers = {"host": "my.server", "authorization": "Bearer x"}
    told = open_to_all.refused("POST", "/v1/predict", headers)
    assert told == (503, "too many requests at once; try again later.")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"host": "0.0.0.0"},
            "others can reach 0.0.0.0, so requests need a token: add --token, or",
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
            "time_limit must lie between 0 seconds and a day, and wait_ms between",
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
    told = call("serve", run, tmp_path / "run").sentence
    assert told.startswith("two runs are called run; give one another name: ")
    missing = tmp_path / "no"
    assert call("serve", missing).sentence == f"run folder {missing} does not exist."
    assert named([run, f"other={run}"]) == {"run": run, "other": run}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = call("serve", run, "--port", port).sentence
    where = f"cannot listen on 127.0.0.1, port {port}"
    assert told == f"{where}: Address already in use; choose another --port or --host."
    with pytest.raises(DataError, match=r"^serve: .*unexpected keyword argument 'prot'\.$"):
        sixjars.serve(run, prot=1)


def test_too_large_a_request_is_refused(guarded: Server) -> None:
    small, large = (
        (
            413,
            f"the request is larger than the {most} megabytes that this server allows; send less.",
        )
        for most in (4, 5)
    )
    assert guarded.refused("/v1/predict", b" " * (5 << 20), **allowed()) == small
    body, kind = form({"big.bin": bytes(6 << 20)})
    assert guarded.refused("/v1/predict", body, **allowed(content_type=kind)) == large
    # Nobody said how large it would be.
    chunked = f"{HEAD}Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunked += f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    status, _, told = answered(guarded.port, chunked)
    assert (status, told["detail"]) == large


def test_a_request_that_arrives_too_slowly_is_refused(guarded: Server) -> None:
    sent = f"{HEAD}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode()
    status, _, told = answered(guarded.port, sent)
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
        told = guarded.refused("/v1/predict", PREDICT, **allowed())
        assert told == (504, "this took longer than 1 seconds.")
    finally:
        release.set()
        undo()
    assert guarded.predictions(PREDICT, **allowed())


def test_a_full_queue_is_503_and_what_was_accepted_is_answered_at_the_end(run: Path) -> None:
    with (
        serving({"hi": run}, queue=4, max_inputs=4, batch=2) as server,
        ThreadPoolExecutor(5) as pool,
    ):
        release, begun = Event(), Event()
        slowed(server, release, begun)
        batcher, asked = server.running[0].batchers["hi"], list[Any]()
        for number in range(5):  # the first is computed, the others wait
            asked.append(pool.submit(server.ask, "/v1/predict", PREDICT))
            assert begun.wait(20)
            wait_until(partial(lambda wanted: batcher.waiting == wanted, number))
        status, headers, told = server.ask("/v1/predict", PREDICT)
        assert (status, headers["retry-after"]) == (503, "1")
        assert told["detail"] == "too many inputs wait; try again later."
        with Client(server.address, tries=1) as client:
            with pytest.raises(RequestError, match="too many inputs wait"):
                client.predict(["a"])
        server.server.should_exit = True
        sleep(0.1)
        release.set()
        assert [one.result(20)[0] for one in asked] == [200] * 5


def wait_until(true: Callable[[], bool]) -> None:
    until = monotonic() + 20
    while not true() and monotonic() < until:
        sleep(0.005)
    assert true()


def test_answers_tell_that_the_server_ends(guarded: Server) -> None:
    """So that nobody sends another request on a connection that will be closed."""
    before, guarded.app.ending = guarded.app.ending, lambda: True
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        status, headers, _ = answered(guarded.port, request)
    finally:
        guarded.app.ending = before
    assert (status, headers["connection"]) == (200, "close")


def test_a_reload_loses_nothing(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    with serving({"hi": folder}) as server, ThreadPoolExecutor(4) as pool:
        stop, found = Event(), list[Answer]()

        def ask() -> None:
            with Client(server.address) as client:
                while not stop.is_set():
                    found.extend(client.predict(["ghar"])[0])

        asking = [pool.submit(ask) for _ in range(4)]
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
        for one in asking:
            one.result()
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
        how = server.served[0].settings_of(PredictRequest())
        requests = [CheckedRequest([text], how) for text in ("ghar", "bad", "pani")]
        jobs = [WaitingRequest(request, Future()) for request in requests]  # type: ignore[arg-type]
        results = [result for _, result in server.served[0].work(jobs, lambda: None)]
        assert [isinstance(result, Exception) for result in results] == [False, True, False]


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
        for letters, how in (
            ("b", "x"),
            ("c", "y"),
            ("de", "x"),
            ("fg", "x"),
            ("h", "x"),
            ("i", "y"),
        ):
            request = a_request([*letters], how)
            waiting.append(asyncio.create_task(batcher.answer(request)))
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
    return saved(Image.new("RGB", (width, height), (90, 90, 90)), "PNG")


def test_uploads_are_inputs_and_errors_name_them(images: Server) -> None:
    files = {
        "cat.png": png(),
        "no.png": b"hello",
        "../../bomb.png": headed(30_000, 30_000),
        "empty.jpg": b"",
    }
    body, kind = form(files, {"model": "image_captioning"})
    rows = images.predictions(body, content_type=kind)
    assert [bool(row["outputs"]) for row in rows] == [True, False, False, False]
    no_image = "input 2: the image: no.png is not an image, or damaged from its first bytes; "
    assert rows[1]["error"].startswith(no_image)
    assert rows[2]["error"].startswith("input 3: the image: bomb.png has ")
    assert rows[3]["error"] == "input 4: the image: empty.jpg is empty."
    assert "sixjars-" not in json.dumps(rows)
    assert "on_bad_row" not in json.dumps(rows)


def test_files_of_this_machine_cannot_be_named(images: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png())
    other = {"image": "up.png", "file_name": str(secret)}
    for one in (str(secret), {"image": str(secret)}, other, {"image": ["x"]}):
        request = {"model": "image_captioning", "inputs": [one]}
        body, kind = form({"up.png": png()}, request)
        [row] = images.predictions(body, content_type=kind)
        assert row["outputs"] == []
        [row] = images.predictions(request)
        assert row["outputs"] == []
    assert row["error"] == "input 1: the image ['x'] is no uploaded file; no file was uploaded."


def test_files_beside_texts_are_named(images: Server, tmp_path: Path) -> None:
    asked = {"image": "a.png", "question": "what is it"}
    inputs = [asked, {"image": "b.png", "question": "?"}, {"image": "a.png"}]
    request = {"model": "image_question_answering", "inputs": inputs, "view": True}
    body, kind = form({"a.png": png()}, request)
    rows = images.predictions(body, content_type=kind)
    assert rows[0]["outputs"][0]["text"]
    assert "a.png" in rows[0]["html"]
    unknown = "input 2: the image 'b.png' is no uploaded file; uploaded are: a.png."
    assert rows[1]["error"] == unknown
    assert rows[2]["error"] == "input 3: must name image and question."
    path = tmp_path / "x.png"
    path.write_bytes(png())
    with Client(images.address) as client:
        [[answer]] = client.predict([{**asked, "image": path}], model="image_question_answering")
        assert answer.text == rows[0]["outputs"][0]["text"]
        *tokens, last = client.stream(path, model="image_captioning")
    assert tokens
    assert isinstance(last, Answer)
    status, told = images.refused("/v1/predict", b"--x\r\nnonsense", content_type=kind)
    assert status in (400, 422)
    assert told


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
    names = "a form has the parts 'request' and 'files', but this has 'reqest'."
    texts = "the part 'files' of the form must be files, but is a text."
    files = "the part 'request' of the form must be JSON, but is a file."
    for part, sentence in (
        ('reqest"\r\n\r\n{}', names),
        ('files"\r\n\r\ntext', texts),
        ('request"; filename="x"\r\n\r\n{}', files),
    ):
        body = f'--x\r\nContent-Disposition: form-data; name="{part}\r\n--x--\r\n'.encode()
        kind = "multipart/form-data; boundary=x"
        assert images.refused("/v1/predict", body, content_type=kind) == (422, sentence)


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
