"""Streams that step together end each by itself: where its reader left, or where it alone fails. They are limited."""

import json
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Semaphore
from typing import Any, final

import pytest
from torch import Tensor

import sixjars
from sixjars.decoding.problem import SearchStep
from sixjars.evaluation.score import hypotheses_of, spelled
from sixjars.runs.prediction.partial_outputs import WrittenToken, stepwise
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.requests import most_together
from sixjars.serving.server import served
from sixjars.serving.server.batcher import WaitingRequest
from sixjars.serving.server.messages import PredictRequest
from sixjars.serving.server.requests import CheckedRequest
from tests.unit.serving import Server, serving
from tests.unit.test_serving_limits import wait_until
from tests.unit.web_pages import trained

LENGTH, TOGETHER = 31, 4
SEARCH = {"kind": "greedy", "min_length": LENGTH - 1, "max_length": LENGTH}
"""So every output has as many steps."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that computes few inputs together."""
    more = ["model.encoder.size=8", "model.decoder.size=8", f"evaluation.batch_examples={TOGETHER}"]
    return trained("transliteration/sample_attention", more, tmp_path_factory.mktemp("few") / "run")


@pytest.fixture(scope="module")
def predictor(run: Path) -> sixjars.Predictor:
    return sixjars.load(run, device="cpu")


@final
class Watched:
    """The searches for streams: how many rows each step had; they wait at some steps until they may go on."""

    def __init__(self, *stops: int) -> None:
        self.rows: list[list[int]] = []
        self.stops, self.reached, self.go = stops, Semaphore(0), Semaphore(0)

    def __call__(self, *given: Any, tell: Any, **more: Any) -> Any:
        own: list[int] = []
        self.rows.append(own)

        def told(column: SearchStep, places: Tensor) -> Any:
            own.append(len(places))
            if len(own) in self.stops:
                self.reached.release()
                assert self.go.acquire(timeout=20)
            return tell(column, places)

        return hypotheses_of(*given, tell=told, **more)

    def wait(self) -> None:
        assert self.reached.acquire(timeout=20)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched(3)
    monkeypatch.setattr("sixjars.runs.prediction.partial_outputs.hypotheses_of", found)
    return found


@final
class Streams:
    """A server with its streams: the first of them is held up at its third step, so that others come together."""

    def __init__(self, server: Server, watched: Watched) -> None:
        self.server, self.watched, self.batches = server, watched, list[Sequence[WaitingRequest]]()
        self.batcher, own = server.running[0].batchers["hi"], server.served[0]
        self.connections: list[socket.socket] = []
        quick = own._answers

        def noted(jobs: Sequence[WaitingRequest], *given: Any) -> Any:
            self.batches.append(jobs)
            return quick(jobs, *given)

        own._answers = noted  # type: ignore[method-assign, assignment]
        self.first = self.opened("a")
        watched.wait()

    def opened(self, text: str) -> socket.socket:
        """The connection of one more stream."""
        body = json.dumps({"inputs": [text], "search": SEARCH}).encode()
        head = "POST /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.connections.append(connection)
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return connection

    def waiting(self, texts: Sequence[str]) -> list[socket.socket]:
        """Streams that wait in line, in this order."""
        made, before = [], self.batcher.waiting
        for count, text in enumerate(texts, before + 1):
            made.append(self.opened(text))
            wait_until(lambda count=count: self.batcher.waiting == count)  # type: ignore[misc]
        return made

    def leave(self, connections: Sequence[socket.socket]) -> None:
        """The readers of some streams of the batch that is computed go away, and that is noticed."""
        for one in connections:
            one.close()
        wait_until(lambda: sum(job.given_up for job in self.batches[-1]) == len(connections))


@pytest.fixture
def streams(run: Path, watched: Watched) -> Iterator[Streams]:
    with serving({"hi": run}) as server:
        made = Streams(server, watched)
        yield made
        for one in made.connections:
            one.close()


def events(connection: socket.socket) -> list[str]:
    """The names of all events of a stream."""
    whole = b""
    with connection:
        while some := connection.recv(1 << 16):
            whole += some
    return [line.decode().split()[-1] for line in whole.splitlines() if line.startswith(b"event: ")]


WHOLE = ["token"] * LENGTH + ["end"]


@pytest.mark.parametrize("left", [1, 3, 4])
def test_streams_whose_readers_left_are_not_computed(
    streams: Streams, watched: Watched, left: int
) -> None:
    several = streams.waiting(["ghar", "pani", "namaste", "a"])
    streams.leave([streams.first])
    watched.go.release()
    watched.wait()
    # the next have begun, a step after the first was left
    assert watched.rows == [[1] * 3, [4] * 3]
    [last] = streams.waiting(["b"])
    streams.leave(several[:left])
    watched.go.release()
    assert [events(one) for one in several[left:]] == [WHOLE] * (4 - left)
    watched.wait()
    rest = [4 - left] * (LENGTH - 3 if left < 4 else 0)
    assert watched.rows == [[1] * 3, [4] * 3 + rest, [1] * 3]
    watched.go.release()
    assert events(last) == WHOLE


