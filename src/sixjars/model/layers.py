"""Small layers that several components share.

Dims: B batch, S source positions, T target positions, E embedding features, K summary features,
      H state features, V vocabulary, F any features, G gate features, N rows of any kind, I input
      features, O output features, P segments of a row.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.limits import Share, Size
from sixjars.flow.values import SegmentLevel
from sixjars.model.reference import REFERENCE
from sixjars_runtime.errors import ShapeError

Start = Literal["linear", "copy"]


@final
class Linear(nn.Linear):
    """x Wᵀ + b, computed by a backend."""

    def __init__(
        self, inputs: int, outputs: int, *, bias: bool = True, backend: Backend = REFERENCE
    ) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.backend = backend

    def forward(self, inputs: Tensor) -> Tensor:
        """(…, I) -> (…, O)."""
        return self.backend.linear(inputs, self.weight, self.bias)


def wide(values: Tensor) -> Tensor:
    """The values in at least 32 bits, for a softmax or logarithm of 16-bit numbers loses too much.

    >>> kinds = torch.bfloat16, torch.float64
    >>> [wide(torch.ones(1, dtype=kind)).dtype for kind in kinds]
    [torch.float32, torch.float64]
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where `mask` holds; all zeros where it holds nowhere.

    >>> masked_softmax(torch.tensor([[1.0, 1.0, 5.0]]), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min  # with -inf a row without a place would be NaN
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1) * mask.any(-1, keepdim=True)


def softmax_in_segments(scores: Tensor, mask: Tensor, level: SegmentLevel) -> Tensor:
    """Softmax of scores (B, S) or (B, N, S) among the real positions of each segment.

    >>> segment_of = torch.tensor([[0, 0, 1, 0]])
    >>> level = SegmentLevel(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), segment_of)
    >>> softmax_in_segments(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]), level)
    tensor([[0.5000, 0.5000, 1.0000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min
    segment_of, shape = level.segment_of, (*scores.shape[:-1], level.mask.shape[1])
    if scores.dim() == 3:
        mask, segment_of = mask.unsqueeze(1), segment_of.unsqueeze(1).expand_as(scores)
    shown_BS = scores.detach().masked_fill(~mask, lowest)
    highest_BP = shown_BS.new_full(shape, lowest).scatter_reduce(-1, segment_of, shown_BS, "amax")
    # A score in the padding may be higher than all real ones, and must not overflow.
    below_BS = (scores - highest_BP.gather(-1, segment_of)).masked_fill(~mask, 0)
    raised_BS = torch.exp(below_BS) * mask
    total_BP = raised_BS.new_zeros(shape).scatter_add(-1, segment_of, raised_BS)
    # No clamp: a word alone in its segment is at the bound, where torch's gradients differ.
    return raised_BS / (total_BP + (total_BP == 0)).gather(-1, segment_of)


def non_empty(level: SegmentLevel, mask: Tensor) -> SegmentLevel:
    """The upper level without segments that have no real position: their share would be lost."""
    empty_BP = torch.zeros_like(level.mask, dtype=torch.long)
    positions_BP = empty_BP.scatter_add(1, level.segment_of, mask.long())
    return replace(level, mask=level.mask & (positions_BP > 0))


def by_source(values: Tensor, sources: int) -> Tensor:
    """Rows (R, …) as (B, N, …): those of one source lie side by side, N of each of the B sources.

    >>> by_source(torch.zeros(6, 5), 2).shape
    torch.Size([2, 3, 5])
    """
    rows, *rest = values.shape
    if rows == sources:
        return values.unsqueeze(1)
    return values.reshape(sources, rows // sources, *rest)


def for_queries(values: Tensor, query: Tensor) -> Tensor:
    """The values of each source, (B, …), repeated for each of its queries, (R, …)."""
    sources, queries = values.shape[0], query.shape[0]
    return values if sources == queries else values.repeat_interleave(queries // sources, dim=0)


def reversal(mask: Tensor) -> Tensor:
    """The order of positions (B, S) that reads each row backwards and leaves its padding.

    >>> reversal(torch.tensor([[True, True, True], [True, True, False]]))
    tensor([[2, 1, 0],
            [1, 0, 2]])
    """
    positions_S = torch.arange(mask.shape[1], device=mask.device)
    lengths_B1 = mask.sum(1, keepdim=True)
    return torch.where(positions_S < lengths_B1, lengths_B1 - 1 - positions_S, positions_S)


def reordered(values: Tensor, order: Tensor) -> Tensor:
    """`values` (B, S, F) with the positions of each row in the given order (B, S)."""
    return values.gather(1, order.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def last_real(values: Tensor, mask: Tensor) -> Tensor:
    """The vector at the last real position of each row, (B, F); zeros for a row without any."""
    last_B11 = (mask.sum(1) - 1).clamp(min=0).view(-1, 1, 1)
    vectors_BF = values.gather(1, last_B11.expand(-1, 1, values.shape[-1])).squeeze(1)
    return vectors_BF * mask.any(1, keepdim=True)


def shift_right(target: Tensor, first: int) -> Tensor:
    """The input of each step of a target (B, T): the token before it, `first` at the first step.

    >>> shift_right(torch.tensor([[7, 8, 2]]), 1)
    tensor([[1, 7, 8]])
    """
    return torch.cat([target.new_full((target.shape[0], 1), first), target[:, :-1]], dim=1)


@final
class WordEmbedding(nn.Module):
    """A vector for each token, E[y]: learned, or started from pretrained ones.

    With `frozen` the words that have a pretrained vector keep it; the others (special tokens among
    them) learn.

    >>> known = (torch.tensor([1]), torch.tensor([[0.5, 2.0]]))
    >>> WordEmbedding(vocabulary=3, size=2, frozen=True, vectors=known)(torch.tensor(1)).tolist()
    [0.5, 2.0]
    """

    given: ClassVar[tuple[str, ...]] = ("vocabulary", "vectors")
    """Parameters that come from the data."""

    def __init__(
        self,
        *,
        vocabulary: int,
        size: Size = 64,
        dropout: Share = 0.0,
        frozen: bool = False,
        vectors: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.tag = "enc"
        self.table = nn.Embedding(vocabulary, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.fixed: Tensor | None
        self.is_fixed: Tensor | None
        fixed = torch.zeros(vocabulary, size) if frozen else None
        is_fixed = torch.zeros(vocabulary, 1, dtype=torch.bool) if frozen else None
        self.register_buffer("fixed", fixed)
        self.register_buffer("is_fixed", is_fixed)
        self.pretrained_rows = None if vectors is None else vectors[0]
        """The words that started from a pretrained vector; not known of a run that was loaded."""
        if vectors is not None:
            self._start_from(*vectors)

    @property
    def letters(self) -> Mapping[str, str]:
        """The letter of the one matrix; or those of frozen vectors, the others, and which."""
        if self.fixed is None:
            return {"table.weight": f"E_{self.tag}"}
        letters = {"table.weight": "E′", "fixed": "F", "is_fixed": "φ"}
        return {name: f"{letter}_{self.tag}" for name, letter in letters.items()}

    def equations(self) -> list[str]:
        """The matrix of frozen and learned vectors."""
        if self.fixed is None:
            return []
        tag = self.tag
        mixed = f"E_{tag} = φ_{tag} ⊙ F_{tag} + (1 - φ_{tag}) ⊙ E′_{tag}"
        return [f"{mixed}: φ is 1 for words with a frozen vector, else 0"]

    @torch.no_grad()
    def _start_from(self, rows: Tensor, values: Tensor) -> None:
        count = values.shape[1]
        if count != self.size:
            fault = f"embedding.size is {self.size}, but the word vectors have {count} numbers."
            raise ShapeError(fault)
        if self.fixed is None or self.is_fixed is None:
            self.table.weight[rows] = values
        else:
            self.fixed[rows] = values
            self.is_fixed[rows] = True

    def matrix(self) -> Tensor:
        """All vectors, (V, E), by which a tied output layer multiplies."""
        if self.fixed is None or self.is_fixed is None:
            return self.table.weight
        return torch.where(self.is_fixed, self.fixed, self.table.weight)

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of token ids of any shape: one more dimension, E."""
        vectors: Tensor = self.table(ids)
        if self.fixed is not None and self.is_fixed is not None:
            vectors = torch.where(self.is_fixed[ids], self.fixed[ids], vectors)
        dropped: Tensor = self.dropout(vectors)
        return dropped

    @classmethod
    def section_misfits(cls, section: Mapping[str, Any], where: str, field: Any) -> list[str]:
        """Report `frozen` for a field without pretrained vectors."""
        if not section["frozen"] or field.has_vectors:
            return []
        why = f"keeps pretrained vectors as they are, but data.{field.name}.vectors names none."
        return [f"{where}.frozen: true {why}"]


