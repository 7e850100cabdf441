"""The files of an exported model are checked once, when it is loaded: one sentence for whatever is wrong."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sixjars_runtime
from sixjars_runtime.exported.graphs import OnnxGraph

END = "; export the run again."


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    """An exported run, to break."""
    shutil.copytree(exported, tmp_path / "copy")
    return tmp_path / "copy"


def sentence_of(folder: Path) -> str:
    """What loading says."""
    with pytest.raises(sixjars_runtime.SixJarsError) as error:
        sixjars_runtime.load(folder)
    return str(error.value)


def put(values: Any, key: str, value: Any) -> None:
    """Another value, or none, at a place."""
    *above, last = key.split(".")
    for name in above:
        values = values[name]
    if value is ...:
        del values[last]
    else:
        values[last] = value


SETTINGS = "inputs.source.settings"
WRONG: list[tuple[str, Any, str]] = [
    ("format", ..., "format is missing"),
    ("inputs", [], "inputs must be a section of 0 to 8 keys, but is []"),
    ("inputs.source.kind", "txt", "{} 'txt' is unknown. Did you mean 'text'? Known: features, im"),
    (SETTINGS, None, "{} must be a section of keys, but is None"),
    (f"{SETTINGS}.max_length", True, "{} must be a whole number from 1"),
    (f"{SETTINGS}.segments", {}, "{} '{{}}' is unknown. Known: lines, no"),
    (
        "inputs.../../etc/x",
        {"kind": "points"},
        "inputs names '../../etc/x', which is no name of letters, digits",
    ),
    ("output.other", {"kind": "text"}, "output must be a section of 1 to 1 keys, but is {{"),
    ("columns", {"x": 1}, "{} names ['x'], but not the inputs"),
    ("positions_of", ["source"], "{} must be a text, but is ['source']"),
    ("layout", 3, "{} must be a list of 1 to 4, but is 3"),
    ("special", None, "{} is None, but the output is of kind text"),
    ("special.go", 10**30, "{} must be a whole number from 0 to 2,147,483,648, but is 1"),
    ("special.banned", [1000], "special names the token 1000, but there are "),
    ("longest_beyond", 10**9, "{} must be a whole number from -100 to 1,000, but is 1000000000"),
    (
        "batch_examples",
        0,
        "{} must be a whole number from 1 to 9,223,372,036,854,775,807, but is 0",
    ),
    ("search.width", ..., "{} is missing"),
    ("search.witdh", 3, "search: key 'witdh' is unknown. Did you mean 'width'? Known: "),
    ("search.length_penalty", 1000, "'length_penalty' must be a number from 0 to 5.0, but is 1000"),
    (
        "search.temperature",
        1e-320,
        "'temperature' must be a number from 0.001 to 1,000.0, but is 1e-320",
    ),
    ("has_attention", False, "search.coverage_penalty is 0.5, but has_attention is false"),
    (
        "search.max_length",
        10**9,
        "'max_length' must be a whole number from 1 to 20,000, but is 1000000000",
    ),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG, ids=[key for key, _, _ in WRONG])
def test_settings_that_cannot_be_right(copy: Path, key: str, value: Any, message: str) -> None:
    values = json.loads((copy / "model.json").read_text())
    values["search"]["coverage_penalty"] = 0.5
    if key.startswith("inputs..."):
        values["inputs"][key.removeprefix("inputs.")] = value
    else:
        put(values, key, value)
    (copy / "model.json").write_text(json.dumps(values))
    told = sentence_of(copy)
    assert told.startswith(f"{copy / 'model.json'} is damaged: {message.format(key)}")
    assert told.endswith(END)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is no JSON: Expecting value"),
        (b"[" * 100_000, "it is nested too deep"),
        (b"\xff{}", "byte 0 is not UTF-8 text"),
        (b'{"format": NaN}', "NaN is no number of JSON"),
        (b'{"format": 1, "format": 1}', "key 'format' stands twice"),
        (b"[]", "must be a section of keys, but is []"),
        (b" " * (1 << 20) + b"{}", "is larger than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_no_settings(copy: Path, content: bytes, message: str) -> None:
    (copy / "model.json").write_bytes(content)
    told = sentence_of(copy)
    assert told.startswith(f"{copy / 'model.json'} is damaged: ")
    assert message in told


def to_a_pipe(path: Path) -> None:
    """Nobody ever writes into it."""
    path.unlink()
    os.mkfifo(path)


def to_a_beginning(path: Path) -> None:
    """Of JSON."""
    path.write_text("{")


CHANGES: dict[str, Callable[[Path], None]] = {
    "is damaged: it is no JSON": to_a_beginning,
    "does not exist": Path.unlink,
    "is not a plain file": to_a_pipe,
    "larger than": lambda path: os.truncate(path, 3 << 30),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("message", CHANGES)
def test_a_vocabulary_that_cannot_be_read(copy: Path, message: str) -> None:
    CHANGES[message](copy / "fields" / "source.json")
    told = sentence_of(copy)
    assert told.startswith(str(copy / "fields" / "source.json"))
    assert message in told


@pytest.mark.timeout(20)
def test_graphs_that_do_not_fit(copy: Path) -> None:
    vocabulary = copy / "fields" / "target.json"
    kept = vocabulary.read_text()
    values = json.loads(kept)
    vocabulary.write_text(json.dumps(values | {"tokens": [*values["tokens"], "ZZ"]}))
    size = len(values["tokens"]) + 4
    assert sentence_of(copy) == (
        f"{copy / 'step.onnx'} does not fit the files beside it: log_probabilities is (any, {size}), but should be "
        f"(any, {size + 1}){END}"
    )
    vocabulary.write_text(kept)
    step, encoder = (copy / name for name in ("step.onnx", "encoder.onnx"))
    graph = step.read_bytes()
    shutil.copy(encoder, step)
    assert sentence_of(copy) == f"{step} does not fit model.json: it takes source.values{END}"
    step.write_bytes(graph[: len(graph) // 2])
    told = f"{step} is damaged, or is no graph that onnxruntime can run: "
    assert sentence_of(copy).startswith(told)
    step.unlink()
    assert sentence_of(copy) == f"{step} does not exist{END}"
    to_a_pipe(encoder)
    assert sentence_of(copy) == f"{encoder} is no plain file{END}"


def test_a_source_vocabulary_that_the_graph_does_not_have(copy: Path) -> None:
    path = copy / "fields" / "source.json"
    values = json.loads(path.read_text())
    values["tokens"] = [f"<{n}>" for n in range(500)] + values["tokens"]
    path.write_text(json.dumps(values))
    with pytest.raises(sixjars_runtime.SixJarsError) as error:
        sixjars_runtime.load(copy).predict("ghar")
    told = f"{copy / 'encoder.onnx'} cannot be run, or does not belong to "
    assert str(error.value).startswith(told)


def graph_of(path: Path, output: str, declared: list[Any], node: Any) -> OnnxGraph:
    """A graph of one node that takes x, (rows, 2)."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 2])
    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, declared)
    graph = helper.make_graph([node], "one", [given], [made])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(model, str(path))
    return OnnxGraph(path, 1)


def test_a_graph_that_gives_something_else_than_it_declares(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    graph = graph_of(path, "y", ["rows", "any"], node)
    assert graph({"x": np.ones((2, 2), dtype=np.float32)}, rows=2)["y"].shape == (2, 2)
    other = r"a\.onnx gives another y than it declares; export"
    with pytest.raises(sixjars_runtime.SixJarsError, match=other):
        graph({"x": np.ones((3, 2), dtype=np.float32)}, rows=3)
    lacks = r"a\.onnx takes 'x', which it is not given; export"
    with pytest.raises(sixjars_runtime.SixJarsError, match=lacks):
        graph({}, rows=3)
