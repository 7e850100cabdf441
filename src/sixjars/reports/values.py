"""The values that a report shows; no model and no file is needed to make HTML of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.view import View
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.by_length import Bucket
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.runs.explanation.explain import Explanation

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
    """The metric that chose it."""


@final
@dataclass(frozen=True)
class ByLength:
    """A metric by the length of the input."""

    metric: str
    unit: str
    """The unit of length: `words of the source`."""
    buckets: Sequence[Bucket]


@final
@dataclass(frozen=True)
class Example:
    """One example that was scored."""

    given: str
    """The input as one text; of a file its name."""
    output: str | None
    """None where there was no search, as of a language model."""
    references: tuple[str, ...]
    score: float | None
    """The score of this example, by the metric that examples are ranked by."""
    length: int


@final
@dataclass(frozen=True)
class ShownExample:
    """An example with its attention, or else with its images, where there are some."""

    group: Group
    example: Example
    view: View | None
    images: tuple[NDArray[np.uint8], ...] = ()
    """Shown where there is no view."""
    times: int = 1
    """How many examples have this input."""


@final
@dataclass(frozen=True)
class SummaryScatter:
    """The summary vectors of examples in two dimensions."""

    spots: NDArray[np.float64]
    """The place of each, (N, 2)."""
    shares: tuple[float, float]
    """The share of the variance along each axis."""
    neighbours: Sequence[Sequence[tuple[int, float]]]
    """The nearest others of each example, with their cosine similarity."""
    examples: Sequence[Example]
    lower: bool = False
    """Whether lower scores are better."""
    labels: Sequence[str] = ()
    """The true class of each example; empty where the output is no class."""


@final
@dataclass(frozen=True)
class Report:
    """All values of a report."""

    title: str
    where: str
    """The name of the examples: the split, and its file."""
    count: int
    skipped: int
    explanation: Explanation
    scores: Sequence[tuple[Score, Interval | None]]
    ranked_by: str
    """The metric that examples are ranked by."""
    shown: Sequence[ShownExample]
    has_attention: bool
    cost: Mapping[str, str]
    """Facts by their names."""
    versions: Mapping[str, str]
    recipe: str
    """The text of the recipe."""
    command: str
    """The command that makes this report again."""
    history: History | None = None
    by_length: ByLength | None = None
    summary_map: SummaryScatter | None = None
    classes: Sequence[ClassRow] = ()
    confusion: Confusion | None = None
    unknown: float | None = None
    """The share of unknown tokens in the inputs; None where they have no tokens."""
    unknown_words: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    """Sentences on the choice of weights, and on rows that were not scored or learned from."""
    left_out: Sequence[str] = ()
    """Metrics that need annotations, which the data does not have."""
    baselines: Sequence[Baseline] = ()
    """Simple methods without a network, scored on the same examples."""
    beside: str = ""
    """A sentence that compares the best of them with the model."""
    held_out: Sequence[Score] = ()
    """The means over the folds of a cross-validation, where the run learned from all examples."""

    @property
    def own_scores(self) -> Sequence[Score]:
        """The scores to compare with others: of the rows held out, after a cross-validation."""
        return self.held_out or [score for score, _ in self.scores]
