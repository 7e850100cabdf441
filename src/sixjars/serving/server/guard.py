"""Which requests are let through, and how much they may send; checked before all else.

A page of somebody else that is open in a browser on this machine could send requests to a server on
loopback. So there the name in `Host` must be that of this machine (a name that somebody made point
to it is refused), unless there is a token, which no such page knows: a proxy passes its own name
on. And whatever changes or computes something must not come from a page of another origin.
"""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final, final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sixjars.serving.server.metrics import ServerMetrics
from sixjars.serving.server.settings import ServerSettings

OPEN: Final = {"/", "/healthz", "/readyz"}
"""Paths without a token: the page itself, which asks for one, and the health of the server."""
KNOWN: Final = OPEN | set(
    "/v1/predict /v1/stream /v1/models /v1/reload /metrics /openapi.json".split()
)
"""Paths that are counted under their own name."""
LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
SITES: Final = {None, "none", "same-origin"}
"""Values of `Sec-Fetch-Site` of requests that do not come from other pages."""
DRAINING: Final = 2.0
"""Seconds for reading the rest of a request that was refused."""
READS: Final = {"GET", "HEAD", "OPTIONS"}
ASKED: Final = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}
"""Headers of refusals, by their status."""
HEADERS: Final = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


@final
class RequestGuard:
    """The guard of the application: it refuses and counts requests, and limits their bodies."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: ServerMetrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.in_progress = 0
        self.held = 0
        """Bytes of all their bodies."""
        self.ending: Callable[[], bool] = lambda: False
        """Whether the server is about to end; then responses close their connections."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it to the application with a limit on its body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = monotonic()
        status = 500
        body = _Body(receive)

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                last = [(b"connection", b"close")] if self.ending() else []
                message = {**message, "headers": [*message.get("headers", []), *HEADERS, *last]}
            await send(message)

        self.in_progress += 1
        try:
            headers = Headers(scope=scope)
            refused = self.refused(scope["method"], scope["path"], headers)
            body.most = self._most(headers)
            if refused is not None:
                await drained(receive, body.most)
                number, sentence = refused
                response = JSONResponse({"detail": sentence}, number, ASKED.get(number))
                await response(scope, receive, noted)
            else:
                await self.app(scope, partial(self._received, body), noted)
        finally:
            self.in_progress -= 1
            self.held -= body.read
            path = scope["path"] if scope["path"] in KNOWN else "other"
            self.metrics.requests.labels(path=path, status=str(status)).inc()
            self.metrics.request_seconds.labels(path=path).observe(monotonic() - began)

    def refused(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the sentence, if a request is refused."""
        refusal = self._stranger(method, path, headers)
        if refusal is not None:
            return refusal
        if self.in_progress > self.settings.queue + self.settings.batch and path not in OPEN:
            return 503, "too many requests at once; try again later."
        size = headers.get("content-length", "0")
        if size.isdecimal() and int(size[:20]) > self._most(headers):
            return 413, self._too_large(self._most(headers))
        return None

    def _stranger(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, str] | None:
        """The refusal of another name, a page of another origin, or a missing token."""
        host = headers.get("host", "")
        settings = self.settings
        known = LOOPBACK | {settings.host}
        if settings.loopback and settings.token is None and _name(host) not in known:
            addresses = "http://127.0.0.1 or http://localhost"
            return 403, f"this server answers on loopback only: ask for {addresses}."
        if method not in READS:
            origin, site = headers.get("origin"), headers.get("sec-fetch-site")
            if origin not in (None, f"http://{host}", f"https://{host}") or site not in SITES:
                return 403, "a page of another origin may not send requests to this server."
        if settings.token is not None and path not in OPEN and not self._is_known(headers):
            return 401, "send the token of this server: Authorization: Bearer TOKEN."
        return None

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        expected = (self.settings.token or "").encode()
        return hmac.compare_digest(token.strip().encode(), expected) and kind.lower() == "bearer"

    def _most(self, headers: Mapping[str, str]) -> int:
        form = headers.get("content-type", "").lower().startswith("multipart/")
        return self.settings.upload_bytes if form else self.settings.json_bytes

    def _too_large(self, most: int) -> str:
        size = f"{most / (1 << 20):g} megabytes"
        return f"the request is larger than the {size} that this server allows; send less."

    async def _received(self, body: "_Body") -> Message:
        """The next part of a body, if it is not too much, whatever the sender announced."""
        message = await body.receive()
        size = len(message.get("body", b""))
        body.read, self.held = body.read + size, self.held + size
        if body.read <= body.most and self.held <= self.settings.held_bytes:
            return message
        if message.get("more_body", False):
            await drained(body.receive, body.most)
        if body.read > body.most:
            raise HTTPException(413, self._too_large(body.most))
        detail = "too large requests at once; try again later."
        raise HTTPException(503, detail, {"Retry-After": "1"})


@final
@dataclass
class _Body:
    """The body of a request: how much of it was read, and how much may be."""

    receive: Receive
    most: int = 0
    read: int = 0


def _name(host: str) -> str:
    """A host without its port.

    >>> _name("127.0.0.1:8000"), _name("[::1]:8000"), _name("evil.example"), _name("]:x")
    ('127.0.0.1', '::1', 'evil.example', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


async def drained(receive: Receive, most: int) -> None:
    """Read on for a moment: if a connection is closed before that, the sender may not see why."""
    read = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAINING):
            while read <= 4 * most and (message := await receive()).get("more_body", False):
                read += len(message.get("body", b""))
