"""Requests become batches: those that wait and are asked the same way are computed together.

Each run has one thread that computes, so a batch is formed of all that came while the one before it was computed. A
batch waits for more only where the last one held several requests, and no longer than for as many as those.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any, final

from sixjars.serving.server.settings import ServerSettings


@final
class Full(Exception):
    """There is no room for another request."""


@final
class Closed(Exception):
    """The server is about to end."""


@final
@dataclass(frozen=True, eq=False)
class Job:
    """One request that waits to be computed."""

    inputs: Sequence[Any]
    how: Hashable
    """Only jobs of which this is the same are computed together."""
    answered: "asyncio.Future[Any]"
    more: Any = None
    """What else the work needs to know of it."""
    came: float = field(default_factory=monotonic)

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any longer."""
        return self.answered.done()


Results = list[tuple[Job, Any]]
"""The answer to each job of a batch; or an exception in its place."""
Work = Callable[[Sequence[Job]], Results]


@final
class Batcher:
    """The line in front of one run, and the thread that computes; `told` gets each batch and its seconds."""

    def __init__(self, work: Work, settings: ServerSettings, told: Callable[[Sequence[Job], float], None]) -> None:
        self._work, self._settings, self._told = work, settings, told
        self._loop = asyncio.get_running_loop()
        self._line: deque[Job] = deque()
        self._change = Condition()
        self._closing = self._idle = False
        self._wanted = 0
        """Jobs that are worth waiting for."""
        self._thread = Thread(target=self._compute, name="sixjars-batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Inputs that wait."""
        with self._change:
            return self._waiting()

    def _waiting(self) -> int:
        return sum(len(job.inputs) for job in self._line)

    @property
    def alive(self) -> bool:
        """Whether it takes requests."""
        return self._thread.is_alive() and not self._closing

    async def answer(self, inputs: Sequence[Any], how: Hashable, more: Any = None) -> Any:
        """Wait for the answer. Raises `Full` or `Closed` where it is not even taken."""
        job = Job(inputs, how, self._loop.create_future(), more)
        with self._change:
            if self._closing:
                raise Closed
            if self._waiting() + len(inputs) > self._settings.queue:
                self._line = deque(one for one in self._line if not one.given_up)
            if self._waiting() + len(inputs) > self._settings.queue:
                raise Full
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
                began = monotonic()
                try:
                    results = self._work(batch)
                except BaseException as error:  # noqa: BLE001 - whoever waits is told; the thread must live on
                    results = [(job, error) for job in batch]
                with suppress(RuntimeError):  # the loop has ended, and nobody waits
                    self._loop.call_soon_threadsafe(self._deliver, results, monotonic() - began)

    def _deliver(self, results: Results, seconds: float) -> None:
        for job, result in results:
            if job.given_up:
                continue
            if isinstance(result, BaseException):
                job.answered.set_exception(result)
            else:
                job.answered.set_result(result)
        self._told([job for job, _ in results], seconds)

    def _next(self) -> list[Job] | None:
        """The next batch; empty where all of it was given up, nothing at the end."""
        with self._change:
            while not self._line:
                if self._closing:
                    return None
                self._idle = True
                self._change.wait()
                self._idle = False
            until = monotonic() + self._settings.wait_ms / 1000
            while self._wanted > len(self._line) and not self._closing and (left := until - monotonic()) > 0:
                self._change.wait(left)
            batch = self._taken()
            self._wanted = len(batch) if len(batch) > 1 else 0
            return [job for job in batch if not job.given_up]

    def _taken(self) -> list[Job]:
        """The first job, and the others that can be computed with it; the rest stays in line."""
        batch, rest, room = [self._line.popleft()], deque[Job](), self._settings.batch
        room -= len(batch[0].inputs)
        for job in self._line:
            fits = job.how == batch[0].how and len(job.inputs) <= room
            room -= len(job.inputs) if fits else 0
            (batch if fits else rest).append(job)
        self._line = rest
        return batch
