r"""Recurrences over a whole sequence, several side by side: the directions of an encoder, or one decoder.

Dims: K recurrences, B batch, T positions, H state features, G gate features (H times 1, 3 or 4).

The inputs are given for all positions at once, so a step is one product and one cell for all K; backwards the same,
and the gradient of each weight is one product of all steps, δW = Σ_t δr_t h_{t-1}ᵀ. On CUDA a cell is one kernel.

With δ for the gradient of the loss with respect to what it stands before, and a step h' = f(g, r, h) from the given
g = U x + b and the recurrent r = W h + b':

    RNN    h' = tanh(g + r)                                   δg = δr = δh' (1 - h'²)
    GRU    o = σ(g_o + r_o), i = σ(g_i + r_i),                δg_n = δh' (1 - i) (1 - n²),  δr_n = δg_n o
           n = tanh(g_n + o r_n), h' = n + i (h - n)          δg_o = δr_o = δg_n r_n o (1 - o)
                                                              δg_i = δr_i = δh' (h - n) i (1 - i);  δh = δh' i + …
    LSTM   i, f, o = σ(g + r), n = tanh(g_n + r_n),           δm' = δm' + δh' o (1 - tanh² m'),  δm = δm' f
           m' = f m + i n, h' = o tanh m'                     δg_i = δm' n i (1 - i),  δg_f = δm' m f (1 - f),
                                                              δg_n = δm' i (1 - n²),  δg_o = δh' tanh(m') o (1 - o)

The rest of δh is Wᵀ δr, one product for all rows.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Saved = tuple[Tensor, ...]
"""What the backward pass of a step reads."""
Summands = tuple[Tensor, ...]
"""What is only ever needed as a sum, which a kernel makes while it reads it."""


def summed(parts: Summands) -> Tensor:
    """Their sum; of a bias (K, G) too, which is the same for all rows."""
    total = parts[0]
    for part in parts[1:]:
        total = total + (part if part.dim() == total.dim() or part.dim() == 1 else part.unsqueeze(1))
    return total


class Cell(ABC):
    """One step of a cell and its backward pass. Results are written into the tensors given for them."""

    gives_alike: ClassVar[bool] = True
    """Whether δg and δr are the same, so that one tensor holds both."""

    @abstractmethod
    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Tensor | None, after: Tensor
    ) -> tuple[Tensor | None, Saved]:
        """H' into `after`, from g and r (…, B, G), h and m (…, B, H); the memory cell m', and what was saved.

        g has one summand or two, r two: W h and the bias.
        """

    @abstractmethod
    def backward(
        self, d_after: Summands, d_memory: Tensor | None, saved: Saved, d_given: Tensor, d_recurrent: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """δg and δr into their tensors, from δh' and δm'; δh without what passes through W, and δm.

        δh' has one to three summands: of the output, through W of the step after, and what else that step kept.
        """


@final
class PlainRNN(Cell):
    """As `torch.nn.RNN`."""

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Tensor | None, after: Tensor
    ) -> tuple[Tensor | None, Saved]:
        """tanh(g + r)."""
        torch.tanh(summed(given) + summed(recurrent), out=after)
        return None, (after,)

    def backward(
        self, d_after: Summands, d_memory: Tensor | None, saved: Saved, d_given: Tensor, d_recurrent: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Nothing of the state before is kept beside W."""
        (after,) = saved
        torch.mul(summed(d_after), 1.0 - after * after, out=d_given)
        return None, None


@final
class PlainGRU(Cell):
    """As `torch.nn.GRU`."""

    gives_alike = False

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Tensor | None, after: Tensor
    ) -> tuple[Tensor | None, Saved]:
        """The reset gate multiplies after W."""
        size, given_G, recurrent_G = hidden.shape[-1], summed(given), summed(recurrent)
        gates = torch.sigmoid(given_G[..., : 2 * size] + recurrent_G[..., : 2 * size])
        reset, update = gates.chunk(2, dim=-1)
        recurrent_new = recurrent_G[..., 2 * size :]
        new = torch.tanh(torch.addcmul(given_G[..., 2 * size :], reset, recurrent_new))
        torch.lerp(new, hidden, update, out=after)
        return None, (gates, new, recurrent_new, hidden)

    def backward(
        self, d_after: Summands, d_memory: Tensor | None, saved: Saved, d_given: Tensor, d_recurrent: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """The recurrent's candidate passes through the reset gate; the other gates are alike."""
        gates, new, recurrent_new, hidden = saved
        size, d_hidden = hidden.shape[-1], summed(d_after)
        kept = d_hidden * gates[..., size:]
        d_reset, d_update, d_new = d_given.chunk(3, dim=-1)
        torch.mul(d_hidden - kept, 1.0 - new * new, out=d_new)
        torch.mul(d_new, recurrent_new, out=d_reset)
        torch.mul(d_hidden, hidden - new, out=d_update)
        d_given[..., : 2 * size] *= gates * (1.0 - gates)
        d_recurrent[..., : 2 * size] = d_given[..., : 2 * size]
        torch.mul(d_new, gates[..., :size], out=d_recurrent[..., 2 * size :])
        return kept, None


@final
class PlainLSTM(Cell):
    """As `torch.nn.LSTM`."""

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Tensor | None, after: Tensor
    ) -> tuple[Tensor | None, Saved]:
        """Its gates in torch's order: enter, forget, new, output."""
        assert memory is not None
        gates = summed((*given, *recurrent))
        size = hidden.shape[-1]
        gates[..., : 2 * size].sigmoid_()
        gates[..., 2 * size : 3 * size].tanh_()
        gates[..., 3 * size :].sigmoid_()
        enter, forget, new, output = gates.chunk(4, dim=-1)
        cell = torch.addcmul(forget * memory, enter, new)
        shown = torch.tanh(cell)
        torch.mul(output, shown, out=after)
        return cell, (gates, shown, memory)

    def backward(
        self, d_after: Summands, d_memory: Tensor | None, saved: Saved, d_given: Tensor, d_recurrent: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """The memory cell has a gradient of its own."""
        gates, shown, memory = saved
        enter, forget, new, output = gates.chunk(4, dim=-1)
        d_hidden = summed(d_after)
        d_cell = d_hidden * output * (1.0 - shown * shown)
        if d_memory is not None:
            d_cell += d_memory
        d_enter, d_forget, d_new, d_output = d_given.chunk(4, dim=-1)
        torch.mul(d_cell * new, enter * (1.0 - enter), out=d_enter)
        torch.mul(d_cell * memory, forget * (1.0 - forget), out=d_forget)
        torch.mul(d_cell * enter, 1.0 - new * new, out=d_new)
        torch.mul(d_hidden * shown, output * (1.0 - output), out=d_output)
        return None, d_cell * forget


CELLS: dict[str, Cell] = {"rnn": PlainRNN(), "gru": PlainGRU(), "lstm": PlainLSTM()}


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
