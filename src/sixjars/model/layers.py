"""Small layers that several components share.

Dims: B batch, S source positions, T target positions, E embedding features, K summary features, H state features,
      P segments of a row, V vocabulary, F any features, G gate features.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError
from sixjars.flow.limits import Share, Size
from sixjars.flow.values import SegmentLevel

Start = Literal["linear", "copy"]


def wide(values: Tensor) -> Tensor:
    """The same in at least 32 bits: a softmax or logarithm of 16-bit numbers loses too much.

    >>> wide(torch.ones(1, dtype=torch.bfloat16)).dtype, wide(torch.ones(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def computed_in(values: Tensor) -> torch.dtype:
    """The type that products of these values are computed in: autocast may have another than theirs."""
    kind = values.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else values.dtype


def beside(tensors: Sequence[Tensor]) -> Tensor:
    """As `torch.stack`; one tensor alone is not copied."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension among the places where `mask` holds; all zeros where it holds nowhere.

    >>> masked_softmax(torch.tensor([[1.0, 1.0, 5.0]]), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min  # not -inf: where no place holds, it would be NaN, and its gradient too
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1) * mask.any(-1, keepdim=True)


@final
class TanhOfSums:
    """tanh(q + k) of keys (B, S, F) and one query (B, F) after another, each in the place of the one before.

    A CPU takes long for a tanh, but tanh(q + k) = 1 - 2 / (1 + exp(2q) exp(2k)), and exp(2k) is computed once.

    >>> tanh = TanhOfSums(torch.tensor([[[0.5], [50.0]]]))
    >>> torch.equal(tanh(torch.tensor([[0.5]])), torch.tensor([[[1.0], [50.5]]]).tanh())
    True
    """

    def __init__(self, keys: Tensor) -> None:
        self.keys, self.found_BSF, self.one = keys, torch.empty_like(keys), keys.new_ones(())
        self.largest = math.log(torch.finfo(keys.dtype).max) / 4 - 1  # so that the product stays in range
        precise = keys.device.type == "cpu" and keys.dtype.itemsize >= 4
        self.raised = torch.exp(2 * keys) if precise and self._in_range(keys) else None

    def _in_range(self, values: Tensor) -> bool:
        return not values.numel() or bool(values.abs().amax() < self.largest)

    def __call__(self, query: Tensor) -> Tensor:
        """(B, S, F)."""
        if self.raised is None or not self._in_range(query):
            return torch.add(self.keys, query.unsqueeze(1), out=self.found_BSF).tanh_()
        torch.mul(self.raised, torch.exp(2 * query).unsqueeze(1), out=self.found_BSF).add_(1.0).reciprocal_()
        return torch.sub(self.one, self.found_BSF, alpha=2.0, out=self.found_BSF)


def by_source(values: Tensor, sources: int) -> Tensor:
    """Rows (R, …) as (B, N, …): those of one source lie side by side, N of each of the B sources.

    >>> by_source(torch.zeros(6, 5), 2).shape
    torch.Size([2, 3, 5])
    """
    rows, *rest = values.shape
    return values.unsqueeze(1) if rows == sources else values.reshape(sources, rows // sources, *rest)


def for_queries(values: Tensor, query: Tensor) -> Tensor:
    """What there is once for each source (B, …), once for each query (R, …)."""
    sources, queries = values.shape[0], query.shape[0]
    return values if sources == queries else values.repeat_interleave(queries // sources, dim=0)


def reversal(mask: Tensor) -> Tensor:
    """For each row the order that reads its real positions backwards and leaves the padding where it is, (B, S).

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
    found_BF = values.gather(1, last_B11.expand(-1, 1, values.shape[-1])).squeeze(1)
    return found_BF * mask.any(1, keepdim=True)


def shift_right(target: Tensor, first: int) -> Tensor:
    """The input of each step of a target (B, T): the token before it, `first` at the first step.

    >>> shift_right(torch.tensor([[7, 8, 2]]), 1)
    tensor([[1, 7, 8]])
    """
    return torch.cat([target.new_full((target.shape[0], 1), first), target[:, :-1]], dim=1)


LayerState = tuple[Tensor, Tensor | None]
"""What one layer remembers: (hidden (B, H), memory cell (B, H) or nothing)."""


def _rnn(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    return torch.tanh(given_BG + recurrent_BG), None


def _gru(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    both = 2 * before[0].shape[-1]
    reset_BH, update_BH = torch.sigmoid(given_BG[..., :both] + recurrent_BG[..., :both]).chunk(2, dim=-1)
    new_BH = torch.tanh(given_BG[..., both:] + reset_BH * recurrent_BG[..., both:])
    kept_BH = before[0].to(new_BH.dtype)  # an initial state may be 32-bit where the rest is not
    return torch.lerp(new_BH, kept_BH, update_BH), None


def _lstm(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    enter, forget, new, output = (given_BG + recurrent_BG).chunk(4, dim=-1)
    assert before[1] is not None
    cell_BH = torch.sigmoid(forget) * before[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(output) * torch.tanh(cell_BH), cell_BH


STEPS: dict[str, Callable[[Tensor, Tensor, LayerState], LayerState]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


@final
class WordEmbedding(nn.Module):
    """A vector for each token, E[y]: learned, or started from pretrained ones.

    With `frozen` the words that have a pretrained vector keep it; the others (special tokens among them) learn.

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
        self.register_buffer("fixed", torch.zeros(vocabulary, size) if frozen else None)
        self.register_buffer("is_fixed", torch.zeros(vocabulary, 1, dtype=torch.bool) if frozen else None)
        if vectors is not None:
            self._start_from(*vectors)

    @property
    def letters(self) -> Mapping[str, str]:
        """Of the one matrix; or of the frozen vectors, the others, and which are which."""
        if self.fixed is None:
            return {"table.weight": f"E_{self.tag}"}
        return {"table.weight": f"E′_{self.tag}", "fixed": f"F_{self.tag}", "is_fixed": f"φ_{self.tag}"}

    def equations(self) -> list[str]:
        """How frozen and learned vectors make one matrix."""
        mixed = "E_{0} = φ_{0} ⊙ F_{0} + (1 - φ_{0}) ⊙ E′_{0}: φ is 1 for words with a frozen vector, else 0"
        return [] if self.fixed is None else [mixed.format(self.tag)]

    @torch.no_grad()
    def _start_from(self, rows: Tensor, values: Tensor) -> None:
        if values.shape[1] != self.size:
            raise ShapeError(f"embedding.size is {self.size}, but the word vectors have {values.shape[1]} numbers.")
        if self.fixed is None or self.is_fixed is None:
            self.table.weight[rows] = values
        else:
            self.fixed[rows] = values
            self.is_fixed[rows] = True

    def matrix(self) -> Tensor:
        """All vectors, (V, E): what a tied output layer multiplies by."""
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
        """Frozen vectors must come from somewhere."""
        if not section["frozen"] or getattr(field.settings, "vectors", None) is not None:
            return []
        return [f"{where}.frozen: true keeps pretrained vectors as they are, but data.{field.name}.vectors names none."]


@final
class StateProjection(nn.Module):
    """The decoder's initial state from the summary: s_0 = h_T, or s_0 = tanh(W_0 h_T + b_0), which fits any sizes.

    A decoder that starts from several vectors, `state_count` of them, has all of them in d_0, side by side.
    """

    letters: ClassVar[Mapping[str, str]] = {"project.weight": "W_0", "project.bias": "b_0"}

    def __init__(self, summary_size: int, state_size: int, state_count: int, start: Start) -> None:
        super().__init__()
        self.state_count = state_count
        self.project: nn.Linear | None = None
        if start == "linear":
            self.project = nn.Linear(summary_size, state_size * state_count)  # W_0, b_0
        elif summary_size != state_size:
            raise ShapeError(
                f"start: copy needs a summary of the decoder's hidden size, but they have {summary_size} and "
                f"{state_size} numbers. Make them equal, or use start: linear."
            )

    def forward(self, summary: Tensor) -> Tensor:
        """(B, K) -> (B, state_count * H): one vector for each layer and state of the decoder's cell."""
        if self.project is None:
            return summary.repeat(1, self.state_count)
        return torch.tanh(self.project(summary))

    def equations(self, summary: str = "h_T") -> list[str]:
        """The one line, made from the given summary."""
        first, copies = (
            ("s_0", summary) if self.state_count == 1 else ("d_0", f"[{', '.join([summary] * self.state_count)}]")
        )
        return [f"{first} = {copies}" if self.project is None else f"{first} = tanh(W_0 {summary} + b_0)"]


def softmax_in_segments(scores: Tensor, mask: Tensor, level: SegmentLevel) -> Tensor:
    """Softmax of scores (B, S) among the real positions of each segment: sums to 1 over every segment that has some.

    Of several queries for each source it takes (B, N, S).

    >>> level = SegmentLevel(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[0, 0, 1, 0]]))
    >>> softmax_in_segments(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]), level)
    tensor([[0.5000, 0.5000, 1.0000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min
    segment_of, shape = level.segment_of, (*scores.shape[:-1], level.mask.shape[1])
    if scores.dim() == 3:
        mask, segment_of = mask.unsqueeze(1), segment_of.unsqueeze(1).expand_as(scores)
    shown_BS = scores.detach().masked_fill(~mask, lowest)
    highest_BP = shown_BS.new_full(shape, lowest).scatter_reduce(-1, segment_of, shown_BS, "amax")
    # What stands in the padding may be higher than all that is real, and must not overflow.
    below_BS = (scores - highest_BP.gather(-1, segment_of)).masked_fill(~mask, 0)
    raised_BS = torch.exp(below_BS) * mask
    total_BP = raised_BS.new_zeros(shape).scatter_add(-1, segment_of, raised_BS)
    # No clamp: a word alone in its segment stands exactly at the bound, where versions of torch differ in the gradient.
    return raised_BS / (total_BP + (total_BP == 0)).gather(-1, segment_of)


def non_empty(level: SegmentLevel, mask: Tensor) -> SegmentLevel:
    """The upper level without the segments that have no real position: attention on them would be lost."""
    positions_BP = torch.zeros_like(level.mask, dtype=torch.long).scatter_add(1, level.segment_of, mask.long())
    return replace(level, mask=level.mask & (positions_BP > 0))
