"""A client for `sixjars serve`; it needs nothing but Python, so it loads at once."""

import http.client
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, final
from urllib.parse import urlsplit
from uuid import uuid4

from sixjars_runtime.containers import is_table, several_of
from sixjars_runtime.errors import RequestError

Given = str | list[Any] | os.PathLike[str] | Mapping[str, str | list[Any] | os.PathLike[str]]
"""One input: a text, a list of sentences, turns or points, a path, or several of them by field."""
MOST_WAITING = 60
"""Seconds after which a busy server is asked again, however long it wants."""
NUMBERS = ("score", "log_probability", "probability")
OUTPUT = ("text", "finished", *NUMBERS, "source", "tokens", "weights")
"""The values of an output that an `Answer` has by name."""
UNQUOTED = str.maketrans(dict.fromkeys('"\\\r\n', "_"))
"""Signs that the name of a file cannot have in a form."""


@final
@dataclass(frozen=True)
class Answer:
    """One output of a run, or why there is none.

    >>> Answer("घर", probability=0.5).ok
    True
    """

    text: str
    score: float = 0.0
    log_probability: float = 0.0
    probability: float = 0.0
    finished: bool = True
    source: tuple[str, ...] = ()
    """The token of each position of the input, where weights were asked for."""
    tokens: tuple[str, ...] = ()
    weights: tuple[tuple[float, ...], ...] = ()
    """Attention: a row for each token, over the positions of the input."""
    error: str | None = None
    notes: tuple[str, ...] = ()
    """Sentences about the input: that it was cut, or how many of its tokens are unknown."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other values of the server's response."""

    @property
    def ok(self) -> bool:
        """Whether there is an output."""
        return self.error is None


@final
@dataclass(frozen=True)
class Token:
    """One step of a stream."""

    token: str
    text: str
    """All of the output so far."""
    log_probability: float
    weights: tuple[float, ...]
    """Attention over the positions of the input."""


