"""A whole search in one graph: its stages, and what it cannot hold is a sentence."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import sixjars
from sixjars.cli import app
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.runs.prediction.predictor import Predictor
from sixjars.serving.export.agreement import exported_predictions
from sixjars.serving.export.card import whole_card
from sixjars.serving.export.examples import inputs_of
from sixjars.serving.export.loops import MADE, JoinedGraphs
from sixjars.serving.export.stages import NetworkStages
from sixjars.serving.export.whole import _same, search_inside
from sixjars_runtime.exported.settings import WHOLE
from sixjars_runtime.search_requests import Ability
from sixjars_runtime.special_tokens import SpecialTokens

RULES: list[dict[str, Any]] = [
    {},
    {"min_length": 3, "no_repeat_ngram": 2, "coverage_penalty": 0.2},
    {"no_repeat_ngram": 1, "unknown": "allow", "length_penalty": 0.5, "max_length": 5},
]


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return sixjars.load(run, device="cpu")


def stages_of(predictor: Predictor, kind: str, **rules: Any) -> NetworkStages:
    search = search_inside(predictor, kind, **rules)
    assert search is not None
    return NetworkStages(predictor.network, search, {})


def walked(stages: NetworkStages, given: Any) -> Any:
    """What the stages find, one after the other, as the whole graph runs them."""
    value = dict(stages.begin(given))
    columns, traces = [], []
    for made in range(int(value["longest"])):
        after = stages.step({**value, MADE: torch.tensor(made)})
        columns.append(after["column"])
        value["running"] = after["after"]
        if not after["goes"]:
            break
    steps = zip(*(one.tensors() for one in columns), strict=True)
    stacked = map(torch.stack, steps)
    value["column"] = columns[0].mapped(lambda _: next(stacked))
    if stages.settings.kind == "greedy":
        return stages.greedy(value)
    value |= stages.ends(value)
    for made in range(int(value["steps"])):
        after = stages.back({**value, MADE: torch.tensor(made)})
        traces.append(after["trace"])
        value["row"] = after["after"]
    value["trace"] = {name: torch.stack([one[name] for one in traces]) for name in traces[0]}
    return stages.beam(value)


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_the_stages_find_what_search_finds(
    predictor: Predictor, kind: str, rules: dict[str, Any]
) -> None:
    stages = stages_of(predictor, kind, **rules)
    given = inputs_of(predictor.fields, 4, 6)
    with torch.no_grad():
        found, wanted = walked(stages, given), stages.searched(given)
    for row, few in enumerate(wanted):
        for place, one in enumerate(few):
            length = int(found["length"][row, place])
            assert tuple(found["tokens"][row, place, :length].tolist()) == one.tokens
            assert not found["tokens"][row, place, length:].any()
            for name in ("log_probability", "score"):
                expected = pytest.approx(getattr(one, name), abs=1e-5)
                assert found[name][row, place].item() == expected
            assert bool(found["finished"][row, place]) == one.finished
            own = found["weights"][row, place, : len(one.weights)]
            assert np.allclose(own, one.weights, atol=1e-5)
        assert (found["score"][row, len(few) :] == -torch.inf).all()


@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_a_graph_that_finds_other_hypotheses_is_refused(predictor: Predictor, kind: str) -> None:
    stages = stages_of(predictor, kind, max_length=5)
    given = inputs_of(predictor.fields, 4, 6)
    with torch.no_grad():
        found = {name: values.numpy() for name, values in walked(stages, given).items()}
        assert _same(stages, given, found)
        changed = {
            "tokens": 4 + (found["tokens"] == 4),
            "length": found["length"] - 1,
            "finished": ~found["finished"],
            "log_probability": found["log_probability"] + 0.01,
            "score": np.full_like(found["score"], -np.inf),
        }
        for name, values in changed.items():
            other = {**found, name: found[name].copy()}
            other[name][2, 0] = values[2, 0]
            assert not _same(stages, given, other), name


def graph(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    """A small model."""
    made: list[Any] = [
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in some.items()]
        for some in (inputs, outputs)
    ]
    opsets = [helper.make_opsetid("", 18)]
    part = helper.make_graph(nodes, "part", *made)
    return helper.make_model(part, opset_imports=opsets, ir_version=10)


def test_graphs_become_one_with_a_loop(tmp_path: Path) -> None:
    number: Any = (TensorProto.INT64, [])
    row, node = (TensorProto.INT64, ["rows"]), helper.make_node
    first = graph(
        [node("Identity", ["x"], ["running.sum"]), node("Identity", ["most"], ["longest"])],
        {"x": row, "most": number},
        {"running.sum": row, "longest": number},
    )
    nodes = [
        node("Add", ["running.sum", "made"], ["after.sum"]),
        node("Identity", ["after.sum"], ["column"]),
        node("ReduceMax", ["after.sum"], ["high"], keepdims=0),
        node("Less", ["high", "limit"], ["goes"]),
    ]
    results = {"after.sum": row, "column": row, "goes": (TensorProto.BOOL, [])}
    step = graph(nodes, {MADE: number, "running.sum": row}, results)
    step.graph.initializer.append(helper.make_tensor("limit", TensorProto.INT64, [], [10]))
    last = graph([node("Neg", ["running.sum"], ["sum"])], {"running.sum": row}, {"sum": row})
    whole = JoinedGraphs(first)
    whole.loop("step", step, times="longest", carried="running")
    whole.add("found", last)
    column = helper.make_tensor_value_info("column", TensorProto.INT64, ["steps", "rows"])
    onnx.checker.check_model(model := whole.model([*last.graph.output, column]), full_check=True)
    on_cpu = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=on_cpu)
    for start, most, wanted in (([1, 2], 3, [[1, 2], [2, 3], [4, 5]]), ([7], 9, [[7], [8], [10]])):
        found = session.run(None, {"x": np.array(start), "most": np.array(most)})
        assert found[1].tolist() == wanted
        assert found[0].tolist() == [-one for one in wanted[-1]]


@pytest.mark.parametrize(
    ("whole", "given", "sentence"),
    [
        (
            "sample",
            {},
            "sampling cannot be in a graph, whose random numbers differ everywhere; take",
        ),
        ("best", {}, "whole 'best' is unknown. Known: beam, greedy."),
        (
            None,
            {"width": 3},
            "width is of a search; only a whole one is written, so say --whole too.",
        ),
        ("beam", {"kind": "greedy"}, "--whole is the kind of search; do not set another."),
        ("greedy", {"nbest": 2}, "greedy search finds one output, but nbest is 2"),
        ("beam", {"widht": 2}, "key 'widht' is unknown. Did you mean 'width'"),
        ("beam", {"predictor": 1}, "key 'predictor' is unknown. Known: coverage_penalty, kind, "),
    ],
)
def test_a_search_that_a_graph_cannot_hold_is_a_sentence(
    run: Path, tmp_path: Path, whole: str | None, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((DataError, RecipeError), match=sentence.replace(".", r"\.")):
        sixjars.export(run, tmp_path / "out", whole=whole, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "key", ["precision", "components", "predictor", "whole", "run", "check", "widht"]
)
@pytest.mark.parametrize("whole", [(), ("--whole", "beam")], ids=str)
def test_only_settings_of_search_are_set(
    run: Path, tmp_path: Path, key: str, whole: tuple[str, ...]
) -> None:
    call = ["export", str(run), str(tmp_path / "out"), *whole, "--set", f"{key}=1"]
    with pytest.raises(RecipeError) as caught:
        app(call, standalone_mode=False)
    meant = " Did you mean 'width'?" if key == "widht" else ""
    known = ", ".join(sorted(sixjars.SearchSettings.model_fields))
    told = f"the command line: search: key '{key}' is unknown.{meant} Known: {known}."
    assert str(caught.value) == told
    assert list(tmp_path.iterdir()) == []


def test_a_label_needs_no_search(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    ability = Ability(searches=False, has_attention=True, multi_label=False)
    monkeypatch.setattr(Predictor, "ability", ability)
    told = r"^this run chooses a label, so there is no search to write; leave --whole out\.$"
    with pytest.raises(DataError, match=told):
        search_inside(predictor, "greedy")


def test_a_decoder_that_may_output_every_token_has_no_rule_on_ngrams(predictor: Predictor) -> None:
    stages = stages_of(predictor, "greedy", no_repeat_ngram=2)
    told = r"no_repeat_ngram cannot be in a graph of this decoder.*; set it to 0\."
    with mock.patch.object(type(stages.generator), "special", SpecialTokens(go=2, stop=2)):
        with pytest.raises(RunError, match=told):
            stages.begin(inputs_of(predictor.fields, 2, 3))


def test_the_card_tells_what_flows(predictor: Predictor, tmp_path: Path) -> None:
    ids, real = (TensorProto.INT64, ["rows", "length"]), (TensorProto.BOOL, ["rows", "length"])
    inputs = dict.fromkeys(("source.values", "source.segments.packs.0", "source.copy_ids"), ids)
    inputs["source.mask"] = real
    kind = TensorProto.FLOAT
    outputs = {"tokens": (ids[0], ["rows", 5, "steps"]), "score": (kind, ["rows", 5])}
    onnx.save_model(graph([], inputs, outputs), str(tmp_path / WHOLE))
    search = search_inside(predictor, "beam")
    assert search is not None
    card = whole_card(tmp_path, search, predictor.fields)
    assert "Encoder, decoder and beam search of width 5 in one graph" in card
    assert "Ordered by score: log probability / tokens." in card
    told = "| `source.values` | int64 | rows, positions of source | token ids, 0 behind the end of a row |"
    assert told in card
    told = "| `tokens` | int64 | rows, 5, steps | token ids of each hypothesis, the best first"
    assert told in card
    assert "- ids: 0 is `<pad>`, 1 is `<go>`, 2 is `<stop>`, 3 is `<unk>`" in card
    steps = "1. Unicode NFC; split it into words at white space\n"
    assert f"### From a text to `source.values`\n\n{steps}" in card
    assert card.endswith(
        "### From `tokens` to a text\n\n"
        "1. take `tokens[id - 4]` of `fields/target.json` for each id, and `<unk>` for 3\n"
        "2. join them\n"
    )


def test_a_model_that_does_not_run_alone_is_a_sentence(tmp_path: Path) -> None:
    told = r"^the exported model does not run in a process of its own: .*holds no exported"
    with pytest.raises(RunError, match=told):
        exported_predictions(tmp_path, ["ghar"])


def test_a_beam_gives_all_that_it_keeps(predictor: Predictor) -> None:
    width = predictor.recipe.evaluation.search.width
    for given, nbest in (({}, width), ({"width": 3}, 3), ({"nbest": 2}, 2)):
        assert stages_of(predictor, "beam", **given).settings.nbest == nbest
    assert search_inside(predictor) is None
