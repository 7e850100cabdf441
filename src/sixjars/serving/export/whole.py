"""Encoder, decoder and search in one graph, for programs without a search: `export --whole`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sixjars.data.dataset import Fields
from sixjars.decoding.scores import NEVER
from sixjars.flow.values import Padded
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import search_of
from sixjars.serving.export.examples import SHAPES, inputs_of
from sixjars.serving.export.graphs import (
    ALL,
    TOLERANCE,
    filled,
    flat,
    graph_of,
    naming,
    outputs_of,
)
from sixjars.serving.export.loops import AFTER, MADE, JoinedGraphs
from sixjars.serving.export.stages import NetworkStages
from sixjars_runtime.errors import DataError, RecipeError, RunError, unknown
from sixjars_runtime.exported.graphs import OnnxGraph
from sixjars_runtime.exported.settings import PREFIX, WHOLE

KINDS = ("greedy", "beam")
"""The kinds of search that a graph can hold."""
STEPS = (7, 2, 4, 3)
"""Steps before each example of a later stage; the first is no other size of its example."""


def search_inside(
    predictor: Predictor, /, whole: str | None = None, **given: Any
) -> SearchSettings | None:
    """The search of a graph: the run's own of this kind, changed as given; a beam gives all."""
    if whole is None:
        if given:
            name = next(iter(given))
            raise DataError(
                f"{name} is of a search; only a whole one is written, so say --whole too."
            )
        return None
    if not predictor.ability.searches:
        raise DataError(
            "this run chooses a label, so there is no search to write; leave --whole out."
        )
    if whole == "sample":
        raise DataError(
            "sampling cannot be in a graph, whose random numbers differ everywhere; "
            "take greedy or beam."
        )
    if whole not in KINDS:
        raise RecipeError([unknown("whole", whole, KINDS)], "export")
    if "kind" in given:
        raise DataError("--whole is the kind of search; do not set another.")
    search = predictor.recipe.evaluation.search
    nbest = 1 if whole == "greedy" else given.get("width", search.width)
    return search_of(search, whole, {"nbest": nbest, **given}, predictor.ability, "export")


def write_whole(stages: NetworkStages, fields: Fields, folder: Path, *, what: str) -> None:
    """Write the graph, and compare it with the toolkit's search at random inputs of four shapes."""
    import onnx

    given = [_inputs(stages, fields, *shape) for shape in SHAPES]
    with naming(what):
        onnx.save_model(_model(stages, given), str(folder / WHOLE))
        _compare(stages, given, folder / WHOLE)


def _model(stages: NetworkStages, given: Sequence[dict[str, Padded]]) -> Any:
    known = [dict(stages.begin(inputs)) for inputs in given]
    shared = [*known[0], MADE]
    for values, steps in zip(known, STEPS, strict=True):
        values["column"] = _repeated(stages.step, values, "running", steps, "column")

    def graph(stage: Any, *names: str, modules: Sequence[nn.Module] = ()) -> Any:
        examples = [{name: values[name] for name in names} for values in known]
        return graph_of(stage, modules, examples, name=WHOLE)

    step = graph(stages.step, *shared, modules=[stages.network])
    read = {value.name for value in step.graph.input}
    keeps = {name for name in flat(known[0]) if name in read or name.startswith("running.")}
    keeps |= {"longest", "mask"}
    backbones = [extractor.backbone for extractor in stages.extractors.values()]
    first = graph_of(stages.begin, [stages.network, *backbones], given, name=WHOLE, keeps=keeps)
    whole = JoinedGraphs(first)
    whole.loop("step", step, times="longest", carried="running")
    if stages.settings.kind == "greedy":
        last = graph(stages.greedy, "running", "column", "mask")
    else:
        ends = graph(stages.ends, "running", "longest", "column", "mask")
        for values, steps in zip(known, STEPS, strict=True):
            values |= stages.ends(values)
            values["trace"] = _repeated(stages.back, values, "row", steps, "trace")
        back = graph(stages.back, MADE, "row", "ended", "column")
        whole.add("ends", ends)
        whole.loop("back", back, times="steps", carried="row")
        last = graph(stages.beam, "ended", "trace", "column")
    whole.add("found", last)
    [mask] = (value for value in first.graph.output if value.name == "mask")
    return whole.model([*_named(last.graph.output, mask), mask])


