"""Exported runs: the same answers without torch, whatever the shape; and what cannot be exported is a sentence."""

import json
import os
import shutil
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


def sizes(values: Any) -> dict[str, list[str | int]]:
    """Those of tensors of a graph, by name."""
    return {
        one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim]
        for one in values
    }


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_language_model_of_each_cell_takes_any_number_of_rows(cell: str, tmp_path: Path) -> None:
    """Those of the step's graph: torch fixes them where the code asks how many there are."""
    few = ["data.sample.size=48", "data.sample.valid=8", "data.sample.test=8", "learning.steps=2"]
    run = sixjars.train(f"language_model/sample_{cell}", few, out=tmp_path / "run")
    sixjars.export(run.folder, tmp_path / "exported")
    step = onnx.load(tmp_path / "exported/step.onnx")
    assert sizes(step.graph.input)["token"] == ["rows"]


def test_one_input_has_one_answer(exported: Path) -> None:
    model = sixjars_runtime.load(exported, threads=2)
    assert model.predict("ghar").text == model.predict(["ghar"])[0].text
    [several] = model.predict([{"roman": "ghar"}], nbest=2)
    alone = model.predict({"source": "ghar"}, nbest=2)
    assert [one.text for one in alone] == [one.text for one in several]
    assert 0 < model.predict("ghar").probability < 1
    assert np.isnan(model.predict("").probability)


def test_dimensions_are_symbolic_and_unread_inputs_are_left_out(exported: Path) -> None:
    dims = sizes(onnx.load(exported / "step.onnx").graph.input)
    assert dims["token"] == ["rows"]
    assert dims["prepared.keys"] == ["rows", "prepared_memory_1", 8]
    assert "prepared.summary" not in dims
    given = sizes(onnx.load(exported / "encoder.onnx").graph.output)
    assert {*given} == {*dims, "mask"} - {"token"}
    rows, positions, size = given["prepared.memory"]
    assert (rows, positions) == ("rows", "source_values_1")
    assert isinstance(size, int)


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
    env = {**os.environ, "PYTHONPATH": place}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
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
        ({"search": "beam", "width": 2, "nbest": 3}, "'nbest' is 3, but a beam of width 2 holds"),
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
    def told() -> str:
        with pytest.raises(sixjars_runtime.SixJarsError) as error:
            sixjars_runtime.load(tmp_path)
        return str(error.value)

    missing = f"{tmp_path} holds no exported model (model.json); write one with: sixjars export"
    assert told() == f"{missing} RUN {tmp_path}"
    (tmp_path / "recipe.yaml").write_text("")
    assert told() == f"{missing} {tmp_path} OUT"  # a run is not to be written over
    settings = tmp_path / "model.json"
    settings.write_text("{")
    assert told().startswith(f"{settings} is damaged: it is no JSON: ")
    assert told().endswith("; export the run again.")
    whole = json.loads((exported / "model.json").read_text())
    settings.write_text(json.dumps({**whole, "format": 9}))
    assert "has format 9, but this runtime reads 1" in told()
    settings.write_text(json.dumps(whole))
    shutil.copytree(exported / "fields", tmp_path / "fields")
    (tmp_path / "encoder.onnx").write_bytes(b"no graph")
    assert "no graph that onnxruntime can run" in told()


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
    told = r"data\.source is of kind text, which cannot be exported; the runtime knows image\."
    with pytest.raises(RunError, match=told):
        sixjars.export(run, tmp_path / "out")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    told = r"onnxscript is not installed. Run: pip install 'sixjars\[export\]'"
    with pytest.raises(MissingExtra, match=told):
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
    coloured = "\x1b[0m\n\x1b[1;31mno such\x1b[0m thing.\x1b[K\nMore lines."
    assert fails(ValueError(coloured)) == sentence
    assert fails(ValueError("\x1b[0m")) == "the encoder Mine cannot be exported: ValueError."


@pytest.mark.slow
@pytest.mark.parametrize("kind", [torch.nn.GRU, torch.nn.LSTM])
def test_recurrent_networks_can_be_exported_one_after_the_other(kind: Any, tmp_path: Path) -> None:
    """Of any length each time: torch 2.13 remembered a form of the first that takes one length alone."""
    network = kind(2, 2, batch_first=True)
    examples = [{"inputs": torch.randn(rows, steps, 2)} for rows, steps in SHAPES]

    def states(value: Any) -> dict[str, torch.Tensor]:
        return {"states": network(value["inputs"])[0]}

    for number in range(2):
        path = tmp_path / f"{number}.onnx"
        assert write_graph(path, states, [network], examples, what="it") == ["inputs"]


def test_what_torch_says_in_colour_is_told_without(tmp_path: Path) -> None:
    """Its exporter does so where a path depends on a value."""

    def branches(value: Any) -> dict[str, torch.Tensor]:
        return {"y": value["x"] + 1 if value["x"].sum() > 0 else value["x"]}

    examples = [{"x": torch.ones(rows, 3)} for rows in (4, 2)]
    with pytest.raises(RunError) as caught:
        write_graph(tmp_path / "bad.onnx", branches, [], examples, what="Mine")
    assert str(caught.value).startswith("Mine cannot be exported: ")
    assert str(caught.value).isprintable()


def test_int8_must_keep_the_answers() -> None:
    sixjars.Agreement(100, 98, 0.1).check()
    told = r"with int8 only 97 of 100 answers are those of torch \(97\.0 %\).* 98% must be"
    with pytest.raises(RunError, match=told):
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

    made = [torch.ones(1, positions).bool() for positions in (2, 3)]
    encoded = [sixjars.Encoded(torch.zeros(*m.shape, 2), m, torch.zeros(1, 2)) for m in made]
    told = "the decoder Odd cannot be exported: the length of its outputs depends on more"
    with pytest.raises(RunError, match=told):
        files._beyond(Odd(), encoded)  # type: ignore[arg-type]
