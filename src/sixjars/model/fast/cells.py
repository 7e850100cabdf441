r"""One step of each cell and its backward pass by hand, as torch operations.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4).

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
from typing import ClassVar, final

import torch
from torch import Tensor

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
