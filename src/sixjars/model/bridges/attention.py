r"""Attention: a weighted sum of all source positions for every step, at one level or at two.

Dims: B batch, N queries of each source, R = B * N, S source positions, D source features, K summary
      features, H decoder features, A attention features, P segments of a row, U features of
      a segment.

    e_jt = score(s_{t-1}, h_j),   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import AttentionSources, Backend
from sixjars.flow.contracts import Bridge, ModelPlan
from sixjars.flow.limits import Size
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.layers import (
    Linear,
    Start,
    StateProjection,
    by_source,
    masked_softmax,
    non_empty,
    softmax_in_segments,
)
from sixjars.model.reference import REFERENCE
from sixjars_runtime.errors import ShapeError

ScoreName = Literal["additive", "dot", "general"]
HIDDEN = 128
"""Hidden units of the additive score, where a recipe gives none."""


@final
class AttentionScore(nn.Module):
    """The fit of a query s and a vector h: additive Vᵀ tanh(U s + W h), dot sᵀ h, general sᵀ W h.

    Keys are W h (of dot, h itself), computed once for each source.
    """

    def __init__(
        self,
        kind: ScoreName,
        *,
        source_size: int,
        state_size: int,
        size: int = 0,
        tag: str = "att",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.kind: ScoreName = kind
        self.tag = tag
        self.backend = backend
        if kind == "dot":
            if source_size != state_size:
                raise ShapeError(
                    "score: dot needs equal hidden sizes of decoder and encoder, but they are "
                    f"{state_size} and {source_size}. Make them equal, or use score: general."
                )
            return
        key_size = size if kind == "additive" else state_size
        if kind == "additive":
            self.query = Linear(state_size, size, bias=False, backend=backend)  # U
        self.key = Linear(source_size, key_size, bias=False, backend=backend)  # W
        if kind == "additive":
            self.score = Linear(size, 1, bias=False, backend=backend)  # V

    @property
    def letters(self) -> Mapping[str, str]:
        """The letters of its weights; the tag distinguishes the two levels."""
        letters = {"query": "U", "key": "W", "score": "V"}
        return {f"{name}.weight": f"{letter}_{self.tag}" for name, letter in letters.items()}

    def keys(self, memory: Tensor) -> Tensor:
        """The keys (B, S, A) of the memory (B, S, D)."""
        return memory if self.kind == "dot" else self.backend.keys(memory, self.key.weight)

    def queries(self, states: Tensor) -> Tensor:
        """U s of states (R, H), (R, A); the states themselves where the score has no U."""
        queries_RA: Tensor = self.query(states) if self.kind == "additive" else states
        return queries_RA

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The scores (B, N, S) of queries (R, A), N for each source."""
        if self.kind != "additive":
            queries_BNA = by_source(queries, keys.shape[0])
            return torch.bmm(keys, queries_BNA.transpose(1, 2)).transpose(1, 2)
        mixed_BNSA = by_source(queries, keys.shape[0]).unsqueeze(2) + keys.unsqueeze(1)
        tanh_BNSA = mixed_BNSA.tanh() if torch.is_grad_enabled() else mixed_BNSA.tanh_()
        scores_BNS1: Tensor = self.score(tanh_BNSA)
        return scores_BNS1.squeeze(-1)

    def equation(self, query: str, vector: str) -> str:
        """The score of a query such as s_{t-1} and a vector such as h_j."""
        return {
            "additive": f"V_{self.tag}ᵀ tanh(U_{self.tag} {query} + W_{self.tag} {vector})",
            "dot": f"{query}ᵀ {vector}",
            "general": f"{query}ᵀ W_{self.tag} {vector}",
        }[self.kind]


