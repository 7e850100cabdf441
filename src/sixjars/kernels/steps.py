r"""A step of a cell or of attention and its backward pass, in torch operations.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4), S source
      positions, T steps, A attention features, D source features, P segments of a row, N queries of
      each source, R rows open in search,
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
from typing import ClassVar, Final, NamedTuple, final

import torch
from torch import Tensor

from sixjars.flow.backend import AttentionSources
from sixjars.flow.values import Prepared, SegmentLevel
from sixjars.kernels.products import key_powers, powers
from sixjars.model.layers import by_source, masked_softmax, softmax_in_segments, wide

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


AT_ONCE: Final = 1 << 20
"""Products of powers that are computed together; more would leave the cache of a CPU."""


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
