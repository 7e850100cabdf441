"""The messages of requests and responses, as OpenAPI describes them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, WithJsonSchema

from sixjars.recipe.schema import Settings
from sixjars.recipe.sections import SearchSettings

InputValue = Annotated[
    Any, WithJsonSchema({"description": "A text, a list of them, or an object of them by field."})
]
"""One input. Its error stands in its own prediction, so that the others are not lost."""


def _whole(value: Any) -> Any:
    """A number such as 2.0, which JSON does not tell from 2, as a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_numbers(values: Any) -> Any:
    """Settings of search with whole numbers where their defaults are."""
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


class FieldMessage(Settings):
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
    inputs: list[FieldMessage]
    output: FieldMessage
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
