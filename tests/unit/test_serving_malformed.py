"""Malformed requests, many of them: whatever is sent, the answer is never 500, and the server goes on."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sixjars
from sixjars.serving.server.app import application
from sixjars.serving.server.guard import RequestGuard
from sixjars.serving.server.served import ServedRun
from sixjars.serving.server.settings import ServerSettings

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["ghar", "hi", "", " ", "\x00", "greedy", "beam", "sample", "/etc/passwd"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
WHOLE, SHARE = st.integers(-1, 9) | VALUES, st.floats(0, 1) | VALUES
SEARCH = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("width", "nbest", "top_k", "no_repeat_ngram"), WHOLE),
        **dict.fromkeys(("max_length", "min_length"), st.integers(-1, 30) | VALUES),
        **dict.fromkeys(("top_p", "coverage_penalty"), SHARE),
        "kind": st.sampled_from(["greedy", "beam", "sample"]) | VALUES,
        "temperature": st.floats(0, 2) | VALUES,
        "unknown": st.sampled_from(["ban", "allow", "replace"]) | VALUES,
        "seed": st.integers(-1, 2**70),
    },
)
MESSAGES = st.fixed_dictionaries(
    {"inputs": st.lists(st.sampled_from(["ghar", "pani"]) | VALUES, max_size=3) | VALUES},
    optional={
        "model": st.sampled_from(["hi", None]) | VALUES,
        "search": SEARCH | VALUES,
        "nbest": st.integers(-1, 9) | VALUES,
        "weights": st.booleans() | VALUES,
        "view": st.booleans() | VALUES,
        "more": VALUES,
    },
)
BODIES = (
    MESSAGES.map(lambda one: json.dumps(one).encode())
    | VALUES.map(lambda one: json.dumps(one).encode())
    | st.binary(max_size=60)
    | MESSAGES.map(lambda one: json.dumps(one).encode()[:-3])
    | st.text(max_size=40).map(lambda text: f'{{"inputs": ["{text}"]}}'.encode())
    | st.just(b'{"inputs": ["\\ud800", "a"]}')
)
ANY_BODY = BODIES | st.binary(max_size=300)
NAMES = "content-type authorization origin host content-length accept expect"
KINDS = ["application/json", "multipart/form-data; boundary=x", "multipart/form-data"]
HEADERS = st.dictionaries(
    st.sampled_from(NAMES.split()),
    st.sampled_from([*KINDS, "127.0.0.1", "-5"])
    | st.text(st.characters(max_codepoint=255), max_size=20),
    max_size=3,
)
IN_JSON = {"host": "localhost", "content-type": "application/json"}
PATHS = st.sampled_from(
    ["/v1/predict"] * 5 + ["/v1/stream", "/v1/reload", "/v1/models", "/", "/metrics", "/v1/x%00"]
)


@final
class InMemory:
    """A server without a socket, with its own event loop."""

    def __init__(self, app: RequestGuard) -> None:
        self.app, self.loop = app, asyncio.new_event_loop()
        self.alive = app.app.router.lifespan_context(app.app)  # type: ignore[attr-defined]
        self.loop.run_until_complete(self.alive.__aenter__())

    def close(self) -> None:
        self.loop.run_until_complete(self.alive.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        sent: list[dict[str, Any]] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await asyncio.sleep(30)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "scheme": "http"}
        scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": raw, "client": ("127.0.0.1", 1)}
        scope |= {"server": ("127.0.0.1", 80), "root_path": "", "asgi": {"version": "3.0"}}
        self.loop.run_until_complete(asyncio.wait_for(self.app(scope, receive, send), 20))
        whole = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], whole


@pytest.fixture(scope="module")
def asked(run: Path) -> Iterator[InMemory]:
    limits = ServerSettings(max_search=8, max_text=200)
    served = ServedRun("hi", lambda: sixjars.load(run, device="cpu"), limits)
    made = InMemory(application([served], limits))
    yield made
    made.close()


Check = Callable[..., None]
FEW, MANY = 25, 2000
"""Requests of a quick test, and of a slow one."""


def some(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


def any_body(count: int) -> Check:
    @some(count)
    @given(body=BODIES, path=st.sampled_from(["/v1/predict", "/v1/predict", "/v1/stream"]))
    def check(asked: InMemory, body: bytes, path: str) -> None:
        status, text = asked.ask("POST", path, body, IN_JSON)
        assert status in (200, 404, 422), text
        if status != 200:
            sentence = json.loads(text)["detail"]
            assert isinstance(sentence, str)
            assert sentence.endswith((".", "?"))
        elif path == "/v1/predict":
            for row in json.loads(text)["predictions"]:
                assert bool(row["outputs"]) != bool(row.get("error"))

    return check


def any_request(count: int) -> Check:
    methods = st.sampled_from(["POST", "GET", "PUT"])

    @some(count)
    @given(body=ANY_BODY, path=PATHS, headers=HEADERS, method=methods)
    def check(asked: InMemory, body: bytes, path: str, headers: Any, method: str) -> None:
        status, text = asked.ask(method, path, body, {"host": "localhost", **headers})
        assert status < 500, text

    return check


def any_form(count: int) -> Check:
    @some(count)
    @given(inside=ANY_BODY, name=st.sampled_from(["request", "files", "other", ""]))
    def check(asked: InMemory, inside: bytes, name: str) -> None:
        file = '; filename="x"' if name == "files" else ""
        head = f'--x\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        body = head.encode() + inside
        headers = {"host": "localhost", "content-type": "multipart/form-data; boundary=x"}
        status, text = asked.ask("POST", "/v1/predict", body + b"\r\n--x--\r\n", headers)
        assert status in (200, 400, 404, 422), text

    return check


test_any_body_gets_an_answer = any_body(FEW)
test_any_request_gets_an_answer = any_request(FEW)
test_any_form_gets_an_answer = any_form(FEW)
test_very_many_bodies_get_an_answer = pytest.mark.slow(any_body(MANY))
test_very_many_requests_get_an_answer = pytest.mark.slow(any_request(MANY))
test_very_many_forms_get_an_answer = pytest.mark.slow(any_form(MANY))


def test_it_still_answers(asked: InMemory) -> None:
    assert asked.ask("POST", "/v1/predict", b'{"inputs": ["ghar"]}', IN_JSON)[0] == 200
