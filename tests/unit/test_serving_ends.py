"""What ends before its end: requests that nobody waits for, senders that go away, runs that are replaced meanwhile."""

import asyncio
import json
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sixjars.serving.server.batcher import Batcher
from sixjars.serving.server.guard import RequestGuard
from sixjars.serving.server.messages import PredictRequest
from sixjars.serving.server.metrics import ServerMetrics
from sixjars.serving.server.run import listening
from sixjars.serving.server.settings import ServerSettings
from tests.unit.serving import Server, a_request, serving
from tests.unit.test_serving_limits import PREDICT, slowed, wait_until

_BEAM = {"kind": "beam", "max_length": 1000, "min_length": 999}
LONG = {"inputs": ["ghar"] * 17, "nbest": 60, "search": _BEAM}
"""Takes longer than the time limit, with as many tokens as a request may ask for."""


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Server]:
    with serving({"hi": run}, time_limit=1.0) as made:
        yield made


def test_what_took_too_long_does_not_hold_up_others(server: Server) -> None:
    assert server.refused("/v1/predict", LONG) == (504, "this took longer than 1 seconds.")
    assert server.predictions(PREDICT)


def test_a_sender_that_goes_away_is_no_fault_of_the_server(server: Server) -> None:
    def seen() -> bool:
        return 'path="/v1/predict",status="400"} 2' in server.ask("/metrics")[2]

    for kind in ("application/json", "multipart/form-data; boundary=x"):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            head = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 50\r\n\r\n"
            connection.sendall(head.encode() + b"--x\r\n")
    wait_until(seen)
    assert 'status="500"' not in server.ask("/metrics")[2]


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/stream"])
def test_what_a_sender_left_is_not_computed(run: Path, path: str) -> None:
    with serving({"hi": run}) as server, ThreadPoolExecutor(1) as pool:
        batcher, release, begun = server.running[0].batchers["hi"], Event(), Event()
        undo = slowed(server, release, begun)
        first = pool.submit(server.ask, "/v1/predict", PREDICT)
        assert begun.wait(20)
        body = json.dumps(PREDICT).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            wait_until(lambda: batcher.waiting == 1)
        wait_until(lambda: all(job.given_up for job in batcher._line))
        undo()
        release.set()
        assert first.result(20)[0] == 200
        assert server.predictions(PREDICT)
        assert 'sixjars_inputs_total{model="hi"} 2.0\n' in server.ask("/metrics")[2]


def test_what_was_given_up_takes_no_room_in_the_line() -> None:
    begun, go = Event(), Event()

    def work(jobs: Any, between: Any) -> Any:
        begun.set()
        go.wait(10)
        return [(job, len(jobs)) for job in jobs]

    async def main() -> None:
        batcher = Batcher(work, ServerSettings(queue=2, max_inputs=2), lambda jobs, seconds: None)
        first = asyncio.create_task(batcher.answer(a_request(["a"], "x")))
        await asyncio.to_thread(begun.wait, 10)
        left = asyncio.create_task(batcher.answer(a_request(["b", "c"], "x")))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        last = asyncio.create_task(batcher.answer(a_request(["d", "e"], "x")))
        await asyncio.sleep(0)
        go.set()
        assert (await first, await last) == (1, 1)
        await batcher.close()

    asyncio.run(main())


def test_a_request_is_answered_by_the_run_that_it_was_checked_for(
    run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    with serving({"hi": tmp_path / "run"}) as server, ThreadPoolExecutor(1) as pool:
        served, release, begun = server.served[0], Event(), Event()
        before = served.predictor
        assert served.settings_of(PredictRequest()).run is before
        slowed(server, release, begun)
        first = pool.submit(server.ask, "/v1/predict", PREDICT)
        assert begun.wait(20)
        served.reload()
        served.predictor.network = None  # type: ignore[assignment]
        release.set()
        assert first.result(20)[0] == 200
        assert server.ask("/v1/predict", PREDICT)[0] == 500


def test_reloads_are_counted_each_by_its_own_outcome(run: Path, tmp_path: Path) -> None:
    for name in ("bad", "good"):
        shutil.copytree(run, tmp_path / name)
    with serving({name: tmp_path / name for name in ("bad", "good")}) as server:

        def broken() -> None:
            raise RuntimeError("the GPU is full")

        server.served[0].reload = broken  # type: ignore[method-assign]
        told = server.refused("/v1/reload", {})
        assert told == (409, "bad stays as it was: RuntimeError: the GPU is full")
        text = server.ask("/metrics")[2]
    assert 'sixjars_reloads_total{model="bad",ok="false"} 1' in text
    assert 'sixjars_reloads_total{model="good",ok="true"} 1' in text


def test_runs_are_read_again_once_at_a_time(run: Path) -> None:
    with serving({"hi": run}) as server, ThreadPoolExecutor(1) as pool:
        release, begun = Event(), Event()

        def slow() -> None:
            begun.set()
            assert release.wait(20)

        server.served[0].reload = slow  # type: ignore[method-assign]
        first = pool.submit(server.ask, "/v1/reload", {})
        assert begun.wait(20)
        again = "runs are being read again already; ask again when that has ended."
        assert server.refused("/v1/reload", {}) == (409, again)
        release.set()
        assert first.result(20)[2] == {"reloaded": ["hi"]}
        assert server.ask("/v1/reload", {})[0] == 200


def test_counters_stay_exact_when_they_are_large() -> None:
    metrics = ServerMetrics()
    metrics.inputs.labels(model="hi").inc(12_345_678)
    assert b'sixjars_inputs_total{model="hi"} 1.2345678e+07\n' in metrics.text()


def test_all_bodies_together_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerSettings, "held_bytes", 1000)
    status, headers, told = server.ask("/v1/predict", {"inputs": ["a" * 2000]})
    assert (status, headers["retry-after"]) == (503, "1")
    assert told["detail"] == "too large requests at once; try again later."
    assert server.app.held == 0
    assert server.ask("/v1/predict", PREDICT)[0] == 200


def test_lists_without_texts_are_limited_too(server: Server) -> None:
    [row] = server.predictions({"inputs": [[[]] * 200_000]})
    told = "input 1: has 200001 characters, but this server allows 100000 (--max-text)."
    assert row["error"] == told


def test_with_a_token_a_proxy_may_pass_its_name_on() -> None:
    guard = RequestGuard(None, ServerSettings(token="x"), ServerMetrics())  # type: ignore[arg-type]
    headers = {"host": "my.server", "authorization": "Bearer x", "origin": "https://my.server"}
    assert guard.refused("POST", "/v1/predict", headers) is None
    headers["origin"] = "https://evil.org"
    assert guard.refused("POST", "/v1/predict", headers) is not None


def test_an_answer_does_not_wait_for_the_one_before() -> None:
    with listening(ServerSettings(port=0)) as made, socket.create_connection(made.getsockname()):
        connection, _ = made.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such limit")
def test_an_answer_that_nobody_reads_is_given_up() -> None:
    with listening(ServerSettings(port=0, time_limit=7.0)) as made:
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7000
