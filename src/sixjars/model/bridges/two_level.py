r"""Attention at two levels: at every step the decoder weighs the segments of a text, and the words in each.

Dims: B batch, N queries of each source, S source positions, P segments of a row, D source features,
      U features of a segment, H decoder features, A attention features.
"""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Size
from sixjars.flow.values import Context, Encoded, Prepared, SegmentLevel
from sixjars.model.bridges.attention import Score
from sixjars.model.layers import Start, StateProjection, masked_softmax


def softmax_in_segments(scores: Tensor, mask: Tensor, level: SegmentLevel) -> Tensor:
    """Softmax of scores (B, S) among the real positions of each segment: sums to 1 over every segment that has some.

    Of several queries for each source it takes (B, N, S).

    >>> level = SegmentLevel(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[0, 0, 1, 0]]))
    >>> softmax_in_segments(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]), level)
    tensor([[0.5000, 0.5000, 1.0000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min
    segment_of, shape = level.segment_of, (*scores.shape[:-1], level.mask.shape[1])
    if scores.dim() == 3:
        mask, segment_of = mask.unsqueeze(1), segment_of.unsqueeze(1).expand_as(scores)
    shown_BS = scores.detach().masked_fill(~mask, lowest)
    highest_BP = shown_BS.new_full(shape, lowest).scatter_reduce(-1, segment_of, shown_BS, "amax")
    # What stands in the padding may be higher than all that is real, and must not overflow.
    below_BS = (scores - highest_BP.gather(-1, segment_of)).masked_fill(~mask, 0)
    raised_BS = torch.exp(below_BS) * mask
    total_BP = raised_BS.new_zeros(shape).scatter_add(-1, segment_of, raised_BS)
    # No clamp: a word alone in its segment stands exactly at the bound, where versions of torch differ in the gradient.
    return raised_BS / (total_BP + (total_BP == 0)).gather(-1, segment_of)


def non_empty(level: SegmentLevel, mask: Tensor) -> SegmentLevel:
    """The upper level without the segments that have no real position: attention on them would be lost."""
    positions_BP = torch.zeros_like(level.mask, dtype=torch.long).scatter_add(1, level.segment_of, mask.long())
    return replace(level, mask=level.mask & (positions_BP > 0))


@final
class TwoLevelAttention(Bridge):
    r"""α_jt = β_nt softmax_j(V_att,wordᵀ tanh(U_att,word s_{t-1} + W_att,word h_j)), c_t = Σ_j α_jt h_j.

    β_nt = softmax_n(V_att,segᵀ tanh(U_att,seg s_{t-1} + W_att,seg g_n)), where segment n has word j, and the softmax of
    α_jt is over the words of that segment.

    Nallapati et al. 2016 (https://arxiv.org/abs/1602.06023), section 2.3. Where we differ: their softmax over words
    runs over the whole document, and its product with that of the sentences is divided by its sum. Ours runs over the
    words of each segment, so the products sum to 1 as they are, and β_nt is all that a segment gets. Their vector of a
    sentence also encodes its position; ours has it from the RNN over segments.

    >>> attention = TwoLevelAttention(source_size=4, segment_size=3, state_size=6, size=5)
    >>> level = SegmentLevel(torch.randn(2, 2, 3), torch.ones(2, 2, dtype=torch.bool), torch.tensor([[0, 0, 1]] * 2))
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 3), segments=level)
    >>> attention.step(torch.randn(2, 6), attention.start(source)).weights.sum(1).allclose(torch.ones(2))
    True
    """

    has_attention = True
    follows_state = True
    grouped = True

    def __init__(
        self,
        *,
        source_size: int,
        segment_size: int,
        summary_size: int | None = None,
        state_size: int,
        size: Size = 128,
        state_count: int = 1,
        start: Start = "linear",
    ) -> None:
        super().__init__()
        if not segment_size:
            raise ShapeError(
                "bridge: two_level attends to the segments of a text and to the words in them, but this encoder has "
                "only one level. Use encoder: hierarchy, or bridge: attention."
            )
        self.context_size = source_size
        self.first = StateProjection(summary_size or segment_size, state_size, state_count, start)
        self.segments = Score("additive", source_size=segment_size, state_size=state_size, size=size, tag="att,seg")
        self.words = Score("additive", source_size=source_size, state_size=state_size, size=size, tag="att,word")

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """The encoder must have two levels."""
        if plan.encoder.has_segments:
            return super().misfits(plan)
        return [f"model.bridge: two_level needs an encoder of kind hierarchy, but it is {plan.kind('encoder')}."]

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state, and the keys of both levels."""
        assert encoded.segments is not None
        return Prepared(
            self.first(encoded.summary),
            encoded.summary,
            encoded.memory,
            encoded.mask,
            self.words.keys(encoded.memory),
            non_empty(encoded.segments, encoded.mask),
            self.segments.keys(encoded.segments.memory),
        )

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """Share 1 among the segments and the share of each among its words, then sum the memory by it."""
        assert prepared.keys is not None
        assert prepared.segments is not None
        assert prepared.segment_keys is not None
        level = prepared.segments
        shares_BNP = masked_softmax(self.segments(query, prepared.segment_keys), level.mask.unsqueeze(1))
        within_BNS = softmax_in_segments(self.words(query, prepared.keys), prepared.mask, level)
        weights_BNS = shares_BNP.gather(2, level.segment_of.unsqueeze(1).expand_as(within_BNS)) * within_BNS
        vectors_BND = torch.bmm(weights_BNS, prepared.memory)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def equations(self) -> list[str]:
        """Weights of both levels, and the context vector."""
        words = self.words.equation("h_j")
        return [
            *self.first.equations(),
            f"β_nt = softmax_n({self.segments.equation('g_n')})",
            f"α_jt = β_nt softmax_j({words}), over the words of segment n, which has word j",
            "c_t = Σ_j α_jt h_j",
        ]
