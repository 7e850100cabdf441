"""Several graphs as one: some one after the other, some as the body of a loop."""

from collections.abc import Mapping, Sequence
from typing import Any, final

MADE, GOES, AFTER = "made", "goes", "after"
"""A body is given how many times it was run before. It gives whether it is to be run again, if it says so, and what is
carried to the next time. All else that it gives is kept of every time, in a dimension before the others."""


@final
class JoinedGraphs:
    """A graph that grows: what a part gives, the parts behind it take by the same name."""

    def __init__(self, first: Any) -> None:
        """The inputs of the first are those of the whole."""
        from onnx import GraphProto

        self._graph = GraphProto(name="whole", input=first.graph.input)
        self._like = first
        self._called = {one.name: one.name for one in first.graph.input}
        """What each value of a part is called in the whole."""
        self.add("begin", first)

    def add(self, part: str, model: Any) -> None:
        """One graph more."""
        graph = self._renamed(part, model, {})
        self._graph.node.extend(graph.node)
        self._graph.initializer.extend(graph.initializer)
        self._called |= {
            old.name: new.name for old, new in zip(model.graph.output, graph.output, strict=True)
        }

    def loop(self, part: str, model: Any, *, times: str, carried: str) -> None:
        """A graph as the body of a loop, run at most so many `times`; what it gives as `after` is `carried`."""
        from onnx import helper

        names = [one.name for one in model.graph.output]
        before = {
            name: carried + name.removeprefix(AFTER)
            for name in names
            if name.partition(".")[0] == AFTER
        }
        kept = [name for name in names if name not in before and name != GOES]
        body = self._renamed(
            part, model, {name: f"{part}/{name}" for name in (MADE, *before.values())}
        )
        outputs = {old: _untied(new) for old, new in zip(names, body.output, strict=True)}
        asked, goes = f"{part}/asked", f"{part}/{GOES}"
        if GOES not in names:
            body.node.append(helper.make_node("Identity", [asked], [goes], name=goes))
        del body.input[:], body.output[:]
        body.input.extend([_number(f"{part}/{MADE}", "INT64"), _number(asked, "BOOL")])
        body.input.extend(_untied(outputs[name], f"{part}/{own}") for name, own in before.items())
        body.output.extend([_number(goes, "BOOL"), *(outputs[name] for name in (*before, *kept))])
        given = [self._called[times], "", *(self._called[own] for own in before.values())]
        self._called |= {name: f"{part}/all/{name}" for name in (*before.values(), *kept)}
        made = [self._called[name] for name in (*before.values(), *kept)]
        self._graph.node.append(helper.make_node("Loop", given, made, name=part, body=body))

    def model(self, outputs: Sequence[Any]) -> Any:
        """The whole, which gives some of what its parts gave."""
        from onnx import helper

        for one in outputs:
            self._graph.node.append(
                helper.make_node("Identity", [self._called[one.name]], [one.name], name=one.name)
            )
        self._graph.output.extend(outputs)
        like = self._like
        return helper.make_model(
            self._graph, opset_imports=like.opset_import, ir_version=like.ir_version
        )

    def _renamed(self, part: str, model: Any, inside: Mapping[str, str]) -> Any:
        """A copy of a graph with names that no other part has; its inputs are `inside` it, or what others gave."""
        names = {
            one.name: inside.get(one.name) or self._called[one.name] for one in model.graph.input
        }
        graph = type(model.graph)()
        graph.CopyFrom(model.graph)
        _rename(graph, part, names)
        return graph


def _rename(graph: Any, part: str, names: Mapping[str, str]) -> None:
    """Every name inside a graph, and inside the graphs of its nodes: by the mapping, or with the part before it."""

    def new(name: str) -> str:
        return names.get(name, f"{part}/{name}") if name else ""

    for one in (*graph.input, *graph.output, *graph.initializer):
        one.name = new(one.name)
    for number, node in enumerate(graph.node):
        node.name = f"{part}/{node.name or number}"
        node.input[:], node.output[:] = map(new, node.input), map(new, node.output)
        for attribute in node.attribute:
            _rename(attribute.g, part, names)


def _number(name: str, kind: str) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), [])


def _untied(value: Any, name: str = "") -> Any:
    """The same without its sizes, which may differ from one time to the next."""
    from onnx import helper

    return helper.make_tensor_value_info(name or value.name, value.type.tensor_type.elem_type, None)