def _named(outputs: Any, mask: Any) -> Iterator[Any]:
    """The outputs with names for their sizes: steps, and the positions of the source."""
    for output in outputs:
        sizes = output.type.tensor_type.shape.dim
        if len(sizes) > 2:
            sizes[2].dim_param = "steps"
        if len(sizes) > 3:
            sizes[3].CopyFrom(mask.type.tensor_type.shape.dim[1])
        yield output


def _repeated(stage: Any, value: dict[str, Any], carried: str, times: int, kept: str) -> Any:
    """Run a stage so many times; stack what it gives, and leave what it carries in the value."""
    results = []
    for number in range(times):
        after = stage({**value, MADE: torch.tensor(number)})
        value[carried] = after[AFTER]
        results.append(after[kept])
    value[MADE] = torch.tensor(times - 1)
    tensors = [flat(result) for result in results]
    stacked = {name: torch.stack([each[name] for each in tensors]) for name in tensors[0]}
    return filled(results[0], stacked)


def _inputs(stages: NetworkStages, fields: Fields, rows: int, longest: int) -> dict[str, Padded]:
    """Random inputs of the whole graph, with pixels for features, or beginnings of outputs."""
    if not fields.inputs:
        prefixes = Fields({PREFIX: fields.output}, fields.output)
        return {PREFIX: inputs_of(prefixes, rows, longest)[PREFIX]}
    inputs = inputs_of(fields, rows, longest)
    for name, extractor in stages.extractors.items():
        shape = (*inputs[name].mask.shape, 3 * extractor.pixels**2)
        inputs[name] = replace(inputs[name], values=torch.randint(0, 256, shape).byte())
    return inputs


def _compare(stages: NetworkStages, given: Sequence[dict[str, Padded]], path: Path) -> None:
    """Refuse a graph whose hypotheses are not those of the toolkit's search."""
    graph = OnnxGraph(path, threads=ALL)
    for example in given:
        tensors = flat(example)
        if not _same(stages, example, outputs_of(graph, tensors)):
            shape = tuple(next(iter(tensors.values())).shape)
            raise RunError(
                f"the graph {WHOLE} finds other hypotheses than torch "
                f"for inputs of the shape {shape}."
            )


def _same(stages: NetworkStages, given: Mapping[str, Padded], outputs: Mapping[str, Any]) -> bool:
    """Whether hypotheses are as probable as those of torch's search, and each as torch finds it.

    Tokens may differ: a model that learned little has many outputs that are equally good.
    """
    real = outputs["score"] > NEVER
    probable = outputs["log_probability"]
    for hypotheses, row in zip(stages.searched(given), range(len(real)), strict=True):
        true = np.array([hypothesis.log_probability for hypothesis in hypotheses])
        values = probable[row][real[row]]
        if values.shape != true.shape or not np.allclose(values, true, TOLERANCE, TOLERANCE):
            return False
    stop = stages.generator.special.stop
    for place in range(real.shape[1]):
        tokens, length, done = (
            torch.tensor(outputs[name][:, place]) for name in ("tokens", "length", "finished")
        )
        places, end = torch.arange(tokens.shape[1] + 1), length.unsqueeze(1)
        forced_outputs = torch.where(places < end, nn.functional.pad(tokens, (0, 1)), stop)
        forced = stages.forced(given, Padded(forced_outputs, places < end + done.unsqueeze(1)))
        for row in real[:, place].nonzero()[0]:
            output = tuple(tokens[row, : length[row]].tolist()), bool(done[row])
            if (forced[row].tokens, forced[row].finished) != output:
                return False
            true = forced[row].log_probability
            if not np.isclose(probable[row, place], true, TOLERANCE, TOLERANCE):
                return False
    return True
