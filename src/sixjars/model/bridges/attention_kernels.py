# ruff: noqa: N803, FBT003
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-any-return"
"""Additive attention of one step as one kernel on a GPU: score, softmax and context, where no gradient is wanted.

Dims: B batch, N queries of each source, R = B * N, S source positions, A attention features, D source features.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

NUMBERS = 2**14
"""How many numbers of the keys a program holds at a time: sums over a block cost more than its reads."""
LONGEST = 1024
"""The most positions that one program can hold."""


@triton.jit
def _tanh(x, QUICK: tl.constexpr):
    """In 32 bits; `QUICK` where 11 bits are enough, because what it is computed from has 16."""
    if QUICK:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=r,r", [x], tl.float32, True, 1)
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _attend_kernel(  # noqa: PLR0913 - addresses and sizes
    query, keys, score, memory, mask, weights, context, S, ROWS,
    A: tl.constexpr, D: tl.constexpr, QUICK: tl.constexpr, POSITIONS: tl.constexpr, A_CHUNK: tl.constexpr,
    D_CHUNK: tl.constexpr,
):  # fmt: skip
    row, at_S = tl.program_id(0), tl.arange(0, POSITIONS)
    source = (row // ROWS).to(tl.int64)
    inside_S = at_S < S
    real_S = tl.load(mask + source * S + at_S, inside_S, 0) != 0
    terms = tl.zeros([POSITIONS, A_CHUNK], tl.float32)
    for begin in tl.static_range(0, A, A_CHUNK):
        a = begin + tl.arange(0, A_CHUNK)
        q = tl.load(query + row * A + a, a < A, 0.0).to(tl.float32)
        v = tl.load(score + a, a < A, 0.0).to(tl.float32)
        both = real_S[:, None] & (a < A)[None, :]
        k = tl.load(keys + (source * S + at_S[:, None]) * A + a[None, :], both, 0.0).to(tl.float32)
        terms += _tanh(k + q[None, :], QUICK) * v[None, :]
    scores_S = tl.sum(terms, axis=1)
    highest = tl.max(tl.where(real_S, scores_S, -float("inf")), axis=0)
    shares_S = tl.where(real_S, tl.exp(scores_S - highest), 0.0)
    total = tl.sum(shares_S, axis=0)
    weights_S = shares_S / tl.where(total > 0.0, total, 1.0)
    tl.store(weights + row * S + at_S, weights_S, inside_S)
    for begin in tl.static_range(0, D, D_CHUNK):
        d = begin + tl.arange(0, D_CHUNK)
        both = real_S[:, None] & (d < D)[None, :]
        h = tl.load(memory + (source * S + at_S[:, None]) * D + d[None, :], both, 0.0).to(tl.float32)
        tl.store(context + row * D + d, tl.sum(h * weights_S[:, None], axis=0), d < D)


def attend(query: Tensor, keys: Tensor, score: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The context vectors (R, D) and the weights (R, S).

    From U_att s (R, A), the keys (B, S, A), V_att (A,), the memory (B, S, D) and the mask (B, S).
    """
    (rows, size), (sources, positions, width) = query.shape, memory.shape
    context_RD = memory.new_empty(rows, width)
    weights_RS = memory.new_empty(rows, positions)
    held = max(triton.next_power_of_2(positions), 16)
    chunk = NUMBERS // held
    _attend_kernel[rows,](
        query.contiguous(), keys.contiguous(), score.contiguous(), memory.contiguous(),
        mask.contiguous().view(torch.uint8), weights_RS, context_RD, positions, rows // sources,
        A=size, D=width, QUICK=keys.dtype in {torch.bfloat16, torch.float16}, POSITIONS=held,
        A_CHUNK=_chunk(size, chunk), D_CHUNK=_chunk(width, 2 * chunk), num_warps=4,
    )  # fmt: skip
    return context_RD, weights_RS


def _chunk(size: int, most: int) -> int:
    """How many features are computed together: a power of two, as kernels need."""
    return min(triton.next_power_of_2(size), max(most, 4))
