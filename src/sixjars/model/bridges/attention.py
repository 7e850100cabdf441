r"""Attention: at every step the decoder computes a weighted sum of all source positions, at one level or at two.

Dims: B batch, N queries of each source, R = B * N, S source positions, D source features, K summary features,
      H decoder features, A attention features, P segments of a row, U features of a segment.

    e_jt = score(s_{t-1}, h_j),   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j
"""

from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.fast import compiled
from sixjars.model.fast.compiled import used_for
from sixjars.model.fast.contracts import Sources
from sixjars.model.fast.segments import non_empty, softmax_in_segments
from sixjars.model.fast.unrolled import has_kernels
from sixjars.model.layers import (
    Start,
    StateProjection,
    by_source,
    key_powers,
    linear,
    masked_softmax,
    powers,
)
from sixjars_runtime.errors import ShapeError

ScoreName = Literal["additive", "dot", "general"]
HIDDEN = 128
"""Hidden units of the additive score, where a recipe gives none."""
AT_ONCE = 1 << 20
"""Products of powers that are computed together: more would leave the cache of a CPU."""


@final
class Score(nn.Module):
    """How well a query s and a vector h fit: additive Vᵀ tanh(U s + W h), dot sᵀ h, or general sᵀ W h.

    Keys are W h (of dot, h itself), computed once for each source.
    """

    def __init__(
        self, kind: ScoreName, *, source_size: int, state_size: int, size: int = 0, tag: str = "att"
    ) -> None:
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
        self.key = nn.Linear(
            source_size, size if kind == "additive" else state_size, bias=False
        )  # W
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
        keys_BSA: Tensor = memory if self.kind == "dot" else linear(memory, self.key.weight)
        return keys_BSA

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """The scores (B, N, S) of queries (R, H), N for each source."""
        if self.kind != "additive":
            return torch.bmm(keys, by_source(query, keys.shape[0]).transpose(1, 2)).transpose(1, 2)
        query_BN1A = by_source(self.query(query), keys.shape[0]).unsqueeze(2)
        mixed_BNSA = query_BN1A + keys.unsqueeze(1)
        scores_BNS1: Tensor = self.score(
            mixed_BNSA.tanh() if torch.is_grad_enabled() else mixed_BNSA.tanh_()
        )
        return scores_BNS1.squeeze(-1)

    def from_powers(self, query: Tensor, raised: Tensor) -> Tensor:
        """The additive scores less ΣV, which no softmax sees, much faster: tanh(a + b) = 1 - 2 / (1 + e^2a e^2b)."""
        powers_BN1A = by_source(powers(self.query(query)), raised.shape[0]).unsqueeze(2)
        one, count = query.new_ones(()), 1 + powers_BN1A.numel() * raised.shape[1] // AT_ONCE
        parts = zip(powers_BN1A.chunk(count), raised.unsqueeze(1).chunk(count), strict=True)
        scores = [
            self.score(torch.addcmul(one, queries, keys).reciprocal_()).squeeze(-1)
            for queries, keys in parts
        ]
        return torch.cat(scores).mul_(-2)

    def equation(self, query: str, vector: str) -> str:
        """For a query such as s_{t-1} and a vector such as h_j."""
        return {
            "additive": f"V_{self.tag}ᵀ tanh(U_{self.tag} {query} + W_{self.tag} {vector})",
            "dot": f"{query}ᵀ {vector}",
            "general": f"{query}ᵀ W_{self.tag} {vector}",
        }[self.kind]


