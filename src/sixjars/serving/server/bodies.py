"""The bodies of requests in OpenAPI: what fits them is accepted by the runs that are served."""

from collections.abc import Mapping, Sequence
from typing import Any

from sixjars.serving.server.messages import ModelMessage, PredictRequest
from sixjars.serving.server.settings import ServerSettings

_BEAM = {"search": {"kind": "beam", "width": 5}, "nbest": 3}
_SENTENCES = {"sentence1": "A dog runs.", "sentence2": "An animal moves."}
_TURNS = ["hello", "hello, how can I help?", "where is the station"]
EXAMPLES: dict[str, Any] = {
    "texts": {"value": {"inputs": ["I am going home", "my sister is reading a book"]}},
    "beam": {"value": {"model": "en-hi", "inputs": ["I am going home"], **_BEAM}},
    "attention": {"value": {"inputs": ["I am going home"], "weights": True}},
    "fields": {"value": {"inputs": [_SENTENCES]}},
    "turns": {"value": {"inputs": [_TURNS]}},
    "points": {"value": {"inputs": [[[0.1, 0.7], [0.3, 0.2], [0.9, 0.5]]]}},
}
STREAMED = ("attention", "turns", "points")
"""Examples with one input."""


def predict_body(runs: Sequence[ModelMessage], settings: ServerSettings) -> dict[str, Any]:
    """The body of a prediction."""
    return {"requestBody": _body(EXAMPLES, runs, settings, settings.max_inputs)}


def stream_body(runs: Sequence[ModelMessage], settings: ServerSettings) -> dict[str, Any]:
    """The body of a stream, which has one input and one output."""
    return {"requestBody": _body({name: EXAMPLES[name] for name in STREAMED}, runs, settings, 1)}


def _body(
    examples: Mapping[str, Any], runs: Sequence[ModelMessage], settings: ServerSettings, most: int
) -> dict[str, Any]:
    """The two forms of a request: JSON, or a form with files and the same JSON in it."""
    schema = _schema(runs, settings, most)
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
        "application/json": {"schema": schema, "examples": _named(examples, runs)},
        "multipart/form-data": {"schema": form, "encoding": encoding},
    }
    return {"required": True, "content": content}


def _schema(runs: Sequence[ModelMessage], settings: ServerSettings, most: int) -> dict[str, Any]:
    """A request in JSON; where several runs are served, it names one."""
    schema = PredictRequest.model_json_schema()
    properties = dict(schema["properties"])
    [array] = [part for part in properties["inputs"]["anyOf"] if part.get("type") == "array"]
    length = {"minItems": 1, "maxItems": most}
    properties["inputs"] = {"type": "array", "items": array["items"], **length}
    searches = any(run.searches for run in runs)
    # a stream has one output that is searched for, or as many labels as are asked for
    nbest = 1 if most == 1 and searches else settings.max_search
    limits = {"type": "integer", "minimum": 1, "maximum": nbest}
    properties["nbest"] = properties["nbest"] | {"anyOf": [limits, {"type": "null"}]}
    properties["search"] = _search(runs, settings, properties["search"], streams=most == 1)
    if len(runs) > 1:
        properties["model"] = {"type": "string", "enum": [run.name for run in runs]}
    required = ["inputs"] if len(runs) == 1 else ["model", "inputs"]
    return {**schema, "properties": properties, "required": required}


def _search(
    runs: Sequence[ModelMessage],
    settings: ServerSettings,
    schema: Mapping[str, Any],
    *,
    streams: bool,
) -> dict[str, Any]:
    """The settings of search, as far as this server allows them; none where no run searches."""
    if not any(run.searches for run in runs):
        return {
            "type": "object",
            "additionalProperties": False,
            "description": "No run that is served searches.",
        }
    properties = {name: dict(part) for name, part in schema["properties"].items()}
    for name in ("width", "nbest"):
        properties[name]["maximum"] = settings.max_search
    if streams:
        properties["kind"]["enum"] = ["greedy", "sample"]
        properties["nbest"]["maximum"] = 1
    return {**schema, "properties": properties}


def _named(examples: Mapping[str, Any], runs: Sequence[ModelMessage]) -> dict[str, Any]:
    """The examples with the name of a run; settings of search only where a run has a search."""
    searches = any(run.searches for run in runs)
    name = runs[0].name
    named = {}
    for key, example in examples.items():
        value = {part: inner for part, inner in example["value"].items() if part != "model"}
        if searches or "search" not in value:
            named[key] = {"value": value if len(runs) == 1 else {"model": name, **value}}
    return named
