"""One step of attention and its hand-written backward pass, in torch operations.

Dims: B batch, R rows open in search, N queries of each source, S source positions, T steps,
      P segments of a row, A attention features, D source features.

`cells` has the equations.
"""

from abc import ABC, abstractmethod
from typing import Final, NamedTuple, final

import torch
from torch import Tensor

from sixjars.flow.backend import AttentionSources
from sixjars.flow.values import Prepared, SegmentLevel
from sixjars.model.layers import by_source, masked_softmax, wide
from sixjars.model.segments import softmax_in_segments

AT_ONCE: Final = 1 << 20
"""Products of powers that are computed together; more would leave the cache of a CPU."""
LARGEST: Final = 42.0
"""The limit of what is raised to a power: e^84 is still a float. Where no key is beyond half of it,
tanh of its sum with a query that is beyond it is 1 to the last bit."""


def powers(values: Tensor) -> Tensor:
    """e^{2x} of each number x."""
    return values.clamp(-LARGEST, LARGEST).mul_(2).exp_()


def key_powers(keys: Tensor) -> Tensor | None:
    """The powers of keys k, or None where they would not be exact enough.

    On a CPU they make tanh(q + k) = 1 - 2 / (1 + e^2q e^2k) of many queries q fast.

    >>> keys, query = torch.tensor([0.5, -20.0]), torch.tensor([1.0])
    >>> torch.allclose(1 - 2 / (1 + powers(query) * key_powers(keys)), torch.tanh(query + keys))
    True
    """
    fits = keys.device.type == "cpu" and keys.dtype.itemsize >= 4 and keys.numel() > 0
    return powers(keys) if fits and bool(keys.abs().amax() <= LARGEST / 2) else None


def attend_by_powers(
    query: Tensor, sources: AttentionSources, powers_BSA: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of prediction: contexts (R, D) and weights (R, S) of queries U_att s (R, A).

    The scores are those of `AdditiveAttention` less ΣV, by 1 - 2 / (1 + e^2q e^2k).
    """
    assert sources.score is not None
    queries_BN1A = by_source(powers(query), len(powers_BSA)).unsqueeze(2)
    count = 1 + queries_BN1A.numel() * powers_BSA.shape[1] // AT_ONCE
    ones, score = query.new_ones(()), sources.score.unsqueeze(0)
    scores = []
    keys = powers_BSA.unsqueeze(1).chunk(count)
    for part, key in zip(queries_BN1A.chunk(count), keys, strict=True):
        terms_BNSA = torch.addcmul(ones, part, key).reciprocal_()
        scores.append(torch.nn.functional.linear(terms_BNSA, score).squeeze(-1))
    weights_BNS = masked_softmax(torch.cat(scores).mul_(-2), sources.mask.unsqueeze(1))
    contexts_BND = torch.bmm(weights_BNS, sources.memory)
    return contexts_BND.flatten(0, 1), weights_BNS.flatten(0, 1)


@final
class UpperSources(NamedTuple):
    """The upper level of the positions."""

    keys: Tensor
    """The keys of the segments, (B, P, A)."""
    mask: Tensor
    """True where a segment has a real position, (B, P)."""
    segment_of: Tensor
    """The segment of each position, (B, S)."""
    score: Tensor
    """V_att,seg (A,)."""


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


def upper_of(prepared: Prepared, score: Tensor | None) -> UpperSources:
    """The prepared upper level with V_att,seg, in whose type everything is computed."""
    assert prepared.segments is not None
    assert prepared.segment_keys is not None
    assert score is not None
    level, keys = prepared.segments, prepared.segment_keys.to(score.dtype)
    return UpperSources(keys, level.mask, level.segment_of, score)


@final
class TwoLevelSteps(BatchAttention):
    r"""The bridge `two_level` over all steps: α_jt = β_nt γ_jt, where segment n has word j.

    β are the weights of the segments, γ those of the words within theirs. A query is that of the
    words and, behind it, that of the segments. Both levels have an additive score, which holds
    their weights and gradients, but no memory.
    """

    def __init__(self, sources: AttentionSources, upper: UpperSources, steps: int) -> None:
        super().__init__(sources, steps)
        self.words = AdditiveAttention(sources._replace(memory=sources.memory[..., :0]), steps)
        level = AttentionSources(upper.keys, upper.keys[..., :0], upper.mask, upper.score)
        self.segments = AdditiveAttention(level, steps)
        self.level = SegmentLevel(upper.keys, upper.mask, upper.segment_of)
        self.features = sources.keys.shape[2]

    def forward(self, at: int, query: Tensor) -> Tensor:
        """Share 1 among the segments and each share among its words; sum the memory by these."""
        scores_BP = wide(self.segments.scores(query[:, self.features :]))
        shares_BP = masked_softmax(scores_BP, self.level.mask)
        scores_BS = wide(self.words.scores(query[:, : self.features]))
        within_BS = softmax_in_segments(scores_BS, self.sources.mask, self.level)
        self.segments.weights[at] = shares_BP
        self.words.weights[at] = within_BS
        return self.summed_memory(at, shares_BP.gather(1, self.level.segment_of) * within_BS)

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """Write δq_t and δe_t of both levels; δβ_nt is μ_nt, the mean by γ of its words' δα."""
        d_weights_BS = self.weight_gradients(at, d_weights)
        shares_BP = self.segments.weights[at]
        parts_BS, of_BS = self.words.weights[at] * d_weights_BS, self.level.segment_of
        means_BP = torch.zeros_like(shares_BP).scatter_add_(1, of_BS, parts_BS)
        centred_BS = d_weights_BS - means_BP.gather(1, of_BS)
        torch.mul(self.weights[at], centred_BS, out=self.words.d_scores[at])
        mean_B1 = (shares_BP * means_BP).sum(1, keepdim=True)
        torch.mul(shares_BP, means_BP - mean_B1, out=self.segments.d_scores[at])
        columns = slice(None, self.features), slice(self.features, None)
        for score, part in zip((self.words, self.segments), columns, strict=True):
            d_scores = score.d_scores[at].to(d_query.dtype)
            d_query[:, part] = score.query_gradient(queries[at, :, part], d_scores)

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of the words' keys and score."""
        return self.words.key_gradients(queries[..., : self.features])

    def upper_gradients(self, queries: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The gradients of the segments' keys and score."""
        return self.segments.key_gradients(queries[..., self.features :])
