"""The values around metrics: `Outcome` in, `Metric`, `Score` out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

Links = frozenset[tuple[int, int]]
Need = Literal["candidates", "familiar", "focus", "given", "likelihood", "links", "rationale"]
Better = Literal["higher", "lower"]


@final
@dataclass(frozen=True)
class RationaleWeight:
    """Attention weight on the rationale of a document: its sentence, its word, and neighbours."""

    sentence: float
    """Weight on all words of the sentence, of 1 for the whole document."""
    word: float
    """The share of that on the word itself."""
    near: float
    """The share on the word and those beside it."""


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
    """Links of posterior attention, where they differ."""
    sure: Links | None = None
    """True links."""
    possible: Links | None = None
    """True or allowed links; the sure ones when not given."""
    familiar: bool | None = None
    """Whether the best candidate is in the training data."""
    focus: float | None = None
    """Attention weight on the words' objects, relative to even attention; nothing without boxes."""
    given: str | None = None
    """The model's input: the text of its first field."""
    rationale: RationaleWeight | None = None
    """Attention weight on the rationale; nothing where that is not known."""


Compute = Callable[[Sequence[Outcome]], float]
Rows = Sequence[Sequence[float]]
SignatureParts = tuple[str, ...] | Callable[[Sequence[Outcome]], str | tuple[str, ...]]


@final
@dataclass(frozen=True)
class Sums:
    """A metric computed from sums over the examples, so that resamples of them are cheap.

    >>> def lengths(outcomes):
    ...     return [(len(outcome.candidates[0]), 1) for outcome in outcomes]
    >>> letters = Sums(lengths, lambda sums: sums[0] / sums[1])
    >>> letters.over([Outcome(("x",), ("ab",)), Outcome(("x",), ("a",))])
    1.5
    """

    rows: Callable[[Sequence[Outcome]], Rows]
    """The summands of each example."""
    value: Callable[[Sequence[float]], float]
    """The value, of the sums."""

    def over(self, outcomes: Sequence[Outcome]) -> float:
        """The value for all these outcomes together."""
        return self.value([*map(math.fsum, zip(*self.rows(outcomes), strict=True))])


@final
@dataclass(frozen=True)
class Metric:
    """One row of the table of metrics, or one of yours.

    >>> from sixjars import score
    >>> def loud(outcomes):
    ...     return sum(outcome.candidates[0].isupper() for outcome in outcomes) / len(outcomes)
    >>> score([Outcome(("YES",), ("YES",))], [Metric("loud", loud)])[0].value
    1.0
    """

    name: str
    """The name in recipes."""
    compute: Compute
    """The value, for at least one outcome; `score` checks first that all have what it needs."""
    better: Better = "higher"
    """Which way is good."""
    needs: frozenset[Need] = frozenset({"candidates"})
    """What every outcome (of `focus` and `rationale`: one of them) has besides its references."""
    how: SignatureParts = ()
    """How the value is computed, for its signature: values compare only when these are equal."""
    nbest: int = 1
    """How many candidates it needs."""
    per_example: bool = True
    """Whether one example by itself has a value; not for BLEU, or the mean F1 of classes."""
    slow: bool = False
    """Whether it waits for the end of training, unless `learning.metric` names it."""
    sums: Sums | None = None
    """The same value from sums, for its interval; a mean over the examples needs none."""


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
    """The 95 % bootstrap interval of a score, as far as the choice of examples goes."""

    low: float
    high: float


def rounded(value: float, *, like: float | None = None) -> str:
    """A score for a person; with as many digits as another one has.

    >>> rounded(36.273), rounded(0.96849), rounded(9.21, like=36.273)
    ('36.3', '0.968', '9.2')
    """
    return f"{value:.1f}" if abs(value if like is None else like) >= 10 else f"{value:.3f}"