@final
class Attention(Bridge):
    r"""e_jt = score(s_{t-1}, h_j), α_jt = softmax_j(e_jt), c_t = Σ_j α_jt h_j.

    The additive score, V_attᵀ tanh(U_att s_{t-1} + W_att h_j) with `size` hidden units (128 if none
    is given), is that of Bahdanau, Cho & Bengio 2015 (https://arxiv.org/abs/1409.0473), section
    A.1.2. Dot and general come from Luong, Pham & Manning 2015 (https://arxiv.org/abs/1508.04025),
    equation 8, whose query is the state after the step; here it is the state before it, s_{t-1}, as
    in the lecture.

    >>> attention = Attention(source_size=4, state_size=6, score="additive", size=5)
    >>> memory, mask = torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    >>> prepared = attention.start(Encoded(memory, mask, torch.randn(2, 4)))
    >>> attention.step(torch.randn(2, 6), prepared).weights.sum(1).allclose(torch.ones(2))
    True
    """

    has_attention = True
    follows_state = True
    grouped = True

    def __init__(  # noqa: PLR0913 - keys of a recipe, and what the toolkit fills in
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        state_count: int = 1,
        score: ScoreName = "additive",
        size: Size | None = None,
        start: Start = "linear",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.backend = backend
        self.context_size = source_size
        read_size = summary_size or source_size
        self.first = StateProjection(read_size, state_size, state_count, start, backend)
        sizes: dict[str, Any] = {
            "source_size": source_size,
            "state_size": state_size,
            "size": size or HIDDEN,
        }
        self.score = AttentionScore(score, **sizes, backend=backend)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report a `size` of a score without hidden units."""
        size, score = (plan.settings["bridge"].get(key) for key in ("size", "score"))
        faults = super().misfits(plan)
        if size is not None and score != "additive":
            why = f"belongs to score: additive, but score is {score}; remove it."
            faults = [*faults, f"model.bridge.size: {why}"]
        return faults

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """The name of the score, for there are others to try."""
        return {"score": "additive"}

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state and the keys, returned and never kept on the module."""
        first = self.first(encoded.summary)
        keys = self.score.keys(encoded.memory)
        powers = self.backend.key_powers(keys) if self.score.kind == "additive" else None
        return Prepared(
            first, encoded.summary, encoded.memory, encoded.mask, keys, key_powers=powers
        )

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """Score every position, normalise the scores, and sum the memory by these weights."""
        assert prepared.keys is not None
        queries_RA, memory_BSD, mask_BS = self.score.queries(query), prepared.memory, prepared.mask
        if self.score.kind == "additive":
            score_A = self.score.score.weight[0]
            sources = AttentionSources(prepared.keys, memory_BSD, mask_BS, score_A)
            attended = self.backend.attend(queries_RA, sources, prepared.key_powers)
            if attended is not None:
                return Context(*attended)
        scores_BNS = self.score(queries_RA, prepared.keys)
        weights_BNS = masked_softmax(scores_BNS, mask_BS.unsqueeze(1))
        vectors_BND = torch.bmm(weights_BNS, memory_BSD)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def scoring(self) -> tuple[Tensor | None, Tensor | None]:
        """The weights of the additive score."""
        if self.score.kind != "additive":
            return None, None
        return self.score.query.weight, self.score.score.weight[0]

    def equations(self) -> list[str]:
        """Initial state, scores, weights and context vector."""
        score = f"e_jt = {self.score.equation(self.query_letter, 'h_j')}"
        return [*self.first.equations(), score, "α_jt = softmax_j(e_jt)", "c_t = Σ_j α_jt h_j"]


@final
class TwoLevelAttention(Bridge):
    r"""α_jt = β_nt γ_jt, c_t = Σ_j α_jt h_j: attention to segments and to the words in them.

    For word j of segment n, β_nt = softmax_n(V_att,segᵀ tanh(U_att,seg s_{t-1} + W_att,seg g_n)),
    and γ_jt = softmax_j(V_att,wordᵀ tanh(U_att,word s_{t-1} + W_att,word h_j)) over the words of
    that segment.

    Nallapati et al. 2016 (https://arxiv.org/abs/1602.06023), section 2.3. Where we differ: their
    softmax over words runs over the whole document, and its product with that of the sentences is
    divided by its sum. Ours runs over the words of each segment, so the products sum to 1 as they
    are, and β_nt is the whole weight of a segment. Their vector of a sentence also encodes its
    position; ours has it from the RNN over segments.

    >>> from sixjars import SegmentLevel
    >>> attention = TwoLevelAttention(source_size=4, segment_size=3, state_size=6, size=5)
    >>> mask, segment_of = torch.ones(2, 2, dtype=torch.bool), torch.tensor([[0, 0, 1]] * 2)
    >>> level = SegmentLevel(torch.randn(2, 2, 3), mask, segment_of)
    >>> memory, mask = torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    >>> prepared = attention.start(Encoded(memory, mask, torch.randn(2, 3), segments=level))
    >>> attention.step(torch.randn(2, 6), prepared).weights.sum(1).allclose(torch.ones(2))
    True
    """

    has_attention = True
    follows_state = True
    grouped = True

    def __init__(  # noqa: PLR0913 - keys of a recipe, and what the toolkit fills in
        self,
        *,
        source_size: int,
        segment_size: int,
        summary_size: int | None = None,
        state_size: int,
        size: Size = 128,
        state_count: int = 1,
        start: Start = "linear",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        if not segment_size:
            raise ShapeError(
                "bridge: two_level attends to the segments of a text and to the words in them, but "
                "this encoder has only one level. Use encoder: hierarchy, or bridge: attention."
            )
        self.context_size = source_size
        read_size = summary_size or segment_size
        self.first = StateProjection(read_size, state_size, state_count, start, backend)
        sizes: dict[str, Any] = {"state_size": state_size, "size": size, "backend": backend}
        additive = partial(AttentionScore, "additive", **sizes)
        self.segments = additive(source_size=segment_size, tag="att,seg")
        self.words = additive(source_size=source_size, tag="att,word")

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report an encoder of one level."""
        if plan.encoder.has_segments:
            return super().misfits(plan)
        kind = plan.kind("encoder")
        return [f"model.bridge: two_level needs an encoder of kind hierarchy, but it is {kind}."]

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
        """Share 1 among the segments and each share among its words; sum the memory by these."""
        assert prepared.keys is not None
        assert prepared.segments is not None
        assert prepared.segment_keys is not None
        level = prepared.segments
        scores_BNP = self.segments(self.segments.queries(query), prepared.segment_keys)
        shares_BNP = masked_softmax(scores_BNP, level.mask.unsqueeze(1))
        words_BNS = self.words(self.words.queries(query), prepared.keys)
        within_BNS = softmax_in_segments(words_BNS, prepared.mask, level)
        segment_of_BNS = level.segment_of.unsqueeze(1).expand_as(within_BNS)
        weights_BNS = shares_BNP.gather(2, segment_of_BNS) * within_BNS
        vectors_BND = torch.bmm(weights_BNS, prepared.memory)
        return Context(vectors_BND.flatten(0, 1), weights_BNS.flatten(0, 1))

    def scoring(self) -> tuple[Tensor, ...]:
        """The weights of both scores; one product makes both queries."""
        words, segments = self.words, self.segments
        query = torch.cat([words.query.weight, segments.query.weight])
        return query, words.score.weight[0], segments.score.weight[0]

    def equations(self) -> list[str]:
        """The weights of both levels, and the context vector."""
        words = self.words.equation(self.query_letter, "h_j")
        return [
            *self.first.equations(),
            f"β_nt = softmax_n({self.segments.equation(self.query_letter, 'g_n')})",
            f"α_jt = β_nt softmax_j({words}), over the words of segment n, which has word j",
            "c_t = Σ_j α_jt h_j",
        ]
