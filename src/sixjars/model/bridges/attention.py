r"""Attention: at every step the decoder computes a weighted sum of all source positions.

Dims: B batch, N queries of each source, R = B * N, S source positions, D source features, K summary features,
      H decoder features, A attention features.

    e_jt = score(s_{t-1}, h_j),   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.layers import Start, StateProjection, by_source, masked_softmax

ScoreName = Literal["additive", "dot", "general"]
HIDDEN = 128
"""Hidden units of the additive score, where a recipe gives none."""


@final
class Score(nn.Module):
    """How well a query s and a vector h fit: additive Vᵀ tanh(U s + W h), dot sᵀ h, or general sᵀ W h.

    Keys are W h (of dot, h itself), computed once for each source.
    """

    def __init__(self, kind: ScoreName, *, source_size: int, state_size: int, size: int = 0, tag: str = "att") -> None:
        super().__init__()
        self.kind: ScoreName = kind
        self.tag = tag
        if kind == "dot":
            if source_size != state_size:
                raise ShapeError(
                    f"score: dot needs equal hidden sizes of decoder and encoder, but they are {state_size} and "
                    f"{source_size}. Make them equal, or use score: general."
                )
            return
        if kind == "additive":
            self.query = nn.Linear(state_size, size, bias=False)  # U
        self.key = nn.Linear(source_size, size if kind == "additive" else state_size, bias=False)  # W
        if kind == "additive":
            self.score = nn.Linear(size, 1, bias=False)  # V

    @property
    def letters(self) -> Mapping[str, str]:
        """The tag distinguishes those of one level from those of another."""
        return {
            f"{name}.weight": f"{letter}_{self.tag}"
            for name, letter in zip(("query", "key", "score"), "UWV", strict=True)
        }

    def keys(self, memory: Tensor) -> Tensor:
        """The memory (B, S, D) as the score needs it, (B, S, A)."""
        keys_BSA: Tensor = memory if self.kind == "dot" else self.key(memory)
        return keys_BSA

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """The scores (B, N, S) of queries (R, H), N for each source."""
        if self.kind != "additive":
            return torch.bmm(keys, by_source(query, keys.shape[0]).transpose(1, 2)).transpose(1, 2)
        query_BN1A = by_source(self.query(query), keys.shape[0]).unsqueeze(2)
        mixed_BNSA = query_BN1A + keys.unsqueeze(1)
        scores_BNS1: Tensor = self.score(mixed_BNSA.tanh() if torch.is_grad_enabled() else mixed_BNSA.tanh_())
        return scores_BNS1.squeeze(-1)

    def equation(self, vector: str) -> str:
        """For the query s_{t-1} and a vector such as h_j."""
        return {
            "additive": f"V_{self.tag}ᵀ tanh(U_{self.tag} s_{{t-1}} + W_{self.tag} {vector})",
            "dot": f"s_{{t-1}}ᵀ {vector}",
            "general": f"s_{{t-1}}ᵀ W_{self.tag} {vector}",
        }[self.kind]


def fusible(query: Tensor, mask: Tensor) -> bool:
    """Whether one kernel can compute a step: on a GPU, for sources that are not too long, without gradients."""
    if query.device.type != "cuda" or torch.is_grad_enabled() or find_spec("triton") is None:
        return False
    from sixjars.model.bridges.attention_kernels import LONGEST

    return 0 < mask.shape[1] <= LONGEST


@final
class Attention(Bridge):
    r"""e_jt = score(s_{t-1}, h_j), α_jt = softmax_j(e_jt), c_t = Σ_j α_jt h_j.

    The additive score, V_attᵀ tanh(U_att s_{t-1} + W_att h_j) with `size` hidden units (128 if none is given), is that
    of Bahdanau, Cho & Bengio 2015 (https://arxiv.org/abs/1409.0473), section A.1.2. Dot and general come from Luong,
    Pham & Manning 2015 (https://arxiv.org/abs/1508.04025), equation 8, whose query is the state after the step; here
    it is the state before it, s_{t-1}, as in the lecture.

    >>> attention = Attention(source_size=4, state_size=6, score="additive", size=5)
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
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
        summary_size: int | None = None,
        state_size: int,
        state_count: int = 1,
        score: ScoreName = "additive",
        size: Size | None = None,
        start: Start = "linear",
    ) -> None:
        super().__init__()
        self.context_size = source_size
        self.first = StateProjection(summary_size or source_size, state_size, state_count, start)
        self.score = Score(score, source_size=source_size, state_size=state_size, size=size or HIDDEN)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Only the additive score has hidden units."""
        size, score = (plan.settings["bridge"].get(key) for key in ("size", "score"))
        if size is None or score == "additive":
            return super().misfits(plan)
        return [
            *super().misfits(plan),
            f"model.bridge.size: belongs to score: additive, but score is {score}; remove it.",
        ]

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """The score by name, for there are others to try."""
        return {"score": "additive"}

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state and the keys, returned and never kept on the module."""
        first = self.first(encoded.summary)
        return Prepared(first, encoded.summary, encoded.memory, encoded.mask, self.score.keys(encoded.memory))

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """Score every position, normalise the scores, and sum the memory by these weights."""
        assert prepared.keys is not None
        if self.score.kind == "additive" and fusible(query, prepared.mask):
            from sixjars.model.bridges.attention_kernels import attend

            pair = self.score.query(query), prepared.keys
            return Context(*attend(*pair, self.score.score.weight[0], prepared.memory, prepared.mask))
        weights_BNS = masked_softmax(self.score(query, prepared.keys), prepared.mask.unsqueeze(1))
        vectors_BND = torch.bmm(weights_BNS, prepared.memory)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def equations(self) -> list[str]:
        """Initial state, scores, weights and context vector."""
        score = f"e_jt = {self.score.equation('h_j')}"
        return [*self.first.equations(), score, "α_jt = softmax_j(e_jt)", "c_t = Σ_j α_jt h_j"]