def test_a_stream_that_fails_is_told_while_the_others_go_on(
    streams: Streams, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(dataset: Any, row: int, *given: Any) -> Any:
        if dataset.raw(row)["source"] == "pani":
            raise ZeroDivisionError
        return spelled(dataset, row, *given)

    monkeypatch.setattr("sixjars.runs.prediction.partial_outputs.spelled", failing)
    good, bad, other = streams.waiting(["ghar", "pani", "namaste"])
    watched.go.release()
    assert events(streams.first) == WHOLE
    watched.wait()
    assert b"500" in bad.recv(1 << 16).splitlines()[0]  # though the others have not ended
    bad.close()
    watched.go.release()
    assert [events(one) for one in (good, other)] == [WHOLE] * 2
    assert len(watched.rows) == len(streams.batches) == 2
    assert watched.rows[1][-1] == 2


def test_an_end_that_cannot_be_told_is_an_error_of_one(
    streams: Streams, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = served._row

    def row(run: Any, asked: Any, found: Any) -> Any:
        if "pani" in str(asked.inputs):
            raise ZeroDivisionError
        return right(run, asked, found)

    monkeypatch.setattr(served, "_row", row)
    several = streams.waiting(["ghar", "pani", "namaste"])
    for _ in range(2):
        watched.go.release()
    assert [events(one)[-1] for one in several] == ["end", "error", "end"]
    assert len(watched.rows) == 2


def test_of_a_batch_that_failed_only_those_are_tried_alone_that_somebody_waits_for(
    run: Path,
) -> None:
    with serving({"hi": run}) as server:
        own, tried = server.served[0], list[int]()

        def failing(jobs: Sequence[WaitingRequest], *given: Any) -> Any:
            tried.append(len(jobs))
            jobs[0].answer(["early"])
            raise ZeroDivisionError

        own._answers = failing  # type: ignore[method-assign, assignment]
        request = CheckedRequest(["ghar"], own.settings_of(PredictRequest()))
        jobs = [WaitingRequest(request, Future()) for _ in range(3)]  # type: ignore[arg-type]
        results = own.work(jobs, lambda: None)
    assert [job for job, _ in results] == jobs
    assert tried == [3, 1, 1]


def test_streams_are_computed_together_up_to_the_limit_of_the_run(
    streams: Streams, watched: Watched
) -> None:
    several = streams.waiting(["ghar"] * (TOGETHER + 2))
    for _ in range(3):
        watched.go.release()
    assert [events(one) for one in several] == [WHOLE] * len(several)
    assert [one[0] for one in watched.rows] == [1, TOGETHER, 2]


def test_files_are_limited_more_than_texts(predictor: sixjars.Predictor) -> None:
    [text] = predictor.fields.inputs.values()

    @final
    class File:
        is_media = True

    assert most_together(100, [text]) == 100
    assert most_together(100, [text, File()]) == 32  # type: ignore[list-item]
    assert most_together(10, [File()]) == 10  # type: ignore[list-item]


def told_of(predictor: sixjars.Predictor, fails: Exception | None = None) -> list[list[Any]]:
    """What is told of three texts, of which the second may fail at its third token."""
    told: list[list[Any]] = [[], [], []]

    def failing(made: WrittenToken | Prediction | Exception) -> None:
        told[1].append(made)
        if fails is not None and len(told[1]) == 3:
            raise fails

    search = predictor.recipe.evaluation.search.model_copy(update=SEARCH)
    tells = [told[0].append, failing, told[2].append]
    stepwise(predictor, ["ghar", "pani", "namaste"], search, tells)
    return told


def tokens_of(told: list[Any]) -> list[Any]:
    return [getattr(one, "token", None) for one in told]


def test_what_a_listener_raises_ends_its_output_alone(
    predictor: sixjars.Predictor, watched: Watched
) -> None:
    watched.stops = ()
    whole, error = told_of(predictor), ZeroDivisionError()
    first, second, third = told_of(predictor, error)
    assert [len(own) for own in (first, third)] == [LENGTH + 1] * 2
    for own, before in ((first, whole[0]), (second[:3], whole[1][:3]), (third, whole[2])):
        assert tokens_of(own) == tokens_of(before)
        assert own[-1].text == before[-1].text
    assert second[3:] == [error]
    assert watched.rows[1] == [3] * 3 + [2] * (LENGTH - 3)


def test_where_memory_is_short_all_end(predictor: sixjars.Predictor) -> None:
    with pytest.raises(MemoryError):
        told_of(predictor, MemoryError())


def test_an_input_that_is_wrong_for_nobody_is_no_fault(predictor: sixjars.Predictor) -> None:
    told: list[Any] = []

    def failing(made: Any) -> None:
        told.append(made)
        if isinstance(made, Prediction):
            raise ZeroDivisionError

    stepwise(predictor, [""], predictor.recipe.evaluation.search, [failing])
    assert [type(one) for one in told] == [Prediction, ZeroDivisionError]
