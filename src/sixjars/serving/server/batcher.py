"""Batches of requests: those that wait for the same search are computed together.

Each run has one thread that computes, so a batch is formed of all that came while the one before it
was computed. A batch waits for more only where the last one held several requests, and no longer
than for as many as those.

A batch of streams takes long, for its tokens are wanted as they are written. So between two of its
steps the others have their turn: a batch of those that wait, and then the streams for as long as
that took.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic
from typing import Any, final

from sixjars.serving.server.requests import CheckedRequest
from sixjars.serving.server.settings import ServerSettings


@final
class QueueFull(Exception):
    """There is no room for another request."""


@final
class QueueClosed(Exception):
    """The server is about to end."""


@final
@dataclass(frozen=True, eq=False)
class WaitingRequest:
    """One request that waits to be computed."""

    request: CheckedRequest
    answered: "asyncio.Future[Any]"

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any longer, gone away or answered."""
        return self.answered.done()

    def answer(self, result: Any) -> None:
        """Set the result, or raise an exception where it is awaited. Called in the event loop."""
        if self.given_up:
            return
        if isinstance(result, BaseException):
            self.answered.set_exception(result)
        else:
            self.answered.set_result(result)

    def answer_now(self, result: Any) -> None:
        """Set the result while others of its batch go on; called by the thread that computes."""
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self.answered.get_loop().call_soon_threadsafe(self.answer, result)


Results = list[tuple[WaitingRequest, Any]]
"""The answer to each job of a batch; or an exception in its place."""
Work = Callable[[Sequence[WaitingRequest], Callable[[], None]], Results]
"""Computes a batch; it calls its second argument after each step of streams."""


@final
class Batcher:
    """The queue of one run, and its thread; `report` is called with each batch and its seconds."""

    def __init__(
        self,
        work: Work,
        settings: ServerSettings,
        report: Callable[[Sequence[WaitingRequest], float], None],
    ) -> None:
        self._work, self._settings, self._report = work, settings, report
        self._loop = asyncio.get_running_loop()
        self._line: deque[WaitingRequest] = deque()
        self._change = Condition()
        self._closing = self._idle = False
        self._wanted = 0
        """Jobs that are worth waiting for."""
        self._others_from = self._lent = 0.0
        """While streams are computed: when others have their turn, and the seconds they took."""
        self._thread = Thread(target=self._compute, name="sixjars-batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Inputs that wait."""
        with self._change:
            return sum(len(job.request.inputs) for job in self._line)

    @property
    def alive(self) -> bool:
        """Whether it takes requests."""
        return self._thread.is_alive() and not self._closing

    async def answer(self, request: CheckedRequest) -> Any:
        """Wait for the answer. Raises `QueueFull` or `QueueClosed` where it is not even taken."""
        job = WaitingRequest(request, self._loop.create_future())
        room = self._settings.queue - len(request.inputs)
        with self._change:
            if self._closing:
                raise QueueClosed
            if self.waiting > room:
                self._line = deque(waiting for waiting in self._line if not waiting.given_up)
            if self.waiting > room:
                raise QueueFull
            self._line.append(job)
            if self._idle or len(self._line) >= self._wanted:
                self._change.notify()
        return await job.answered

    async def close(self) -> None:
        """Compute what was taken, then end."""
        with self._change:
            self._closing = True
            self._change.notify()
        await asyncio.to_thread(self._thread.join)

    def _compute(self) -> None:
        while (batch := self._next()) is not None:
            if batch:
                self._others_from = self._lent = 0.0
                self._compute_batch(batch, self._others)

    def _compute_batch(self, batch: list[WaitingRequest], between: Callable[[], None]) -> None:
        began = monotonic()
        lent = self._lent
        try:
            results = self._work(batch, between)
        except BaseException as error:  # noqa: BLE001 - raised where a job is awaited; the thread lives on
            results = [(job, error) for job in batch]
        seconds = monotonic() - began - (self._lent - lent)
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(self._deliver, results, seconds)

    def _others(self) -> None:
        """Between two steps of streams: compute a batch of what else waits, if it is their turn."""
        if (began := monotonic()) < self._others_from:
            return
        with self._change:
            first = next((job for job in self._line if not job.request.streams), None)
            batch = [] if first is None else [job for job in self._taken(first) if not job.given_up]
        if batch:
            self._compute_batch(batch, lambda: None)
            took = monotonic() - began
            self._lent += took
            self._others_from = monotonic() + took

    def _deliver(self, results: Results, seconds: float) -> None:
        for job, result in results:
            job.answer(result)
        self._report([job for job, _ in results], seconds)

    def _next(self) -> list[WaitingRequest] | None:
        """The next batch; empty where all of it was given up, nothing at the end."""
        with self._change:
            while not self._line:
                if self._closing:
                    return None
                self._idle = True
                self._change.wait()
                self._idle = False
            until = monotonic() + self._settings.wait_ms / 1000
            while self._wanted > len(self._line) and not self._closing:
                if (left := until - monotonic()) <= 0:
                    break
                self._change.wait(left)
            batch = self._taken(self._line[0])
            self._wanted = len(batch) if len(batch) > 1 else 0
            return [job for job in batch if not job.given_up]

    def _taken(self, first: WaitingRequest) -> list[WaitingRequest]:
        """A job, and the others behind it that can be computed with it; the rest stays in line."""
        batch = [first]
        rest = deque[WaitingRequest]()
        room = min(self._settings.batch, first.request.most or self._settings.batch)
        room -= len(first.request.inputs)
        kind = first.request.settings, first.request.streams
        for job in self._line:
            if job is first:
                continue
            request = job.request
            fits = (request.settings, request.streams) == kind and len(request.inputs) <= room
            room -= len(request.inputs) if fits else 0
            (batch if fits else rest).append(job)
        self._line = rest
        return batch
