"""Functions of values as ONNX graphs of any batch and length, compared with torch when written.

A graph takes and gives tensors alone, so values of the waist become named tensors, and come back.
Of recurrent networks torch's exporter has a form for any length for GRU and LSTM alone, so others
are replaced.
"""

import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from sixjars.flow.values import Tensors
from sixjars_runtime.errors import RunError, SixJarsError
from sixjars_runtime.exported.graphs import OnnxGraph

TOLERANCE = 1e-4
"""The most that a number of a graph may differ from torch's; relative for numbers above 1."""
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b")
"""Colours and other commands of terminals (ECMA-48), which torch's exporter uses in messages."""
Value = Mapping[str, Any]
Function = Callable[[Any], Value]
Sizes = tuple[int, ...]
"""The sizes of one dimension in all examples."""
ALL = 0
"""For onnxruntime: as many threads as there are cores."""
SURE = 200.0
"""σ(SURE) is 1 and σ(-SURE) is 0, to the last bit."""


@final
class _GraphModule(nn.Module):
    """A function of values as one of tensors, with the modules whose weights it reads."""

    def __init__(
        self, modules: Sequence[nn.Module], function: Function, like: Value, outputs: Sequence[str]
    ) -> None:
        super().__init__()
        self.owned = nn.ModuleList(modules)
        self.function, self.like, self.outputs = function, like, outputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        value = filled(self.like, dict(zip(flat(self.like), tensors, strict=True)))
        outputs = flat(self.function(value))
        return tuple(outputs[name] for name in self.outputs)


def write_graph(
    path: Path,
    function: Function,
    modules: Sequence[nn.Module],
    examples: Sequence[Value],
    *,
    what: str,
    keeps: Collection[str] | None = None,
) -> list[str]:
    """Write a function of values as a graph; return the names of the inputs that it reads.

    A dimension that differs between examples is symbolic; those that agree in all of them are the
    same. `what` names the components in messages. Without `keeps` all outputs are kept.
    """
    with naming(what):
        import onnx

        model = graph_of(function, modules, examples, name=path.name, keeps=keeps)
        onnx.save_model(model, str(path))
        compare(path, [*map(flat, examples)], [flat(function(each)) for each in examples])
        return [value.name for value in model.graph.input]


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Raise faults of torch, its exporter or onnxruntime as a sentence about a component."""
    try:
        yield
    except (SixJarsError, MemoryError):
        raise
    except Exception as error:
        message = _COLOUR.sub("", str(error)).strip() or type(error).__name__
        reason = message.splitlines()[0].rstrip(".")[:300]
        raise RunError(f"{what} cannot be exported: {reason}.") from error


def graph_of(
    function: Function,
    modules: Sequence[nn.Module],
    examples: Sequence[Value],
    *,
    name: str,
    keeps: Collection[str] | None = None,
) -> Any:
    """The ONNX model of a function of values, without the inputs that it does not read."""
    given = [flat(example) for example in examples]
    results = [flat(function(example)) for example in examples]
    outputs = [key for key in results[0] if keeps is None or key in keeps]
    symbols = SymbolicSizes(given)
    model = _exported(_GraphModule(modules, function, examples[0], outputs), given, symbols)
    graph = model.graph
    symbols.check(name, graph.input, _sizes(given))
    read = {key for node in graph.node for key in node.input}
    read |= {value.name for value in graph.output}
    kept = [value for value in graph.input if value.name in read]
    del graph.input[:], graph.value_info[:]
    graph.input.extend(kept)
    symbols.declare(graph.input, _sizes(given))
    kept_results = [{key: result[key] for key in outputs} for result in results]
    symbols.declare(graph.output, _sizes(kept_results))
    return model


def _exported(
    graph: _GraphModule, given: Sequence[Mapping[str, Tensor]], symbols: "SymbolicSizes"
) -> Any:
    # copies, for a tensor that is given twice would be a constant
    arguments = tuple(tensor.clone() for tensor in given[0].values())
    dimensions = {size: torch.export.Dim(name) for size, name in symbols.known.items()}
    dynamic = tuple(
        {axis: dimensions[size] for axis, size in enumerate(sizes) if size in dimensions}
        for sizes in _sizes(given).values()
    )
    named: dict[str, Any] = {"input_names": list(given[0]), "output_names": list(graph.outputs)}
    for operator in (torch.ops.aten.gru.input, torch.ops.aten.lstm.input):
        # else an operator that was exported before is unrolled, and takes one length alone
        operator._dispatch_cache.clear()
    options: dict[str, Any] = {"dynamo": True, "verbose": False, "dynamic_shapes": (dynamic,)}
    with _quiet():
        program = torch.onnx.export(graph.eval(), arguments, **named, **options)
    assert program is not None
    return program.model_proto


@final
class SymbolicSizes:
    """The names of dimensions that differ between examples."""

    def __init__(self, given: Sequence[Mapping[str, Tensor]]) -> None:
        self.known: dict[Sizes, str] = {}
        for name, sizes in _sizes(given).items():
            for axis, size in enumerate(sizes):
                if len(set(size)) > 1 and size not in self.known:
                    self.known[size] = f"{name}_{axis}".replace(".", "_") if self.known else "rows"

    def check(self, graph: str, inputs: Any, sizes: Mapping[str, Sequence[Sizes]]) -> None:
        """Refuse a graph that takes one size alone: torch fixes a size without a word."""
        for value in inputs:
            dimensions = value.type.tensor_type.shape.dim
            for dimension, size in zip(dimensions, sizes[value.name], strict=True):
                if size in self.known and not dimension.dim_param:
                    raise RunError(
                        f"the graph {graph} would take {value.name} with {dimension.dim_value} "
                        f"{self.known[size]} alone, and not any number; "
                        "a component of this model cannot be exported."
                    )

    def declare(self, values: Any, sizes: Mapping[str, Sequence[Sizes]]) -> None:
        """Write down the dimensions of inputs or outputs, which torch does not always know."""
        for value in values:
            dimensions = value.type.tensor_type.shape.dim
            pairs = zip(dimensions, sizes[value.name], strict=True)
            for axis, (dimension, size) in enumerate(pairs):
                if len(set(size)) > 1:
                    name = f"{value.name}_{axis}".replace(".", "_")
                    dimension.dim_param = self.known.setdefault(size, name)
                else:
                    dimension.dim_value = size[0]


def _sizes(examples: Sequence[Mapping[str, Tensor]]) -> dict[str, list[Sizes]]:
    names = examples[0]
    return {name: [*zip(*(each[name].shape for each in examples), strict=True)] for name in names}


def compare(
    path: Path, given: Sequence[Mapping[str, Tensor]], expected: Sequence[Mapping[str, Tensor]]
) -> None:
    """Refuse a file whose values are not those of torch at every example."""
    graph = OnnxGraph(path, threads=ALL)
    for tensors, true_values in zip(given, expected, strict=True):
        for name, values in outputs_of(graph, tensors).items():
            true = true_values[name].detach().numpy()
            near = TOLERANCE if true.dtype.kind == "f" else 0.0
            if values.shape != true.shape or not np.allclose(values, true, near, near):
                shapes = f"{values.shape} and {true.shape}"
                raise RunError(
                    f"the graph {path.name} gives other values of {name} than torch ({shapes})."
                )


def outputs_of(graph: OnnxGraph, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The outputs of a graph by name, as the runtime has them; the first tensor tells the rows."""
    arrays = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
    return graph(arrays, rows=len(next(iter(arrays.values()))))


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def flat(value: Any, name: str = "") -> dict[str, Tensor]:
    """Every tensor of a value by name, with dots between the names of values inside others.

    >>> import torch
    >>> from sixjars import State
    >>> list(flat({"state": State(torch.zeros(1)), "token": torch.zeros(1)}))
    ['state.hidden', 'token']
    """
    if isinstance(value, Tensor):
        return {name: value}
    tensors: dict[str, Tensor] = {}
    for key, inner in _inside(value):
        tensors |= flat(inner, f"{name}.{key}" if name else key)
    return tensors


