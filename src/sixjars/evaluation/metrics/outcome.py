"""What a metric reads, how a metric is declared, and what comes out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

from sixjars.errors import DataError

Links = frozenset[tuple[int, int]]
Need = Literal["candidates", "familiar", "focus", "given", "key", "likelihood", "links"]
Better = Literal["higher", "lower"]


@final
@dataclass(frozen=True)
class KeyWeight:
    """Attention on the place that decides a document: its sentence, its word, the word's neighbours."""

    sentence: float
    """Weight on all words of the key sentence, of 1 for the whole document."""
    word: float
    """Of that, the share on the key word itself."""
    near: float
    """And the share on it and the words beside it."""


@final
@dataclass(frozen=True)
class Outcome:
    """One example that was scored: what was right, what the model said.

    >>> Outcome(references=("namaste",), candidates=("namaste", "namasté")).best
    'namaste'
    """

    references: tuple[str, ...]
    """One or more right answers."""
    candidates: tuple[str, ...] = ()
    """What search found, best first. An empty text is a candidate too."""
    log_probability: float | None = None
    """Natural log, of the first reference under the model, `<stop>` included."""
    tokens: int = 0
    """How many tokens that covers, `<stop>` included."""
    links: Links | None = None
    """Predicted links: (source word, target word), both counted from 0."""
    sure: Links | None = None
    """True links."""
    possible: Links | None = None
    """True or allowed links; the sure ones when not given."""
    familiar: bool | None = None
    """Whether the best candidate stands in the training data."""
    focus: float | None = None
    """How many times more attention than chance lies on the words' objects; nothing where no word has a box."""
    given: str | None = None
    """What the model read: the text of its first input."""
    key: KeyWeight | None = None
    """How much attention lies where it should; nothing where that is not known."""

    def __post_init__(self) -> None:
        if not self.references:
            raise DataError("references is empty, but an outcome needs one right answer or more. Give at least one.")

    @property
    def best(self) -> str:
        """The first candidate."""
        return self.candidates[0]


Compute = Callable[[Sequence[Outcome]], float]
Sign = Callable[[Sequence[Outcome]], str]


@final
@dataclass(frozen=True)
class Metric:
    """One row of the table of metrics."""

    name: str
    """As recipes write it."""
    compute: Compute
    """The value, for one outcome or more that have what the metric needs; `score` checks that first."""
    better: Better
    """Which way is good."""
    needs: frozenset[Need]
    """What every outcome must have, besides its references; of `focus` and `key`, one outcome at least."""
    signature: Sign
    """How the value came about, in one line; two values compare only when these are equal."""
    nbest: int = 1
    """How many candidates it wants."""


@final
@dataclass(frozen=True)
class Score:
    """One number, and what is needed to trust it."""

    name: str
    value: float
    signature: str
    better: Better
    count: int
    """How many examples were scored."""


def signed(*parts: str) -> Sign:
    """A signature that is the same for all outcomes: the parts, then our version.

    >>> signed("exact_match", "any reference")([]).rsplit(":", 1)[0]
    'exact_match|any reference|sixjars'
    """
    return lambda _: signature_of(*parts)


def signature_of(*parts: str) -> str:
    """The parts and our version in one line."""
    from importlib.metadata import version

    return "|".join([*parts, f"sixjars:{version('sixjars')}"])
