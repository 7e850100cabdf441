"""Portions of inputs as they come, and their pace: long files and slow pipes of `predict`."""

import sys
from collections.abc import Iterator
from itertools import islice
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Any, Protocol, TypeVar, final

T = TypeVar("T")

AT_ONCE = 4096
"""Most inputs of a portion, inside of which they are sorted by length."""
FIRST = 256
"""Inputs of the first portion; the next ones double while they take less than `QUICK` seconds."""
QUICK = 2.0
PATIENCE = 0.2
"""Seconds that an input waits for others, where they come slowly."""
EVERY = 30.0
"""Seconds between two lines about progress, where there is no terminal."""


class ReadSource(Protocol):
    """A source of inputs that knows how much of it was read."""

    @property
    def read(self) -> int:
        """How much was read."""

    @property
    def size(self) -> int | None:
        """How much there is, where that is known."""


def portions(items: Iterator[T], *, typed: bool, slow: bool) -> Iterator[list[T]]:
    """All inputs in order: one at a time where they are typed, else as many as have come."""
    arriving = _Arriving(items) if slow and not typed else None
    size = 1 if typed else min(FIRST, AT_ONCE)
    while portion := list(islice(items, size)) if arriving is None else arriving.take(size):
        began = monotonic()
        yield portion
        took = monotonic() - began
        if took < QUICK and not typed:
            size = min(2 * size, AT_ONCE)
        elif took > 4 * QUICK and not typed:
            size = max(size // 2, 1)


@final
class _Arriving:
    """Inputs that a thread reads ahead by at most a portion, so that memory does not grow."""

    def __init__(self, items: Iterator[Any]) -> None:
        self.line: Queue[tuple[Any] | None] = Queue(maxsize=AT_ONCE)
        self.ended = False
        self.error: Exception | None = None
        Thread(target=self._fill, args=[items], daemon=True).start()

    def _fill(self, items: Iterator[Any]) -> None:
        try:
            for item in items:
                self.line.put((item,))
        except Exception as error:  # noqa: BLE001 - raised again by `take`
            self.error = error
        self.line.put(None)

    def take(self, count: int) -> list[Any]:
        """At most so many inputs, after a short wait for others; nothing at the end."""
        taken: list[Any] = []
        until = 0.0
        while len(taken) < count and not self.ended:
            try:
                item = self.line.get(timeout=max(until - monotonic(), 0.0) if taken else None)
            except Empty:
                break
            until = until or monotonic() + PATIENCE
            self.ended = item is None
            taken += item or ()
        if not taken and self.error is not None:
            raise self.error
        return taken


@final
class Throughput:
    """How many inputs are done, how fast, and how long the rest will take: on stderr.

    In a terminal one line that changes, if the answers go elsewhere; else a line every half minute.
    """

    def __init__(self, source: ReadSource | None, *, to_terminal: bool) -> None:
        self.source = source
        self.changing = sys.stderr is not None and sys.stderr.isatty()
        self.hidden = sys.stderr is None or (self.changing and to_terminal)
        self.began = self.told = monotonic()
        self.done = 0

    def went_on(self, count: int) -> None:
        """Count inputs that are done, and print the line of progress when it is due."""
        self.done += count
        now = monotonic()
        if self.hidden or now - self.told < (1.0 if self.changing else EVERY):
            return
        self.told = now
        sys.stderr.write(f"\r\x1b[K{self.line(now)}" if self.changing else f"{self.line(now)}\n")
        sys.stderr.flush()

    def line(self, now: float) -> str:
        """The line of progress."""
        took = max(now - self.began, 1e-9)
        line = f"{self.done:,} inputs done, {self.done / took:,.0f} a second"
        if self.source is None or not self.source.size or not self.source.read:
            return line
        rest = took * (self.source.size / self.source.read - 1)
        return f"{line}, about {_spelled(max(rest, 0.0))} left"

    def clear(self) -> None:
        """Make room for another line, and take the changing one away at the end."""
        if self.changing and not self.hidden and self.told > self.began:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _spelled(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
