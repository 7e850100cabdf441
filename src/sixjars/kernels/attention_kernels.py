"""Additive attention as Triton kernels, for a step, its gradients, and the keys. CUDA only.

Dims: B batch, R rows open in search, S source positions, T steps, A attention features, D source
      features.

`steps` has the equations. Everything is computed in 32 bits, whatever it is stored in. Where
torch operations would write the tanh of every position and feature to memory at each step, these
kernels compute it again.
"""

import os
from typing import Any, final

import torch
import triton
import triton.language as tl
from torch import Tensor

from sixjars.flow.backend import AttentionSources
from sixjars.kernels.compiled import dense_sources
from sixjars.kernels.steps import BatchAttention

LONGEST = 1024
"""The most positions of a source that one program can hold."""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether the kernels run on a CPU, by Triton's interpreter, which knows no instructions of a GPU."""
NUMBERS = 2**14
"""The size of a block of positions and features that a program holds: its sums cost the most."""


def _chunk(size: int, most: int) -> int:
    """The features in a block: a power of 2, as Triton needs it, of at least 16."""
    return max(min(1 << (size - 1).bit_length(), most), 16)


@triton.jit
def _tanh(x, QUICK: tl.constexpr):
    """Tanh in 32 bits; `QUICK` where 11 bits are enough, because 16 are stored."""
    if QUICK:
        return tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=r,r", [x], tl.float32, True, 1
        )
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _attend_kernel(
    query, keys, memory, mask, score, weights, context, query_b, S, rows,
    A: tl.constexpr, D: tl.constexpr, QUICK: tl.constexpr, POSITIONS: tl.constexpr,
    A_CHUNK: tl.constexpr, D_CHUNK: tl.constexpr,
):  # fmt: skip
    row, at_S = tl.program_id(0).to(tl.int64), tl.arange(0, POSITIONS)
    source = row // rows  # in search a source has several rows
    inside_S = at_S < S
    real_S = tl.load(mask + source * S + at_S, inside_S, 0) != 0
    terms = tl.zeros([POSITIONS, A_CHUNK], tl.float32)
    for begin in tl.static_range(0, A, A_CHUNK):
        a = begin + tl.arange(0, A_CHUNK)
        q = tl.load(query + row * query_b + a, a < A, 0.0).to(tl.float32)
        v = tl.load(score + a, a < A, 0.0).to(tl.float32)
        inside = real_S[:, None] & (a < A)[None, :]
        place = source * S * A + at_S[:, None] * A + a[None, :]
        k = tl.load(keys + place, inside, 0.0).to(tl.float32)
        terms += _tanh(k + q[None, :], QUICK) * v[None, :]
    scores_S = tl.sum(terms, axis=1)
    highest = tl.max(tl.where(real_S, scores_S, -float("inf")), axis=0)
    shares_S = tl.where(real_S, tl.exp(scores_S - highest), 0.0)
    total = tl.sum(shares_S, axis=0)
    weights_S = shares_S / tl.where(total > 0.0, total, 1.0)
    tl.store(weights + row * S + at_S, weights_S, inside_S)
    for begin in tl.static_range(0, D, D_CHUNK):
        d = begin + tl.arange(0, D_CHUNK)
        inside = real_S[:, None] & (d < D)[None, :]
        place = source * S * D + at_S[:, None] * D + d[None, :]
        h = tl.load(memory + place, inside, 0.0).to(tl.float32)
        tl.store(context + row * D + d, tl.sum(h * weights_S[:, None], axis=0), d < D)


@triton.jit
def _attend_back_kernel(
    d_context, d_weights, weights, query, keys, memory, score, d_scores, d_query, query_b,
    d_query_b, S, A: tl.constexpr, D: tl.constexpr, READ: tl.constexpr, QUICK: tl.constexpr,
    POSITIONS: tl.constexpr, A_CHUNK: tl.constexpr, D_CHUNK: tl.constexpr,
):  # fmt: skip
    row, at_S = tl.program_id(0).to(tl.int64), tl.arange(0, POSITIONS)
    inside_S = at_S < S
    weights_S = tl.load(weights + row * S + at_S, inside_S, 0.0)
    terms = tl.zeros([POSITIONS, D_CHUNK], tl.float32)
    for begin in tl.static_range(0, D, D_CHUNK):
        d = begin + tl.arange(0, D_CHUNK)
        inside = inside_S[:, None] & (d < D)[None, :]
        h = tl.load(memory + row * S * D + at_S[:, None] * D + d[None, :], inside, 0.0).to(
            tl.float32
        )
        c = tl.load(d_context + row * D + d, d < D, 0.0).to(tl.float32)
        terms += h * c[None, :]
    d_weights_S = tl.sum(terms, axis=1)
    if READ:
        d_weights_S += tl.load(d_weights + row * S + at_S, inside_S, 0.0).to(tl.float32)
    d_scores_S = weights_S * (d_weights_S - tl.sum(weights_S * d_weights_S, axis=0))
    tl.store(d_scores + row * S + at_S, d_scores_S, inside_S)
    for begin in tl.static_range(0, A, A_CHUNK):
        a = begin + tl.arange(0, A_CHUNK)
        q = tl.load(query + row * query_b + a, a < A, 0.0).to(tl.float32)
        v = tl.load(score + a, a < A, 0.0).to(tl.float32)
        inside = inside_S[:, None] & (a < A)[None, :]
        k = tl.load(keys + row * S * A + at_S[:, None] * A + a[None, :], inside, 0.0).to(tl.float32)
        tanh = _tanh(k + q[None, :], QUICK)
        d_q = v * tl.sum(d_scores_S[:, None] * (1.0 - tanh * tanh), axis=0)
        tl.store(d_query + row * d_query_b + a, d_q, a < A)


