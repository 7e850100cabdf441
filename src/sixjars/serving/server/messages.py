"""The messages of requests and responses, and how OpenAPI describes them: what fits it is accepted."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, WithJsonSchema

from sixjars.recipe.schema import Settings
from sixjars.recipe.sections import SearchSettings
from sixjars.serving.server.settings import ServerSettings

InputValue = Annotated[
    Any, WithJsonSchema({"description": "A text, a list of them, or an object of them by field."})
]
"""One input. Its error stands in its own prediction, so that the others are not lost."""


def _whole(value: Any) -> Any:
    """A number such as 2.0, which JSON does not tell from 2, as a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_numbers(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    fields = SearchSettings.model_fields.items()
    whole = {name for name, field in fields if type(field.default) is int}
    return {name: _whole(value) if name in whole else value for name, value in values.items()}


SearchKeys = Annotated[
    dict[str, Any],
    BeforeValidator(_whole_numbers),
    WithJsonSchema(SearchSettings.model_json_schema()),
]


class PredictRequest(Settings):
    """Inputs for a run, and how its outputs are searched."""

    model: str | None = None
    """The name of a run; may be left out where there is one."""
    inputs: list[InputValue] | None = None
    """The inputs: a text each, a list of sentences, turns or points, or an object of them by field.
    An image or a video is the name of an uploaded file; without inputs, each uploaded file is
    one."""
    search: SearchKeys = {}
    """Settings of search; those that are left out are the run's own."""
    nbest: Annotated[StrictInt, BeforeValidator(_whole)] | None = None
    """Outputs for each input."""
    weights: StrictBool = False
    """Whether outputs come with their tokens and attention weights."""
    view: StrictBool = False
    """Whether attention is also drawn, as HTML."""


class OutputMessage(Settings):
    """One output; the last five are there where weights were asked for."""

    text: str
    score: float | None
    log_probability: float | None
    probability: float | None
    finished: bool
    source: list[str] = []
    tokens: list[str] = []
    weights: list[list[float]] = []
    segments: list[int] = []
    layout: list[str | int] = []


class PredictionMessage(Settings):
    """The outputs for one input, best first; or why there are none."""

    outputs: list[OutputMessage]
    error: str | None = None
    notes: list[str] = []
    """Sentences about the input: that it was cut, or how many of its tokens are unknown."""
    html: str | None = None
    """Attention, where a view was asked for and the run has any."""


class PredictResponse(Settings):
    """The answer to `/v1/predict`: a prediction for each input, in their order."""

    model: str
    predictions: list[PredictionMessage]


class FieldDescription(Settings):
    """A field of a run, with what a page must know to ask for it."""

    name: str
    column: str
    """What it is called in the data."""
    kind: str
    file: bool
    """Whether its values are uploaded files."""
    describes: str
    settings: dict[str, Any]
    """Segments of a text, coordinates of a point, longest text."""


class ModelMessage(Settings):
    """A run that is served."""

    name: str
    task: str
    title: str
    inputs: list[FieldDescription]
    output: FieldDescription
    has_attention: bool
    searches: bool
    """Whether outputs are searched for, and can be streamed; or labels chosen."""
    multi_label: bool
    vocabulary: dict[str, int]
    """The size of the vocabulary of each field that has one."""
    search: SearchKeys
    """The run's own settings of search."""


class ModelsResponse(Settings):
    """The answer to `/v1/models`."""

    models: list[ModelMessage]


class ReloadRequest(Settings):
    """Which runs are read again."""

    model: str | None = None
    """One of them; all where it is left out."""


class ReloadResponse(Settings):
    """The answer to `/v1/reload`."""

    reloaded: list[str]


class Refusal(Settings):
    """Why a request was not answered."""

    detail: Annotated[str, Field(examples=["there is no model 'en-fr'; there are: en-hi."])]


_RELOAD = {
    "schema": ReloadRequest.model_json_schema(),
    "examples": {"one": {"value": {"model": "en-hi"}}, "all": {"value": {}}},
}
RELOAD_BODY = {"requestBody": {"required": False, "content": {"application/json": _RELOAD}}}


_BEAM: dict[str, Any] = {"search": {"kind": "beam", "width": 5}, "nbest": 3}
_SENTENCES = {"sentence1": "A dog runs.", "sentence2": "An animal moves."}
_TURNS = ["hello", "hello, how can I help?", "where is the station"]
EXAMPLES: dict[str, dict[str, Any]] = {
    "texts": {"inputs": ["I am going home", "my sister is reading a book"]},
    "beam": {"inputs": ["I am going home"], **_BEAM},
    "attention": {"inputs": ["I am going home"], "weights": True},
    "fields": {"inputs": [_SENTENCES]},
    "turns": {"inputs": [_TURNS]},
    "points": {"inputs": [[[0.1, 0.7], [0.3, 0.2], [0.9, 0.5]]]},
}
STREAMED = ("attention", "turns", "points")
"""Examples with one input."""


def request_body(
    runs: Sequence[ModelMessage], settings: ServerSettings, *, streams: bool = False
) -> dict[str, Any]:
    """The two forms of a request, or of a stream: JSON, or a form with files and the same JSON."""
    most = 1 if streams else settings.max_inputs
    schema = _schema(runs, settings, most, streams=streams)
    file = {"type": "string", "format": "binary"}
    files = {"type": "array", "items": file, "maxItems": settings.max_inputs}
    form: dict[str, Any] = {
        "type": "object",
        "properties": {"request": schema | {"description": "The same JSON."}, "files": files},
        "additionalProperties": False,
    }
    if len(runs) == 1 and len(runs[0].inputs) == 1 and runs[0].inputs[0].file:
        inputs = {"anyOf": [schema["properties"]["inputs"], {"type": "null"}]}
        properties = {**schema["properties"], "inputs": inputs}
        without = {**schema, "properties": properties, "required": []}
        alone = {"files": files | {"minItems": 1, "maxItems": most}, "request": without}
        named = {"properties": {"request": schema}, "required": ["request"]}
        form["properties"] = {"files": files, "request": without}
        form["anyOf"] = [named, {"properties": alone, "required": ["files"]}]
    else:
        form["required"] = ["request"]
    encoding = {"request": {"contentType": "application/json"}}
    content = {
        "application/json": {"schema": schema, "examples": _examples(runs, streams=streams)},
        "multipart/form-data": {"schema": form, "encoding": encoding},
    }
    return {"requestBody": {"required": True, "content": content}}


def _schema(
    runs: Sequence[ModelMessage], settings: ServerSettings, most: int, *, streams: bool
) -> dict[str, Any]:
    """A request in JSON; where several runs are served, it names one."""
    schema = PredictRequest.model_json_schema()
    properties = dict(schema["properties"])
    [array] = [part for part in properties["inputs"]["anyOf"] if part.get("type") == "array"]
    length = {"minItems": 1, "maxItems": most}
    properties["inputs"] = {"type": "array", "items": array["items"], **length}
    searches = any(run.searches for run in runs)
    # a stream has one output that is searched for, or as many labels as are asked for
    nbest = 1 if streams and searches else settings.max_search
    limits = {"type": "integer", "minimum": 1, "maximum": nbest}
    properties["nbest"] = properties["nbest"] | {"anyOf": [limits, {"type": "null"}]}
    if searches:
        search = {name: dict(part) for name, part in properties["search"]["properties"].items()}
        search["width"]["maximum"] = settings.max_search
        search["nbest"]["maximum"] = nbest
        if streams:
            search["kind"]["enum"] = ["greedy", "sample"]
        properties["search"] = {**properties["search"], "properties": search}
    else:
        about = "No run that is served searches."
        properties["search"] = {"type": "object", "additionalProperties": False}
        properties["search"]["description"] = about
    if len(runs) > 1:
        properties["model"] = {"type": "string", "enum": [run.name for run in runs]}
    required = ["inputs"] if len(runs) == 1 else ["model", "inputs"]
    return {**schema, "properties": properties, "required": required}


def _examples(runs: Sequence[ModelMessage], *, streams: bool) -> dict[str, Any]:
    """The examples with the name of a run; settings of search only where a run has a search."""
    names = STREAMED if streams else EXAMPLES
    searches = any(run.searches for run in runs)
    model = {} if len(runs) == 1 else {"model": runs[0].name}
    values = {name: model | EXAMPLES[name] for name in names}
    return {
        name: {"value": value}
        for name, value in values.items()
        if searches or "search" not in value
    }
