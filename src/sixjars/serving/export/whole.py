"""Encoder, decoder and search in one graph: `sixjars export --whole`, for programs that have no search of their own."""

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
from sixjars.runs.predict import Predictor
from sixjars.runs.requests import search_of
from sixjars.serving.export.examples import SHAPES, inputs_of
from sixjars.serving.export.graphs import TOLERANCE, filled, flat, graph_of, naming, session_of
from sixjars.serving.export.loops import AFTER, MADE, JoinedGraphs
from sixjars.serving.export.stages import Stages
from sixjars_runtime.errors import DataError, RecipeError, RunError, unknown
from sixjars_runtime.exported.settings import PREFIX, WHOLE

KINDS = ("greedy", "beam")
"""Of search that a graph can hold."""
STEPS = (7, 2, 4, 3)
"""That were made before each example of a later stage; the first is no other size of its example."""


def search_inside(
    predictor: Predictor, /, whole: str | None = None, **given: Any
) -> SearchSettings | None:
    """The search that a graph is to have: the run's own of this kind, with what is given on top; a beam gives all."""
    if whole is None:
        if given:
            raise DataError(
                f"{next(iter(given))} is of a search; only a whole one is written, so say --whole too."
            )
        return None
    if not predictor.ability.searches:
        raise DataError(
            "this run chooses a label, so there is no search to write; leave --whole out."
        )
    if whole == "sample":
        raise DataError(
            "sampling cannot be in a graph, whose random numbers differ everywhere; take greedy or beam."
        )
    if whole not in KINDS:
        raise RecipeError([unknown("whole", whole, KINDS)], "export")
    if "kind" in given:
        raise DataError("--whole is the kind of search; do not set another.")
    own = predictor.recipe.evaluation.search
    nbest = 1 if whole == "greedy" else given.get("width", own.width)
    return search_of(own, whole, {"nbest": nbest, **given}, predictor.ability, "export")


def write_whole(stages: Stages, fields: Fields, folder: Path, *, what: str) -> None:
    """Write the graph, and compare it with the toolkit's own search at random values of four shapes."""
    import onnx

    given = [_inputs(stages, fields, *shape) for shape in SHAPES]
    with naming(what):
        onnx.save_model(_model(stages, given), str(folder / WHOLE))
        _compare(stages, given, folder / WHOLE)


def _model(stages: Stages, given: Sequence[dict[str, Padded]]) -> Any:
    """The graphs of all stages as one."""
    known = [dict(stages.begin(one)) for one in given]
    shared = [*known[0], MADE]
    for one, steps in zip(known, STEPS, strict=True):
        one["column"] = _repeated(stages.step, one, "running", steps, "column")

    def graph(stage: Any, *names: str, modules: Sequence[nn.Module] = (), keeps: Any = None) -> Any:
        examples = [{name: one[name] for name in names} for one in known]
        return graph_of(stage, modules, examples, name=WHOLE, keeps=keeps)

    step = graph(stages.step, *shared, modules=[stages.network])
    read = {one.name for one in step.graph.input}
    keeps = {name for name in flat(known[0]) if name in read or name.startswith("running.")} | {
        "longest",
        "mask",
    }
    backbones = [one.backbone for one in stages.extractors.values()]
    first = graph_of(stages.begin, [stages.network, *backbones], given, name=WHOLE, keeps=keeps)
    whole = JoinedGraphs(first)
    whole.loop("step", step, times="longest", carried="running")
    if stages.settings.kind == "greedy":
        last = graph(stages.greedy, "running", "column", "mask")
    else:
        ends = graph(stages.ends, "running", "longest", "column", "mask")
        for one, steps in zip(known, STEPS, strict=True):
            one |= stages.ends(one)
            one["trace"] = _repeated(stages.back, one, "row", steps, "trace")
        whole.add("ends", ends)
        whole.loop(
            "back", graph(stages.back, MADE, "row", "ended", "column"), times="steps", carried="row"
        )
        last = graph(stages.beam, "ended", "trace", "column")
    whole.add("found", last)
    [mask] = (one for one in first.graph.output if one.name == "mask")
    return whole.model([*_named(last.graph.output, mask), mask])


