"""Weights within segments (a sentence, a turn), and attention at two levels for all steps.

Dims: B batch, N queries of each source, S source positions, P segments of a row, T steps,
      A attention features, D source features.
"""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from sixjars.flow.values import Prepared, SegmentLevel
from sixjars.model.fast.contracts import AttentionSources, UpperSources
from sixjars.model.fast.steps import AdditiveAttention, BatchAttention
from sixjars.model.layers import masked_softmax, wide


def softmax_in_segments(scores: Tensor, mask: Tensor, level: SegmentLevel) -> Tensor:
    """Softmax of scores (B, S) or (B, N, S) among the real positions of each segment.

    >>> segment_of = torch.tensor([[0, 0, 1, 0]])
    >>> level = SegmentLevel(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), segment_of)
    >>> softmax_in_segments(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]), level)
    tensor([[0.5000, 0.5000, 1.0000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min
    segment_of, shape = level.segment_of, (*scores.shape[:-1], level.mask.shape[1])
    if scores.dim() == 3:
        mask, segment_of = mask.unsqueeze(1), segment_of.unsqueeze(1).expand_as(scores)
    shown_BS = scores.detach().masked_fill(~mask, lowest)
    highest_BP = shown_BS.new_full(shape, lowest).scatter_reduce(-1, segment_of, shown_BS, "amax")
    # A score in the padding may be higher than all real ones, and must not overflow.
    below_BS = (scores - highest_BP.gather(-1, segment_of)).masked_fill(~mask, 0)
    raised_BS = torch.exp(below_BS) * mask
    total_BP = raised_BS.new_zeros(shape).scatter_add(-1, segment_of, raised_BS)
    # No clamp: a word alone in its segment is at the bound, where torch's gradients differ.
    return raised_BS / (total_BP + (total_BP == 0)).gather(-1, segment_of)


def non_empty(level: SegmentLevel, mask: Tensor) -> SegmentLevel:
    """The upper level without segments that have no real position: their share would be lost."""
    empty_BP = torch.zeros_like(level.mask, dtype=torch.long)
    positions_BP = empty_BP.scatter_add(1, level.segment_of, mask.long())
    return replace(level, mask=level.mask & (positions_BP > 0))


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
