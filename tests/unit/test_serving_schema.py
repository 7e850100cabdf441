"""What `/openapi.json` says of requests is what the server takes: each was found by requests made from the schema."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.serving.server.messages import (
    FieldDescription,
    ModelMessage,
    request_body,
)
from sixjars.serving.server.settings import ServerSettings
from tests.unit.serving import Server

SETTINGS = ServerSettings(max_search=8, max_inputs=5)


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Server]:
    """One run that searches."""
    made = Server({"hi": lambda: sixjars.load(run, device="cpu")}, SETTINGS)
    yield made
    made.stop()


def model(name: str = "hi", *, file: bool = False, searches: bool = True) -> ModelMessage:
    """A run as it is told of."""
    about: dict[str, Any] = {"describes": "", "settings": {}}
    field = FieldDescription(name="source", column="x", kind="text", file=file, **about)
    about = {"task": "transliteration", "title": "Transliteration", "has_attention": True}
    about |= {"multi_label": False, "vocabulary": {}, "search": {}}
    return ModelMessage(name=name, inputs=[field], output=field, searches=searches, **about)


def forms(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The schema of JSON, its examples, and the schema of a form."""
    content = body["requestBody"]["content"]
    in_json = content["application/json"]
    return in_json["schema"], in_json["examples"], content["multipart/form-data"]["schema"]


@pytest.mark.parametrize(
    ("key", "value"),
    {
        "length_penalty": 1000,
        "coverage_penalty": 1e30,
        "temperature": 1e-320,
        "top_p": 1e-320,
    }.items(),
)
def test_a_number_that_overflowed_is_refused(server: Server, key: str, value: float) -> None:
    """A length penalty of 1000 was answered with 500."""
    for kind in ("beam", "sample"):
        body = {"inputs": ["ghar"], "search": {"kind": kind, key: value}}
        status, told = server.refused("/v1/predict", body)
        assert status == 422
        assert told.startswith(f"search.{key}: should be ")


def test_inputs_are_needed(server: Server) -> None:
    """The schema took an object without inputs for a request, and so a form without them."""
    _, _, api = server.ask("/openapi.json")
    for path in ("/v1/predict", "/v1/stream"):
        content = api["paths"][path]["post"]["requestBody"]["content"]
        schema = content["application/json"]["schema"]
        assert schema["required"] == ["inputs"]
        assert schema["properties"]["inputs"]["minItems"] == 1
        in_form = content["multipart/form-data"]["schema"]
        assert in_form["required"] == ["request"]
        assert in_form["properties"]["request"]["required"] == ["inputs"]
        assert server.ask(path, {})[0] == server.ask(path, {"inputs": []})[0] == 422
    kind = "multipart/form-data; boundary=x"
    form = b'--x\r\nContent-Disposition: form-data; name="request"\r\n'
    text = form + b'Content-Type: application/json\r\n\r\n{"inputs": ["ghar"]}\r\n--x--\r\n'
    assert len(server.predictions(text, content_type=kind)) == 1
    assert server.ask("/v1/predict", form + b"\r\n{}\r\n--x--\r\n", content_type=kind)[0] == 422


def test_limits_of_the_server_are_in_its_schema(server: Server) -> None:
    schema, _, _ = forms(request_body([model()], SETTINGS))
    assert schema["properties"]["inputs"]["maxItems"] == 5
    search = schema["properties"]["search"]["properties"]
    assert (search["width"]["maximum"], search["nbest"]["maximum"]) == (8, 8)
    widest = {"kind": "beam", "width": 8, "nbest": 8, "max_length": 5}
    assert server.ask("/v1/predict", {"inputs": ["a"] * 5, "search": widest})[0] == 200
    for wrong in ({"inputs": ["a"] * 6}, {"inputs": ["a"], "search": {"kind": "beam", "width": 9}}):
        assert server.ask("/v1/predict", wrong)[0] == 422
    schema, examples, _ = forms(request_body([model()], SETTINGS, streams=True))
    assert schema["properties"]["inputs"]["maxItems"] == 1
    assert schema["properties"]["search"]["properties"]["kind"]["enum"] == ["greedy", "sample"]
    assert {len(one["value"]["inputs"]) for one in examples.values()} == {1}


def test_where_several_runs_are_served_requests_name_one() -> None:
    schema, examples, form = forms(request_body([model("a"), model("b", searches=False)], SETTINGS))
    assert schema["required"] == ["model", "inputs"]
    assert schema["properties"]["model"] == {"type": "string", "enum": ["a", "b"]}
    assert {one["value"]["model"] for one in examples.values()} == {"a"}
    assert form["required"] == ["request"]


def test_where_nothing_is_searched_there_is_nothing_to_set() -> None:
    schema, examples, _ = forms(request_body([model(searches=False)], SETTINGS))
    assert schema["properties"]["search"]["additionalProperties"] is False
    assert "properties" not in schema["properties"]["search"]
    assert "beam" not in examples


def test_a_file_alone_is_an_input() -> None:
    """Of one run that reads one image; then the other part of the form may be left out."""
    _, _, form = forms(request_body([model(file=True)], SETTINGS))
    asked, alone = form["anyOf"]
    assert asked["required"] == ["request"]
    assert asked["properties"]["request"]["required"] == ["inputs"]
    assert alone["required"] == ["files"]
    assert alone["properties"]["files"]["minItems"] == 1
    assert alone["properties"]["request"]["required"] == []
    assert form["properties"]["files"]["maxItems"] == 5
    _, _, form = forms(request_body([model(file=True)], SETTINGS, streams=True))
    assert form["anyOf"][1]["properties"]["files"]["maxItems"] == 1


def test_every_status_is_described(server: Server) -> None:
    _, _, api = server.ask("/openapi.json")
    for path, methods in api["paths"].items():
        status, headers, _ = server.ask(path, method="DELETE")
        assert status == 405
        assert headers["allow"] in ("GET", "POST")
        assert all("405" in one["responses"] for one in methods.values())


@pytest.mark.parametrize(
    "wrong", [{"view": 0}, {"weights": "yes"}, {"nbest": "2"}, {"nbest": True}], ids=str
)
def test_values_have_the_types_of_the_schema(server: Server, wrong: dict[str, Any]) -> None:
    """0 was taken for false, a text for a number, and a setting that another replaced for right."""
    status, told = server.refused("/v1/predict", {"inputs": ["ghar"], **wrong})
    assert status == 422
    assert told.startswith(f"request.{next(iter(wrong))}: should be a valid ")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("kind", None, "should be greedy, beam or sample, but is None; or leave it out."),
        ("nbest", 0, "should be greater than or equal to 1, but is 0."),
    ],
)
def test_a_setting_that_is_not_used_must_be_right_too(
    server: Server, key: str, value: Any, sentence: str
) -> None:
    body = {"inputs": ["ghar"], "search": {key: value}, "nbest": 1}
    assert server.refused("/v1/predict", body) == (422, f"search.{key}: {sentence}")


def test_a_whole_number_may_have_a_point(server: Server) -> None:
    search = {"kind": "beam", "width": 3.0, "max_length": 5.0}
    [row] = server.predictions({"inputs": ["ghar"], "nbest": 2.0, "search": search})
    assert len(row["outputs"]) == 2
    assert server.ask("/v1/predict", {"inputs": ["ghar"], "nbest": 2.5})[0] == 422