@triton.jit
def _keys_kernel(
    queries, keys, score, d_scores, d_keys, d_score, query_t, query_b, scores_t, T, S, A,
    QUICK: tl.constexpr, POSITIONS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    row, a = tl.program_id(0).to(tl.int64), tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    at_S = tl.program_id(2) * POSITIONS + tl.arange(0, POSITIONS)
    inside_S, inside_A = at_S < S, a < A
    inside = inside_S[:, None] & inside_A[None, :]
    place = row * S * A + at_S[:, None] * A + a[None, :]
    k = tl.load(keys + place, inside, 0.0).to(tl.float32)
    v = tl.load(score + a, inside_A, 0.0).to(tl.float32)
    d_k, d_v = tl.zeros([POSITIONS, CHUNK], tl.float32), tl.zeros([POSITIONS, CHUNK], tl.float32)
    for step in range(T):
        q = tl.load(queries + step * query_t + row * query_b + a, inside_A, 0.0).to(tl.float32)
        e = tl.load(d_scores + step * scores_t + row * S + at_S, inside_S, 0.0)
        tanh = _tanh(k + q[None, :], QUICK)
        d_v += e[:, None] * tanh
        d_k += e[:, None] * (1.0 - tanh * tanh)
    tl.store(d_keys + place, d_k * v[None, :], inside)
    part = tl.program_id(2) * tl.num_programs(0) + row
    tl.store(d_score + part * A + a, tl.sum(d_v, axis=0), inside_A)


def _flags(keys: Tensor, memory: Tensor, numbers: int) -> dict[str, Any]:
    """The sizes of a kernel whose programs hold so many numbers of the memory at a time."""
    positions = max(triton.next_power_of_2(keys.shape[1]), 16)
    return {
        "A": keys.shape[2],
        "D": memory.shape[2],
        "QUICK": keys.dtype in {torch.bfloat16, torch.float16} and not INTERPRETED,
        "POSITIONS": positions,
        "A_CHUNK": _chunk(keys.shape[2], NUMBERS // positions),
        "D_CHUNK": _chunk(memory.shape[2], numbers // positions),
        "num_warps": 4,
    }


def holds(mask: Tensor) -> bool:
    """Whether one program can hold the positions of a source, (B, S)."""
    return 0 < mask.shape[1] <= LONGEST


def attend(query: Tensor, sources: AttentionSources) -> tuple[Tensor, Tensor]:
    """One step of search: contexts (R, D) and weights (R, S) of queries U_att s (R, A)."""
    keys, memory, mask, score = dense_sources(sources)
    (rows, _), (batch, positions, width) = query.shape, memory.shape
    context_RD, weights_RS = memory.new_empty(rows, width), memory.new_empty(rows, positions)
    _attend_kernel[rows,](
        query, keys, memory, mask, score, weights_RS, context_RD, query.stride(0), positions,
        rows // batch, **_flags(keys, memory, 2 * NUMBERS),
    )  # fmt: skip
    return context_RD, weights_RS


@final
class FusedAdditive(BatchAttention):
    """The additive score, softmax and context of a step as one kernel; all gradients as another."""

    def __init__(self, sources: AttentionSources, steps: int) -> None:
        super().__init__(dense_sources(sources), steps)
        flags = self._flags(NUMBERS)
        self.quick, self.positions = flags["QUICK"], flags["POSITIONS"]

    def _flags(self, numbers: int) -> dict[str, Any]:
        return _flags(self.sources.keys, self.sources.memory, numbers)

    def forward(self, at: int, query: Tensor) -> Tensor:
        """The context, (B, D)."""
        context_BD = self.contexts[at]
        _attend_kernel[len(query),](
            query, *self.sources, self.weights[at], context_BD, query.stride(0),
            self.weights.shape[2], 1, **self._flags(2 * NUMBERS),
        )  # fmt: skip
        return context_BD

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """Write δq_t and δe_t."""
        keys, memory, _, score = self.sources
        weights_BS, query = self.weights[at], queries[at]
        others = weights_BS if d_weights is None else d_weights.contiguous()
        _attend_back_kernel[len(d_query),](
            self.d_contexts[at], others, weights_BS, query, keys, memory, score, self.d_scores[at],
            d_query, query.stride(0), d_query.stride(0), self.weights.shape[2],
            READ=d_weights is not None, **self._flags(NUMBERS // 2),
        )  # fmt: skip

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """δk and δV_att: a program goes through all steps for its keys, and sums in registers."""
        keys, _, _, score = self.sources
        rows, positions, size = keys.shape
        wide, chunk = min(self.positions, 32), 64
        parts = triton.cdiv(positions, wide)
        d_keys = torch.empty_like(keys)
        d_score = keys.new_empty(parts * rows, size, dtype=torch.float32)
        _keys_kernel[rows, triton.cdiv(size, chunk), parts](
            queries, keys, score, self.d_scores, d_keys, d_score, queries.stride(0),
            queries.stride(1), self.d_scores.stride(0), len(queries), positions, size,
            QUICK=self.quick, POSITIONS=wide, CHUNK=chunk,
        )  # fmt: skip
        return d_keys, d_score.sum(0).to(keys.dtype)
