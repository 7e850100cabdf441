"""Functions of values as graphs of ONNX: any batch and any length, compared with torch before a file is kept.

A graph takes and gives tensors alone, so values of the waist become named tensors, and come back. Of recurrent networks
torch's exporter has a form for any length for GRU and LSTM alone, so others are replaced.
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

TOLERANCE = 1e-4
"""The most that a number of a graph may differ from torch's, of numbers up to 1; of larger ones in proportion."""
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b")
"""What a terminal takes for a colour or another command (ECMA-48), which torch's exporter puts into its messages."""
Value = Mapping[str, Any]
Function = Callable[[Any], Value]
Sizes = tuple[int, ...]
"""Of one dimension, in each of the examples."""
SURE = 200.0
"""σ(SURE) is 1 and σ(-SURE) is 0, to the last bit."""


@final
class _Graph(nn.Module):
    """A function of values as one of tensors, with the modules whose weights it reads."""

    def __init__(
        self, modules: Sequence[nn.Module], function: Function, like: Value, outputs: Sequence[str]
    ) -> None:
        super().__init__()
        self.owned = nn.ModuleList(modules)
        self.function, self.like, self.outputs = function, like, outputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        found = flat(
            self.function(filled(self.like, dict(zip(flat(self.like), tensors, strict=True))))
        )
        return tuple(found[name] for name in self.outputs)


def write_graph(
    path: Path,
    function: Function,
    modules: Sequence[nn.Module],
    examples: Sequence[Value],
    *,
    what: str,
    keeps: Collection[str] | None = None,
) -> list[str]:
    """Write a function of values, as it is at all examples; returns the names of the inputs that it reads.

    A dimension that differs between examples is symbolic; those that agree in all of them are the same. `what` names
    the components in messages. `keeps` are the outputs that somebody needs; without it all are kept.
    """
    with naming(what):
        import onnx

        given, made = (
            [flat(example) for example in examples],
            [flat(function(example)) for example in examples],
        )
        model = graph_of(function, modules, examples, name=path.name, keeps=keeps)
        onnx.save_model(model, str(path))
        compare(path, given, made)
        return [one.name for one in model.graph.input]


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Whatever torch, its exporter or onnxruntime make of a component that is not ours, as a sentence."""
    try:
        yield
    except (SixJarsError, MemoryError):
        raise
    except Exception as error:
        said = _COLOUR.sub("", str(error)).strip() or type(error).__name__
        reason = said.splitlines()[0].rstrip(".")[:300]
        raise RunError(f"{what} cannot be exported: {reason}.") from error


def graph_of(
    function: Function,
    modules: Sequence[nn.Module],
    examples: Sequence[Value],
    *,
    name: str,
    keeps: Collection[str] | None = None,
) -> Any:
    """The model of a function of values, compared with nothing yet; inputs that it does not read are left out."""
    given = [flat(example) for example in examples]
    made = [flat(function(example)) for example in examples]
    outputs = [one for one in made[0] if keeps is None or one in keeps]
    names = Symbols(given)
    model = _exported(_Graph(modules, function, examples[0], outputs), given, names)
    names.check(name, model.graph.input, _sizes(given))
    read = {one for node in model.graph.node for one in node.input} | {
        one.name for one in model.graph.output
    }
    kept = [one for one in model.graph.input if one.name in read]
    del model.graph.input[:], model.graph.value_info[:]
    model.graph.input.extend(kept)
    names.declare(model.graph.input, _sizes(given))
    names.declare(
        model.graph.output, _sizes([{name: one[name] for name in outputs} for one in made])
    )
    return model


def _exported(graph: _Graph, given: Sequence[Mapping[str, Tensor]], names: "Symbols") -> Any:
    """The model as torch writes it."""
    arguments = tuple(
        tensor.clone() for tensor in given[0].values()
    )  # one that is there twice would be a constant
    dimensions = {size: torch.export.Dim(name) for size, name in names.known.items()}
    dynamic = tuple(
        {axis: dimensions[size] for axis, size in enumerate(sizes) if size in dimensions}
        for sizes in _sizes(given).values()
    )
    named: dict[str, Any] = {"input_names": list(given[0]), "output_names": list(graph.outputs)}
    for operator in (torch.ops.aten.gru.input, torch.ops.aten.lstm.input):
        operator._dispatch_cache.clear()  # else one that was exported before is unrolled, and takes one length alone
    with _quiet():
        program = torch.onnx.export(
            graph.eval(), arguments, dynamic_shapes=(dynamic,), **named, dynamo=True, verbose=False
        )
    assert program is not None
    return program.model_proto


@final
class Symbols:
    """The names of dimensions that differ between examples."""

    def __init__(self, given: Sequence[Mapping[str, Tensor]]) -> None:
        self.known: dict[Sizes, str] = {}
        for name, sizes in _sizes(given).items():
            for axis, size in enumerate(sizes):
                if len(set(size)) > 1 and size not in self.known:
                    self.known[size] = f"{name}_{axis}".replace(".", "_") if self.known else "rows"

    def check(self, graph: str, inputs: Any, sizes: Mapping[str, Sequence[Sizes]]) -> None:
        """Refuse a graph that takes one size alone where there may be any: torch fixes a size without a word."""
        for value in inputs:
            for dimension, size in zip(
                value.type.tensor_type.shape.dim, sizes[value.name], strict=True
            ):
                if size in self.known and not dimension.dim_param:
                    raise RunError(
                        f"the graph {graph} would take {value.name} with {dimension.dim_value} "
                        f"{self.known[size]} alone, and not any number; a component of this model cannot be exported."
                    )

    def declare(self, values: Any, sizes: Mapping[str, Sequence[Sizes]]) -> None:
        """Write down the dimensions of inputs or outputs, which torch does not always know."""
        for value in values:
            for axis, (dimension, size) in enumerate(
                zip(value.type.tensor_type.shape.dim, sizes[value.name], strict=True)
            ):
                if len(set(size)) > 1:
                    dimension.dim_param = self.known.setdefault(
                        size, f"{value.name}_{axis}".replace(".", "_")
                    )
                else:
                    dimension.dim_value = size[0]


def _sizes(found: Sequence[Mapping[str, Tensor]]) -> dict[str, list[Sizes]]:
    """The size of each dimension of each tensor, in every example."""
    shapes = {name: [one[name].shape for one in found] for name in found[0]}
    return {name: list(zip(*of, strict=True)) for name, of in shapes.items()}


def compare(
    path: Path, given: Sequence[Mapping[str, Tensor]], made: Sequence[Mapping[str, Tensor]]
) -> None:
    """Refuse a file whose values are not those of torch at every example."""
    session = session_of(path)
    names, outputs = (
        [one.name for one in some] for some in (session.get_inputs(), session.get_outputs())
    )
    for tensors, wanted in zip(given, made, strict=True):
        found = session.run(outputs, {name: tensors[name].detach().numpy() for name in names})
        for name, values in zip(outputs, found, strict=True):
            true = wanted[name].detach().numpy()
            near = TOLERANCE if true.dtype.kind == "f" else 0.0
            if values.shape != true.shape or not np.allclose(values, true, near, near):
                shapes = f"{values.shape} and {true.shape}"
                raise RunError(
                    f"the graph {path.name} gives other values of {name} than torch ({shapes})."
                )


def session_of(path: Path) -> Any:
    """A file, ready to be run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says of itself while it exports."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def flat(value: Any, name: str = "") -> dict[str, Tensor]:
    """Every tensor of a value by name; one inside another value has both names, with a dot between them.

    >>> import torch
    >>> from sixjars import State
    >>> list(flat({"state": State(torch.zeros(1)), "token": torch.zeros(1)}))
    ['state.hidden', 'token']
    """
    if isinstance(value, Tensor):
        return {name: value}
    inner = ((f"{name}.{key}" if name else key, one) for key, one in _inside(value))
    return {key: tensor for outer, one in inner for key, tensor in flat(one, outer).items()}


