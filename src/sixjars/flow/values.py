"""The values that flow from data to encoder, bridge, decoder and search.

Dims: B batch, S source positions, T target positions, D source features, C context features, H state features,
      A attention features, K summary features, L layers, V vocabulary, R rows open in search (B times beam width),
      F frames, N numbers of a frame or point (of a pack, its rows), P segments of a row, U features of a segment.

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
        return self.mapped(
            lambda tensor: tensor.to(device, non_blocking=torch.device(device).type == "cuda")
        )

    def tensors(self) -> list[Tensor]:
        """All of them, those of nested values included, always in the same order."""
        found: list[Tensor] = []
        self.mapped(lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
        return found

    def mapped(
        self, change: Callable[[Tensor], Tensor], kind: type["Tensors"] | None = None
    ) -> Self:
        """The same value with every tensor changed, those of nested values included; these must be of the `kind`."""
        return replace(
            self,
            **{one.name: _mapped(getattr(self, one.name), change, kind) for one in fields(self)},
        )


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
        """How many there are."""
        return self._any().shape[0]

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self._any().device

    def _any(self) -> Tensor:
        """One of the tensors: all agree on rows and device."""
        found = next(
            own for one in fields(self) if isinstance(own := getattr(self, one.name), Tensor | Rows)
        )
        return found if isinstance(found, Tensor) else found._any()

    def pick(self, rows: Tensor) -> Self:
        """The given rows, in the given order; a row may be named several times. Of texts in segments, ShapeError."""
        return self.mapped(lambda tensor: tensor.index_select(0, rows), Rows)

    def repeat(self, times: int) -> Self:
        """Each row `times` times, its copies side by side: (B, ...) -> (B * times, ...); once, this value itself."""
        return (
            self
            if times == 1
            else self.mapped(lambda tensor: tensor.repeat_interleave(times, dim=0), Rows)
        )


@final
@dataclass(frozen=True)
class Segments(Tensors):
    """How the positions of texts fall into segments: the sentences of documents, the turns of conversations.

    The segments of all rows of a batch are packed into a few rectangles, segments of like length together, so that
    short and long ones are encoded at once with little padding. There is always at least one rectangle.
    """

    packs: tuple[Tensor, ...]
    """Each (N, L): where every position of N segments stands in the flattened batch, row · S + position; -1 where a
    segment is shorter than L."""
    segment_index: Tensor
    """Which of the packed segments, counted through all packs, is the p-th of each row, (B, P); -1 where none is."""
    position_index: Tensor
    """Where each position stands among all packs, flattened one after the other, (B, S); 0 where padded."""
    segment_of: Tensor
    """Which segment of its row each position belongs to, (B, S); 0 where padded."""


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
    """What a decoder that copies would output for each position, (B, S): a token of its vocabulary; or, for a word
    that is not in it, the size of the vocabulary plus the first position of that word."""

    @classmethod
    def of(cls, sequences: list[list[int]]) -> "Padded":
        """From plain lists of ids."""
        longest = max((len(sequence) for sequence in sequences), default=0)
        values = torch.tensor(
            [[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences]
        )
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return cls(
            values.reshape(len(sequences), longest).long(), torch.arange(longest) < lengths[:, None]
        )


@final
@dataclass(frozen=True)
class Batch(Rows):
    """What data gives a network: one padded value for each input, and the target."""

    inputs: Mapping[str, Padded]
    """By the name of the encoder's parameter: `source`, `image`, `video`, `question`, `points`."""
    target: Padded
    """Token ids that end in `<stop>`, (B, T); or labels, (B, 1) or more, masked out where they are not in the list."""
    numbers: Tensor
    """Which example of the dataset each row is, (B,)."""
    alignment: Tensor | None = None
    """True attention where it is known, (B, T, S); rows of zeros where it is not."""


@final
@dataclass(frozen=True)
class Layout:
    """What the source positions are, and so how to draw attention over them."""

    kind: Literal["words", "segments", "grid", "regions", "frames", "points"] = "words"
    """Words (or other tokens), words in segments, cells of an image row by row, its regions, frames, or points."""
    shape: tuple[int, ...] = ()
    """Of a grid: its rows and columns."""


