"""What a report of a run shows, as plain values; no model and no file is needed to make HTML of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.view import View
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.by_length import Bucket
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.runs.explanation import Explanation

Group = Literal["best", "median", "worst"]


@final
@dataclass(frozen=True)
class History:
    """The validations of a training."""

    records: Sequence[Mapping[str, float]]
    """The first one first."""
    metric: str | None
    """The metric that is drawn beside the loss."""
    best: float
    """The step whose weights were kept."""
    chosen_by: str
    """The metric that decided it."""


@final
@dataclass(frozen=True)
class ByLength:
    """A metric by the length of the input."""

    metric: str
    unit: str
    """What is counted: `words of the source`."""
    buckets: Sequence[Bucket]


@final
@dataclass(frozen=True)
class Example:
    """One example that was scored."""

    given: str
    """The input as one text; of a file its name."""
    output: str | None
    """Nothing where none was searched for, as of a language model."""
    references: tuple[str, ...]
    score: float | None
    """Its own, by the metric that examples are ranked by."""
    length: int


@final
@dataclass(frozen=True)
class Shown:
    """An example with what the model attended to, or the images it was given, where there are some."""

    group: Group
    example: Example
    view: View | None
    images: tuple[NDArray[np.uint8], ...] = ()
    """Shown where there is no view."""
    times: int = 1
    """How many examples have this input."""


@final
@dataclass(frozen=True)
class SummaryMap:
    """The summary vectors of examples in two dimensions."""

    spots: NDArray[np.float64]
    """Where each lies, (N, 2)."""
    shares: tuple[float, float]
    """Of the variance, along each axis."""
    neighbours: Sequence[Sequence[tuple[int, float]]]
    """Of each example the nearest others, with their cosine similarity."""
    examples: Sequence[Example]
    lower: bool = False
    """Whether lower scores are better."""
    labels: Sequence[str] = ()
    """The true class of each example; nothing where the output is no class."""


@final
@dataclass(frozen=True)
class Report:
    """All that is shown."""

    title: str
    where: str
    """What was scored: the split, and its file."""
    count: int
    skipped: int
    explanation: Explanation
    scores: Sequence[tuple[Score, Interval | None]]
    ranked_by: str
    """The metric of one example."""
    shown: Sequence[Shown]
    has_attention: bool
    cost: Mapping[str, str]
    """By name."""
    versions: Mapping[str, str]
    recipe: str
    """Its text."""
    command: str
    """That makes this report again."""
    history: History | None = None
    by_length: ByLength | None = None
    summary_map: SummaryMap | None = None
    classes: Sequence[ClassRow] = ()
    confusion: Confusion | None = None
    unknown: float | None = None
    """The share of unknown tokens in the inputs; nothing where they have no tokens."""
    unknown_words: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    """How the weights were chosen, and what rows are not in the scores or were not learned from; a
    sentence each."""
    left_out: Sequence[str] = ()
    """Metrics that need annotations, which the data does not have."""
    baselines: Sequence[Baseline] = ()
    """What costs nothing, scored on the same examples."""
    beside: str = ""
    """The best of them beside the model, in a sentence."""