def _named(outputs: Any, mask: Any) -> Iterator[Any]:
    """With the sizes that a program knows: the examples, the steps that were made, the positions of the source."""
    for one in outputs:
        sizes = one.type.tensor_type.shape.dim
        if len(sizes) > 2:
            sizes[2].dim_param = "steps"
        if len(sizes) > 3:
            sizes[3].CopyFrom(mask.type.tensor_type.shape.dim[1])
        yield one


def _repeated(stage: Any, value: dict[str, Any], carried: str, times: int, kept: str) -> Any:
    """What a stage made at all times, with what it carries left in the value."""
    made = []
    for number in range(times):
        after = stage({**value, MADE: torch.tensor(number)})
        value[carried] = after[AFTER]
        made.append(after[kept])
    value[MADE] = torch.tensor(times - 1)
    tensors = [flat(one) for one in made]
    return filled(
        made[0], {name: torch.stack([one[name] for one in tensors]) for name in tensors[0]}
    )


def _inputs(stages: Stages, fields: Fields, rows: int, longest: int) -> dict[str, Padded]:
    """Random inputs of the whole graph: pixels in place of features, and how outputs begin where there is no input."""
    found = inputs_of(fields, rows, longest)
    if not fields.inputs:
        return {
            PREFIX: inputs_of(Fields({PREFIX: fields.output}, fields.output), rows, longest)[PREFIX]
        }
    for name, extractor in stages.extractors.items():
        shape = (*found[name].mask.shape, 3 * extractor.pixels**2)
        found[name] = replace(found[name], values=torch.randint(0, 256, shape).byte())
    return found


def _compare(stages: Stages, given: Sequence[dict[str, Padded]], path: Path) -> None:
    """Refuse a graph whose hypotheses are not those of the toolkit's search."""
    session = session_of(path)
    names, outputs = (
        [one.name for one in some] for some in (session.get_inputs(), session.get_outputs())
    )
    for example in given:
        tensors = flat(example)
        found = dict(
            zip(
                outputs,
                session.run(outputs, {name: tensors[name].numpy() for name in names}),
                strict=True,
            )
        )
        if not _same(stages, example, found):
            shape = tuple(next(iter(tensors.values())).shape)
            raise RunError(
                f"the graph {WHOLE} finds other hypotheses than torch for inputs of the shape {shape}."
            )


def _same(stages: Stages, given: Mapping[str, Padded], found: Mapping[str, Any]) -> bool:
    """Whether hypotheses are as probable as those of torch's search, and each as torch finds it.

    Their tokens may be others than those of torch's: a model that learned little has many that are equally good.
    """
    real = found["score"] > NEVER
    for few, own, some in zip(stages.searched(given), found["log_probability"], real, strict=True):
        true = np.array([one.log_probability for one in few])
        if own[some].shape != true.shape or not np.allclose(own[some], true, TOLERANCE, TOLERANCE):
            return False
    for place in range(real.shape[1]):
        tokens, length, done = (
            torch.tensor(found[name][:, place]) for name in ("tokens", "length", "finished")
        )
        places, end = torch.arange(tokens.shape[1] + 1), length.unsqueeze(1)
        outputs = torch.where(
            places < end, nn.functional.pad(tokens, (0, 1)), stages.generator.special.stop
        )
        forced = stages.forced(given, Padded(outputs, places < end + done.unsqueeze(1)))
        for row in real[:, place].nonzero()[0]:
            one, own = forced[row], found["log_probability"][row, place]
            if (one.tokens, one.finished) != (
                tuple(tokens[row, : length[row]].tolist()),
                bool(done[row]),
            ):
                return False
            if not np.isclose(own, one.log_probability, TOLERANCE, TOLERANCE):
                return False
    return True
