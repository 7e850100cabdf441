"""Texts of words, characters or subwords, encoded by a recurrent network, or segment by segment.

Dims: B batch, S source positions, D source features (of a word), P segments of a row, N segments of
      a pack, L the longest of them, M all segments, Q all places of all packs, U features of
      a segment, F any features, I input features.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Encoder, ModelPlan
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import Encoded, Layout, Padded, SegmentLevel, Segments
from sixjars.model.layers import WordEmbedding, masked_softmax
from sixjars.model.recurrent import Direction, DirectionalRNN
from sixjars.model.reference import REFERENCE, CellName
from sixjars_runtime.errors import ShapeError


@final
class TextEncoder(Encoder):
    r"""h_j = RNN(h_{j-1}, E_enc[x_j]), in one or both directions, in one or several layers.

    `direction="backward"` reads the source in reverse order (A B C → X Y is trained as C B A → X
    Y), as Sutskever, Vinyals & Le 2014 (https://arxiv.org/abs/1409.3215, section 3.3) do; the
    annotations still stand at the places of their words. With `both`, h_j = [h→_j, h←_j] and the
    summary joins the last state of each direction.

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> encoder = TextEncoder(embedding=words, size=4, direction="both")
    >>> encoder(Padded.of([[5, 6, 7], [8]])).memory.shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self,
        *,
        embedding: WordEmbedding,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.rnn = DirectionalRNN(embedding.size, cell, size, layers, direction, dropout, backend)
        self.output_size = self.summary_size = self.rnn.output_size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Half the size in each direction; for labels also dropout on the words."""
        half = size // 2
        embedding = {"size": half, **({"dropout": dropout} if labels else {})}
        rnn = {"cell": "gru", "size": half, "direction": "both", "dropout": dropout}
        return {**rnn, "embedding": embedding}

    def forward(self, source: Padded) -> Encoded:
        """The annotations (B, S, D) and the summary (B, D) of token ids (B, S)."""
        memory_BSD, summary_BD = self.rnn(self.embedding(source.values), source.mask)
        return Encoded(memory_BSD, source.mask, summary_BD)

    def equations(self, *, state: str = "h", at: str = "j", summary: str = "h_T") -> list[str]:
        """The recurrence over the words, by the letters of states and summary, and the index."""
        reads = f"E_{self.rnn.tag}[x_{at}]"
        recurrence = self.rnn.equations(reads=reads, state=state, at=at, summary=summary)
        return [*self.embedding.equations(), *recurrence]


@final
class WordAttention(nn.Module):
    r"""ω_nk = softmax_k(u_inᵀ tanh(W_in h_nk + b_in)), z_n = Σ_k ω_nk h_nk.

    Yang et al. 2016 (https://aclanthology.org/N16-1174/), equations 5 to 7.
    """

    letters: ClassVar[Mapping[str, str]] = {
        "key.weight": "W_in",
        "key.bias": "b_in",
        "query.weight": "u_in",
    }

    def __init__(self, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(size, size)  # W_in, b_in
        self.query = nn.Linear(size, 1, bias=False)  # u_in

    def forward(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A vector (N, D) for each segment of words (N, L, D), and the words' weights (N, L)."""
        weights_NL = masked_softmax(self.query(torch.tanh(self.key(states))).squeeze(-1), mask)
        return torch.bmm(weights_NL.unsqueeze(1), states).squeeze(1), weights_NL


@final
class HierarchyEncoder(Encoder):
    r"""h_nk = RNN(h_{n,k-1}, E_enc[x_nk]), g_n = RNN(g_{n-1}, z_n): first words, then segments.

    Segments are sentences or turns, for instance. The vector of a segment is the last state of its
    words, z_n = h_nK (`pool: last`), or a weighted sum of all of them with a learned query,
    z_n = Σ_k ω_nk h_nk (`pool: attention`). The latter with the bridge `pooling`, which does the
    same with the g_n, is the hierarchical attention network of Yang et al. 2016
    (https://aclanthology.org/N16-1174/).

    `words` has the settings of the words' encoder, the other parameters those of the segments'. The
    annotations are those of the words, the summary is the last state of the segments, and the upper
    level has a vector for each of them.

    >>> from sixjars import WordEmbedding
    >>> words = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=4)
    >>> encoder = HierarchyEncoder(words=words, size=5)
    >>> document = Padded.of([[5, 6, 7]])
    >>> segments = Segments(
    ...     packs=(torch.tensor([[0, 1], [2, -1]]),),
    ...     segment_index=torch.tensor([[0, 1]]),
    ...     position_index=torch.tensor([[0, 1, 2]]),
    ...     segment_of=torch.tensor([[0, 0, 1]]),
    ... )
    >>> encoded = encoder(Padded(document.values, document.mask, segments))
    >>> encoded.memory.shape, encoded.segments.memory.shape, encoded.summary.shape
    (torch.Size([1, 3, 4]), torch.Size([1, 2, 5]), torch.Size([1, 5]))
    """

    has_segments = True

    def __init__(
        self,
        *,
        words: TextEncoder,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
        pool: Literal["last", "attention"] = "last",
    ) -> None:
        super().__init__()
        self.words = words
        self.pool = WordAttention(words.output_size) if pool == "attention" else None
        self.rnn = DirectionalRNN(
            words.output_size, cell, size, layers, direction, dropout, words.rnn.backend
        )
        self.rnn.tag_as("seg")
        self.output_size = words.output_size
        self.summary_size = self.segment_size = self.rnn.output_size

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report a source without segments."""
        if all(field.in_segments for field in plan.inputs.values()):
            return []
        return [
            "data.source.segments: must be sentences, lines or turns, for an encoder of kind "
            "hierarchy reads a text in segments; say which (segments: sentences), or take another "
            "encoder (model.encoder: {kind: text})."
        ]

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """For labels as in the hierarchical attention network; else one direction."""
        words = TextEncoder.suggest(size, dropout, labels=labels)
        if not labels:
            return {"words": words, "size": size, "dropout": dropout}
        segments = {"size": size // 2, "dropout": dropout, "direction": "both"}
        return {"words": words, **segments, "pool": "attention"}

    def forward(self, source: Padded) -> Encoded:
        """Annotations (B, S, D), segment vectors (B, P, U) and summary (B, U) of ids (B, S)."""
        segments = source.segments
        if segments is None:
            raise ShapeError(
                "encoder: hierarchy needs a source in segments, but this one has none. Set "
                "data.source.segments to sentences, lines or turns, or use encoder: text."
            )
        states_QD, vectors_MD, weights_Q = self._encoded(source.values, segments)
        places_BS, real_BP = segments.position_index, segments.segment_index >= 0
        memory_BSD = _gathered(states_QD, places_BS, source.mask)
        weights_BS = None
        if weights_Q is not None:
            weights_BS = _gathered(weights_Q, places_BS, source.mask)
        vectors_BPD = _gathered(vectors_MD, segments.segment_index, real_BP)
        upper_BPU, summary_BU = self.rnn(vectors_BPD, real_BP)
        level = SegmentLevel(upper_BPU, real_BP, segments.segment_of, weights_BS)
        return Encoded(memory_BSD, source.mask, summary_BU, Layout("segments"), level)

    def _encoded(self, ids: Tensor, segments: Segments) -> tuple[Tensor, Tensor, Tensor | None]:
        """The states and weights at all places of all packs, and the vectors of all segments."""
        # -1, behind the end of a segment, is the token that is put in front.
        known = nn.functional.pad(ids.flatten(), (1, 0))
        # The rows of a pack are segments of any text of the batch, so one call encodes them all.
        states, vectors, weights = [], [], []
        for pack_NL in segments.packs:
            real_NL = pack_NL >= 0
            ids_NL = known[pack_NL + 1]
            states_NLD, vectors_ND = self.words.rnn(self.words.embedding(ids_NL), real_NL)
            if self.pool is not None:
                vectors_ND, weights_NL = self.pool(states_NLD, real_NL)
                weights.append(weights_NL.flatten())
            states.append(states_NLD.flatten(0, 1))
            vectors.append(vectors_ND)
        return torch.cat(states), torch.cat(vectors), torch.cat(weights) if weights else None

    def equations(self) -> list[str]:
        """The words of segment n, its vector, and the recurrence over segments."""
        pooled = []
        if self.pool is not None:
            pooled = ["ω_nk = softmax_k(u_inᵀ tanh(W_in h_nk + b_in))", "z_n = Σ_k ω_nk h_nk"]
        words = self.words.equations(at="nk", summary="" if pooled else "z_n")
        segments = self.rnn.equations(reads="z_n", state="g", at="n")
        words = [line for line in words if line not in segments]
        return [*words, *pooled, *segments, "h_j = h_nk, where word j is word k of segment n"]


def _gathered(flat: Tensor, places: Tensor, real: Tensor) -> Tensor:
    """The rows of (M) or (M, F) at the given places (B, P); zeros at places that are not real."""
    rows = flat.index_select(0, places.clamp(min=0).flatten()).view(*places.shape, *flat.shape[1:])
    return rows * real.view(*real.shape, *(1 for _ in flat.shape[1:]))