@final
class StateProjection(nn.Module):
    """The decoder's initial state, s_0 = h_T, or s_0 = tanh(W_0 h_T + b_0), which fits any sizes.

    A decoder that starts from several vectors has all `state_count` of them side by side in d_0.
    """

    letters: ClassVar[Mapping[str, str]] = {"project.weight": "W_0", "project.bias": "b_0"}

    def __init__(
        self,
        summary_size: int,
        state_size: int,
        state_count: int,
        start: Start,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.state_count = state_count
        self.project: Linear | None = None
        if start == "linear":
            size = state_size * state_count
            self.project = Linear(summary_size, size, backend=backend)  # W_0, b_0
        elif summary_size != state_size:
            raise ShapeError(
                "start: copy needs a summary of the decoder's hidden size, but they have "
                f"{summary_size} and {state_size} numbers. Make them equal, or use start: linear."
            )

    def forward(self, summary: Tensor) -> Tensor:
        """The initial states of all layers side by side, (B, K) -> (B, state_count * H)."""
        if self.project is None:
            return summary.repeat(1, self.state_count)
        return torch.tanh(self.project(summary))

    def equations(self, summary: str = "h_T") -> list[str]:
        """The equation, with the letter of the summary."""
        first, copies = "s_0", summary
        if self.state_count > 1:
            first, copies = "d_0", f"[{', '.join([summary] * self.state_count)}]"
        projected = f"tanh(W_0 {summary} + b_0)"
        return [f"{first} = {copies if self.project is None else projected}"]
