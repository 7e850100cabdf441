"""Attention pooling: the summary is a weighted sum of all positions, by a learned query.

Dims: B batch, S source positions, D source features, P segments of a row, F features of what is
      pooled, H state features, A attention features.
"""

from typing import final

import torch
from pydantic import StrictBool
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge
from sixjars.flow.limits import AboveZero, Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.layers import (
    Linear,
    Start,
    StateProjection,
    for_queries,
    masked_softmax,
    non_empty,
    softmax_in_segments,
)
from sixjars.model.reference import REFERENCE


@final
class AttentionPooling(Bridge):
    r"""α_j = softmax_j(u_poolᵀ tanh(W_pool h_j + b_pool)), s_0 from Σ_j α_j h_j.

    Initial-state conditioning with another summary: Yang et al. 2016
    (https://aclanthology.org/N16-1174/), section 2.2, for positions of any kind. The query u_pool
    is the same for every source and every step, so it is computed once.

    Where the encoder has an upper level, its segments are pooled and not the positions, β_n =
    softmax_n(u_poolᵀ tanh(W_pool g_n + b_pool)) and s_0 from Σ_n β_n g_n: the sentences of that
    paper. The weight of a position is that of its segment times that of the position within it, or
    an even share where the encoder has no such weights.

    With `join_summary` the initial state is made from [Σ_j α_j h_j, h_T]: attention and the
    encoder's summary together.

    `scale: λ` takes λ Σ_j α_j h_j instead, for vectors that do not learn: Adam's small steps make
    what is behind them grow slowly. Attention is even at first then, u_pool = 0, or λ would make
    its initial weights, which mean nothing, matter.

    >>> bridge = AttentionPooling(source_size=4, state_size=4, start="copy")
    >>> memory, mask = torch.randn(2, 3, 4), torch.ones(2, 3) > 0
    >>> prepared = bridge.start(Encoded(memory, mask, torch.randn(2, 4)))
    >>> weights = bridge.step(prepared.first_state, prepared).weights
    >>> torch.allclose(prepared.first_state, (weights.unsqueeze(-1) * memory).sum(1), atol=1e-5)
    True
    """

    letters = {"key.weight": "W_pool", "key.bias": "b_pool", "query.weight": "u_pool", "scale": "λ"}
    context_size = 0
    has_attention = True
    reads_summary = False
    grouped = True

    def __init__(  # noqa: PLR0913 - keys of a recipe, and sizes that the toolkit fills in
        self,
        *,
        source_size: int,
        summary_size: int = 0,
        segment_size: int = 0,
        state_size: int,
        size: Size = 128,
        state_count: int = 1,
        start: Start = "linear",
        join_summary: StrictBool = False,
        scale: AboveZero = 1.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.segment_size = segment_size
        self.reads_summary = join_summary
        pooled_size = segment_size or source_size
        self.key = Linear(pooled_size, size, backend=backend)  # W_pool, b_pool
        self.query = Linear(size, 1, bias=False, backend=backend)  # u_pool
        self.scale: Tensor | None
        self.register_buffer("scale", None if scale == 1 else torch.tensor([float(scale)]))
        if scale != 1:
            nn.init.zeros_(self.query.weight)
        first_size = pooled_size + (summary_size if join_summary else 0)
        self.first = StateProjection(first_size, state_size, state_count, start, backend)

    def start(self, encoded: Encoded) -> Prepared:
        """Pool every position or segment; `keys` of the result are the weights of positions."""
        memory_BSD, mask_BS = encoded.memory, encoded.mask
        if not self.segment_size:
            pooled_BF, weights_BS = self._pooled(memory_BSD, mask_BS)
        else:
            assert encoded.segments is not None
            level = non_empty(encoded.segments, mask_BS)
            pooled_BF, shares_BP = self._pooled(level.memory, level.mask)
            within_BS = level.weights
            if within_BS is None:
                even_BS = torch.zeros_like(mask_BS, dtype=memory_BSD.dtype)
                within_BS = softmax_in_segments(even_BS, mask_BS, level)
            weights_BS = shares_BP.gather(1, level.segment_of) * within_BS * mask_BS
        if self.scale is not None:
            pooled_BF = self.scale * pooled_BF
        if self.reads_summary:
            pooled_BF = torch.cat([pooled_BF, encoded.summary], dim=-1)
        return Prepared(self.first(pooled_BF), pooled_BF, memory_BSD, mask_BS, weights_BS)

    def _pooled(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted sum (B, F) of one vector for each place, and the weight of each."""
        weights_BS = masked_softmax(self.query(torch.tanh(self.key(vectors))).squeeze(-1), mask)
        return torch.bmm(weights_BS.unsqueeze(1), vectors).squeeze(1), weights_BS

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """A context of no features, and the weights of the start."""
        assert prepared.keys is not None
        nothing = prepared.summary[:, :0]
        return Context(for_queries(nothing, query), for_queries(prepared.keys, query))

    def equations(self) -> list[str]:
        """The pooled summary, and the initial state made from it."""
        at, state, weight = ("n", "g", "β") if self.segment_size else ("j", "h", "α")
        factor = "" if self.scale is None else "λ "
        value = "" if self.scale is None else f": λ is {float(self.scale):g}"
        words = (
            "α_j = β_n ω_nk, where word j is word k of segment n; ω_nk = 1 / K where the encoder "
        )
        lines = [
            f"{weight}_{at} = softmax_{at}(u_poolᵀ tanh(W_pool {state}_{at} + b_pool))",
            f"h_pool = {factor}Σ_{at} {weight}_{at} {state}_{at}{value}",
            *self.first.equations("[h_pool, h_T]" if self.reads_summary else "h_pool"),
        ]
        return [*lines, f"{words}computes none"] if self.segment_size else lines
