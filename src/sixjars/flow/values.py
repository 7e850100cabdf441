"""The values that flow from data to encoder, bridge, decoder and search.

Dims: B batch, S source positions, T target positions, D source features, C context features,
      H state features, A attention features, K summary features, L layers, V vocabulary,
      R rows open in search (B times beam width), F frames, N numbers of a frame or point (of a
      pack, its rows), P segments of a row, U features of a segment.

Every tensor is batch-first, so that picking rows is one call whatever the value holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, final

import torch
from torch import Tensor

from sixjars_runtime.errors import ShapeError


@dataclass(frozen=True)
class Tensors:
    """A value made of tensors, directly or in values inside it."""

    def to(self, device: torch.device | str) -> Self:
        """The same value on another device."""
        is_cuda = torch.device(device).type == "cuda"
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=is_cuda))

    def tensors(self) -> list[Tensor]:
        """All tensors, those of nested values included, always in the same order."""
        tensors: list[Tensor] = []
        self.mapped(lambda tensor: tensors.append(tensor) or tensor)  # type: ignore[func-returns-value]
        return tensors

    def mapped(
        self, change: Callable[[Tensor], Tensor], kind: type["Tensors"] | None = None
    ) -> Self:
        """The same value with every tensor changed, nested ones included; checked as `kind`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {name: _mapped(value, change, kind) for name, value in values.items()}
        return replace(self, **changed)


def _mapped(value: Any, change: Callable[[Tensor], Tensor], kind: type[Tensors] | None) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Tensors):
        if kind is not None and not isinstance(value, kind):
            raise ShapeError(
                "rows of a text in segments cannot be picked: its segments are packed across rows."
            )
        return value.mapped(change, kind)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, change, kind) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(inner, change, kind) for inner in value)
    return value


