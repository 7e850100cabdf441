"""Server-sent events of one output as it is written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, replace
from typing import Any, final

from pydantic_core import to_json
from starlette.exceptions import HTTPException

from sixjars.runs.prediction.partial_outputs import WrittenToken
from sixjars.serving.server.requests import CheckedRequest

LAST = ("end", "error")
"""The events after which there are none."""


@final
class OutputStream:
    """The events of one output: `token`s, each with the text so far, then `end`; or `error`.

    It is computed together with other streams, and a slow reader holds up nobody. `kept`, the files
    of the request, is closed when it is computed.
    """

    def __init__(
        self,
        answer: Callable[[CheckedRequest], Awaitable[Any]],
        request: CheckedRequest,
        kept: AsyncExitStack,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._told = 0
        self._first: tuple[str, Any] | None = None
        request = replace(request, tell=self._tell)
        self._task = asyncio.create_task(self._compute(answer, request, kept))

    def _tell(self, step: WrittenToken) -> None:
        """Add an event; called by the computing thread, for a step again where a batch failed."""
        if step.at < self._told:
            return
        self._told = step.at + 1
        values = asdict(step)
        if step.at > 0:
            del values["source"]
        with suppress(RuntimeError):  # the loop has ended, and nobody reads
            self._loop.call_soon_threadsafe(self._events.put_nowait, ("token", values))

    async def _compute(
        self,
        answer: Callable[[CheckedRequest], Awaitable[Any]],
        request: CheckedRequest,
        kept: AsyncExitStack,
    ) -> None:
        async with kept:
            try:
                self._events.put_nowait(("end", await answer(request)))
            except HTTPException as error:
                self._events.put_nowait(("error", error))
            except Exception as error:  # noqa: BLE001 - sent as an event
                failure = HTTPException(500, f"this failed: {type(error).__name__}.")
                self._events.put_nowait(("error", failure))

    async def begin(self) -> None:
        """Wait for the first event; an error is raised, so that it becomes the status."""
        try:
            self._first = await self._events.get()
        except asyncio.CancelledError:  # nobody waits for it any longer
            self._task.cancel()
            raise
        if self._first[0] == "error":
            raise self._first[1]

    async def lines(self) -> AsyncIterator[bytes]:
        """The events as bytes."""
        event = self._first
        assert event is not None
        try:
            while True:
                name, values = event
                if isinstance(values, HTTPException):
                    values = {"detail": values.detail, "status": values.status_code}
                data = to_json(values, inf_nan_mode="null")
                yield b"event: %s\ndata: %s\n\n" % (name.encode(), data)
                if name in LAST:
                    return
                event = await self._events.get()
        finally:
            self._task.cancel()  # nobody reads any longer
