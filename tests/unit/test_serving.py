"""`sixjars serve`: requests over HTTP give what `predict` gives, and whatever is wrong is a sentence."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic_core import to_json

import sixjars
from sixjars.errors import RequestError
from sixjars.serving.client import Answer, Client, Token
from tests.unit.serving import Server, serving

WORDS = ["ghar", "namaste", "pani", "kitab"]
HI: dict[str, Any] = {"model": "hi", "inputs": ["a"]}
LM: dict[str, Any] = {"model": "lm", "inputs": ["the"]}


@pytest.fixture(scope="module")
def server(run: Path, language_model: Path) -> Iterator[Server]:
    """Of a run that transliterates, and of one without input or attention."""
    with serving({"hi": run, "lm": language_model}, max_text=1000, max_search=8) as made:
        yield made


@pytest.fixture(scope="module")
def predictor(run: Path) -> sixjars.Predictor:
    return sixjars.load(run, device="cpu")


def test_answers_are_those_of_predict(server: Server, predictor: sixjars.Predictor) -> None:
    status, _, found = server.ask("/v1/predict", HI | {"inputs": WORDS, "weights": True})
    assert (status, found["model"]) == (200, "hi")
    for row, one in zip(found["predictions"], predictor.predict(WORDS), strict=True):
        [output] = row["outputs"]
        assert output["text"] == one.text
        assert output["log_probability"] == pytest.approx(one.log_probability, abs=1e-4)
        assert output["tokens"] == list(one.tokens)
        assert output["source"] == list(one.source)
        assert len(output["weights"]) == len(one.tokens)


def texts(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [[one.text for one in row] for row in rows]


def test_searches_are_those_of_predict(server: Server, predictor: sixjars.Predictor) -> None:
    with Client(server.address) as client:
        beams = client.predict(WORDS, model="hi", nbest=3, kind="beam", width=4)
        drawn = client.predict(WORDS, model="hi", kind="sample", nbest=2, seed=7)
    assert texts(beams) == texts(predictor.predict(WORDS, search="beam", width=4, nbest=3))
    assert texts(drawn) == texts(predictor.predict(WORDS, search="sample", nbest=2, seed=7))
    assert beams[0][0].weights == ()


def test_many_at_once_get_their_own_answers(server: Server, predictor: sixjars.Predictor) -> None:
    words = [f"{first}{second}" for first in "abdgk" for second in ("a", "ar", "ana", "i")]
    wanted = [one.text for one in predictor.predict(words)]
    found: dict[int, str] = {}

    def ask(at: int) -> None:
        with Client(server.address) as client:
            kind = "beam" if at % 5 == 0 else "greedy"
            for _ in range(3):
                [[answer]] = client.predict([words[at]], model="hi", kind=kind)
            found[at] = answer.text if kind == "greedy" else wanted[at]

    threads = [Thread(target=ask, args=[at]) for at in range(len(words))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[at] for at in range(len(words))] == wanted
    _, _, text = server.ask("/metrics")
    size = float(text.split('sixjars_batch_inputs_sum{model="hi"} ')[1].split()[0])
    count = float(text.split('sixjars_batch_inputs_count{model="hi"} ')[1].split()[0])
    assert size > count  # some were computed together


def test_one_bad_input_spoils_only_its_own_row(server: Server) -> None:
    given = ["ghar", "", 5, {"target": "x"}, ["a"], None, "x" * 2000, "pani"]
    rows = server.predictions(HI | {"inputs": given})
    assert [at for at, row in enumerate(rows) if row["outputs"]] == [0, 7]
    assert rows[1]["error"] == "input 2: the source is empty."
    assert rows[2]["error"] == "input 3: the source must be a text, but is 5."
    assert rows[3]["error"] == "input 4: must name source, but has target."
    long = "input 7: has 2000 characters, but this server allows 1000 (--max-text)."
    assert rows[6]["error"] == long


WIDEST = {"kind": "beam", "width": 8, "max_length": 1000}
LONG = {"kind": "sample", "max_length": 999}
LAST = {"model": "lm", "search": {"coverage_penalty": 0.5}}
NO_JSON = "the request is not JSON: "


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"inputs": None}, "request.inputs: give a list of at least one input."),
        ({"inputs": []}, "request.inputs: give a list of at least one input."),
        ({"model": None}, "request.model: name one of hi, lm."),
        ({"inputs": ["a"] * 300}, "inputs: there are 300, but this server allows 256 in a"),
        ({"nbset": 2}, "request: key 'nbset' is unknown. Did you mean 'nbest'?"),
        ({"search": {"widht": 2}}, "search: key 'widht' is unknown. Did you mean"),
        ({"search": {"kind": "best"}}, "search.kind: should be 'greedy', 'sample'"),
        ({"search": {"kind": 5}}, "search must be 'greedy', 'beam' or 'sample'"),
        ({"nbest": 0}, "search.nbest: should be greater than or equal to 1"),
        ({"nbest": 9}, "search.nbest is 9, but this server allows 8"),
        ({"search": {"width": 9}}, "search.width is 9, but this server allows 8 ("),
        ({"search": {"max_length": 2000}}, "but this server allows 1000."),
        (
            {"inputs": ["a"] * 200, "nbest": 8, "search": WIDEST},
            "may have 1,600,000 tokens, but this server allows 1,048,576; ask for fewer",
        ),
        (
            {"inputs": ["a"] * 200, "nbest": 2, "weights": True, "search": LONG},
            "may have 399,600 tokens, but this server allows 262,144 with weights;",
        ),
        (LAST, "needs attention, but this run"),
        (b'{"inputs": [', NO_JSON),
        (b'{"inputs": [NaN]}', NO_JSON),
        (b"[" * 5000, NO_JSON),
        (b'["a"]', "request: must be a section of keys"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(server: Server, changes: Any, sentence: str) -> None:
    body = changes
    if isinstance(changes, dict):
        body = {key: value for key, value in (HI | changes).items() if value is not None}
    status, told = server.refused("/v1/predict", body)
    assert status == 422, told
    assert sentence in told


def test_other_types_and_paths_are_refused(server: Server) -> None:
    kinds = "send application/json, or multipart/form-data with files, but not 'text/plain'."
    assert server.refused("/v1/predict", b"ghar", content_type="text/plain") == (415, kinds)
    unknown = "there is no model 'no'; there are: hi, lm."
    assert server.refused("/v1/predict", HI | {"model": "no"}) == (404, unknown)
    assert server.ask("/v1/none")[0] == 404
    assert server.ask("/v1/predict")[0] == 405


def test_a_stream_is_the_output_token_by_token(
    server: Server, predictor: sixjars.Predictor
) -> None:
    [wanted] = predictor.predict(["namaste"])
    with Client(server.address) as client:
        *tokens, last = client.stream("namaste", model="hi")
    assert isinstance(last, Answer)
    assert (last.text, last.tokens) == (wanted.text, wanted.tokens)
    assert [one.token for one in tokens if isinstance(one, Token)] == list(wanted.tokens)
    for one, row in zip(tokens, wanted.weights, strict=True):
        assert isinstance(one, Token)
        assert one.weights == pytest.approx(row, abs=1e-5)
    assert isinstance(tokens[-1], Token)
    assert tokens[-1].log_probability == pytest.approx(wanted.log_probability, abs=1e-5)


def test_a_stream_of_a_language_model_begins_with_its_prefix(server: Server) -> None:
    with Client(server.address) as client:
        *tokens, last = client.stream("the", model="lm", kind="sample", seed=3)
        [[whole]] = client.predict(["the"], model="lm", kind="sample", seed=3)
    assert isinstance(last, Answer)
    assert last.text == whole.text
    assert isinstance(tokens[-1], Token)
    assert tokens[-1].text == last.text


def test_a_stream_that_cannot_be_is_refused(server: Server) -> None:
    one = "a stream has one output, of greedy search or sampling; ask"
    several = "request.inputs: a stream has one input, but there are 2."
    for more, sentence in (({"search": {"kind": "beam"}}, one), ({"inputs": ["a", "b"]}, several)):
        status, told = server.refused("/v1/stream", HI | more)
        assert status == 422
        assert told.startswith(sentence)
    status, _, told = server.ask("/v1/stream", HI | {"inputs": [""]})
    assert status == 200
    assert '"error":"input 1: the source is empty."' in told


def test_models_are_described(server: Server) -> None:
    with Client(server.address) as client:
        first, second = client.models()
    [field] = first["inputs"]
    assert (first["name"], first["task"]) == ("hi", "transliteration")
    assert first["has_attention"]
    assert first["searches"]
    assert (field["name"], field["kind"], field["file"]) == ("source", "text", False)
    assert field["settings"]["segments"] == "none"
    assert first["vocabulary"]["target"] > 5
    assert first["search"]["max_length"] == 12
    assert [field["name"] for field in second["inputs"]] == ["target"]
    assert not second["has_attention"]


def test_a_view_is_html_without_what_was_typed(server: Server) -> None:
    [row] = server.predictions({"model": "hi", "inputs": ["<b>"], "view": True, "nbest": 2})
    assert row["html"].startswith('<figure class="view"')
    assert "Ordered by score: log probability" in row["html"]
    assert "&lt;b&gt;" in row["html"]
    assert "<b>" not in row["html"].replace('<b class="label">', "")
    [row] = server.predictions(LM | {"view": True})
    assert row["html"].startswith('<ol class="outputs">')
    assert "Ordered by" not in row["html"]
    [row] = server.predictions(LM | {"view": True, "nbest": 2, "search": {"kind": "beam"}})
    note = '</ol><p class="note">Ordered by score: log probability / tokens.</p>'
    assert row["html"].endswith(note)


def test_openapi_has_examples_that_work(server: Server) -> None:
    _, _, api = server.ask("/openapi.json")
    post = api["paths"]["/v1/predict"]["post"]
    examples = post["requestBody"]["content"]["application/json"]["examples"]
    assert {"texts", "beam", "attention", "fields", "turns", "points"} == set(examples)
    assert server.predictions({**examples["texts"]["value"], "model": "hi"})
    assert {"401", "403", "413", "415", "422", "503", "504"} <= set(post["responses"])


def test_health(server: Server) -> None:
    assert server.ask("/healthz")[2] == "ok\n"
    assert server.ask("/readyz")[2] == "ready\n"
    status, headers, text = server.ask("/metrics")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert 'sixjars_requests_total{path="/healthz",status="200"}' in text
    assert "sixjars_waiting_inputs" in text
    names = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(name.startswith("sixjars_") for name in names)


def test_a_client_tells_why(server: Server) -> None:
    with (
        Client(server.address) as client,
        pytest.raises(RequestError, match=r"^there is no model 'x'; ") as caught,
    ):
        client.predict(["a"], model="x")
    assert caught.value.status == 404
    with pytest.raises(RequestError, match=r"^http://127\.0\.0\.1:9 does not answer: .*refused"):
        Client("http://127.0.0.1:9").models()
    address = r"is no address of a server; write http://127\.0\.0\.1:8000\."
    with pytest.raises(RequestError, match=address):
        Client("localhost").models()
    with Client(server.address) as client:
        [[bad]] = client.predict([""], model="hi")
    assert (bad.ok, bad.error) == (False, "input 1: the source is empty.")


def test_a_client_needs_no_torch() -> None:
    code = "import sys, sixjars; sixjars.Client('http://x'); print(*{'torch', 'numpy', 'pydantic'} & {*sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"


def test_answers_are_strict_json(server: Server) -> None:
    """Infinite scores become null."""
    assert json.loads(to_json({"a": float("-inf")}, inf_nan_mode="null")) == {"a": None}
    assert server.predictions(HI | {"search": {"min_length": 11}})
