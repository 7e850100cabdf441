"""What each room promises: encoders, bridges, decoders, and the step that search takes.

Dims: B batch, H decoder features, R rows open in search (B times beam width).

Nothing that changes between steps lives on a module: it is one of the values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

from torch import Tensor, nn

from sixjars.flow.values import Carried, Context, Encoded, Padded, Scored, State, Taught


class Step(Protocol):
    """All that search knows of a model: one token each in, scores and a new state out."""

    def __call__(self, token: Tensor, state: State, /) -> tuple[Scored, State]:
        """`token` is (R,)."""
        ...


class Part(nn.Module, ABC):
    """A piece of a model that can tell its equations and the letters of its weights."""

    letters: ClassVar[Mapping[str, str]] = {}
    """The lecture's letter for each parameter, by a part of its name."""

    @abstractmethod
    def equations(self) -> list[str]:
        """The lines of the lecture that this part computes."""


class Encoder(Part):
    """Reads a source of any kind into annotation vectors and a summary."""

    output_size: int
    """D, the size of each annotation vector and of the summary."""
    attendable: bool = True
    """Whether there are positions to look at."""

    @abstractmethod
    def forward(self, source: Padded) -> Encoded:
        """Padded positions must not influence anything that is returned."""


class Bridge(Part):
    """Decides how a decoder hears its encoder: once, at every step, or by attention."""

    context_size: int
    """C, the size of the vector given at every step."""
    follows: bool
    """Whether the context depends on the decoder's state (then a target cannot be taught all at once)."""

    @abstractmethod
    def start(self, encoded: Encoded) -> Carried:
        """All that can be computed once for each source."""

    @abstractmethod
    def step(self, query: Tensor, carried: Carried) -> Context:
        """The context for one step, asked for with the decoder's previous state (B, H)."""


class Decoder(Part):
    """Writes, chooses or points. Its two doors must agree to rounding."""

    @abstractmethod
    def teach(self, encoded: Encoded, target: Padded) -> Taught:
        """Scores for a whole target at once, each step told the true previous token."""

    @abstractmethod
    def start(self, encoded: Encoded) -> tuple[State, Carried]:
        """The state before the first token, and what stays the same for each source."""

    @abstractmethod
    def step(self, token: Tensor, state: State, carried: Carried) -> tuple[Scored, State]:
        """One token each in, `(R,)`; scores and the next state out."""
