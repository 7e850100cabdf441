"""Exported runs: the same answers without torch, whatever the shape; and what cannot be exported is a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import sixjars
import sixjars_runtime
from sixjars.cli import app
from sixjars.errors import DataError, MissingExtra, RecipeError, RunError
from sixjars.serving.export import files
from sixjars.serving.export.examples import SHAPES
from sixjars.serving.export.graphs import filled, flat, write_graph

WORDS = ["ghar", "namaste", "a", "pa ni", "kitaab ghar", "xyz", "bharat", "!?", "raam", "seeta"]
HOW: list[dict[str, Any]] = [
    {},
    {"search": "beam", "width": 4, "nbest": 3},
    {"search": "sample", "nbest": 2, "seed": 3},
    {"min_length": 3, "no_repeat_ngram": 2, "coverage_penalty": 0.2},
    {"unknown": "replace"},
]


def pairs(one: Any, other: Any) -> None:
    """Predictions of torch and of the runtime are the same."""
    for own, theirs in zip(one, other, strict=True):
        for here, there in zip(own, theirs, strict=True):
            same = ("text", "tokens", "source", "finished", "segments", "error")
            assert [getattr(here, name) for name in same] == [getattr(there, name) for name in same]
            assert here.log_probability == pytest.approx(there.log_probability, abs=1e-4)
            assert here.score == pytest.approx(there.score, abs=1e-4)
            assert not here.weights or np.allclose(here.attention, there.weights, atol=1e-4)
            assert dict(here.inputs) == dict(there.inputs)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_answers_are_those_of_torch(run: Path, exported: Path, how: dict[str, Any]) -> None:
    texts = [*WORDS, "", "\t", "long " * 80, 5, "half \ud800"]
    pairs(sixjars.load(run).nbest(texts, **how), sixjars_runtime.load(exported).nbest(texts, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_language_model_of_each_cell_takes_any_number_of_rows(cell: str, tmp_path: Path) -> None:
    """Those of the step's graph: torch fixes them where the code asks how many there are."""
    few = ["data.sample.size=48", "data.sample.valid=8", "data.sample.test=8", "learning.steps=2"]
    run = sixjars.train(f"language_model/sample_{cell}", few, out=tmp_path / "run")
    sixjars.export(run.folder, tmp_path / "exported")
    step = onnx.load(tmp_path / "exported/step.onnx")
    [token] = [value for value in step.graph.input if value.name == "token"]
    assert [dim.dim_param for dim in token.type.tensor_type.shape.dim] == ["rows"]


def test_one_input_has_one_answer(exported: Path) -> None:
    model = sixjars_runtime.load(exported, threads=2)
    assert model.predict("ghar").text == model.predict(["ghar"])[0].text
    assert [one.text for one in model.predict({"source": "ghar"}, nbest=2)] == [
        one.text for one in model.predict([{"roman": "ghar"}], nbest=2)[0]
    ]
    assert 0 < model.predict("ghar").probability < 1
    assert np.isnan(model.predict("").probability)


def test_dimensions_are_symbolic_and_unread_inputs_are_left_out(exported: Path) -> None:
    step = onnx.load(exported / "step.onnx")
    dims = {
        one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim]
        for one in step.graph.input
    }
    assert dims["token"] == ["rows"]
    assert dims["prepared.keys"] == ["rows", "prepared_memory_1", 8]
    assert "prepared.summary" not in dims
    encoder = onnx.load(exported / "encoder.onnx")
    assert {one.name for one in encoder.graph.output} == {*dims, "mask"} - {"token"}
    [memory] = [one for one in encoder.graph.output if one.name == "prepared.memory"]
    assert [dim.dim_param for dim in memory.type.tensor_type.shape.dim] == [
        "rows",
        "source_values_1",
        "",
    ]


def test_the_folder_has_all_that_is_needed(exported: Path) -> None:
    names = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    graphs = {"encoder.onnx", "step.onnx"}
    assert names == {*graphs, "model.json", "README.md", "fields/source.json", "fields/target.json"}
    card = (exported / "README.md").read_text()
    assert "transliteration" in card
    assert 'Use it with `sixjars_runtime.load("OUT").predict("INPUT")` in Python' in card
    assert "sixjars predict" not in card


WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "sixjars", "pyarrow", "pydantic", "onnx"}:
            raise ImportError(name + " is not there")
sys.meta_path.insert(0, Refuse())
import sixjars_runtime
print(sixjars_runtime.load(sys.argv[1]).predict("namaste").text)
"""


def test_the_runtime_needs_no_torch(run: Path, exported: Path) -> None:
    place = str(Path(sixjars_runtime.__file__).parents[1])
    command = [sys.executable, "-c", WITHOUT, str(exported)]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": place},
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == sixjars.load(run).predict("namaste").text + "\n"


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"search": "best"}, "kind 'best' is unknown. Known: beam, greedy, sample."),
        ({"widht": 3}, "search setting 'widht' is unknown. Did you mean 'width'?"),
        ({"width": 0}, "'width' must be a whole number from 1 to 10,000, but is 0."),
        ({"top_p": 2}, "'top_p' must be a number from 1e-06 to 1, but is 2."),
        ({"nbest": True}, "'nbest' must be a whole number from 1 to 10,000, but is True."),
        (
            {"search": "greedy", "nbest": 2},
            "greedy search finds one output, but nbest is 2; search with beam or sample.",
        ),
        (
            {"search": "beam", "width": 2, "nbest": 3},
            "'nbest' is 3, but a beam of width 2 holds fewer.",
        ),
        ({"min_length": 50}, "'min_length' is 50, but 'max_length' is 12."),
    ],
)
def test_bad_settings_are_a_sentence(exported: Path, how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(sixjars_runtime.SixJarsError) as error:
        sixjars_runtime.load(exported).predict("ghar", **how)
    assert str(error.value).startswith(sentence)


def test_bad_inputs_are_a_sentence(exported: Path) -> None:
    model = sixjars_runtime.load(exported)
    for bad, sentence in ((b"ghar", "give a text, or a list"), (7, "give a text, or a list")):
        with pytest.raises(sixjars_runtime.SixJarsError, match=sentence):
            model.predict(bad)
    assert model.predict({"word": "x"}).error == "input 1: must name source, but has word."


def test_a_damaged_folder_is_a_sentence(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(sixjars_runtime.SixJarsError) as error:
        sixjars_runtime.load(tmp_path)
    missing = f"{tmp_path} holds no exported model (model.json); write one with: sixjars export"
    assert str(error.value) == f"{missing} RUN {tmp_path}"
    (tmp_path / "recipe.yaml").write_text("")
    with pytest.raises(sixjars_runtime.SixJarsError) as error:  # a run is not to be written over
        sixjars_runtime.load(tmp_path)
    assert str(error.value) == f"{missing} {tmp_path} OUT"
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(
        sixjars_runtime.SixJarsError, match=r"is damaged: it is no JSON: .*; export the run again"
    ):
        sixjars_runtime.load(tmp_path)
    whole = json.loads((exported / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**whole, "format": 9}))
    with pytest.raises(
        sixjars_runtime.SixJarsError, match="has format 9, but this runtime reads 1"
    ):
        sixjars_runtime.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(whole))
    (tmp_path / "fields").mkdir()
    for path in (exported / "fields").iterdir():
        (tmp_path / "fields" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "encoder.onnx").write_bytes(b"no graph")
    with pytest.raises(sixjars_runtime.SixJarsError, match="no graph that onnxruntime can run"):
        sixjars_runtime.load(tmp_path)


def test_what_cannot_be_exported_is_a_sentence(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunError, match="is there already; remove it"):
        sixjars.export(run, tmp_path)
    file = run / "recipe.yaml"
    with pytest.raises(DataError) as caught:
        sixjars.export(run, file / "x")
    assert str(caught.value) == f"{file / 'x'} cannot be written: {file} is not a folder."
    with pytest.raises(RunError, match="does not exist"):
        app(["export", str(tmp_path / "none"), str(tmp_path / "out")], standalone_mode=False)
    with pytest.raises(RecipeError, match="precision '16' is unknown"):
        sixjars.export(run, tmp_path / "out", precision="16")
    with pytest.raises(DataError, match="--web writes a page of its own; leave --check"):
        app(["export", str(run), str(tmp_path / "out"), "--web", "--check"], standalone_mode=False)
    monkeypatch.setattr("sixjars.serving.export.files.READERS", {"image": None})
    with pytest.raises(
        RunError,
        match=r"data\.source is of kind text, which cannot be exported; the runtime knows image\.",
    ):
        sixjars.export(run, tmp_path / "out")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(
        MissingExtra, match=r"onnxscript is not installed. Run: pip install 'sixjars\[export\]'"
    ):
        sixjars.export(run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_component_that_torch_cannot_export_is_named(tmp_path: Path) -> None:
    examples = [{"x": torch.ones(rows, 3)} for rows in (4, 2)]

    def fails(error: Exception) -> str:
        def bad(value: Any) -> dict[str, torch.Tensor]:
            raise error

        with pytest.raises(RunError) as caught:
            write_graph(tmp_path / "bad.onnx", bad, [], examples, what="the encoder Mine")
        return str(caught.value)

    sentence = "the encoder Mine cannot be exported: no such thing."
    assert fails(ValueError("no such thing.\nMore lines.")) == sentence
    assert (
        fails(ValueError("\x1b[0m\n\x1b[1;31mno such\x1b[0m thing.\x1b[K\nMore lines.")) == sentence
    )
    assert fails(ValueError("\x1b[0m")) == "the encoder Mine cannot be exported: ValueError."


@pytest.mark.slow
@pytest.mark.parametrize("kind", [torch.nn.GRU, torch.nn.LSTM])
def test_recurrent_networks_can_be_exported_one_after_the_other(kind: Any, tmp_path: Path) -> None:
    """Of any length each time: torch 2.13 remembered a form of the first that takes one length alone."""
    network = kind(2, 2, batch_first=True)
    examples = [{"inputs": torch.randn(rows, steps, 2)} for rows, steps in SHAPES]
    for number in range(2):
        path = tmp_path / f"{number}.onnx"
        read = write_graph(
            path, lambda one: {"states": network(one["inputs"])[0]}, [network], examples, what="it"
        )
        assert read == ["inputs"]


def test_what_torch_says_in_colour_is_told_without(tmp_path: Path) -> None:
    """Its exporter does so where a path depends on a value."""

    def branches(value: Any) -> dict[str, torch.Tensor]:
        return {"y": value["x"] + 1 if value["x"].sum() > 0 else value["x"]}

    with pytest.raises(RunError) as caught:
        write_graph(
            tmp_path / "bad.onnx",
            branches,
            [],
            [{"x": torch.ones(rows, 3)} for rows in (4, 2)],
            what="Mine",
        )
    assert str(caught.value).startswith("Mine cannot be exported: ")
    assert str(caught.value).isprintable()


def test_int8_must_keep_the_answers() -> None:
    sixjars.Agreement(100, 98, 0.1).check()
    with pytest.raises(
        RunError,
        match=r"with int8 only 97 of 100 answers are those of torch \(97\.0 %\).* 98% must be",
    ):
        sixjars.Agreement(100, 97, 0.1).check()


def test_values_are_tensors_by_name_and_back() -> None:
    value = {"a": sixjars.State(torch.zeros(1), None), "b": (torch.ones(1), torch.ones(2)), "c": 5}
    named = flat(value)
    assert list(named) == ["a.hidden", "b.0", "b.1"]
    made = filled(value, {name: tensor + 1 for name, tensor in named.items()})
    assert made["a"].hidden.item() == 1
    assert [tensor.tolist() for tensor in made["b"]] == [[2.0], [2.0, 2.0]]
    assert made["c"] == 5


def test_a_decoder_of_another_limit_cannot_be_exported() -> None:
    class Odd:
        def longest(self, encoded: sixjars.Encoded) -> int:
            return 2 * encoded.mask.shape[1]

    encoded = [
        sixjars.Encoded(torch.zeros(1, n, 2), torch.ones(1, n).bool(), torch.zeros(1, 2))
        for n in (2, 3)
    ]
    with pytest.raises(
        RunError,
        match="the decoder Odd cannot be exported: the length of its outputs depends on more",
    ):
        files._beyond(Odd(), encoded)  # type: ignore[arg-type]