def filled(value: Any, tensors: Mapping[str, Tensor], name: str = "") -> Any:
    """The same value made of other tensors."""
    if isinstance(value, Tensor):
        return tensors[name]
    made = {
        key: filled(one, tensors, f"{name}.{key}" if name else key) for key, one in _inside(value)
    }
    if isinstance(value, Tensors):
        return replace(value, **made)
    return (
        tuple(made.values())
        if isinstance(value, tuple)
        else made
        if isinstance(value, Mapping)
        else value
    )


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensors):
        yield from ((one.name, getattr(value, one.name)) for one in fields(value))
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple):
        yield from ((str(at), one) for at, one in enumerate(value))


def exportable(module: nn.Module) -> None:
    """Replace every plain recurrent network inside by a GRU that computes the same."""
    for owner in list(module.modules()):
        for name, inner in list(owner.named_children()):
            if isinstance(inner, nn.RNN) and inner.nonlinearity == "tanh":
                setattr(owner, name, as_gru(inner))
                owner.by_hand = False  # type: ignore[assignment] # of our own networks: let torch's stack compute it, whatever its kind


def as_gru(rnn: nn.RNN) -> nn.GRU:
    """h_t = tanh(U x_t + W h_{t-1} + b) as a GRU whose reset gate is always 1 and whose update gate is always 0.

    >>> rnn = nn.RNN(3, 4, num_layers=2, bidirectional=True)
    >>> inputs = torch.randn(5, 2, 3)
    >>> torch.allclose(rnn(inputs)[0], as_gru(rnn)(inputs)[0], atol=1e-6)
    True
    """
    sizes = rnn.input_size, rnn.hidden_size, rnn.num_layers
    gru = nn.GRU(
        *sizes, batch_first=rnn.batch_first, dropout=rnn.dropout, bidirectional=rnn.bidirectional
    )
    own = dict(rnn.named_parameters())
    with torch.no_grad():
        for name, weight in gru.named_parameters():
            reset, update, new = weight.zero_().chunk(3)
            if name in own:
                new.copy_(own[name])
            if name.startswith("bias_ih"):
                reset.fill_(SURE)
                update.fill_(-SURE)
    return gru.train(rnn.training)