@final
class Client:
    """A connection to a server, which is kept open; one for each thread.

    >>> Client("http://127.0.0.1:8000", token="secret").address
    'http://127.0.0.1:8000'
    """

    def __init__(
        self, address: str, *, token: str | None = None, timeout: float = 60.0, tries: int = 3
    ) -> None:
        self.address = address.rstrip("/")
        self.token, self.timeout, self.tries = token, timeout, tries
        self._open: http.client.HTTPConnection | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def models(self) -> list[dict[str, Any]]:
        """The runs that are served."""
        models: list[dict[str, Any]] = self._json("GET", "/v1/models")["models"]
        return models

    def predict(
        self,
        inputs: Given | Sequence[Given],
        *,
        model: str | None = None,
        nbest: int | None = None,
        weights: bool = False,
        **search: Any,
    ) -> list[list[Answer]]:
        """Predict the outputs for each input, best first.

        `search` are settings of search, such as `kind="beam"`. A text, a mapping or a path alone is
        one input with one row; a list is always a list of inputs. An input that cannot be used has
        one answer with an `error`. Files are given as paths (`pathlib.Path`).
        """
        if is_table(inputs):  # only the server knows which columns a run reads
            raise RequestError(
                f"give a list of inputs, not a table ({type(inputs).__name__}): of pandas, "
                "table['COLUMN'].tolist(), or table[COLUMNS].to_dict('records') for several "
                "columns."
            )
        is_one = isinstance(inputs, str | Mapping | os.PathLike)
        inputs = [inputs] if is_one else several_of(inputs)
        options = {"model": model, "nbest": nbest, "weights": weights, "search": search}
        body, kind = _body(inputs, options)
        rows = self._json("POST", "/v1/predict", body, kind)["predictions"]
        return [_answers(row) for row in rows]

    def stream(
        self, one: Given, *, model: str | None = None, **search: Any
    ) -> Iterator[Token | Answer]:
        """Yield the tokens of one output as they are written, and the whole output as the last.

        Where the run's own search is a beam, which is written all at once, search is greedy.
        """
        body, kind = _body([one], {"model": model, "search": search})
        # A connection of its own: it is closed where a stream is left before its end, and other
        # requests may be sent meanwhile.
        client = Client(self.address, token=self.token, timeout=self.timeout, tries=self.tries)
        with client, client._heard():
            yield from client._events(client._ask("POST", "/v1/stream", body, kind))

    def _events(self, answer: http.client.HTTPResponse) -> Iterator[Token | Answer]:
        name = ""
        while line := answer.readline().decode().rstrip("\n"):
            name = line.removeprefix("event: ")
            values = json.loads(answer.readline().decode().removeprefix("data: "))
            answer.readline()
            if name == "token":
                known = {each.name: _frozen(values[each.name]) for each in fields(Token)}
                yield Token(**known)
            elif name == "error":
                raise RequestError(values["detail"], values["status"])
            else:
                yield _answers(values)[0]
        if name != "end":
            raise RequestError(f"{self.address} ended the stream before its end.")

    def reload(self, model: str | None = None) -> list[str]:
        """Have one run, or all, read again from their folders; return their names."""
        body = json.dumps({} if model is None else {"model": model}).encode()
        names: list[str] = self._json("POST", "/v1/reload", body, "application/json")["reloaded"]
        return names

    def _json(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        answer = self._ask(method, path, body, kind)
        with self._heard():
            return json.loads(answer.read())

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Raise a `RequestError` where a response breaks off."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise RequestError(f"{self.address} does not answer: {error}.") from error

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = ""
    ) -> http.client.HTTPResponse:
        """The response; a busy server is asked again after the time that it names."""
        for left in reversed(range(max(self.tries, 1))):
            answer = self._sent(method, path, body, kind)
            if answer.status == 200:
                return answer
            wait = answer.headers.get("Retry-After")
            with self._heard():
                content = answer.read()
            if answer.status != 503 or not left or wait is None:
                break
            # Retry-After may also be a date
            time.sleep(min(int(wait), MOST_WAITING) if wait.isdecimal() else 1)
        try:
            detail = str(json.loads(content)["detail"])
        except (ValueError, KeyError, TypeError):
            detail = f"{self.address} answered {answer.status} {answer.reason}."
        raise RequestError(detail, answer.status)

    def _sent(
        self, method: str, path: str, body: bytes | None, kind: str
    ) -> http.client.HTTPResponse:
        """Send a request; where the server has closed the kept connection, send it on a new one."""
        headers = {"Content-Type": kind} if kind else {}
        headers |= {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        kept = self._open is not None
        with self._heard():
            try:
                connection = self._open = self._open or self._connection()
                connection.request(method, path, body, headers)
                return connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                self.close()
                if not kept:
                    message = f"{self.address} closed the connection without an answer."
                    raise RequestError(message) from error
        return self._sent(method, path, body, kind)

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.address)
        if not parts.hostname:
            raise RequestError(
                f"{self.address} is no address of a server; write http://127.0.0.1:8000."
            )
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(parts.hostname, parts.port, timeout=self.timeout)


def _answers(row: Mapping[str, Any]) -> list[Answer]:
    """All outputs for one input; each has the notes about it."""
    notes = tuple(row.get("notes", ()))
    answers = []
    for output in row["outputs"]:
        known = {name: _frozen(value) for name, value in output.items() if name in OUTPUT}
        known |= {name: known[name] or 0.0 for name in NUMBERS}
        more = {name: value for name, value in output.items() if name not in OUTPUT}
        answers.append(Answer(**known, notes=notes, more=more))
    return answers or [Answer("", finished=False, error=row.get("error"))]


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _body(inputs: Sequence[Given], rest: Mapping[str, Any]) -> tuple[bytes, str]:
    files: dict[str, Path] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(inner) for key, inner in value.items()}
        if not isinstance(value, os.PathLike):
            return value
        path = Path(value)
        name = path.name.translate(UNQUOTED)
        if files.get(name, path) != path:  # another file of this name
            name = f"{len(files) + 1}-{name}"
        files[name] = path
        return name

    message: dict[str, Any] = {"inputs": [plain(each) for each in inputs]}
    message |= {key: value for key, value in rest.items() if value is not None}
    text = json.dumps(message).encode()
    if not files:
        return text, "application/json"
    mark = uuid4().hex
    head = f"--{mark}\r\nContent-Disposition: form-data; name="
    parts = [f'{head}"request"\r\n\r\n'.encode(), text]
    for name, path in files.items():
        about = f'"files"; filename="{name}"\r\nContent-Type: application/octet-stream'
        try:
            parts += [f"\r\n{head}{about}\r\n\r\n".encode(), path.read_bytes()]
        except OSError as error:
            raise RequestError(f"{path} cannot be read: {error.strerror or error}.") from error
    parts.append(f"\r\n--{mark}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={mark}"
