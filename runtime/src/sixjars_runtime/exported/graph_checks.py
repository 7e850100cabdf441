"""Checks that the graphs of a model fit each other, its settings and its vocabularies.

They are made once, when the model is loaded.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sixjars_runtime.errors import RunError
from sixjars_runtime.exported.graphs import Graph, Sizes
from sixjars_runtime.exported.inputs import (
    FeaturesReader,
    FileReader,
    PointsReader,
    Reader,
    TextReader,
)
from sixjars_runtime.exported.outputs import Writer

_SEGMENTS: Final = (
    "segments.packs.0",
    "segments.segment_index",
    "segments.position_index",
    "segments.segment_of",
)
_ROWS: Final = (None, None)
_ENDS: Final = ("score", "log_probability", "length", "finished")


def check_features(reader: FileReader) -> None:
    """Check that the graph of a frozen backbone takes the images that its reader makes."""
    graph = reader.features
    assert isinstance(graph, Graph)
    graph.check(
        takes={"pixels"}, gives={"pixels": (None, 3, reader.side, reader.side), "values": _ROWS}
    )


def taken(readers: Mapping[str, Reader], *, copies: bool) -> dict[str, Sizes]:
    """Return the tensors that inputs become, with their sizes."""
    tensors: dict[str, Sizes] = {}
    for at, (name, reader) in enumerate(readers.items()):
        tensors |= {f"{name}.values": _sizes(reader), f"{name}.mask": _ROWS}
        if isinstance(reader, TextReader) and reader.kind != "none":
            tensors |= {f"{name}.{part}": _ROWS for part in _SEGMENTS}
        if copies and at == 0:
            tensors[f"{name}.copy_ids"] = _ROWS
    return tensors


def _sizes(reader: Reader) -> Sizes:
    """Return the sizes of the values of one input."""
    if isinstance(reader, PointsReader):
        return (*_ROWS, reader.dimensions)
    if isinstance(reader, FileReader):
        return (*_ROWS, 3 * reader.side**2 if reader.features is None else None)
    if isinstance(reader, FeaturesReader):
        return (*_ROWS, reader.shape["channels"])
    return _ROWS


def check_chooser(graph: Graph, tensors: Mapping[str, Sizes], writer: Writer) -> None:
    """Check a graph that gives the log probability of each label."""
    needs: dict[str, Sizes] = {"log_probabilities": (None, writer.size), "mask": _ROWS}
    graph.check(
        takes=tensors, gives=needs | _optional(graph, "weights", _ROWS) | _inputs(graph, tensors)
    )


def check_whole(graph: Graph, tensors: Mapping[str, Sizes]) -> None:
    """Check a graph with its search inside."""
    needs: dict[str, Sizes] = {
        **dict.fromkeys(_ENDS, _ROWS),
        "tokens": (*_ROWS, None),
        "mask": _ROWS,
    }
    graph.check(
        takes=tensors,
        gives=needs | _optional(graph, "weights", (*_ROWS, None, None)) | _inputs(graph, tensors),
    )


def check_steps(
    first: Graph, second: Graph, tensors: Mapping[str, Sizes], size: int | None
) -> None:
    """Check a graph that encodes and one that makes a step.

    The step must give back each part of the state that it takes.
    """
    first.check(takes=tensors, gives={"mask": _ROWS, **_inputs(first, tensors)})
    begun = [name for name in first.outputs if name.startswith(("state.", "prepared."))]
    needs: dict[str, Sizes] = {
        "log_probabilities": (None, size),
        **_optional(second, "weights", _ROWS),
    }
    second.check(takes={"token", *begun}, gives=needs)
    states = {name.removeprefix("state.") for name in second.inputs if name.startswith("state.")}
    after = {name.removeprefix("after.") for name in second.outputs if name.startswith("after.")}
    if lacks := sorted(states - after):
        raise RunError(
            f"{second.path} does not give after.{lacks[0]}, which it takes; export the run again."
        )


def _optional(graph: Graph, name: str, sizes: Sequence[int | None]) -> dict[str, Sizes]:
    return {name: sizes} if name in graph.outputs else {}


def _inputs(graph: Graph, tensors: Mapping[str, Sizes]) -> dict[str, Sizes]:
    """Return the sizes of the tensors that a graph reads."""
    return {name: sizes for name, sizes in tensors.items() if name in graph.inputs}
