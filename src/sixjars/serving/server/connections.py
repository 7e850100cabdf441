"""Connections are bounded too: one that asks for nothing is closed, and there are never more than some.

uvicorn closes a connection that is silent after an answer. One that is silent before its first
request, or sends the head of a request too slowly, would stay for ever.
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
    """How many connections there may be: twice as many as requests, if the system allows so many files."""
    wanted = 2 * (settings.queue + settings.batch)
    try:
        import resource
    except ImportError:  # Windows
        return wanted
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        wanted if files == resource.RLIM_INFINITY else min(wanted, max(files - SPARE, files // 2))
    )


def bounded(most: int, head: float = HEAD) -> Any:
    """What makes the connections of a server: at most so many, with so many seconds for the head of a request."""
    return partial(Connection, most=most, head=head)


@final
class Connection(_Protocol):  # type: ignore[misc]
    """One connection. For one too many, the one that has been idle for longest is closed; if none is, it gets 503."""

    def __init__(self, *given: Any, most: int, head: float, **more: Any) -> None:
        super().__init__(*given, **more)
        self.most, self.head = most, head
        self.since: float = self.loop.time()
        self.deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:
        """It is counted, and has to ask for something soon."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """A head that is complete came in time; the next has as long from its first byte."""
        super().data_received(data)
        if self.asks:
            self._forget()
        elif self.deadline is None and not self.transport.is_closing():
            self._wait()

    def on_response_complete(self) -> None:
        """Now it may ask again."""
        self.since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """It waits for nothing any longer."""
        self._forget()
        super().connection_lost(exc)

    @property
    def asks(self) -> bool:
        """Whether a request of it is not answered yet."""
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
        idle = [one for one in self.connections if one is not self and not one.asks]
        if idle:
            min(idle, key=lambda one: (one.cycle is not None, one.since)).transport.abort()
        else:
            self.transport.write(REFUSAL)
            self.transport.close()