def fusible(query: Tensor, mask: Tensor) -> bool:
    """Whether one kernel can compute a step: on a GPU, for sources that are not too long, without gradients."""
    if not has_kernels(query) or torch.is_grad_enabled():
        return False
    from sixjars.model.fast.attention_kernels import LONGEST

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
        self.score = Score(
            score, source_size=source_size, state_size=state_size, size=size or HIDDEN
        )

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
        first, keys = self.first(encoded.summary), self.score.keys(encoded.memory)
        raised = (
            key_powers(keys)
            if self.score.kind == "additive" and not torch.is_grad_enabled()
            else None
        )
        return Prepared(
            first, encoded.summary, encoded.memory, encoded.mask, keys, key_powers=raised
        )

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """Score every position, normalise the scores, and sum the memory by these weights."""
        assert prepared.keys is not None
        found = self._by_kernel(query, prepared) if self.score.kind == "additive" else None
        if found is not None:
            return found
        if prepared.key_powers is None or torch.is_grad_enabled():
            scores_BNS = self.score(query, prepared.keys)
        else:
            scores_BNS = self.score.from_powers(query, prepared.key_powers)
        weights_BNS = masked_softmax(scores_BNS, prepared.mask.unsqueeze(1))
        vectors_BND = torch.bmm(weights_BNS, prepared.memory)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def _by_kernel(self, query: Tensor, prepared: Prepared) -> Context | None:
        """The same by one kernel, compiled for this CPU or on CUDA, where there is one and nothing is learned."""
        kernels = used_for(query)
        if prepared.keys is None or (kernels is None and not fusible(query, prepared.mask)):
            return None
        sources = Sources(prepared.keys, prepared.memory, prepared.mask, self.score.score.weight[0])
        if kernels is None:
            from sixjars.model.fast.attention_kernels import attend

            return Context(*attend(self.score.query(query), sources))
        found = compiled.attend(self.score.query(query), sources, prepared.key_powers, kernels)
        return None if found is None else Context(*found)

    def scoring(self) -> tuple[Tensor | None, Tensor | None]:
        """The weights of the score."""
        return (
            (self.score.query.weight, self.score.score.weight[0])
            if self.score.kind == "additive"
            else (None, None)
        )

    def equations(self) -> list[str]:
        """Initial state, scores, weights and context vector."""
        score = f"e_jt = {self.score.equation(self.query_letter, 'h_j')}"
        return [*self.first.equations(), score, "α_jt = softmax_j(e_jt)", "c_t = Σ_j α_jt h_j"]


@final
class TwoLevelAttention(Bridge):
    r"""α_jt = β_nt softmax_j(V_att,wordᵀ tanh(U_att,word s_{t-1} + W_att,word h_j)), c_t = Σ_j α_jt h_j.

    β_nt = softmax_n(V_att,segᵀ tanh(U_att,seg s_{t-1} + W_att,seg g_n)), where segment n has word j, and the softmax of
    α_jt is over the words of that segment.

    Nallapati et al. 2016 (https://arxiv.org/abs/1602.06023), section 2.3. Where we differ: their softmax over words
    runs over the whole document, and its product with that of the sentences is divided by its sum. Ours runs over the
    words of each segment, so the products sum to 1 as they are, and β_nt is all that a segment gets. Their vector of a
    sentence also encodes its position; ours has it from the RNN over segments.

    >>> from sixjars import SegmentLevel
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
        self.segments = Score(
            "additive", source_size=segment_size, state_size=state_size, size=size, tag="att,seg"
        )
        self.words = Score(
            "additive", source_size=source_size, state_size=state_size, size=size, tag="att,word"
        )

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """The encoder must have two levels."""
        if plan.encoder.has_segments:
            return super().misfits(plan)
        return [
            f"model.bridge: two_level needs an encoder of kind hierarchy, but it is {plan.kind('encoder')}."
        ]

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
        shares_BNP = masked_softmax(
            self.segments(query, prepared.segment_keys), level.mask.unsqueeze(1)
        )
        within_BNS = softmax_in_segments(self.words(query, prepared.keys), prepared.mask, level)
        weights_BNS = (
            shares_BNP.gather(2, level.segment_of.unsqueeze(1).expand_as(within_BNS)) * within_BNS
        )
        vectors_BND = torch.bmm(weights_BNS, prepared.memory)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def scoring(self) -> tuple[Tensor, ...]:
        """The weights of both scores; one product gives both queries."""
        words, segments = self.words, self.segments
        return (
            torch.cat([words.query.weight, segments.query.weight]),
            words.score.weight[0],
            segments.score.weight[0],
        )

    def equations(self) -> list[str]:
        """Weights of both levels, and the context vector."""
        words = self.words.equation(self.query_letter, "h_j")
        return [
            *self.first.equations(),
            f"β_nt = softmax_n({self.segments.equation(self.query_letter, 'g_n')})",
            f"α_jt = β_nt softmax_j({words}), over the words of segment n, which has word j",
            "c_t = Σ_j α_jt h_j",
        ]
