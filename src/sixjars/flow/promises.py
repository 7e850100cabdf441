"""What each room promises: encoders, bridges, decoders, and the step that search takes.

Dims: B batch, H decoder features, R rows open in search (B times beam width).

Nothing that changes between steps lives on a module: it is one of the values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from sixjars.flow.inputs import Padded
from sixjars.flow.values import Carried, Context, Encoded, FirstShape, Marks, Scored, Taught


class Step(Protocol):
    """All that search knows of a model: one token each in, scores and a new state out."""

    def __call__(self, token: Tensor, state: Any, /) -> tuple[Scored, Any]:
        """`token` is (R,); a state is whatever `Rows` the model remembers by."""
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
    """D, the size of each annotation vector."""
    summary_size: int
    """K, the size of the summary."""
    above_size: int = 0
    """U, the size of each vector of the level above; 0 where there is one level."""
    attendable: bool = True
    """Whether there are positions to look at."""

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Encoded:
        """Takes a `Padded` for each input, by name. Padding must not influence anything that is returned."""


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
    """Says the output: a writer writes it, a chooser chooses it."""

    bridge: Bridge
    """How it hears its encoder."""

    @staticmethod
    @abstractmethod
    def first_shape(settings: Mapping[str, Any]) -> FirstShape:
        """What a bridge must supply to start a decoder with these settings."""

    @abstractmethod
    def teach(self, encoded: Encoded, target: Padded) -> Taught:
        """Scores for a whole target at once, each step told the true previous token."""


class Writer(Decoder):
    """Writes one token after the other (or points). Its two doors, `teach` and `start` + `step`, agree to rounding."""

    marks: Marks
    """The tokens that begin and end what it writes."""

    def longest(self, encoded: Encoded, asked: int) -> int:
        """The most tokens of an output, `<stop>` included, where a search asks for at most `asked`."""
        return asked

    @abstractmethod
    def start(self, encoded: Encoded) -> tuple[Any, Carried]:
        """The state before the first token (some `Rows`), and what stays the same for each source."""

    @abstractmethod
    def step(self, token: Tensor, state: Any, carried: Carried) -> tuple[Scored, Any]:
        """One token each in, `(R,)`; scores and the next state out."""


class Chooser(Decoder):
    """Chooses one of a closed list, or several. Its two doors, `teach` and `choose`, agree to rounding."""

    several: bool
    """Whether any number may be chosen, each judged by its own."""

    @abstractmethod
    def choose(self, encoded: Encoded) -> Scored:
        """The log probability of every choice, (B, V), and where it looked."""
