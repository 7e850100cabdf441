"""The choice of greedy search as one Triton kernel: rules, the highest score and its place. Imported only on CUDA.

Dims: R rows open in search, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _likeliest_kernel(scores, never, made, tokens, gained, stop, fewest, V, BANNED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scores += row * V
    best, place = -float("inf"), 0
    for begin in range(0, V, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        some = tl.load(scores + at, (at < V) & (at != stop), -float("inf"))
        for number in tl.static_range(BANNED):
            some = tl.where(at == tl.load(never + number), -float("inf"), some)
        highest, where = tl.max(some, axis=0, return_indices=True)
        place = tl.where(highest > best, begin + where, place)
        best = tl.maximum(best, highest)
    ending = tl.load(scores + stop)
    withheld = (tl.load(made) < fewest) & (best > -float("inf"))
    ends = ((ending > best) | ((ending == best) & (stop < place))) & (withheld == 0)
    tl.store(tokens + row, tl.where(ends, stop, place).to(tl.int64))
    tl.store(gained + row, tl.where(ends, ending, best))


def likeliest(scores: Tensor, never: Tensor, stop: int, fewest: int, made: Tensor) -> tuple[Tensor, Tensor]:
    """The token with the highest score of each row and that score, (R,) each, from scores (R, V).

    None of those in `never`; and no `<stop>` before `fewest` tokens are output, unless nothing else may follow: what
    `scores.banned` and `scores.min_length` leave, without a copy of the scores.
    """
    scores = scores.contiguous()
    tokens, gained = scores.new_empty(len(scores), dtype=torch.long), scores.new_empty(len(scores))
    size = scores.shape[1]
    block = min(triton.next_power_of_2(size), 4096)
    _likeliest_kernel[len(scores),](
        scores, never, made, tokens, gained, stop, fewest, size, BANNED=len(never), BLOCK=block, num_warps=8
    )
    return tokens, gained
