r"""One step of a cell, one step of attention, and their backward passes by hand, as torch operations.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4), S source positions, T steps,
      A attention features, D source features.

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

Attention, where q_t = U_att s_{t-1} (of dot and general, s_{t-1} itself) and k_j is a key:

    e_jt = V_attᵀ tanh(q_t + k_j)  or  q_tᵀ k_j,   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j

    δα_jt = h_jᵀ δc_t + what else reads the weights,   δe_jt = α_jt (δα_jt - Σ_i α_it δα_it)
    additive:  δq_t = Σ_j δe_jt V_att ⊙ (1 - tanh²),   δk_j = Σ_t δe_jt V_att ⊙ (1 - tanh²),   δV_att = Σ_jt δe_jt tanh
    product:   δq_t = Σ_j δe_jt k_j,                   δk_j = Σ_t δe_jt q_t
    δh_j = Σ_t α_jt δc_t

Only δα, δe and δq are computed in the loop over steps; the others are one product, or one kernel, for all of them.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor

from sixjars.model.layers import key_powers, masked_softmax, powers, wide

Saved = tuple[Tensor, ...]
"""What the backward pass of a step reads."""
Memory = Tensor | None
"""The memory cell of an LSTM, which the others have not."""
Made = tuple[Memory, Saved]
Back = tuple[Tensor | None, Memory]
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
    def forward(self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor) -> Made:
        """H' into `after`, from g and r (…, B, G), h and m (…, B, H); the memory cell m', and what was saved.

        g and r have one summand or two: what passes through W, and the bias.
        """

    @abstractmethod
    def backward(self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recurrent: Tensor) -> Back:
        """δg and δr into their tensors, from δh' and δm'; δh without what passes through W, and δm.

        δh' has one to three summands: of the output, through W of the step after, and what else that step kept.
        """


@final
class PlainRNN(Cell):
    """As `torch.nn.RNN`."""

    def forward(self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor) -> Made:
        """tanh(g + r)."""
        torch.tanh(summed(given) + summed(recurrent), out=after)
        return None, (after,)

    def backward(self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recurrent: Tensor) -> Back:
        """Nothing of the state before is kept beside W."""
        (after,) = saved
        torch.mul(summed(d_after), 1.0 - after * after, out=d_given)
        return None, None


@final
class PlainGRU(Cell):
    """As `torch.nn.GRU`."""

    gives_alike = False

    def forward(self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor) -> Made:
        """The reset gate multiplies after W."""
        size, given_G, recurrent_G = hidden.shape[-1], summed(given), summed(recurrent)
        gates = (given_G[..., : 2 * size] + recurrent_G[..., : 2 * size]).sigmoid_()
        reset, update = gates.chunk(2, dim=-1)
        recurrent_new = recurrent_G[..., 2 * size :]
        new = torch.addcmul(given_G[..., 2 * size :], reset, recurrent_new).tanh_()
        torch.lerp(new, hidden, update, out=after)
        return None, (gates, new, recurrent_new, hidden)

    def backward(self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recurrent: Tensor) -> Back:
        """The recurrent's candidate passes through the reset gate; the other gates are alike."""
        gates, new, recurrent_new, hidden = saved
        size, d_hidden = hidden.shape[-1], summed(d_after)
        kept = d_hidden * gates[..., size:]
        d_reset, d_update, d_new = d_given.chunk(3, dim=-1)
        torch.ops.aten.tanh_backward(d_hidden - kept, new, grad_input=d_new)
        torch.mul(d_new, recurrent_new, out=d_reset)
        torch.mul(d_hidden, hidden - new, out=d_update)
        d_gates = d_given[..., : 2 * size]
        torch.ops.aten.sigmoid_backward(d_gates, gates, grad_input=d_gates)
        d_recurrent[..., : 2 * size] = d_given[..., : 2 * size]
        torch.mul(d_new, gates[..., :size], out=d_recurrent[..., 2 * size :])
        return kept, None


@final
class PlainLSTM(Cell):
    """As `torch.nn.LSTM`."""

    def forward(self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor) -> Made:
        """Its gates in torch's order: enter, forget, new, output."""
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

    def backward(self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recurrent: Tensor) -> Back:
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


@final
class Sources(NamedTuple):
    """What is attended to."""

    keys: Tensor
    """k, (B, S, A)."""
    memory: Tensor
    """h, (B, S, D)."""
    mask: Tensor
    """(B, S)."""
    score: Tensor | None
    """V_att (A,) of the additive score."""


