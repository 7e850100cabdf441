"""Weights within segments: a sentence, a turn.

Dims: B batch, N queries of each source, S source positions, P segments of a row.
"""

from dataclasses import replace

import torch
from torch import Tensor

from sixjars.flow.values import SegmentLevel


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
