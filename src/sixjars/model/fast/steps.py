r"""One step of a cell or of attention and its hand-written backward pass, in torch operations.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4), S source
      positions, T steps, A attention features, D source features, I input features, O output
      features.

`contracts` has the equations.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from sixjars.model.fast.contracts import AttentionSources, Back, Cell, Made, Memory, Saved, Summands
from sixjars.model.layers import by_onednn, key_powers, masked_softmax, powers, product, wide
from sixjars.model.processor import FEWEST_STEPS


def summed(parts: Summands) -> Tensor:
    """The sum of the summands, one of which may be a bias (K, G) of all rows."""
    total = parts[0]
    for part in parts[1:]:
        total = total + (part if part.dim() in {1, total.dim()} else part.unsqueeze(1))
    return total


@final
class Factor:
    """W, (O, I) or (K, O, I), by which rows are multiplied at every step, and back by Wᵀ.

    A product reorders its matrix for the processor first; on a CPU a large one is reordered once,
    for all steps.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.matrices = weight.view(-1, *weight.shape[-2:])
        self.packs = by_onednn(self.matrices[0], FEWEST_STEPS)

    @cached_property
    def _packed(self) -> list[Any]:
        return [torch.ops.mkldnn._reorder_linear_weight(matrix, None) for matrix in self.matrices]

    @cached_property
    def _turned(self) -> list[Any]:
        turned = (matrix.t() for matrix in self.matrices)
        return [torch.ops.mkldnn._reorder_linear_weight(matrix, None) for matrix in turned]

    def times(
        self, rows: Tensor, *, bias: Tensor | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Rows times Wᵀ, plus b, (…, I) -> (…, O), into `out` if given."""
        if self.packs:
            return _by_matrices(rows, self._packed, bias, out)
        if bias is not None:
            return torch.addmm(bias, rows, self.weight.t())
        multiply = torch.mm if self.weight.dim() == 2 else torch.bmm
        return multiply(rows, self.weight.mT, out=out)

    def back(self, rows: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Rows times W, (…, O) -> (…, I), into `out` if given."""
        if self.packs:
            return _by_matrices(rows, self._turned, None, out)
        multiply = torch.mm if self.weight.dim() == 2 else torch.bmm
        return multiply(rows, self.weight, out=out)

    def plus(self, given: Tensor, rows: Tensor) -> Summands:
        """Given (B, O) and rows times Wᵀ, as one sum or as two for the kernel that reads them."""
        if self.packs:
            return (product(rows, self._packed[0], total=given),)
        return given, self.times(rows)


def _by_matrices(
    rows: Tensor, matrices: list[Any], bias: Tensor | None, out: Tensor | None
) -> Tensor:
    if len(matrices) == 1:
        outputs = product(rows, matrices[0], None if bias is None else bias.view(-1))
        return outputs if out is None else out.copy_(outputs)
    biases = [None] * len(matrices) if bias is None else bias
    return torch.stack([product(*of) for of in zip(rows, matrices, biases, strict=True)], out=out)


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


def dense_sources(sources: AttentionSources) -> AttentionSources:
    """The sources of the additive score as a kernel reads them, the mask as bytes."""
    assert sources.score is not None
    mask = sources.mask.contiguous().view(torch.uint8)
    keys, memory = sources.keys.contiguous(), sources.memory.contiguous()
    return AttentionSources(keys, memory, mask, sources.score.contiguous())


class BatchAttention(ABC):
    """The attention of one batch, from its first step to the gradients of its inputs."""

    def __init__(self, sources: AttentionSources, steps: int) -> None:
        self.sources = sources
        memory = sources.memory
        rows, positions, size = memory.shape
        self.contexts = memory.new_empty(steps, rows, size)
        self.weights = wide(memory[:0]).new_empty(steps, rows, positions)
        self.d_contexts = torch.empty_like(self.contexts)
        self.d_scores = torch.empty_like(self.weights)

    @abstractmethod
    def forward(self, at: int, query: Tensor) -> Tensor:
        """c_t, (B, D), of the queries q_t, (B, A); the weights are saved."""

    @abstractmethod
    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """Write δq_t, (B, A), from δc_t, all queries and other gradients of the weights, (B, S)."""

    @abstractmethod
    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """δk, (B, S, A), and δV_att, (A,), after all steps, from all queries, (T, B, A)."""

    def upper_gradients(self, queries: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The key gradients of the upper level, where there is one."""
        return None, None

    def summed_memory(self, at: int, weights: Tensor) -> Tensor:
        """c_t, (B, D), by the weights (B, S), which are saved."""
        context_BD = self.contexts[at]
        self.weights[at] = weights
        weights_B1S = weights.to(context_BD.dtype).unsqueeze(1)
        torch.bmm(weights_B1S, self.sources.memory, out=context_BD.unsqueeze(1))
        return context_BD

    def weight_gradients(self, at: int, d_weights: Tensor | None) -> Tensor:
        """δα_t, (B, S), from δc_t and other gradients of the weights."""
        d_weights_BS = wide(_products(self.d_contexts[at], self.sources.memory))
        return d_weights_BS if d_weights is None else d_weights_BS + d_weights

    def memory_gradient(self) -> Tensor:
        """δh, (B, S, D)."""
        weights_BST = self.weights.permute(1, 2, 0).to(self.d_contexts.dtype)
        return torch.bmm(weights_BST, self.d_contexts.transpose(0, 1))


def _products(rows: Tensor, others: Tensor) -> Tensor:
    """The products of rows (B, F) and vectors (B, S, F), (B, S), in the order that is fast."""
    if rows.is_cuda:
        return torch.bmm(others, rows.unsqueeze(2)).squeeze(2)
    return torch.bmm(rows.unsqueeze(1), others.mT).squeeze(1)


class PlainAttention(BatchAttention):
    """Attention in torch operations: for CPUs, other scores, and to check the kernels."""

    @abstractmethod
    def scores(self, query: Tensor) -> Tensor:
        """e_t, (B, S)."""

    @abstractmethod
    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """δq_t, (B, A), from δe_t, (B, S)."""

    def forward(self, at: int, query: Tensor) -> Tensor:
        """c_t, (B, D), by scores and softmax."""
        return self.summed_memory(at, masked_softmax(wide(self.scores(query)), self.sources.mask))

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """Write δq_t and δe_t."""
        weights_BS = self.weights[at]
        d_weights_BS = self.weight_gradients(at, d_weights)
        mean_B1 = (weights_BS * d_weights_BS).sum(1, keepdim=True)
        torch.mul(weights_BS, d_weights_BS - mean_B1, out=self.d_scores[at])
        d_query.copy_(self.query_gradient(queries[at], self.d_scores[at].to(d_query.dtype)))


@final
class ProductAttention(PlainAttention):
    """The dot and general scores."""

    def scores(self, query: Tensor) -> Tensor:
        """q_tᵀ k_j."""
        return _products(query, self.sources.keys)

    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """Σ_j δe_jt k_j."""
        return torch.bmm(d_scores.unsqueeze(1), self.sources.keys).squeeze(1)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """Σ_t δe_jt q_t."""
        d_scores_BST = self.d_scores.permute(1, 2, 0).to(queries.dtype)
        return torch.bmm(d_scores_BST, queries.transpose(0, 1)), None


@final
class AdditiveAttention(PlainAttention):
    """The additive score, by g = 1 / (1 + e^2q e^2k), of which tanh(q + k) is 1 - 2 g.

    So e = ΣV_att - 2 V_attᵀ g, whose first part no softmax sees, and 1 - tanh² = 4 (g - g²). The
    values of g are not kept but computed again.
    """

    def __init__(self, sources: AttentionSources, steps: int) -> None:
        super().__init__(sources, steps)
        assert sources.score is not None
        self.score = sources.score
        self.raised = key_powers(sources.keys)
        self.g_BSA = torch.empty_like(sources.keys)
        self.one, self.twice = self.score.new_ones(()), -2.0 * self.score
        self.d_keys, self.d_score = torch.zeros_like(sources.keys), torch.zeros_like(self.score)

    def _g(self, query: Tensor) -> Tensor:
        """G of a query, over that of the last one; g - ½ without powers, which is more exact."""
        if self.raised is None:
            torch.add(self.sources.keys, query.unsqueeze(1), out=self.g_BSA)
            return self.g_BSA.tanh_().mul_(-0.5)
        torch.addcmul(self.one, self.raised, powers(query).unsqueeze(1), out=self.g_BSA)
        return self.g_BSA.reciprocal_()

    def scores(self, query: Tensor) -> Tensor:
        """V_attᵀ tanh(q_t + k_j), or without ΣV_att."""
        return self._g(query) @ self.twice

    def query_gradient(self, query: Tensor, d_scores: Tensor) -> Tensor:
        """δq_t; the gradients of keys and V_att grow by those of the step. Σ_j δe_jt is 0."""
        g_BSA = self._g(query)
        self.d_score += d_scores.flatten() @ g_BSA.flatten(0, 1)
        first = 0.25 * self.one if self.raised is None else g_BSA
        slope_BSA = torch.addcmul(first, g_BSA, g_BSA, value=-1.0, out=g_BSA)
        self.d_keys.addcmul_(slope_BSA, d_scores.unsqueeze(2))
        return torch.bmm(d_scores.unsqueeze(1), slope_BSA).squeeze(1) * (4.0 * self.score)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of all steps; the sums start again at zero."""
        d_keys, d_score = self.d_keys * (4.0 * self.score), -2.0 * self.d_score
        self.d_keys, self.d_score = torch.zeros_like(d_keys), torch.zeros_like(d_score)
        return d_keys, d_score
