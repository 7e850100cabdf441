r"""Attention inside a recurrence, step by step, and its backward pass by hand.

Dims: B batch, S source positions, T steps, A attention features, D source features.

    e_jt = V_attᵀ tanh(q_t + k_j)  or  q_tᵀ k_j,   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j

where q_t = U_att s_{t-1} (of dot and general, s_{t-1} itself) and k_j is a key. Backwards, with δ for a gradient:

    δα_jt = h_jᵀ δc_t + what else reads the weights,   δe_jt = α_jt (δα_jt - Σ_i α_it δα_it)
    additive:  δq_t = Σ_j δe_jt V_att ⊙ (1 - tanh²),   δk_j = Σ_t δe_jt V_att ⊙ (1 - tanh²),   δV_att = Σ_jt δe_jt tanh
    product:   δq_t = Σ_j δe_jt k_j,                   δk_j = Σ_t δe_jt q_t
    δh_j = Σ_t α_jt δc_t

Only δα, δe and δq are computed in the loop over steps; the others are one product, or one kernel, for all of them.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from torch import Tensor

from sixjars.model.layers import masked_softmax, wide


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


class Plain(Attending):
    """As torch operations: for a CPU, for other scores, and to check the kernels by."""

    @abstractmethod
    def scores(self, query: Tensor) -> Tensor:
        """e_t, (B, S)."""

    @abstractmethod
    def query_gradient(self, at: int, d_scores: Tensor) -> Tensor:
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
        d_weights_BS = wide(torch.bmm(self.sources.memory, self.d_contexts[at].unsqueeze(2)).squeeze(2))
        if d_weights is not None:
            d_weights_BS = d_weights_BS + d_weights
        mean_B1 = (weights_BS * d_weights_BS).sum(1, keepdim=True)
        torch.mul(weights_BS, d_weights_BS - mean_B1, out=self.d_scores[at])
        d_query.copy_(self.query_gradient(at, self.d_scores[at].to(d_query.dtype)))


@final
class Product(Plain):
    """The scores dot and general."""

    def scores(self, query: Tensor) -> Tensor:
        """q_tᵀ k_j."""
        return torch.bmm(self.sources.keys, query.unsqueeze(2)).squeeze(2)

    def query_gradient(self, at: int, d_scores: Tensor) -> Tensor:
        """Σ_j δe_jt k_j."""
        return torch.bmm(d_scores.unsqueeze(1), self.sources.keys).squeeze(1)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """Σ_t δe_jt q_t."""
        return torch.bmm(self.d_scores.permute(1, 2, 0).to(queries.dtype), queries.transpose(0, 1)), None


@final
class Additive(Plain):
    """The additive score. The tanh of every step is kept, as autograd would keep it."""

    def __init__(self, sources: Sources, steps: int) -> None:
        super().__init__(sources, steps)
        self.tanhs: list[Tensor] = []
        self.d_keys = self.d_score = sources.keys.new_empty(0)
        self.one = sources.keys.new_ones(())

    def scores(self, query: Tensor) -> Tensor:
        """V_attᵀ tanh(q_t + k_j)."""
        self.tanhs.append((self.sources.keys + query.unsqueeze(1)).tanh_())
        assert self.sources.score is not None
        return self.tanhs[-1] @ self.sources.score

    def query_gradient(self, at: int, d_scores: Tensor) -> Tensor:
        """Also adds to the gradients of keys and V_att, while the tanh of the step is at hand."""
        assert self.sources.score is not None
        tanh_BSA = self.tanhs[at]
        if at == len(self.tanhs) - 1:
            self.d_keys, self.d_score = torch.zeros_like(tanh_BSA), torch.zeros_like(self.sources.score)
        self.d_score += d_scores.flatten() @ tanh_BSA.flatten(0, 1)
        slope_BSA = torch.addcmul(self.one, tanh_BSA, tanh_BSA, value=-1.0)
        self.d_keys.addcmul_(slope_BSA, d_scores.unsqueeze(2))
        return torch.bmm(d_scores.unsqueeze(1), slope_BSA).squeeze(1) * self.sources.score

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """They are ready."""
        assert self.sources.score is not None
        return self.d_keys * self.sources.score, self.d_score
