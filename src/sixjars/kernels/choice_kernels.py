"""One step of greedy search after the model's, as one Triton kernel. Imported only on CUDA.

Dims: R rows open in search, V vocabulary.

From logits a it chooses the highest that no rule forbids, and adds up the log probabilities of what
was chosen:

    log P(v) = a_v - m - log Σ_u exp(a_u - m),   m = max_u a_u

The sum is over all tokens, forbidden ones too. Block by block m grows, and the sum so far is
multiplied by exp(m_before - m_after) (Milakov & Gimelshein 2018, https://arxiv.org/abs/1805.02867);
so the logits are read once, and log probabilities never written. Where a step gives log
probabilities, these are read in their place.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sixjars.flow.backend import ChoiceRules
from sixjars.flow.values import StepOutput


@triton.jit
def _chosen_kernel(
    scores, never, steps, opened, totals, tokens, gained, still_open, new_totals,
    stop, fewest, longest, V, BANNED: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    scores += row * V
    best, place = -float("inf"), 0
    most, summed = -float("inf"), 0.0
    for begin in range(0, V, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(scores + at, at < V, -float("inf")).to(tl.float32)
        if LOGITS:
            before = most
            most = tl.maximum(most, tl.max(values, axis=0))
            base = tl.where(most == -float("inf"), 0.0, most)
            summed = summed * tl.exp(before - base) + tl.sum(tl.exp(values - base), axis=0)
        values = tl.where(at == stop, -float("inf"), values)
        for number in tl.static_range(BANNED):
            values = tl.where(at == tl.load(never + number), -float("inf"), values)
        highest, where = tl.max(values, axis=0, return_indices=True)
        place = tl.where(highest > best, begin + where, place)
        best = tl.maximum(best, highest)
    step = tl.load(steps)
    ending = tl.load(scores + stop).to(tl.float32)
    withheld = (step < fewest) & (best > -float("inf"))
    ends = ((ending > best) | ((ending == best) & (stop < place))) & (withheld == 0)
    token, gain = tl.where(ends, stop, place), tl.where(ends, ending, best)
    if LOGITS:
        gain = gain - most - tl.log(summed)
    goes = (tl.load(opened + row) != 0) & (gain > -float("inf")) & (step < longest)
    tl.store(tokens + row, token.to(tl.int64))
    tl.store(gained + row, gain)
    tl.store(still_open + row, (goes & (token != stop)).to(tl.uint8))
    tl.store(new_totals + row, tl.load(totals + row) + tl.where(goes, gain, 0.0))


def chosen(
    scored: StepOutput, rules: ChoiceRules, opened: Tensor, totals: Tensor, steps: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `Backend.choose`: none of the tokens that are never output, and `<stop>` where it may be.

    What the rules leave is what `scores.banned` and `scores.min_length` leave.
    """
    scores_RV = scored.scores.contiguous()
    rows, size = scores_RV.shape
    tokens = torch.empty(rows, dtype=torch.long, device=totals.device)
    gained, new_totals = torch.empty_like(totals), torch.empty_like(totals)
    still_open = torch.empty_like(opened)
    _chosen_kernel[rows,](
        scores_RV, rules.never, steps, opened.view(torch.uint8), totals, tokens, gained,
        still_open.view(torch.uint8), new_totals, rules.stop, rules.fewest, rules.longest, size,
        BANNED=len(rules.never), LOGITS=scored.are_logits,
        BLOCK=min(triton.next_power_of_2(size), 4096), num_warps=8,
    )  # fmt: skip
    return tokens, gained, still_open, new_totals
