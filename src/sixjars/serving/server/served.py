"""One run that is served: its description, its requests, and the work on a batch of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, final

from sixjars.decoding.scores import order_in_words
from sixjars.drawing.html.views import fragment
from sixjars.drawing.view import BY_PROBABILITY, view_of
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.input_warnings import notes_of
from sixjars.runs.prediction.partial_outputs import Tell, WrittenToken, stepwise
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import Check, search_of
from sixjars.serving.pages import titles
from sixjars.serving.server.batcher import Results, WaitingRequest
from sixjars.serving.server.messages import FieldDescription, ModelMessage, PredictRequest
from sixjars.serving.server.requests import CheckedRequest, PredictionSettings
from sixjars.serving.server.settings import ServerSettings
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RecipeError, SixJarsError

SHOWN = {"segments", "dimensions", "max_length", "multi_label"}
"""Settings of a field that clients must know; others may name files of this machine."""
SHORT = ("text", "score", "log_probability", "probability", "finished")
"""The values of an output where its weights were not asked for."""

WITHOUT, WITH_WEIGHTS = 1 << 20, 1 << 18
"""The most tokens that all outputs of a request may have, without their weights and with them."""


@final
class _GivenUp(Exception):
    """Nobody waits for the answer any longer."""


@final
class ServedRun:
    """A run with its name; `open` reads it, now and whenever it has changed."""

    def __init__(
        self, name: str, open_it: Callable[[], Predictor], settings: ServerSettings
    ) -> None:
        self.name, self.settings = name, settings
        self._open = open_it
        self.predictor = open_it()

    def reload(self) -> None:
        """Read the run again; what is computed meanwhile is computed with the old one."""
        self.predictor = self._open()

    def message(self) -> ModelMessage:
        """The description of the run for clients."""
        run, columns = self.predictor, titles(self.predictor)
        fields = [*run.inputs.values(), run.fields.output]
        sizes = {field.name: field.facts().get("vocabulary") for field in fields}
        *inputs, output = (_described(field, columns) for field in fields)
        return ModelMessage(
            name=self.name,
            task=run.recipe.task,
            title=TASKS[run.recipe.task].title,
            inputs=inputs,
            output=output,
            has_attention=run.has_attention,
            searches=run.ability.searches,
            multi_label=run.ability.multi_label,
            vocabulary={name: int(size) for name, size in sizes.items() if size is not None},
            search=run.recipe.evaluation.search.model_dump(),
        )

    def settings_of(self, request: PredictRequest, *, streams: bool = False) -> PredictionSettings:
        """The settings for a request; `SixJarsError` with a sentence where it is refused.

        A stream is greedy where nothing but the run's own settings ask for a beam.
        """
        run = self.predictor
        keys = dict(request.search)
        most = self.settings.max_search
        kind = keys.pop("kind", None)
        self._check_unused(request, keys, kind)
        keys |= {} if request.nbest is None else {"nbest": request.nbest}
        base = run.recipe.evaluation.search
        if streams and run.ability.searches and base.kind == "beam" and "width" not in keys:
            base = base.model_copy(update={"kind": "greedy", "nbest": 1})
        search = search_of(base, kind, keys, run.ability, "this request")
        for key in ("width", "nbest"):
            if key in keys and (value := getattr(search, key)) > most:
                limit = f"this server allows {most} (--max-search)"
                raise DataError(f"search.{key} is {value}, but {limit}.")
        longest = max(base.max_length, 1000)
        if search.max_length > longest:
            raise DataError(
                f"search.max_length is {search.max_length}, but this server allows {longest}."
            )
        if run.ability.searches:
            _check_size(request, search)
        if search.coverage_penalty and not run.has_attention:
            raise DataError(
                "search.coverage_penalty needs attention, but this run has none; leave it out."
            )
        return PredictionSettings(run, search, request.weights, request.view)

    def _check_unused(
        self, request: PredictRequest, given: Mapping[str, Any], kind: str | None
    ) -> None:
        if kind is None and "kind" in request.search:
            raise DataError(
                "search.kind: should be greedy, beam or sample, but is None; or leave it out."
            )
        if request.nbest is not None and "nbest" in given:  # `request.nbest` takes its place
            run = self.predictor
            search_of(run.recipe.evaluation.search, kind, given, run.ability, "this request")

    def check_stream(self, request: CheckedRequest) -> None:
        """Refuse what has no beginning before its end."""
        settings = request.settings
        count = len(request.inputs)
        if count != 1:
            raise DataError(f"request.inputs: a stream has one input, but there are {count}.")
        search = settings.search
        if settings.run.ability.searches and (search.kind == "beam" or search.nbest > 1):
            raise DataError(
                "a stream has one output, of greedy search or sampling; ask /v1/predict for a beam."
            )

    def work(self, jobs: Sequence[WaitingRequest], between: Callable[[], None]) -> Results:
        """Answer a batch; where it fails as a whole, each request is tried alone.

        Work ends where nobody waits for it any longer: it would hold up all that come after. Each
        stream ends so by itself. `between` is called between two steps of streams.
        """

        def check() -> None:
            if all(job.given_up for job in jobs):
                raise _GivenUp

        try:
            check()
            return list(zip(jobs, self._answers(jobs, check, between), strict=True))
        except _GivenUp as error:
            return [(job, error) for job in jobs]
        except Exception as error:  # noqa: BLE001 - the result of its job
            if len(jobs) == 1:
                return [(jobs[0], error)]
            return [result for job in jobs for result in self.work([job], between)]

    def _answers(
        self, jobs: Sequence[WaitingRequest], check: Check, between: Callable[[], None]
    ) -> list[Any]:
        """For each request a list of plain values; for a stream one of them, or an exception."""
        requests = [job.request for job in jobs]
        if requests[0].streams:
            return _streamed(jobs, check, between)
        settings = requests[0].settings
        run, search = settings.run, settings.search
        inputs = [pair for each in requests for pair in enumerate(each.inputs)]
        prepared = [run.prepare(given, number=at, search=search) for at, given in inputs]
        details = settings.weights or settings.view
        rows = iter(run.predictions(prepared, search, details=details, check=check))
        return [[_row(run, each, next(rows)) for _ in each.inputs] for each in requests]


def _check_size(request: PredictRequest, search: SearchSettings) -> None:
    """Refuse a request whose outputs may have too many tokens for the memory of a server."""
    keeps = request.weights or request.view
    most = WITH_WEIGHTS if keeps else WITHOUT
    tokens = len(request.inputs or ()) * search.nbest * search.max_length
    if tokens > most:
        allowed = f"{most:,}{' with weights' if keeps else ''}"
        raise DataError(
            f"the outputs of this request may have {tokens:,} tokens, but this server allows "
            f"{allowed}; ask for fewer inputs or outputs, or a smaller max_length."
        )


def _streamed(
    jobs: Sequence[WaitingRequest], check: Check, between: Callable[[], None]
) -> list[Any]:
    """The plain values of each stream, or its error; each is answered as soon as it ends."""
    settings = jobs[0].request.settings
    ended = dict[WaitingRequest, Any]()

    def teller(job: WaitingRequest) -> Tell:
        request, tell = job.request, job.request.tell
        assert tell is not None

        def handle(event: WrittenToken | Prediction | Exception) -> None:
            if isinstance(event, Exception):
                ended[job] = event
            elif job.given_up:
                raise _GivenUp
            elif isinstance(event, WrittenToken):
                return tell(event)
            else:
                ended[job] = _row(settings.run, request, [event])
            return job.answer_now(ended[job])

        return handle

    inputs, tells = [job.request.inputs[0] for job in jobs], [teller(job) for job in jobs]
    stepwise(settings.run, inputs, settings.search, tells, check=check, after=between)
    return [ended[job] for job in jobs]


def _described(field: Any, columns: Mapping[str, str]) -> FieldDescription:
    return FieldDescription(
        name=field.name,
        column=columns[field.name],
        kind=field.kind,
        file=field.is_media,
        describes=field.describe(),
        settings=field.settings.model_dump(mode="json", include=SHOWN),
    )


def _row(
    run: Predictor, request: CheckedRequest, predictions: Sequence[Prediction]
) -> dict[str, Any]:
    first = predictions[0]
    if first.error is not None:
        return {"outputs": [], "error": request.plain(first.error)}
    values = [prediction.to_json() for prediction in predictions]
    if not request.settings.weights:
        values = [{key: value[key] for key in SHORT} for value in values]
    row = {"outputs": values, "notes": notes_of(first)}
    return row | ({"html": _drawn(run, request, predictions)} if request.settings.view else {})


def _drawn(run: Predictor, request: CheckedRequest, predictions: Sequence[Prediction]) -> str:
    """Attention as HTML; the outputs alone where there is none."""
    order = order_in_words(request.settings.search) if run.ability.searches else ""
    if not any(prediction.weights for prediction in predictions):
        items = "".join(
            f"<li>{escape(each.text)} <small>probability {each.probability:.3g}</small></li>"
            for each in predictions
        )
        note = f'<p class="note">{order or BY_PROBABILITY}</p>' if len(predictions) > 1 else ""
        return f'<ol class="outputs">{items}</ol>{note}'
    view = view_of(run, predictions, order=order)
    names = {Path(path).name: name for path, name in request.names.items()}
    inputs = {key: names.get(text, text) for key, text in view.inputs.items()}
    return fragment(replace(view, inputs=inputs))


def sentence_of(error: SixJarsError) -> str:
    """An error on one line."""
    faults = error.faults if isinstance(error, RecipeError) else (str(error),)
    return " ".join(" ".join(fault.split()) for fault in faults)
