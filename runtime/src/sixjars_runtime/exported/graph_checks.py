"""Checks that the graphs of a model fit each other, its settings and its vocabularies.

They are made once, when the model is loaded.
"""

from collections.abc import Mapping
from typing import Final

from sixjars_runtime.errors import RunError
from sixjars_runtime.exported.graphs import OnnxGraph, Sizes
from sixjars_runtime.exported.inputs import InputReader

_SEGMENTS: Final = (
    "segments.packs.0",
    "segments.segment_index",
    "segments.position_index",
    "segments.segment_of",
)
_ROWS: Final = (None, None)
_ENDS: Final = ("score", "log_probability", "length", "finished")


def taken(readers: Mapping[str, InputReader], *, copies: bool) -> dict[str, Sizes]:
    """Return the tensors that inputs become, with their sizes."""
    tensors: dict[str, Sizes] = {}
    for at, (name, reader) in enumerate(readers.items()):
        tensors |= {f"{name}.values": (*_ROWS, *reader.numbers), f"{name}.mask": _ROWS}
        if reader.has_segments:
            tensors |= {f"{name}.{part}": _ROWS for part in _SEGMENTS}
        if copies and at == 0:
            tensors[f"{name}.copy_ids"] = _ROWS
    return tensors


def check_backbone(graph: OnnxGraph, side: int) -> None:
    """Check that the graph of a frozen backbone takes images of this many pixels a side."""
    graph.check(takes={"pixels"}, gives={"pixels": (None, 3, side, side), "values": _ROWS})


def check_chooser(graph: OnnxGraph, tensors: Mapping[str, Sizes], size: int | None) -> None:
    """Check a graph that gives the log probability of each of so many labels."""
    needs: dict[str, Sizes] = {"log_probabilities": (None, size), "mask": _ROWS}
    _check_reading(graph, tensors, needs, {"weights": _ROWS})


def check_whole(graph: OnnxGraph, tensors: Mapping[str, Sizes]) -> None:
    """Check a graph with its search inside."""
    needs: dict[str, Sizes] = {**dict.fromkeys(_ENDS, _ROWS), "tokens": (*_ROWS, None)}
    _check_reading(graph, tensors, needs | {"mask": _ROWS}, {"weights": (*_ROWS, *_ROWS)})


def check_steps(
    first: OnnxGraph, second: OnnxGraph, tensors: Mapping[str, Sizes], size: int | None
) -> None:
    """Check a graph that encodes and one that makes a step, over a vocabulary of this size.

    The step must give back each part of the state that it takes.
    """
    _check_reading(first, tensors, {"mask": _ROWS}, {})
    begun = [name for name in first.outputs if name.startswith(("state.", "prepared."))]
    needs: dict[str, Sizes] = {"log_probabilities": (None, size)}
    second.check(takes={"token", *begun}, gives=needs | _common({"weights": _ROWS}, second.outputs))
    states = {name.removeprefix("state.") for name in second.inputs if name.startswith("state.")}
    after = {name.removeprefix("after.") for name in second.outputs if name.startswith("after.")}
    if lacks := sorted(states - after):
        raise RunError(
            f"{second.path} does not give after.{lacks[0]}, which it takes; export the run again."
        )


def _check_reading(
    graph: OnnxGraph,
    tensors: Mapping[str, Sizes],
    needs: Mapping[str, Sizes],
    may_give: Mapping[str, Sizes],
) -> None:
    """Check a graph that reads some of the inputs, and gives what is needed and what it may."""
    sizes = {**needs, **_common(may_give, graph.outputs), **_common(tensors, graph.inputs)}
    graph.check(takes=tensors, gives=sizes)


def _common(sizes: Mapping[str, Sizes], declared: Mapping[str, Sizes]) -> dict[str, Sizes]:
    """Return the sizes of those tensors that a graph declares."""
    return {name: size for name, size in sizes.items() if name in declared}