def filled(value: Any, tensors: Mapping[str, Tensor], name: str = "") -> Any:
    """The same value made of other tensors."""
    if isinstance(value, Tensor):
        return tensors[name]
    parts = {
        key: filled(inner, tensors, f"{name}.{key}" if name else key)
        for key, inner in _inside(value)
    }
    if isinstance(value, Tensors):
        return replace(value, **parts)
    if isinstance(value, tuple):
        return tuple(parts.values())
    return parts if isinstance(value, Mapping) else value


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensors):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple):
        yield from ((str(at), inner) for at, inner in enumerate(value))


def exportable(module: nn.Module) -> None:
    """Replace every plain recurrent network inside by a GRU that computes the same."""
    for owner in list(module.modules()):
        for name, inner in list(owner.named_children()):
            if isinstance(inner, nn.RNN) and inner.nonlinearity == "tanh":
                setattr(owner, name, as_gru(inner))


def as_gru(rnn: nn.RNN) -> nn.GRU:
    """h_t = tanh(U x_t + W h_{t-1} + b) as a GRU with reset gates of 1 and update gates of 0.

    >>> rnn = nn.RNN(3, 4, num_layers=2, bidirectional=True)
    >>> inputs = torch.randn(5, 2, 3)
    >>> torch.allclose(rnn(inputs)[0], as_gru(rnn)(inputs)[0], atol=1e-6)
    True
    """
    sizes = rnn.input_size, rnn.hidden_size, rnn.num_layers
    options = {"batch_first": rnn.batch_first, "bidirectional": rnn.bidirectional}
    gru = nn.GRU(*sizes, dropout=rnn.dropout, **options)
    weights = dict(rnn.named_parameters())
    with torch.no_grad():
        for name, weight in gru.named_parameters():
            reset, update, new = weight.zero_().chunk(3)
            if name in weights:
                new.copy_(weights[name])
            if name.startswith("bias_ih"):
                reset.fill_(SURE)
                update.fill_(-SURE)
    return gru.train(rnn.training)
