"""Bounded connections: their number is limited, and one without a request is closed.

uvicorn closes a connection that is silent after an answer. One that is silent before its first
request, or sends the head of a request too slowly, would stay for ever: it has no limit on that
time. Its `limit_concurrency` counts connections that are idle and closes none, so that as many as
the limit, all silent, would keep everybody else out with 503.
"""

from asyncio import TimerHandle, Transport
from functools import partial
from typing import Any, Final, final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from sixjars.serving.server.settings import ServerSettings

HEAD: Final = 10.0
"""Seconds in which the head of a request must arrive."""
SPARE: Final = 128
"""Files that are left for anything but connections."""
SENTENCE: Final = b'{"detail": "too many connections; try again later."}'
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(SENTENCE), SENTENCE)
)
_Protocol: Any = AutoHTTPProtocol


def most_of(settings: ServerSettings) -> int:
    """The most connections: twice as many as requests, if the system allows so many files."""
    most = 2 * (settings.queue + settings.batch)
    try:
        import resource
    except ImportError:  # Windows
        return most
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if files == resource.RLIM_INFINITY else min(most, max(files - SPARE, files // 2))


def bounded(most: int, head: float = HEAD) -> Any:
    """A class of connections: at most so many, with so many seconds for the head of a request."""
    return partial(Connection, most=most, head=head)


@final
class Connection(_Protocol):  # type: ignore[misc]
    """One connection; for one too many, the longest idle one is closed, or it gets 503 itself."""

    def __init__(self, *arguments: Any, most: int, head: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.most, self.head = most, head
        self.since: float = self.loop.time()
        self.deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:
        """Count the connection, and start the time for its first request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Stop the time at a complete head, and start it at the first byte of the next."""
        super().data_received(data)
        if self.asks:
            self._forget()
        elif self.deadline is None and not self.transport.is_closing():
            self._wait()

    def on_response_complete(self) -> None:
        """Note from when on the connection is idle."""
        self.since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._forget()
        super().connection_lost(exc)

    @property
    def asks(self) -> bool:
        """Whether a request of this connection is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self.deadline = self.loop.call_later(self.head, self._too_late)

    def _forget(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _too_late(self) -> None:
        self.deadline = None
        if not self.asks:
            self.transport.close()

    def _make_room(self) -> None:
        idle = [other for other in self.connections if other is not self and not other.asks]
        if idle:
            min(idle, key=lambda other: (other.cycle is not None, other.since)).transport.abort()
        else:
            self.transport.write(REFUSAL)
            self.transport.close()
