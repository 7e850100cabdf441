"""The values that flow.

Dims: B batch, S source positions, T target positions, D source features, C context features,
      H decoder features, L layers, V vocabulary, R rows open in search (B times beam width),
      K summary features, F frames, N numbers of a frame.

Every tensor here is batch-first, so that picking rows is one call whatever the value holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, final

import torch
from torch import Tensor

from sixjars.errors import ShapeError


@dataclass(frozen=True)
class Rows:
    """A value whose tensors all have the batch as their first dimension."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._some().shape[0]

    @property
    def device(self) -> torch.device:
        """Where they live."""
        return self._some().device

    def _some(self) -> Tensor:
        """Any of the tensors: all agree on rows and device."""
        values = [getattr(self, field.name) for field in fields(self)]
        return next(value if isinstance(value, Tensor) else value._some() for value in values if _holds(value))

    def pick(self, rows: Tensor) -> Self:
        """The given rows, in the given order; a row may be named several times."""
        return self.mapped(lambda tensor: tensor.index_select(0, rows))

    def spread(self, times: int) -> Self:
        """Each row repeated `times` times, the copies side by side: (B, ...) -> (B * times, ...)."""
        return self.mapped(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def to(self, device: torch.device | str) -> Self:
        """The same value on another device."""
        eager = torch.device(device).type == "cuda"
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=eager))

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same value with every tensor changed, those of nested values included."""
        return replace(self, **{field.name: _mapped(getattr(self, field.name), change) for field in fields(self)})


def _holds(value: object) -> bool:
    return isinstance(value, Tensor | Rows)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Rows):
        return value.mapped(change)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(inner, change) for inner in value)
    return value


@final
@dataclass(frozen=True)
class Padded(Rows):
    """Sequences of different lengths in one rectangle.

    >>> Padded.of([[5, 6, 7], [8]]).values
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """

    values: Tensor
    """Token ids (B, S), or the numbers of each frame of a picture or film (B, F, N)."""
    mask: Tensor
    """True where a position is real, (B, S). Real positions come first."""

    @classmethod
    def of(cls, sequences: list[list[int]]) -> "Padded":
        """From plain lists of ids."""
        longest = max((len(sequence) for sequence in sequences), default=0)
        values = torch.tensor([[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences])
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return cls(values.reshape(len(sequences), longest).long(), torch.arange(longest) < lengths[:, None])


_PADDED = ("values", "mask")


@final
@dataclass(frozen=True)
class Batch(Rows):
    """What data hands to a network: one padded value for each input, and the target."""

    inputs: Mapping[str, Padded]
    """By the name of the encoder's parameter: `source`, `image`, `video`, `question`."""
    target: Padded
    """Token ids that end in `<stop>`, (B, T); or one label each, (B, 1), masked out where it is not in the list."""
    numbers: Tensor
    """Which example of the table each row is, (B,)."""
    alignment: Tensor | None = None
    """True attention where it is known, (B, T, S); rows of zeros where it is not."""

    def tensors(self) -> dict[str, Tensor]:
        """The same in one flat dictionary, for libraries that map over plain containers only."""
        flat = {
            f"inputs.{name}.{part}": getattr(value, part) for name, value in self.inputs.items() for part in _PADDED
        }
        flat |= {f"target.{part}": getattr(self.target, part) for part in _PADDED}
        return flat | {"numbers": self.numbers} | ({} if self.alignment is None else {"alignment": self.alignment})

    @classmethod
    def from_tensors(cls, flat: Mapping[str, Tensor]) -> "Batch":
        """Back from `tensors`."""
        names = [key.split(".")[1] for key in flat if key.startswith("inputs.") and key.endswith(".values")]
        inputs = {name: Padded(*(flat[f"inputs.{name}.{part}"] for part in _PADDED)) for name in names}
        target = Padded(*(flat[f"target.{part}"] for part in _PADDED))
        return cls(inputs, target, flat["numbers"], flat.get("alignment"))


