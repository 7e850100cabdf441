"""Values made of tensors, and those that have a row for each example.

Dims: B batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tensors:
    """A value made of tensors, directly or in values inside it."""

    def to(self, device: torch.device | str) -> Self:
        """The same value on another device."""
        eager = torch.device(device).type == "cuda"
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=eager))

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same value with every tensor changed, those of nested values included."""
        return replace(self, **{field.name: _mapped(getattr(self, field.name), change) for field in fields(self)})


@dataclass(frozen=True)
class Rows(Tensors):
    """A value whose tensors all have the batch as their first dimension."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._some().shape[0]

    @property
    def device(self) -> torch.device:
        """Where they live."""
        return self._some().device

    def _some(self) -> Tensor:
        """Any of the tensors: all agree on rows and device."""
        values = [getattr(self, field.name) for field in fields(self)]
        return next(value if isinstance(value, Tensor) else value._some() for value in values if _holds(value))

    def pick(self, rows: Tensor) -> Self:
        """The given rows, in the given order; a row may be named several times."""
        return self.mapped(lambda tensor: tensor.index_select(0, rows))

    def spread(self, times: int) -> Self:
        """Each row repeated `times` times, the copies side by side: (B, ...) -> (B * times, ...)."""
        return self.mapped(lambda tensor: tensor.repeat_interleave(times, dim=0))


def _holds(value: object) -> bool:
    return isinstance(value, Tensor | Rows)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Tensors):
        return value.mapped(change)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(inner, change) for inner in value)
    return value
