"""Values of the waist as named tensors and back: a graph takes and gives tensors alone."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from sixjars.flow.values import Tensors


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
    made = {key: filled(one, tensors, f"{name}.{key}" if name else key) for key, one in _inside(value)}
    if isinstance(value, Tensors):
        return replace(value, **made)
    return tuple(made.values()) if isinstance(value, tuple) else made if isinstance(value, Mapping) else value


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensors):
        yield from ((one.name, getattr(value, one.name)) for one in fields(value))
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple):
        yield from ((str(at), one) for at, one in enumerate(value))
