"""Small layers that several components share.

Dims: B batch, S source positions, T target positions, E embedding features, K summary features, H state features,
      V vocabulary, F any features, G gate features, N rows of any kind, I input features, O output features.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast, final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.limits import Share, Size
from sixjars.model.processor import FEWEST_ONCE, HAS_ONEDNN
from sixjars_runtime.errors import ShapeError

Start = Literal["linear", "copy"]
LARGEST = 42.0
"""Of what is raised to a power: e^84 is still a float. Where no key is beyond half of it, a sum with a query that is
beyond it has a tanh of 1 to the last bit, whatever the query is."""


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


def by_onednn(weight: Tensor, fewest: int) -> bool:
    """Whether oneDNN multiplies by this matrix, which has so many numbers or more."""
    fits = (
        isinstance(weight, Tensor) and weight.dtype == torch.float32 and weight.device.type == "cpu"
    )
    return HAS_ONEDNN and fits and weight.numel() >= fewest


def product(
    rows: Tensor, weight: Tensor, bias: Tensor | None = None, *, total: Tensor | None = None
) -> Tensor:
    """Rows (N, I) times Wᵀ, (O, I), plus b, (O,), plus `total`, (N, O). It has no backward pass."""
    if not rows.numel():  # oneDNN refuses them
        return sum(
            (one for one in (bias, total) if one is not None),
            rows.new_zeros(*rows.shape[:-1], weight.shape[0]),
        )
    if not (weight.is_mkldnn or by_onednn(weight, FEWEST_ONCE)):
        found = F.linear(rows, weight, bias)
        return found if total is None else found.add_(total)
    if not (weight.is_mkldnn or weight.is_contiguous() or weight.t().is_contiguous()):
        weight = (
            weight.contiguous()
        )  # a matrix with gaps between its rows would be multiplied a thousand times as slowly
    multiply = torch.ops.mkldnn._linear_pointwise
    if total is not None:
        return cast("Tensor", multiply.binary(rows, total, weight, bias, "add"))
    return cast("Tensor", multiply.default(rows, weight, bias, "none", [], ""))


def outer_products(left: Tensor, right: Tensor) -> Tensor:
    """Σ_n left_n right_nᵀ of rows (N, O) and (N, I), (O, I): the gradient of a matrix. oneDNN turns the smaller one."""
    if left.shape[1] < right.shape[1] or (
        left.device.type == "cpu" and not by_onednn(left, FEWEST_ONCE)
    ):
        return product(left.t(), right.t())
    return product(right.t(), left.t()).t()


def summed_rows(values: Tensor) -> Tensor:
    """The sum over all rows: (N, F) -> (F,), or (K, N, F) -> (K, F). As a product it is one pass, on any device."""
    ones = values.new_ones(*values.shape[:-2], 1, values.shape[-2])
    return (ones @ values).squeeze(-2)


@final
class Linear(torch.autograd.Function):
    """x Wᵀ + b, forwards and back by `product`; use `linear`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(N, I) -> (N, O)."""
        ctx.save_for_backward(rows, weight)
        return product(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_made: Tensor) -> Any:
        """Of each what is needed."""
        (rows, weight), (to_rows, to_weight, to_bias) = ctx.saved_tensors, ctx.needs_input_grad
        d_rows = product(d_made, weight.t()) if to_rows else None
        return (
            d_rows,
            outer_products(d_made, rows) if to_weight else None,
            summed_rows(d_made) if to_bias else None,
        )


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Inputs (…, I) times Wᵀ, plus b, (…, O), with one backward pass; by oneDNN where that is faster."""
    learns = (
        torch.is_grad_enabled()
        and by_onednn(weight, FEWEST_ONCE)
        and computed_in(inputs) == torch.float32
    )
    if not learns or torch.compiler.is_compiling():
        return F.linear(inputs, weight, bias)
    made: Tensor = Linear.apply(inputs.reshape(-1, weight.shape[1]), weight, bias)  # type: ignore[no-untyped-call]
    return made.view(*inputs.shape[:-1], len(weight))


def beside(tensors: Sequence[Tensor]) -> Tensor:
    """As `torch.stack`; one tensor alone is not copied."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension among the places where `mask` holds; all zeros where it holds nowhere.

    >>> masked_softmax(torch.tensor([[1.0, 1.0, 5.0]]), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(
        scores.dtype
    ).min  # not -inf: where no place holds, it would be NaN, and its gradient too
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1) * mask.any(-1, keepdim=True)


def powers(values: Tensor) -> Tensor:
    """e^{2x} of each number x."""
    return values.clamp(-LARGEST, LARGEST).mul_(2).exp_()


def key_powers(keys: Tensor) -> Tensor | None:
    """The powers of keys k, from which tanh(q + k) = 1 - 2 / (1 + e^2q e^2k) of many queries q is fast on a CPU.

    Nothing where that would not be exact.

    >>> keys, query = torch.tensor([0.5, -20.0]), torch.tensor([1.0])
    >>> torch.allclose(1 - 2 / (1 + powers(query) * key_powers(keys)), torch.tanh(query + keys))
    True
    """
    fits = keys.device.type == "cpu" and keys.dtype.itemsize >= 4 and keys.numel() > 0
    return powers(keys) if fits and bool(keys.abs().amax() <= LARGEST / 2) else None


def by_source(values: Tensor, sources: int) -> Tensor:
    """Rows (R, …) as (B, N, …): those of one source lie side by side, N of each of the B sources.

    >>> by_source(torch.zeros(6, 5), 2).shape
    torch.Size([2, 3, 5])
    """
    rows, *rest = values.shape
    return (
        values.unsqueeze(1) if rows == sources else values.reshape(sources, rows // sources, *rest)
    )


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
        self.register_buffer(
            "is_fixed", torch.zeros(vocabulary, 1, dtype=torch.bool) if frozen else None
        )
        if vectors is not None:
            self._start_from(*vectors)

    @property
    def letters(self) -> Mapping[str, str]:
        """Of the one matrix; or of the frozen vectors, the others, and which are which."""
        if self.fixed is None:
            return {"table.weight": f"E_{self.tag}"}
        return {
            "table.weight": f"E′_{self.tag}",
            "fixed": f"F_{self.tag}",
            "is_fixed": f"φ_{self.tag}",
        }

    def equations(self) -> list[str]:
        """How frozen and learned vectors make one matrix."""
        mixed = "E_{0} = φ_{0} ⊙ F_{0} + (1 - φ_{0}) ⊙ E′_{0}: φ is 1 for words with a frozen vector, else 0"
        return [] if self.fixed is None else [mixed.format(self.tag)]

    @torch.no_grad()
    def _start_from(self, rows: Tensor, values: Tensor) -> None:
        if values.shape[1] != self.size:
            raise ShapeError(
                f"embedding.size is {self.size}, but the word vectors have {values.shape[1]} numbers."
            )
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
        return [
            f"{where}.frozen: true keeps pretrained vectors as they are, but data.{field.name}.vectors names none."
        ]


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
            ("s_0", summary)
            if self.state_count == 1
            else ("d_0", f"[{', '.join([summary] * self.state_count)}]")
        )
        return [
            f"{first} = {copies}"
            if self.project is None
            else f"{first} = tanh(W_0 {summary} + b_0)"
        ]