class Attending(ABC):
    """The attention of one batch, from its first step to the gradients of what it read."""

    def __init__(self, sources: Sources, steps: int) -> None:
        self.sources = sources
        memory = sources.memory
        rows, positions, size = memory.shape
        self.contexts = memory.new_empty(steps, rows, size)
        self.weights = wide(memory[:0]).new_empty(steps, rows, positions)
        self.d_contexts = torch.empty_like(self.contexts)
        self.d_scores = torch.empty_like(self.weights)

    @abstractmethod
    def forward(self, at: int, query: Tensor) -> Tensor:
        """c_t, (B, D), of the queries q_t, (B, A); the weights are kept."""

    @abstractmethod
    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """δq_t, (B, A), into its place, from δc_t, the queries of all steps and what else the weights gave, (B, S)."""

    @abstractmethod
    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """δk, (B, S, A), and δV_att, (A,), when all steps have been gone back; from the queries of all, (T, B, A)."""

    def memory_gradient(self) -> Tensor:
        """δh, (B, S, D)."""
        weights_BST = self.weights.permute(1, 2, 0).to(self.d_contexts.dtype)
        return torch.bmm(weights_BST, self.d_contexts.transpose(0, 1))


def _products(rows: Tensor, others: Tensor) -> Tensor:
    """Of each row (B, F) with others of its own (B, S, F): (B, S). The order of the factors matters much on a CPU."""
    if rows.is_cuda:
        return torch.bmm(others, rows.unsqueeze(2)).squeeze(2)
    return torch.bmm(rows.unsqueeze(1), others.mT).squeeze(1)


class Plain(Attending):
    """As torch operations: for a CPU, for other scores, and to check the kernels by."""

    @abstractmethod
    def scores(self, query: Tensor) -> Tensor:
        """e_t, (B, S)."""

    @abstractmethod
    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """δq_t, (B, A), from δe_t, (B, S)."""

    def forward(self, at: int, query: Tensor) -> Tensor:
        """Scores, weights and context one after the other."""
        weights_BS = masked_softmax(wide(self.scores(query)), self.sources.mask)
        self.weights[at] = weights_BS
        context_BD = self.contexts[at]
        torch.bmm(weights_BS.to(context_BD.dtype).unsqueeze(1), self.sources.memory, out=context_BD.unsqueeze(1))
        return context_BD

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """The same backwards."""
        weights_BS = self.weights[at]
        d_weights_BS = wide(_products(self.d_contexts[at], self.sources.memory))
        if d_weights is not None:
            d_weights_BS = d_weights_BS + d_weights
        mean_B1 = (weights_BS * d_weights_BS).sum(1, keepdim=True)
        torch.mul(weights_BS, d_weights_BS - mean_B1, out=self.d_scores[at])
        d_query.copy_(self.query_gradient(queries[at], self.d_scores[at].to(d_query.dtype)))


@final
class Product(Plain):
    """The scores dot and general."""

    def scores(self, query: Tensor) -> Tensor:
        """q_tᵀ k_j."""
        return _products(query, self.sources.keys)

    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """Σ_j δe_jt k_j."""
        return torch.bmm(d_scores.unsqueeze(1), self.sources.keys).squeeze(1)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """Σ_t δe_jt q_t."""
        return torch.bmm(self.d_scores.permute(1, 2, 0).to(queries.dtype), queries.transpose(0, 1)), None


@final
class Additive(Plain):
    """The additive score, by g = 1 / (1 + e^2q e^2k), of which tanh(q + k) is 1 - 2 g.

    So e = ΣV_att - 2 V_attᵀ g, whose first part no softmax sees, and 1 - tanh² = 4 (g - g²). What each position and
    feature has is not kept but computed again.
    """

    def __init__(self, sources: Sources, steps: int) -> None:
        super().__init__(sources, steps)
        assert sources.score is not None
        self.score, self.raised = sources.score, key_powers(sources.keys)
        self.g_BSA, self.one, self.twice = torch.empty_like(sources.keys), self.score.new_ones(()), -2.0 * self.score
        self.d_keys, self.d_score = torch.zeros_like(sources.keys), torch.zeros_like(self.score)

    def _g(self, query: Tensor) -> Tensor:
        """Of a query, in the place of that of the query before. Without powers it is g - ½, which is more exact."""
        if self.raised is None:
            return torch.add(self.sources.keys, query.unsqueeze(1), out=self.g_BSA).tanh_().mul_(-0.5)
        return torch.addcmul(self.one, self.raised, powers(query).unsqueeze(1), out=self.g_BSA).reciprocal_()

    def scores(self, query: Tensor) -> Tensor:
        """V_attᵀ tanh(q_t + k_j), or less ΣV_att."""
        return self._g(query) @ self.twice

    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """Also adds to the gradients of keys and V_att, while g of the step is at hand. Σ_j δe_jt is 0."""
        g_BSA = self._g(query)
        self.d_score += d_scores.flatten() @ g_BSA.flatten(0, 1)
        slope_BSA = torch.addcmul(
            0.25 * self.one if self.raised is None else g_BSA, g_BSA, g_BSA, value=-1.0, out=g_BSA
        )
        self.d_keys.addcmul_(slope_BSA, d_scores.unsqueeze(2))
        return torch.bmm(d_scores.unsqueeze(1), slope_BSA).squeeze(1) * (4.0 * self.score)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """They are ready; another backward pass begins at zero."""
        d_keys, d_score = self.d_keys * (4.0 * self.score), -2.0 * self.d_score
        self.d_keys, self.d_score = torch.zeros_like(d_keys), torch.zeros_like(d_score)
        return d_keys, d_score
