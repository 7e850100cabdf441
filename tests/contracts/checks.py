"""What the contract checks measure: gradients, what was saved, what is held, what was exported."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from sixjars.flow.contracts import Component
from sixjars.learning.checkpoints import load_weights, save_tensors

M = TypeVar("M", bound=nn.Module)


def gradients(module: nn.Module, number: Tensor) -> dict[str, Tensor]:
    """The gradient of a number with respect to every trainable weight; zeros where none arrives."""
    module.zero_grad()
    number.backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in module.named_parameters()
        if weight.requires_grad
    }


def weighed(*tensors: Tensor) -> Tensor:
    """A number that depends on every entry, on each differently."""
    return torch.stack(
        [
            (tensor * torch.linspace(0.5, 1.5, tensor.numel()).view_as(tensor)).sum()
            for tensor in tensors
        ]
    ).sum()


def unlearned(found: Mapping[str, Tensor]) -> list[str]:
    """The weights that no gradient reaches."""
    return [name for name, gradient in found.items() if not gradient.any()]


def reloaded(module: M, make: Callable[[], M], folder: Path) -> M:
    """A fresh module of the same make, whose state was set to zero and then loaded from disk."""
    other = make().eval()
    with torch.no_grad():
        for tensor in other.state_dict().values():
            tensor.zero_()
    save_tensors(folder / "weights.safetensors", module.state_dict(), {})
    load_weights(other, folder / "weights.safetensors")
    return other


def held(module: nn.Module) -> dict[str, Any]:
    """All that modules hold: which objects, and of tensors how often they were written to."""
    return {
        f"{path}.{name}": [(id(thing), getattr(thing, "_version", 0)) for thing in _things(value)]
        for path, inner in module.named_modules()
        for name, value in vars(inner).items()
    }


def _things(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def nameless(component: Component) -> list[str]:
    """The weights of a component (those of a bridge within it aside) that have no letter."""
    names = [name for name in component.state_dict() if not name.startswith("bridge.")]
    return [name for name in names if component.letter(name) == "–"]


def exported(
    module: nn.Module, inputs: tuple[Tensor, ...], *, counted: Sequence[str] | None = None
) -> Callable[..., tuple[Tensor, ...]]:
    """The module, whose `forward` takes tensors, as `torch.export` has it: for any number of rows.

    `counted` names what each tensor has any number of, where that is not the rows for all of them.
    """
    dims = {name: Dim(name, max=4096) for name in counted or ["rows"]}
    shapes = tuple({0: dims[name]} for name in counted or ["rows"] * len(inputs))
    program = export(module, inputs, dynamic_shapes=(shapes,), strict=False)
    found: Callable[..., tuple[Tensor, ...]] = program.module()
    return found