@dataclass(frozen=True)
class Rows(Tensors):
    """A value whose tensors all have the batch as their first dimension."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._any().shape[0]

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self._any().device

    def _any(self) -> Tensor:
        """One of the tensors: all agree on rows and device."""
        values = (getattr(self, field.name) for field in fields(self))
        first = next(value for value in values if isinstance(value, Tensor | Rows))
        return first if isinstance(first, Tensor) else first._any()

    def pick(self, rows: Tensor) -> Self:
        """The given rows, in order; a row may come several times. ShapeError with segments."""
        return self.mapped(lambda tensor: tensor.index_select(0, rows), Rows)

    def repeat(self, times: int) -> Self:
        """Each row `times` times, side by side: (B, ...) to (B * times, ...); once, itself."""
        if times == 1:
            return self
        return self.mapped(lambda tensor: tensor.repeat_interleave(times, dim=0), Rows)


@final
@dataclass(frozen=True)
class Segments(Tensors):
    """How positions fall into segments: sentences of documents, turns of conversations.

    The segments of all rows of a batch are packed into a few rectangles, segments of like length
    together, so that short and long ones are encoded at once with little padding. There is always
    at least one rectangle.
    """

    packs: tuple[Tensor, ...]
    """Each (N, L): where every position of N segments stands in the flattened batch, row · S +
    position; -1 where a segment is shorter than L."""
    segment_index: Tensor
    """The number, among all packs, of the p-th segment of each row, (B, P); -1 if there is none."""
    position_index: Tensor
    """The place of each position among all packs, flattened on end, (B, S); 0 where padded."""
    segment_of: Tensor
    """The segment of its row that each position belongs to, (B, S); 0 where padded."""


@final
@dataclass(frozen=True)
class Padded(Rows):
    """Sequences of different lengths in one rectangle.

    >>> Padded.of([[5, 6, 7], [8]]).values
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """

    values: Tensor
    """Token ids (B, S), or the numbers of each frame of an image or video (B, F, N)."""
    mask: Tensor
    """True where a position is real, (B, S). Real positions come first."""
    segments: Segments | None = None
    """The segments of texts that have some."""
    copy_ids: Tensor | None = None
    """The output of copying each position, (B, S): a token of the decoder's vocabulary; for a word
    that is not in it, the size of the vocabulary plus the word's first position."""

    @classmethod
    def of(cls, sequences: list[list[int]]) -> "Padded":
        """From plain lists of ids."""
        longest = max((len(sequence) for sequence in sequences), default=0)
        rows = [[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences]
        values = torch.tensor(rows).reshape(len(sequences), longest).long()
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return cls(values, torch.arange(longest) < lengths[:, None])


@final
@dataclass(frozen=True)
class Batch(Rows):
    """The input of a network: a padded value for each input field, and the target."""

    inputs: Mapping[str, Padded]
    """Inputs by the encoder's parameter: `source`, `image`, `video`, `question`, `points`."""
    target: Padded
    """Token ids that end in `<stop>`, (B, T); or labels, (B, 1) or more, masked if unknown."""
    numbers: Tensor
    """The number of each row's example in the dataset, (B,)."""
    alignment: Tensor | None = None
    """True attention where it is known, (B, T, S); rows of zeros where it is not."""


@final
@dataclass(frozen=True)
class Layout:
    """The kind of source positions, which decides how attention is drawn."""

    kind: Literal["words", "segments", "grid", "regions", "frames", "points"] = "words"
    """Tokens, tokens in segments, cells of an image row by row, its regions, frames, or points."""
    shape: tuple[int, ...] = ()
    """The rows and columns of a grid."""


@final
@dataclass(frozen=True)
class SegmentLevel(Rows):
    """The upper level of a hierarchy: a vector for each segment."""

    memory: Tensor
    """One annotation vector for each segment, zero where there is none, (B, P, U)."""
    mask: Tensor
    """True where a segment is real, (B, P)."""
    segment_of: Tensor
    """The segment that each position of the lower level belongs to, (B, S)."""
    weights: Tensor | None = None
    """The attention of an encoder that pools each segment, (B, S): sums to 1 over a segment."""


@final
@dataclass(frozen=True)
class Encoded(Rows):
    """The output of an encoder.

    >>> mask = torch.ones(2, 3, dtype=torch.bool)
    >>> encoded = Encoded(torch.zeros(2, 3, 4), mask, torch.zeros(2, 4))
    >>> encoded.pick(torch.tensor([0])).memory.shape
    torch.Size([1, 3, 4])
    """

    memory: Tensor
    """One annotation vector for each source position, zero where padded, (B, S, D)."""
    mask: Tensor
    """True where a position is real, (B, S)."""
    summary: Tensor
    """One vector for each example, (B, K); K is D for most encoders."""
    layout: Layout = Layout()
    segments: SegmentLevel | None = None
    """The upper level, where the encoder has two."""
    copy_ids: Tensor | None = None
    """The output of copying each position, (B, S); see `Padded`."""

    def __post_init__(self) -> None:
        if self.memory.shape[:2] != self.mask.shape:
            raise ShapeError(
                f"memory {(*self.memory.shape,)} and mask {(*self.mask.shape,)} must agree on (B, "
                "S)."
            )


@final
@dataclass(frozen=True)
class Prepared(Rows):
    """What a bridge prepared once per source: summary (B, K), memory (B, S, D), mask (B, S)."""

    first_state: Tensor
    """The source of the decoder's initial state, (B, H) or (B, L * H * states of the cell)."""
    summary: Tensor
    memory: Tensor
    mask: Tensor
    keys: Tensor | None = None
    """The memory as the score function needs it, (B, S, A); only attention has it."""
    segments: SegmentLevel | None = None
    """The upper level, for bridges that attend to both."""
    segment_keys: Tensor | None = None
    """Its memory as the score function needs it, (B, P, A)."""
    copy_ids: Tensor | None = None
    """The output of copying each position, (B, S); see `Padded`."""
    pointer_keys: Tensor | None = None
    """The memory as a decoder that points at it needs it, (B, S, A)."""
    key_powers: Tensor | None = None
    """e^{2k} of each number k of the keys, (B, S, A), if the additive score is computed so."""


@final
@dataclass(frozen=True)
class Context(Rows):
    """The output of a bridge for one step of the decoder."""

    vector: Tensor
    """The context vector, (B, C); C is 0 where only the initial state is conditioned."""
    weights: Tensor | None = None
    """Attention over the source positions, (B, S); sums to 1 over real ones."""
    attended: Tensor | None = None
    """The record of attention for the next step of the bridge; see `State`."""


@final
@dataclass(frozen=True)
class State(Rows):
    """The state of a recurrent decoder: hidden states, and an LSTM's memory cells; (B, L, H)."""

    hidden: Tensor
    cell: Tensor | None = None
    attended: Tensor | None = None
    """The last attention weights and the sum of all, for bridges that receive them, (B, 2, S)."""


@final
@dataclass(frozen=True)
class LinearLogits(Tensors):
    """Logits V_out s_t + b_out not computed yet, if a loss needs few: (B, T, H), (V, H), (V,)."""

    states: Tensor
    weight: Tensor
    bias: Tensor
    multiply: Callable[[Tensor, Tensor, Tensor], Tensor] = torch.nn.functional.linear
    """The product of the backend."""

    def logits(self) -> Tensor:
        """All logits, (B, T, V)."""
        return self.multiply(self.states, self.weight, self.bias)


@final
@dataclass(frozen=True)
class DecoderOutput(Rows):
    """The output of a decoder for a whole target by teacher forcing; weights are (B, T, S)."""

    scores: Tensor | LinearLogits
    """The logits, or what they are computed from."""
    weights: Tensor | None = None
    multi_label: bool = False
    """Whether any number of labels may be right: σ of each in place of the softmax."""

    @property
    def logits(self) -> Tensor:
        """The logits, (B, T, V)."""
        return self.scores if isinstance(self.scores, Tensor) else self.scores.logits()


@final
@dataclass(frozen=True)
class StepOutput(Rows):
    """The output of one step for search: scores (R, V), and attention (R, S) if there is any."""

    scores: Tensor
    """Log probabilities, or logits."""
    weights: Tensor | None = None
    are_logits: bool = False
    """Whether the scores are logits: to find the best token, none need be normalized."""

    @property
    def log_probabilities(self) -> Tensor:
        """The log probability of every token, in 32 bits at least."""
        dtype = torch.promote_types(self.scores.dtype, torch.float32)
        if self.are_logits:
            return torch.log_softmax(self.scores, dim=-1, dtype=dtype)
        return self.scores.to(dtype)