@final
@dataclass(frozen=True)
class Layout:
    """How to draw the source positions: as words, as the cells of a picture row by row, or as frames of a film."""

    kind: Literal["words", "grid", "frames"] = "words"
    shape: tuple[int, ...] = ()
    """Of a grid: how many cells it is high and wide."""


@final
@dataclass(frozen=True)
class Encoded(Rows):
    """What an encoder hands to a bridge, whatever it read.

    >>> read = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 4))
    >>> read.pick(torch.tensor([0])).memory.shape
    torch.Size([1, 3, 4])
    """

    memory: Tensor
    """One annotation vector for each source position, zero where padded, (B, S, D)."""
    mask: Tensor
    """True where a position is real, (B, S)."""
    summary: Tensor
    """One vector for each example, (B, K); K is D for most encoders."""
    layout: Layout = Layout()

    def __post_init__(self) -> None:
        if self.memory.shape[:2] != self.mask.shape:
            raise ShapeError(
                f"memory {tuple(self.memory.shape)} and mask {tuple(self.mask.shape)} must agree on (B, S)."
            )


@final
@dataclass(frozen=True)
class Carried(Rows):
    """What a bridge prepared once for each source."""

    first: Tensor
    """What the decoder's first state is made of, (B, H) or (B, L * H * memories of the cell)."""
    summary: Tensor
    """(B, K)."""
    memory: Tensor
    """(B, S, D)."""
    mask: Tensor
    """(B, S)."""
    keys: Tensor | None = None
    """The memory as the score function wants it, (B, S, A); only attention has it."""


@final
@dataclass(frozen=True)
class Context(Rows):
    """What a bridge tells the decoder at one step."""

    vector: Tensor
    """(B, C); C is 0 where the bridge is silent after the first state."""
    weights: Tensor | None = None
    """Attention over the source positions, (B, S); adds up to 1 over real ones."""


@final
@dataclass(frozen=True)
class State(Rows):
    """All that a recurrent decoder remembers between steps."""

    hidden: Tensor
    """What the cell shows, (B, L, H)."""
    cell: Tensor | None = None
    """What an LSTM keeps to itself, (B, L, H)."""


@final
@dataclass(frozen=True)
class Taught(Rows):
    """What a decoder says of a whole target at once."""

    scores: Tensor
    """Before the softmax, (B, T, V)."""
    weights: Tensor | None = None
    """(B, T, S)."""


@final
@dataclass(frozen=True)
class Scored(Rows):
    """What one step of search sees."""

    log_probabilities: Tensor
    """(R, V)."""
    weights: Tensor | None = None
    """(R, S)."""


@final
@dataclass(frozen=True)
class Marks:
    """The tokens that mean something to search."""

    go: int
    """What the first step is told; never written (unless `<stop>` is the same token)."""
    stop: int
    """What ends a hypothesis."""
    banned: tuple[int, ...] = ()
    """What else is never written: `<pad>`, and `<unk>` if it should not appear."""


@final
@dataclass(frozen=True)
class Hypothesis:
    """One thing that search found, or one label that was chosen.

    >>> found = Hypothesis(tokens=(7, 9), score=-0.5, log_probability=-1.5)
    >>> found.tokens, found.finished
    ((7, 9), True)
    """

    tokens: tuple[int, ...]
    """Without `<go>` and `<stop>`; one label."""
    score: float
    """What search ranked it by: higher is better."""
    log_probability: float
    """Of these tokens and, if finished, of `<stop>`."""
    weights: tuple[tuple[float, ...], ...] = ()
    """One row for each token (and one for `<stop>` if finished), over the source positions."""
    finished: bool = True
    """Whether `<stop>` was reached before the limit."""


@final
@dataclass(frozen=True)
class FirstShape:
    """What a decoder's first state is made of."""

    state_size: int
    """H, the size of one vector; also of the query that a bridge hears."""
    copies: int
    """How many such vectors: layers times memories of the cell."""
