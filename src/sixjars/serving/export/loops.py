"""Several graphs as one: some one after the other, some as the body of a loop."""

from collections.abc import Mapping, Sequence
from typing import Any, final

MADE, GOES, AFTER = "made", "goes", "after"
"""A body gets the number of its runs so far. It gives whether it runs again, if it decides that,
and the values that are carried to the next run. All others are stacked in a first dimension."""


@final
class JoinedGraphs:
    """A graph that grows: the parts take what parts before them give by the same name."""

    def __init__(self, first: Any) -> None:
        """Start with a graph, whose inputs are those of the whole."""
        from onnx import GraphProto

        self._graph = GraphProto(name="whole", input=first.graph.input)
        self._like = first
        self._called = {value.name: value.name for value in first.graph.input}
        """The name in the whole of each value of a part."""
        self.add("begin", first)

    def add(self, part: str, model: Any) -> None:
        """Append a graph."""
        graph = self._renamed(part, model, {})
        self._graph.node.extend(graph.node)
        self._graph.initializer.extend(graph.initializer)
        pairs = zip(model.graph.output, graph.output, strict=True)
        self._called |= {old.name: new.name for old, new in pairs}

    def loop(self, part: str, model: Any, *, times: str, carried: str) -> None:
        """Append a graph as the body of a loop of at most `times` runs; `after` is `carried`."""
        from onnx import helper

        names = [value.name for value in model.graph.output]
        after = [name for name in names if name.partition(".")[0] == AFTER]
        before = {name: carried + name.removeprefix(AFTER) for name in after}
        kept = [name for name in names if name not in before and name != GOES]
        inside = {name: f"{part}/{name}" for name in (MADE, *before.values())}
        body = self._renamed(part, model, inside)
        outputs = {old: _untied(new) for old, new in zip(names, body.output, strict=True)}
        asked, goes = f"{part}/asked", f"{part}/{GOES}"
        if GOES not in names:
            body.node.append(helper.make_node("Identity", [asked], [goes], name=goes))
        del body.input[:], body.output[:]
        body.input.extend([_number(f"{part}/{MADE}", "INT64"), _number(asked, "BOOL")])
        body.input.extend(_untied(outputs[name], f"{part}/{old}") for name, old in before.items())
        body.output.extend([_number(goes, "BOOL"), *(outputs[name] for name in (*before, *kept))])
        inputs = [self._called[times], "", *(self._called[old] for old in before.values())]
        results = {name: f"{part}/all/{name}" for name in (*before.values(), *kept)}
        self._called |= results
        loop = helper.make_node("Loop", inputs, [*results.values()], name=part, body=body)
        self._graph.node.append(loop)

    def model(self, outputs: Sequence[Any]) -> Any:
        """The whole model, with some of the outputs of its parts."""
        from onnx import helper

        for name in (value.name for value in outputs):
            node = helper.make_node("Identity", [self._called[name]], [name], name=name)
            self._graph.node.append(node)
        self._graph.output.extend(outputs)
        opsets, version = self._like.opset_import, self._like.ir_version
        return helper.make_model(self._graph, opset_imports=opsets, ir_version=version)

    def _renamed(self, part: str, model: Any, inside: Mapping[str, str]) -> Any:
        inputs = [value.name for value in model.graph.input]
        names = {name: inside.get(name) or self._called[name] for name in inputs}
        graph = type(model.graph)()
        graph.CopyFrom(model.graph)
        _rename(graph, part, names)
        return graph


def _rename(graph: Any, part: str, names: Mapping[str, str]) -> None:
    """Rename all values of a graph and of graphs inside it: by `names`, or with the part before."""

    def new(name: str) -> str:
        return names.get(name, f"{part}/{name}") if name else ""

    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = new(value.name)
    for number, node in enumerate(graph.node):
        node.name = f"{part}/{node.name or number}"
        node.input[:], node.output[:] = map(new, node.input), map(new, node.output)
        for attribute in node.attribute:
            _rename(attribute.g, part, names)


def _number(name: str, kind: str) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), [])


def _untied(value: Any, name: str = "") -> Any:
    """The value without its sizes, which may differ from one run to the next."""
    from onnx import helper

    return helper.make_tensor_value_info(name or value.name, value.type.tensor_type.elem_type, None)
