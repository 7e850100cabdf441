r"""A step of a cell and its backward pass, in torch operations; the equations of all gradients.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4), S source
      positions, T steps, A attention features, D source features, P segments of a row,
      Q = G + A (G + 2A at two levels).

δ is the gradient of the loss. A step h' = f(g, r, h) has the given g = U x + b and the recurrent
r = W h + b':

    RNN    h' = tanh(g + r)                             δg = δr = δh' (1 - h'²)
    GRU    o = σ(g_o + r_o), i = σ(g_i + r_i),          δg_n = δh' (1 - i) (1 - n²), δr_n = δg_n o
           n = tanh(g_n + o r_n), h' = n + i (h - n)    δg_o = δr_o = δg_n r_n o (1 - o)
                                                        δg_i = δr_i = δh' (h - n) i (1 - i)
                                                        δh = δh' i + …
    LSTM   i, f, o = σ(g + r), n = tanh(g_n + r_n),     δm' = δm' + δh' o (1 - tanh² m'), δm = δm' f
           m' = f m + i n, h' = o tanh m'               δg_i = δm' n i (1 - i)
                                                        δg_f = δm' m f (1 - f)
                                                        δg_n = δm' i (1 - n²)
                                                        δg_o = δh' tanh(m') o (1 - o)

The rest of δh is Wᵀ δr, one product for all rows.

Attention, where q_t = U_att s_{t-1} (of dot and general, s_{t-1} itself) and k_j is a key:

    e_jt = V_attᵀ tanh(q_t + k_j)  or  q_tᵀ k_j,   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j

    δα_jt = h_jᵀ δc_t + other gradients of the weights,   δe_jt = α_jt (δα_jt - Σ_i α_it δα_it)
    additive:  δq_t = Σ_j δe_jt V_att ⊙ (1 - tanh²),   δk_j = Σ_t δe_jt V_att ⊙ (1 - tanh²),
               δV_att = Σ_jt δe_jt tanh
    product:   δq_t = Σ_j δe_jt k_j,                   δk_j = Σ_t δe_jt q_t
    δh_j = Σ_t α_jt δc_t

Two levels, where word j is in segment n; f_nt is the score of a segment, e_jt that of a word:

    β_nt = softmax_n(f_nt),   γ_jt = softmax of e_jt over the words of segment n,   α_jt = β_nt γ_jt

    μ_nt = Σ_{j in n} γ_jt δα_jt,   δe_jt = α_jt (δα_jt - μ_nt),
    δf_nt = β_nt (μ_nt - Σ_m β_mt μ_mt)

Only δα, δe and δq are computed in the loop over steps; each of the others is one product, or one
kernel, for all steps.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, final

import torch
from torch import Tensor

Saved = tuple[Tensor, ...]
"""The tensors that the backward pass of a step needs."""
Memory = Tensor | None
"""The memory cell of an LSTM; None for other cells."""
Made = tuple[Memory, Saved]
Back = tuple[Tensor | None, Memory]
Summands = tuple[Tensor, ...]
"""Tensors whose sum alone is needed; a kernel adds them up while it reads them."""


def summed(parts: Summands) -> Tensor:
    """The sum of the summands, one of which may be a bias (K, G) of all rows."""
    total = parts[0]
    for part in parts[1:]:
        total = total + (part if part.dim() in {1, total.dim()} else part.unsqueeze(1))
    return total


class Cell(ABC):
    """One step of a cell and its backward pass, which write into the given tensors."""

    gives_alike: ClassVar[bool] = True
    """Whether δg and δr are equal, so that one tensor holds both."""

    @abstractmethod
    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """Write h' into `after`, from g and r (…, B, G), h and m (…, B, H); return m' and `Saved`.

        g and r have one summand or two: the product with the weights, and the bias.
        """

    @abstractmethod
    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """Write δg and δr, from δh' and δm'; return δh without the part through W, and δm.

        δh' has one to three summands: of the output, through W of the step after, and beside it.
        δm' is None at the last step alone.
        """


@final
class PlainRNN(Cell):
    """The cell of `torch.nn.RNN`."""

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """tanh(g + r)."""
        torch.tanh(summed(given) + summed(recurrent), out=after)
        return None, (after,)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """δg, which is δr; nothing of the state before passes beside W."""
        (after,) = saved
        torch.mul(summed(d_after), 1.0 - after * after, out=d_given)
        return None, None


@final
class PlainGRU(Cell):
    """The cell of `torch.nn.GRU`."""

    gives_alike = False

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """The new state; the reset gate multiplies after W."""
        size = hidden.shape[-1]
        given_G, recurrent_G = summed(given), summed(recurrent)
        gates = (given_G[..., : 2 * size] + recurrent_G[..., : 2 * size]).sigmoid_()
        reset, update = gates.chunk(2, dim=-1)
        recurrent_new = recurrent_G[..., 2 * size :]
        new = torch.addcmul(given_G[..., 2 * size :], reset, recurrent_new).tanh_()
        torch.lerp(new, hidden, update, out=after)
        return None, (gates, new, recurrent_new, hidden)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """δg and δr: the candidate of δr passes the reset gate, the others are the same."""
        gates, new, recurrent_new, hidden = saved
        size = hidden.shape[-1]
        d_hidden = summed(d_after)
        kept = d_hidden * gates[..., size:]
        d_reset, d_update, d_new = d_given.chunk(3, dim=-1)
        torch.ops.aten.tanh_backward(d_hidden - kept, new, grad_input=d_new)
        torch.mul(d_new, recurrent_new, out=d_reset)
        torch.mul(d_hidden, hidden - new, out=d_update)
        d_gates = d_given[..., : 2 * size]
        torch.ops.aten.sigmoid_backward(d_gates, gates, grad_input=d_gates)
        d_recur[..., : 2 * size] = d_given[..., : 2 * size]
        torch.mul(d_new, gates[..., :size], out=d_recur[..., 2 * size :])
        return kept, None


@final
class PlainLSTM(Cell):
    """The cell of `torch.nn.LSTM`."""

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """The new state; the gates are in torch's order: enter, forget, new, output."""
        assert memory is not None
        gates = summed((*given, *recurrent))
        enter, forget, new, output = gates.chunk(4, dim=-1)
        for gate in (enter, forget, output):
            gate.sigmoid_()
        new.tanh_()
        cell = torch.addcmul(forget * memory, enter, new)
        shown = torch.tanh(cell)
        torch.mul(output, shown, out=after)
        return cell, (gates, shown, memory)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """δg, which is δr, and the gradient of the memory cell."""
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
