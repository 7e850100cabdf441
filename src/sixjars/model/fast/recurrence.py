r"""Recurrences over a whole sequence, several side by side: the directions of an encoder, or one decoder.

Dims: K recurrences, B batch, T positions, H state features, G gate features (H times 1, 3 or 4).

The inputs are given for all positions at once, so a step is one product and one cell for all K; backwards the same,
and the gradient of each weight is one product of all steps, δW = Σ_t δr_t h_{t-1}ᵀ. On CUDA a cell is one kernel.
"""

from typing import Any, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sixjars.model.fast.cells import CELLS, Cell, Summands, summed


def cell_of(name: str, like: Tensor) -> Cell:
    """A cell by name: on CUDA as kernels, where it has them."""
    if not like.is_cuda:
        return CELLS[name]
    from sixjars.model.fast.cell_kernels import FUSED

    return FUSED.get(name, CELLS[name])


@final
class Recurrence(torch.autograd.Function):
    """All states of K recurrences; use `recurrence`."""

    @staticmethod
    def forward(
        ctx: Any, name: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """Step by step."""
        cell, weight_KHG = cell_of(name, given), weight.transpose(1, 2)
        recurrences, steps, rows, _ = given.shape
        hidden_KTBH = given.new_empty(recurrences, steps + 1, rows, hidden.shape[-1])
        hidden_KTBH[:, 0] = hidden
        ctx.steps = []
        with torch.autocast(given.device.type, enabled=False):
            for at in range(steps):
                before, after = hidden_KTBH[:, at], hidden_KTBH[:, at + 1]
                recurrent = torch.bmm(before, weight_KHG), bias
                memory, saved = cell.forward((given[:, at],), recurrent, before, memory, after)
                ctx.steps.append(saved)
        ctx.cell, ctx.hidden = cell, hidden_KTBH
        ctx.save_for_backward(weight)
        return hidden_KTBH[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> Any:
        """Step by step back, then every weight at once."""
        (weight,), cell = ctx.saved_tensors, ctx.cell
        recurrences, steps, rows, _ = d_states.shape
        d_given = d_states.new_empty(recurrences, steps, rows, weight.shape[1])
        d_recurrent = d_given if cell.gives_alike else torch.empty_like(d_given)
        later: Summands = ()
        d_memory: Tensor | None = None
        with torch.autocast(d_states.device.type, enabled=False):
            for at in reversed(range(steps)):
                to = d_given[:, at], d_recurrent[:, at]
                kept, d_memory = cell.backward((d_states[:, at], *later), d_memory, ctx.steps[at], *to)
                passed = torch.bmm(to[1], weight)
                later = (passed,) if kept is None else (passed, kept)
            before_KNH, d_recurrent_KNG = ctx.hidden[:, :-1].flatten(1, 2), d_recurrent.flatten(1, 2)
            d_weight = torch.bmm(d_recurrent_KNG.transpose(1, 2), before_KNH)
            d_hidden = summed(later) if later else None
            return None, d_given, d_hidden, d_memory, d_weight, summed_rows(d_recurrent_KNG)


def summed_rows(values: Tensor) -> Tensor:
    """The sum over all rows: (N, G) -> (G,), or (K, N, G) -> (K, G). As a product it is one pass, on any device."""
    ones = values.new_ones(*values.shape[:-2], 1, values.shape[-2])
    return (ones @ values).squeeze(-2)


def recurrence(cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor) -> Tensor:
    """The states (K, T, B, H) of K recurrences.

    From g of all positions (K, T, B, G), the first states (K, B, H), W (K, G, H) and b' (K, G).
    """
    return cast("Tensor", Recurrence.apply(cell, given, hidden, memory, weight, bias))  # type: ignore[no-untyped-call]
