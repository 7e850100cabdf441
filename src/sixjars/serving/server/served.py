"""One run that is served: what is told of it, what it is asked, and the work on a batch of requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, final

from sixjars.decoding.scores import order_in_words
from sixjars.drawing.html import fragment
from sixjars.drawing.view import BY_PROBABILITY, view_of
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.notes import notes_of
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Prediction
from sixjars.runs.requests import Check, Input, most_together, search_of
from sixjars.runs.stepwise import Tell, Written, stepwise
from sixjars.serving.pages import titles
from sixjars.serving.server.batcher import Job, Results
from sixjars.serving.server.messages import FieldMessage, ModelMessage, PredictRequest
from sixjars.serving.server.settings import ServerSettings
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RecipeError, SixJarsError

SHOWN = {"segments", "dimensions", "max_length", "multi_label"}
"""Settings of a field that whoever asks must know; others may name files of this machine."""
SHORT = ("text", "score", "log_probability", "probability", "finished")
"""What is told of an output where nobody asked for its weights."""

WITHOUT, WITH_WEIGHTS = 1 << 20, 1 << 18
"""The most tokens that all outputs of a request may have, without their weights and with them."""


@final
class _GivenUp(Exception):
    """Nobody waits for the answer any longer."""


@final
@dataclass(frozen=True)
class How:
    """How some inputs are asked, and of which predictor: a run may be read again while they wait."""

    run: Predictor
    search: SearchSettings
    weights: bool
    view: bool

    @property
    def most_streams(self) -> int:
        """Most streams that are written side by side: as many as one batch of predictions has inputs."""
        return most_together(
            self.run.recipe.evaluation.batch_examples, self.run.fields.inputs.values()
        )


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """The inputs of a request, the files that were uploaded with it, and how it is asked."""

    inputs: Sequence[Input]
    how: How
    names: Mapping[str, str] = field(default_factory=dict)
    """Paths of uploaded files, and the names that their sender gave them."""
    tell: Callable[[Written], None] | None = None
    """Of a stream: who is told of each step."""

    def plain(self, sentence: str) -> str:
        """A sentence with the names of the sender."""
        for path, name in self.names.items():
            sentence = sentence.replace(path, name)
        return sentence


@final
class Served:
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
        """What is told of it."""
        run, columns = self.predictor, titles(self.predictor)
        fields = {**run.inputs, run.fields.output.name: run.fields.output}
        sizes = {name: own.facts().get("vocabulary") for name, own in fields.items()}
        return ModelMessage(
            name=self.name,
            task=run.recipe.task,
            title=TASKS[run.recipe.task].title,
            inputs=[_field(own, columns) for own in run.inputs.values()],
            output=_field(run.fields.output, columns),
            has_attention=run.has_attention,
            searches=run.ability.searches,
            multi_label=run.ability.multi_label,
            vocabulary={name: int(size) for name, size in sizes.items() if size is not None},
            search=run.recipe.evaluation.search.model_dump(),
        )

    def how(self, asked: PredictRequest, *, streams: bool = False) -> How:
        """How a request is to be answered; SixJarsError with a sentence where it cannot be.

        A stream is greedy where nothing but the run's own settings ask for a beam.
        """
        run, given, most = self.predictor, dict(asked.search), self.settings.max_search
        kind = given.pop("kind", None)
        self._check_unused(asked, given, kind)
        given |= {} if asked.nbest is None else {"nbest": asked.nbest}
        own = run.recipe.evaluation.search
        if streams and run.ability.searches and own.kind == "beam" and "width" not in given:
            own = own.model_copy(update={"kind": "greedy", "nbest": 1})
        search = search_of(own, kind, given, run.ability, "this request")
        for key in ("width", "nbest"):
            if key in given and getattr(search, key) > most:
                raise DataError(
                    f"search.{key} is {getattr(search, key)}, but this server allows {most} (--max-search)."
                )
        longest = max(own.max_length, 1000)
        if search.max_length > longest:
            raise DataError(
                f"search.max_length is {search.max_length}, but this server allows {longest}."
            )
        keeps = asked.weights or asked.view
        tokens = (
            len(asked.inputs or ()) * search.nbest * search.max_length
            if run.ability.searches
            else 0
        )
        if tokens > (most := WITH_WEIGHTS if keeps else WITHOUT):
            raise DataError(
                f"the outputs of this request may have {tokens:,} tokens, but this server allows {most:,}"
                f"{' with weights' if keeps else ''}; ask for fewer inputs or outputs, or a smaller max_length."
            )
        if search.coverage_penalty and not run.has_attention:
            raise DataError(
                "search.coverage_penalty needs attention, but this run has none; leave it out."
            )
        return How(run, search, asked.weights, asked.view)

    def _check_unused(
        self, asked: PredictRequest, given: Mapping[str, Any], kind: str | None
    ) -> None:
        """Refuse settings that would not be used, and are wrong."""
        if kind is None and "kind" in asked.search:
            raise DataError(
                "search.kind: should be greedy, beam or sample, but is None; or leave it out."
            )
        if asked.nbest is not None and "nbest" in given:  # the other takes its place
            search_of(
                self.predictor.recipe.evaluation.search,
                kind,
                given,
                self.predictor.ability,
                "this request",
            )

    def check_stream(self, asked: Asked) -> None:
        """Refuse what has no beginning before its end."""
        how, count = asked.how, len(asked.inputs)
        if count != 1:
            raise DataError(f"request.inputs: a stream has one input, but there are {count}.")
        if how.run.ability.searches and (how.search.kind == "beam" or how.search.nbest > 1):
            raise DataError(
                "a stream has one output, of greedy search or sampling; ask /v1/predict for a beam."
            )

    def work(self, jobs: Sequence[Job], between: Callable[[], None]) -> Results:
        """Answer a batch. Where it fails as a whole, each is tried alone, so that one spoils only its own answer.

        It ends where nobody waits any longer: what took too long would hold up all that come after it. Of streams each
        ends so by itself. `between` is called between two steps of streams.
        """

        def check() -> None:
            if all(job.given_up for job in jobs):
                raise _GivenUp

        try:
            check()
            return list(zip(jobs, self._answers(jobs, check, between), strict=True))
        except _GivenUp as error:
            return [(job, error) for job in jobs]
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            if len(jobs) == 1:
                return [(jobs[0], error)]
            return [result for job in jobs for result in self.work([job], between)]

    def _answers(self, jobs: Sequence[Job], check: Check, between: Callable[[], None]) -> list[Any]:
        """For each request a list of plain values; for a stream one of them, or an exception."""
        asked: list[Asked] = [job.more for job in jobs]
        if asked[0].tell is not None:
            return _streamed(jobs, check, between)
        how, run = asked[0].how, asked[0].how.run
        requests = [
            run.prepare(one, number=at, search=how.search)
            for own in asked
            for at, one in enumerate(own.inputs)
        ]
        found = iter(
            run.answers(requests, how.search, details=how.weights or how.view, check=check)
        )
        return [[_row(run, own, next(found)) for _ in own.inputs] for own in asked]


def _streamed(jobs: Sequence[Job], check: Check, between: Callable[[], None]) -> list[Any]:
    """For each stream, the plain values of its input, or what was raised; each is answered as soon as it ends."""
    how, ended = jobs[0].more.how, dict[Job, Any]()

    def teller(job: Job) -> Tell:
        asked: Asked = job.more
        tell = asked.tell
        assert tell is not None

        def told(made: Written | Prediction | Exception) -> None:
            if isinstance(made, Exception):
                ended[job] = made
            elif job.given_up:
                raise _GivenUp
            elif isinstance(made, Written):
                return tell(made)
            else:
                ended[job] = _row(how.run, asked, [made])
            return job.answer_now(ended[job])

        return told

    inputs, tells = [job.inputs[0] for job in jobs], [teller(job) for job in jobs]
    stepwise(how.run, inputs, how.search, tells, check=check, after=between)
    return [ended[job] for job in jobs]


def _field(own: Any, columns: Mapping[str, str]) -> FieldMessage:
    shown, column = own.settings.model_dump(mode="json", include=SHOWN), columns[own.name]
    return FieldMessage(
        name=own.name,
        column=column,
        kind=own.kind,
        file=own.is_media,
        describes=own.describe(),
        settings=shown,
    )


def _row(run: Predictor, asked: Asked, found: Sequence[Prediction]) -> dict[str, Any]:
    """The outputs for one input as plain values."""
    first = found[0]
    if first.error is not None:
        return {"outputs": [], "error": asked.plain(first.error)}
    values = [one.to_json() for one in found]
    if not asked.how.weights:
        values = [{key: value[key] for key in SHORT} for value in values]
    row = {"outputs": values, "notes": notes_of(first)}
    return row | ({"html": _drawn(run, asked, found)} if asked.how.view else {})


def _drawn(run: Predictor, asked: Asked, found: Sequence[Prediction]) -> str:
    """Attention as HTML; the outputs alone where there is none."""
    order = order_in_words(asked.how.search) if run.ability.searches else ""
    if not any(one.weights for one in found):
        said = "".join(
            f"<li>{escape(one.text)} <small>probability {one.probability:.3g}</small></li>"
            for one in found
        )
        told = f'<p class="note">{order or BY_PROBABILITY}</p>' if len(found) > 1 else ""
        return f'<ol class="outputs">{said}</ol>{told}'
    view = view_of(run, found, order=order)
    own = {Path(path).name: name for path, name in asked.names.items()}
    return fragment(
        replace(view, inputs={key: own.get(text, text) for key, text in view.inputs.items()})
    )


def sentence_of(error: SixJarsError) -> str:
    """An error on one line."""
    faults = error.faults if isinstance(error, RecipeError) else (str(error),)
    return " ".join(" ".join(fault.split()) for fault in faults)
