"""The values that flow from encoder to bridge to decoder to search.

Dims: B batch, S source positions, T target positions, D source features, C context features,
      H decoder features, L layers, V vocabulary, R rows open in search (B times beam width),
      K summary features, P parts of a row, U features of the level above.

Every tensor here is batch-first, so that picking rows is one call whatever the value holds.
"""

from dataclasses import dataclass
from typing import Literal, final

from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.flow.rows import Rows


@final
@dataclass(frozen=True)
class Layout:
    """How to draw the source positions: as words, as the cells of a picture row by row, or as frames of a film."""

    kind: Literal["words", "grid", "frames"] = "words"
    shape: tuple[int, ...] = ()
    """Of a grid: how many cells it is high and wide."""


@final
@dataclass(frozen=True)
class Above(Rows):
    """The upper level of a hierarchy: a vector for each part."""

    memory: Tensor
    """One annotation vector for each part, zero where there is none, (B, P, U)."""
    mask: Tensor
    """True where a part is real, (B, P)."""
    of: Tensor
    """Which part each position below belongs to, (B, S)."""
    within: Tensor | None = None
    """How an encoder that pools by attention weighed each position of a part, (B, S): adds up to 1 over each part."""


@final
@dataclass(frozen=True)
class Encoded(Rows):
    """What an encoder hands to a bridge, whatever it read.

    >>> import torch
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
    above: Above | None = None
    """The level above, where the encoder has two."""
    said: Tensor | None = None
    """What copying each position would write, (B, S); see `Padded`."""

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
    above: Above | None = None
    """The level above, for bridges that look at both."""
    above_keys: Tensor | None = None
    """Its memory as the score function wants it, (B, P, A)."""
    said: Tensor | None = None
    """What copying each position would write, (B, S); see `Padded`."""


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
    several: bool = False
    """Whether any number of labels may be right, each judged by its own: σ in place of the softmax."""


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
    """Without `<go>` and `<stop>`; or the labels chosen, most often one."""
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
