r"""Location-sensitive attention: the score of a position depends on attention before, too.

Dims: B batch, N queries of each source, R = B * N, S source positions, D source features, H decoder
      features, A attention features, W = 2 * radius + 1 positions of a window.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Radius, Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.bridges.attention import HIDDEN, AttentionScore
from sixjars.model.layers import (
    Linear,
    Start,
    StateProjection,
    by_source,
    for_queries,
    masked_softmax,
    wide,
)
from sixjars.model.reference import REFERENCE


@final
class LocationAttention(Bridge):
    r"""e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j + F_att z_jt), α_jt = softmax_j(e_jt).

    c_t = Σ_j α_jt h_j. z_jt has the last weights α_{i,t-1} and the coverage κ_it = Σ_{τ<t} α_iτ of
    the positions i around j, `radius` on each side. So the score knows where attention was and what
    it has left out, which helps most with sources longer than those of the training set.

    The last weights are from Chorowski et al. 2015 (https://arxiv.org/abs/1506.07503), equations 8
    and 9; coverage is from Tu et al. 2016 (https://arxiv.org/abs/1601.04811), section 3.1. Where we
    differ: one matrix, F_att, is both the convolution and the layer behind it.

    >>> attention = LocationAttention(source_size=4, state_size=6, size=5, radius=1)
    >>> memory, mask = torch.randn(2, 3, 4), torch.ones(2, 3) > 0
    >>> prepared = attention.start(Encoded(memory, mask, torch.randn(2, 4)))
    >>> first = attention.step(torch.randn(2, 6), prepared)
    >>> second = attention.step_from(torch.randn(2, 6), prepared, first.attended)
    >>> second.attended[:, 1].allclose(first.weights + second.weights)
    True
    """

    has_attention = True
    follows_state = True
    grouped = True
    letters: ClassVar[Mapping[str, str]] = {"location.weight": "F_att"}

    def __init__(  # noqa: PLR0913 - keys of a recipe, and what the toolkit fills in
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        state_count: int = 1,
        size: Size = HIDDEN,
        radius: Radius = 3,
        start: Start = "linear",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.context_size = source_size
        self.radius = radius
        read_size = summary_size or source_size
        self.first = StateProjection(read_size, state_size, state_count, start, backend)
        sizes: dict[str, Any] = {"source_size": source_size, "state_size": state_size, "size": size}
        self.score = AttentionScore("additive", **sizes, backend=backend)
        window = 2 * (2 * radius + 1)
        self.location = Linear(window, size, bias=False, backend=backend)  # F

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report a decoder of one step, before which there is no attention."""
        if plan.decoder.searches:
            return super().misfits(plan)
        need = "needs a decoder that outputs several tokens"
        return [f"model.bridge: location {need}, but it is {plan.kind('decoder')}; use attention."]

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state and the keys."""
        first = self.first(encoded.summary)
        keys = self.score.keys(encoded.memory)
        return Prepared(first, encoded.summary, encoded.memory, encoded.mask, keys)

    def first_attended(self, prepared: Prepared) -> Tensor:
        """No attention: zeros (B, 2, S)."""
        rows, positions = prepared.mask.shape
        return wide(prepared.memory[:0]).new_zeros(rows, 2, positions)

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """A first step, before which there was no attention."""
        return self.step_from(query, prepared, for_queries(self.first_attended(prepared), query))

    def step_from(self, query: Tensor, prepared: Prepared, attended: Tensor | None) -> Context:
        """Score every position by its vector and by the attention around it so far."""
        assert prepared.keys is not None
        if attended is None:
            return self.step(query, prepared)
        sources = prepared.mask.shape[0]
        memory_BSD = prepared.memory
        around_R2SW = F.pad(attended, (self.radius, self.radius)).unfold(2, 2 * self.radius + 1, 1)
        located_RSA = self.location(around_R2SW.transpose(1, 2).flatten(2).to(memory_BSD.dtype))
        query_BN1A = by_source(self.score.query(query), sources).unsqueeze(2)
        mixed_BNSA = query_BN1A + prepared.keys.unsqueeze(1) + by_source(located_RSA, sources)
        scores_BNS = wide(self.score.score(torch.tanh(mixed_BNSA)).squeeze(-1))
        weights_BNS = masked_softmax(scores_BNS, prepared.mask.unsqueeze(1))
        vectors_BND = torch.bmm(weights_BNS.to(memory_BSD.dtype), memory_BSD)
        weights_RS = weights_BNS.flatten(0, 1)
        after_R2S = torch.stack([weights_RS, attended[:, 1] + weights_RS], dim=1)
        return Context(vectors_BND.flatten(0, 1), weights_RS, after_R2S)

    def equations(self) -> list[str]:
        """Initial state, attention around a position, scores, weights and context vector."""
        around = f"j-{self.radius}..j+{self.radius}" if self.radius else "j"
        score = self.score.equation(self.query_letter, "h_j").removesuffix(")")
        return [
            *self.first.equations(),
            "before the first step every weight is 0",
            "κ_jt = κ_{j,t-1} + α_{j,t-1}: the coverage",
            f"z_jt = [α_{{{around},t-1}}, κ_{{{around},t}}]: 0 beyond the ends",
            f"e_jt = {score} + F_att z_jt)",
            "α_jt = softmax_j(e_jt)",
            "c_t = Σ_j α_jt h_j",
        ]