@final
@dataclass(frozen=True)
class SegmentLevel(Rows):
    """The upper level of a hierarchy: a vector for each segment."""

    memory: Tensor
    """One annotation vector for each segment, zero where there is none, (B, P, U)."""
    mask: Tensor
    """True where a segment is real, (B, P)."""
    segment_of: Tensor
    """Which segment each position of the lower level belongs to, (B, S)."""
    weights: Tensor | None = None
    """The attention of an encoder that pools the positions of each segment, (B, S): sums to 1 over each segment."""


@final
@dataclass(frozen=True)
class Encoded(Rows):
    """What an encoder gives a bridge, whatever it encoded.

    >>> encoded = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 4))
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
    """What copying each position would output, (B, S); see `Padded`."""

    def __post_init__(self) -> None:
        if self.memory.shape[:2] != self.mask.shape:
            raise ShapeError(
                f"memory {(*self.memory.shape,)} and mask {(*self.mask.shape,)} must agree on (B, S)."
            )


@final
@dataclass(frozen=True)
class Prepared(Rows):
    """What a bridge prepared once for each source; the summary (B, K), memory (B, S, D) and mask (B, S) are given."""

    first_state: Tensor
    """What the decoder's initial state is made of, (B, H) or (B, L * H * states of the cell)."""
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
    """What copying each position would output, (B, S); see `Padded`."""
    pointer_keys: Tensor | None = None
    """The memory as a decoder that points at it needs it, (B, S, A)."""
    key_powers: Tensor | None = None
    """e^{2k} of each number k of the keys, (B, S, A), where the additive score is computed from it."""


@final
@dataclass(frozen=True)
class Context(Rows):
    """What a bridge gives the decoder at one step."""

    vector: Tensor
    """The context vector, (B, C); C is 0 where the decoder is conditioned by its initial state alone."""
    weights: Tensor | None = None
    """Attention over the source positions, (B, S); sums to 1 over real ones."""
    attended: Tensor | None = None
    """What the next step of the bridge receives, where its steps receive where attention was; see `State`."""


@final
@dataclass(frozen=True)
class State(Rows):
    """All that a recurrent decoder remembers between steps: hidden states, and an LSTM's memory cells; (B, L, H)."""

    hidden: Tensor
    cell: Tensor | None = None
    attended: Tensor | None = None
    """Where attention was, for bridges whose steps receive it, (B, 2, S): the last weights and the sum of all."""


@final
@dataclass(frozen=True)
class LinearLogits(Tensors):
    """Logits V_out s_t + b_out not computed yet, for losses that need not have all: (B, T, H), (V, H) and (V,)."""

    states: Tensor
    weight: Tensor
    bias: Tensor

    def logits(self) -> Tensor:
        """All of them, (B, T, V)."""
        return torch.nn.functional.linear(self.states, self.weight, self.bias)


@final
@dataclass(frozen=True)
class DecoderOutput(Rows):
    """What a decoder outputs for a whole target at once, with teacher forcing; attention weights are (B, T, S)."""

    scores: Tensor | LinearLogits
    """The logits, or what they are computed from."""
    weights: Tensor | None = None
    multi_label: bool = False
    """Whether any number of labels may be right, each with a probability of its own: σ in place of the softmax."""

    @property
    def logits(self) -> Tensor:
        """Before the softmax, (B, T, V)."""
        return self.scores if isinstance(self.scores, Tensor) else self.scores.logits()


@final
@dataclass(frozen=True)
class StepOutput(Rows):
    """What one step of search reads: (R, V), and where there is attention (R, S)."""

    scores: Tensor
    """Log probabilities, or logits."""
    weights: Tensor | None = None
    are_logits: bool = False
    """Which of the two the scores are: whoever wants only the best token need not divide all by their sum."""

    @property
    def log_probabilities(self) -> Tensor:
        """Of every token, in 32 bits at least."""
        dtype = torch.promote_types(self.scores.dtype, torch.float32)
        return (
            torch.log_softmax(self.scores, dim=-1, dtype=dtype)
            if self.are_logits
            else self.scores.to(dtype)
        )
