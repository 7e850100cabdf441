"""What a metric reads, how a metric is declared, and what comes out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

Links = frozenset[tuple[int, int]]
Need = Literal["candidates", "familiar", "focus", "given", "likelihood", "links", "rationale"]
Better = Literal["higher", "lower"]


@final
@dataclass(frozen=True)
class RationaleWeight:
    """Attention weight on the rationale of a document: its sentence, its word, the word's neighbours."""

    sentence: float
    """Weight on all words of the sentence, of 1 for the whole document."""
    word: float
    """Of that, the share on the word itself."""
    near: float
    """And the share on it and the words beside it."""


@final
@dataclass(frozen=True)
class Outcome:
    """One example to score: its references and the model's output.

    >>> Outcome(references=("namaste",), candidates=("namaste", "namasté")).candidates[0]
    'namaste'
    """

    references: tuple[str, ...]
    """One or more right answers."""
    candidates: tuple[str, ...] = ()
    """The outputs that search found, best first. An empty text is a candidate too."""
    log_probability: float | None = None
    """Natural log, of the first reference under the model, `<stop>` included."""
    tokens: int = 0
    """How many tokens that covers, `<stop>` included."""
    links: Links | None = None
    """Predicted links: (source word, target word), both counted from 0."""
    explained: Links | None = None
    """Those of posterior attention, where they are others."""
    sure: Links | None = None
    """True links."""
    possible: Links | None = None
    """True or allowed links; the sure ones when not given."""
    familiar: bool | None = None
    """Whether the best candidate is in the training data."""
    focus: float | None = None
    """Attention weight on the words' objects, relative to evenly spread attention; nothing where no
    word has a box."""
    given: str | None = None
    """The model's input: the text of its first field."""
    rationale: RationaleWeight | None = None
    """Attention weight on the rationale; nothing where that is not known."""


Compute = Callable[[Sequence[Outcome]], float]
Rows = Sequence[Sequence[float]]
How = tuple[str, ...] | Callable[[Sequence[Outcome]], str | tuple[str, ...]]


@final
@dataclass(frozen=True)
class Sums:
    """A metric of sums over the examples, as a rate: so it can be computed of any choice of them at once.

    >>> letters = Sums(lambda them: [(len(one.candidates[0]), 1) for one in them], lambda sums: sums[0] / sums[1])
    >>> rows = letters.rows([Outcome(("x",), ("ab",)), Outcome(("x",), ("a",))])
    >>> letters.value([sum(column) for column in zip(*rows)])
    1.5
    """

    rows: Callable[[Sequence[Outcome]], Rows]
    """What each example adds to each sum."""
    value: Callable[[Sequence[float]], float]
    """The value, of the sums."""


@final
@dataclass(frozen=True)
class Metric:
    """One row of the table of metrics, or one of yours.

    >>> from sixjars import score
    >>> loud = Metric("loud", lambda outcomes: sum(one.candidates[0].isupper() for one in outcomes) / len(outcomes))
    >>> score([Outcome(("YES",), ("YES",))], [loud])[0].value
    1.0
    """

    name: str
    """As recipes write it."""
    compute: Compute
    """The value, for one outcome or more that have what the metric needs; `score` checks that
    first."""
    better: Better = "higher"
    """Which way is good."""
    needs: frozenset[Need] = frozenset({"candidates"})
    """What every outcome must have, besides its references; of `focus` and `rationale`, one outcome
    at least."""
    how: How = ()
    """How the value is computed, for its signature: two values compare only when these are
    equal."""
    nbest: int = 1
    """How many candidates it needs."""
    per_example: bool = True
    """Whether one example by itself has a value; not where it is of all together, as BLEU or the
    mean F1 of classes."""
    slow: bool = False
    """Whether it takes so long that it waits for the end of training, unless `learning.metric`
    names it."""
    sums: Sums | None = None
    """The same value from sums, for its interval; a mean of the values of the examples needs
    none."""


@final
@dataclass(frozen=True)
class Score:
    """One number, with its signature: how it was computed."""

    name: str
    value: float
    signature: str
    better: Better
    count: int
    """How many examples were scored."""


@final
@dataclass(frozen=True)
class Interval:
    """The 95 % bootstrap interval of a score: how far it may be off by the choice of the examples."""

    low: float
    high: float


def rounded(value: float, *, like: float | None = None) -> str:
    """A score for a person; with as many digits as another one has.

    >>> rounded(36.273), rounded(0.96849), rounded(9.21, like=36.273)
    ('36.3', '0.968', '9.2')
    """
    return f"{value:.1f}" if abs(value if like is None else like) >= 10 else f"{value:.3f}"
