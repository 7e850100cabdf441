r"""Location-sensitive attention: what was attended to before is an input of the score.

Dims: B batch, N queries of each source, R = B * N, S source positions, D source features, H decoder features,
      A attention features, W width of the window, L = 2 W numbers of a window.
"""

from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.bridges.attention import HIDDEN, Score
from sixjars.model.layers import Start, StateProjection, by_source, masked_softmax, wide


@final
class LocationAttention(Bridge):
    r"""e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j + F_att f_jt), α_jt = softmax_j(e_jt), c_t = Σ_j α_jt h_j.

    f_jt has the last weights α_{i,t-1} and the coverage κ_it = Σ_{τ<t} α_iτ of the `width` positions i around j. So the
    score knows where attention was, and what it has left out, even in a source longer than all that was trained on.

    Chorowski et al. 2015 (https://arxiv.org/abs/1506.07503), section 2.1, for the last weights; their sum is the
    coverage of Tu et al. 2016 (https://arxiv.org/abs/1601.04811). Where we differ: the convolution is F_att itself, and
    there is no layer between it and the score.

    >>> attention = LocationAttention(source_size=4, state_size=6, size=5, width=3)
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> prepared = attention.start(source)
    >>> first = attention.step_from(torch.randn(2, 6), prepared, attention.first_attended(prepared))
    >>> second = attention.step_from(torch.randn(2, 6), prepared, first.attended)
    >>> second.attended[:, 1].sum(1).allclose(2 * torch.ones(2))
    True
    """

    has_attention = True
    follows_state = True
    grouped = True

    def __init__(
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        state_count: int = 1,
        size: Size = HIDDEN,
        width: Size = 7,
        start: Start = "linear",
    ) -> None:
        super().__init__()
        self.context_size = source_size
        self.width = width
        self.first = StateProjection(summary_size or source_size, state_size, state_count, start)
        self.score = Score("additive", source_size=source_size, state_size=state_size, size=size)
        self.location = nn.Linear(2 * width, size, bias=False)  # F

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state and the keys."""
        first, keys = self.first(encoded.summary), self.score.keys(encoded.memory)
        return Prepared(first, encoded.summary, encoded.memory, encoded.mask, keys)

    def first_attended(self, prepared: Prepared) -> Tensor:
        """Nothing, (B, 2, S)."""
        rows, positions = prepared.mask.shape
        return wide(prepared.memory[:0]).new_zeros(rows, 2, positions)

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """A first step."""
        nothing = self.first_attended(prepared)
        return self.step_from(query, prepared, nothing.repeat_interleave(len(query) // len(nothing), dim=0))

    def step_from(self, query: Tensor, prepared: Prepared, attended: Tensor | None) -> Context:
        """Score every position by what it holds and by where attention was, (R, 2, S)."""
        assert prepared.keys is not None
        assert attended is not None
        sources, half = len(prepared.mask), self.width // 2
        around_R2SW = F.pad(attended, (half, half)).unfold(2, self.width, 1)
        located_RSA = self.location(around_R2SW.transpose(1, 2).flatten(2).to(prepared.memory.dtype))
        query_BN1A = by_source(self.score.query(query), sources).unsqueeze(2)
        mixed_BNSA = query_BN1A + prepared.keys.unsqueeze(1) + by_source(located_RSA, sources)
        scores_BNS = self.score.score(torch.tanh(mixed_BNSA)).squeeze(-1)
        weights_BNS = masked_softmax(wide(scores_BNS), prepared.mask.unsqueeze(1))
        vectors_BND = torch.bmm(weights_BNS.to(prepared.memory.dtype), prepared.memory)
        weights_RS = weights_BNS.flatten(0, 1)
        after_R2S = torch.stack([weights_RS, attended[:, 1] + weights_RS], dim=1)
        return Context(vectors_BND.flatten(0, 1), weights_RS, after_R2S)
