"""The application: its paths, their requests and their responses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, final

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from pydantic_core import to_json

from sixjars.serving.pages import page, policy
from sixjars.serving.server.batcher import Batcher, QueueClosed, QueueFull, WaitingRequest
from sixjars.serving.server.guard import RequestGuard
from sixjars.serving.server.messages import (
    RELOAD_BODY,
    ModelsResponse,
    PredictRequest,
    PredictResponse,
    Refusal,
    ReloadRequest,
    ReloadResponse,
    request_body,
)
from sixjars.serving.server.metrics import ServerMetrics
from sixjars.serving.server.requests import (
    CheckedRequest,
    Uploads,
    in_time,
    inputs_of,
    message_of,
    received,
    while_there,
)
from sixjars.serving.server.served import ServedRun, sentence_of
from sixjars.serving.server.settings import ServerSettings
from sixjars.serving.server.streams import OutputStream
from sixjars.version import version_of
from sixjars_runtime.errors import TOO_LARGE, SixJarsError, memory_is_short

_STATUSES = {
    400: "A form that cannot be read.",
    401: "The token is missing or wrong.",
    403: "From a page of another origin, or under another name.",
    404: "There is no such model.",
    405: "Another method than that of this path, which `Allow` names.",
    408: "The request took too long to arrive.",
    413: "The request is too large.",
    415: "Neither JSON nor a form with files.",
    422: "The request, or its search, makes no sense.",
    503: "Too many wait; come again after the seconds in Retry-After.",
    504: "It took longer than the time limit.",
}
Responses = dict[int | str, dict[str, Any]]
REFUSALS: Responses = {
    status: {"model": Refusal, "description": text} for status, text in _STATUSES.items()
}
_STAYED = "A run stays as it was, or they are being read again already."
RELOADS: Responses = {
    200: {"model": ReloadResponse},
    409: {"model": Refusal, "description": _STAYED},
}
_EVENTS = "`token` after each step, then `end` (or `error`)."
EVENTS: Responses = {200: {"content": {"text/event-stream": {}}, "description": _EVENTS}}


@final
class Serving:
    """All runs of a server, each with its batches, which begin with the event loop."""

    def __init__(
        self, runs: Sequence[ServedRun], settings: ServerSettings, metrics: ServerMetrics
    ) -> None:
        self.settings, self.metrics = settings, metrics
        self.runs = {run.name: run for run in runs}
        self.batchers: dict[str, Batcher] = {}
        self.reloading = False

    def start(self) -> None:
        """Begin to compute; called in the event loop."""
        for name, run in self.runs.items():
            self.batchers[name] = Batcher(run.work, self.settings, partial(self._count, name))

    def _count(self, name: str, jobs: Sequence[WaitingRequest], seconds: float) -> None:
        count = sum(len(job.request.inputs) for job in jobs)
        self.metrics.inputs.labels(model=name).inc(count)
        self.metrics.compute_seconds.labels(model=name).inc(seconds)
        self.metrics.batch_inputs.labels(model=name).observe(count)

    def named(self, name: str | None) -> ServedRun:
        """The run of that name; without a name, the only one."""
        if name is None and len(self.runs) == 1:
            return next(iter(self.runs.values()))
        if name is None:
            raise HTTPException(422, f"request.model: name one of {', '.join(self.runs)}.")
        if name not in self.runs:
            raise HTTPException(
                404, f"there is no model {name[:100]!r}; there are: {', '.join(self.runs)}."
            )
        return self.runs[name]

    async def answer(self, run: ServedRun, request: CheckedRequest) -> Any:
        """The prediction of a run; 503 where too many wait, 504 after the time limit."""
        limit = self.settings.time_limit
        try:
            async with asyncio.timeout(limit):
                return await self.batchers[run.name].answer(request)
        except TimeoutError:
            raise HTTPException(504, f"this took longer than {limit:g} seconds.") from None
        except QueueFull:
            raise _busy("too many inputs wait; try again later.") from None
        except QueueClosed:
            raise _busy("this server is ending; try again later.") from None
        except SixJarsError as error:
            raise HTTPException(422, request.plain(sentence_of(error))) from None
        except (RuntimeError, MemoryError) as error:
            if not memory_is_short(error):
                raise
            raise _busy(TOO_LARGE) from None

    def checked(
        self, message: PredictRequest, uploads: Uploads, *, streams: bool = False
    ) -> tuple[ServedRun, CheckedRequest]:
        """The run of a message, and its inputs."""
        run = self.named(message.model)
        try:
            settings = run.settings_of(message, streams=streams)
            inputs = inputs_of(message, uploads, settings.run.inputs, self.settings)
            request = CheckedRequest(inputs, settings, uploads.names)
            if streams:
                run.check_stream(request)
        except SixJarsError as error:
            raise HTTPException(422, sentence_of(error)) from None
        return run, request

    async def reload(self, name: str | None) -> list[str]:
        """Read one run again, or all; 409 with sentences about those that stay as they were."""
        runs = [self.named(name)] if name is not None else list(self.runs.values())
        if self.reloading:
            raise HTTPException(
                409, "runs are being read again already; ask again when that has ended."
            )
        self.reloading = True
        try:
            faults = [fault for run in runs if (fault := await self._reloaded(run)) is not None]
        finally:
            self.reloading = False
        if faults:
            raise HTTPException(409, " ".join(faults))
        return [run.name for run in runs]

    async def _reloaded(self, run: ServedRun) -> str | None:
        """Read a run again; return a sentence where it stays as it was."""
        fault = None
        try:
            await asyncio.to_thread(run.reload)
        except SixJarsError as error:
            fault = f"{run.name} stays as it was: {sentence_of(error)}"
        except Exception as error:  # noqa: BLE001 - a GPU may be full, a file half written
            fault = f"{run.name} stays as it was: {type(error).__name__}: {error}"
        self.metrics.reloads.labels(model=run.name, ok=str(fault is None).lower()).inc()
        return fault

    async def close(self) -> None:
        """Wait until all accepted requests are answered."""
        await asyncio.gather(*(batcher.close() for batcher in self.batchers.values()))


def _busy(sentence: str) -> HTTPException:
    return HTTPException(503, sentence, {"Retry-After": "1"})


def _json(values: Any) -> Response:
    return Response(to_json(values, inf_nan_mode="null"), media_type="application/json")


def application(
    runs: Sequence[ServedRun],
    settings: ServerSettings,
    started: Callable[[Serving], None] = lambda serving: None,
) -> RequestGuard:
    """The application around some runs; `started` is called in its event loop."""
    metrics = ServerMetrics()
    serving = Serving(runs, settings, metrics)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        serving.start()
        started(serving)
        yield
        await serving.close()

    about: dict[str, Any] = {"title": "sixjars", "version": version_of(), "responses": REFUSALS}
    app = FastAPI(**about, lifespan=living, docs_url=None, redoc_url=None)
    guard = RequestGuard(app, settings, metrics)
    _add_predictions(app, serving)
    _add_information(app, serving, guard)
    return guard


def _add_predictions(app: FastAPI, serving: Serving) -> None:
    settings = serving.settings
    runs = [run.message() for run in serving.runs.values()]
    predicted: Responses = {200: {"model": PredictResponse}}

    @app.post("/v1/predict", openapi_extra=request_body(runs, settings), responses=predicted)
    async def predict(request: Request) -> Response:
        """Outputs for each input; one that cannot be used has an error of its own."""
        async with received(request, settings) as (message, uploads):
            run, checked = serving.checked(message, uploads)
            rows = await while_there(request, serving.answer(run, checked))
        return _json({"model": run.name, "predictions": rows})

    @app.post(
        "/v1/stream", openapi_extra=request_body(runs, settings, streams=True), responses=EVENTS
    )
    async def stream(request: Request) -> Response:
        """Server-sent events: tokens with their attention as they are written, for one input."""
        async with AsyncExitStack() as stack:
            message, uploads = await stack.enter_async_context(received(request, settings))
            message = message.model_copy(update={"weights": True})
            run, checked = serving.checked(message, uploads, streams=True)
            events = OutputStream(partial(serving.answer, run), checked, stack.pop_all())
        await while_there(request, events.begin())
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(events.lines(), headers=headers, media_type="text/event-stream")

    @app.post("/v1/reload", openapi_extra=RELOAD_BODY, responses=RELOADS)
    async def reload(request: Request) -> Response:
        """Read runs again from their folders, without losing a request."""
        async with in_time(settings):
            body = await request.body()
        name = message_of(ReloadRequest, body).model
        return _json({"reloaded": await serving.reload(name)})


def _add_information(app: FastAPI, serving: Serving, guard: RequestGuard) -> None:

    @app.get("/v1/models", responses={200: {"model": ModelsResponse}})
    async def models() -> Response:
        """The runs that are served, and what each is asked."""
        runs = serving.runs.values()
        return _json({"models": [run.message().model_dump() for run in runs]})

    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        """Whether the server answers at all."""
        return "ok\n"

    @app.get("/readyz", response_class=PlainTextResponse)
    async def readyz() -> str:
        """Whether requests would be computed."""
        if not all(batcher.alive for batcher in serving.batchers.values()):
            raise _busy("this server is ending, or a thread of it has died.")
        return "ready\n"

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        for name, batcher in serving.batchers.items():
            serving.metrics.waiting_inputs.labels(model=name).set(batcher.waiting)
        serving.metrics.requests_in_progress.set(guard.in_progress)
        return Response(serving.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def live() -> Response:
        """The live page."""
        return HTMLResponse(page(), headers={"Content-Security-Policy": policy()})
