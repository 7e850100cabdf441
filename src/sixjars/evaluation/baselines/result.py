"""The scores of a baseline, and whether a model is better, as far as so many examples can tell."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, final

from sixjars.evaluation.bootstrap import IN_LEVEL
from sixjars.evaluation.metrics import METRICS, Score, rounded

Verdict = Literal["better", "worse", "no difference", "equal"]
"""On the model: `no difference` that the examples can show, or scores that are just `equal`."""
SHARES: Final = ("accuracy@", "exact_match")
"""Beginnings of metrics that are means over the examples, between 0 and 1."""


@final
@dataclass(frozen=True)
class Baseline:
    """A cheap predictor, and its scores on the rows that a model is scored on.

    >>> score = Score("accuracy@1", 0.567, "", "higher", 500)
    >>> Baseline("the most frequent label", (score,), 0.01).value("accuracy@1")
    0.567
    """

    name: str
    """Such as `a linear model on word counts (on 5,000 rows)`."""
    scores: tuple[Score, ...]
    """The scores by the metrics of the model, as far as it has what they need."""
    seconds: float
    """To learn and to predict."""
    rows: int | None = None
    """Training rows that it learned from; nothing where it learned from none."""
    topic: str = ""
    """The key of advice for a model that is worse."""
    errors: Mapping[str, float] = field(default_factory=dict)
    """The standard error of the difference from the model's score, by metric, if known."""

    def value(self, metric: str) -> float | None:
        """One score; nothing where it has none."""
        return next((score.value for score in self.scores if score.name == metric), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "scores": {score.name: asdict(score) for score in self.scores}}


def best_by(baselines: Sequence[Baseline], metric: str) -> Baseline | None:
    """The best of them by a metric, of equal ones the first; nothing where none has it."""
    scored = [each for each in baselines if each.value(metric) is not None]
    if not scored:
        return None
    better = next(score.better for score in scored[0].scores if score.name == metric)
    sign = -1.0 if better == "higher" else 1.0
    return min(scored, key=lambda each: sign * (each.value(metric) or 0.0))


def says_something(value: float, score: Score) -> bool:
    """Whether the value of a baseline can be compared: not where that is 0, and 0 is the worst.

    >>> says_something(0.0, Score("exact_match", 0.7, "", "higher", 9))
    False
    """
    if score.better == "lower":
        return bool(value or score.value)
    return float(rounded(value)) != 0


def has_nothing(baseline: Baseline, scores: Sequence[Score]) -> bool:
    """Whether a baseline is 0 by all metrics where higher is better, as a copy in another script.

    Its error rates are then no comparison either.
    """
    values = [(baseline.value(score.name), score) for score in scores if score.better == "higher"]
    pairs = [(value, score) for value, score in values if value is not None and score.value]
    return bool(pairs) and not any(says_something(value, score) for value, score in pairs)


def grid_of(baselines: Sequence[Baseline]) -> tuple[list[str], list[list[str]]]:
    """A table of them: its head, and a row for each, with the seconds last.

    >>> grid_of([Baseline("copying the input", (Score("bleu", 3.25, "", "higher", 9),), 0.04)])
    (['baseline', 'bleu', 'seconds'], [['copying the input', '3.2500', '0.0']])
    """
    metrics = list(dict.fromkeys(score.name for baseline in baselines for score in baseline.scores))
    rows = []
    for baseline in baselines:
        cells = [_cell(baseline.value(metric)) for metric in metrics]
        rows.append([baseline.name, *cells, f"{baseline.seconds:.1f}"])
    return ["baseline", *metrics, "seconds"], rows


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def verdict_on(score: Score, baseline: Baseline) -> Verdict | None:
    """The verdict on a model's score against a baseline; nothing where that has no such score.

    >>> model, other = (Score("accuracy@1", value, "", "higher", 862) for value in (0.869, 0.865))
    >>> verdict_on(model, Baseline("a linear model", (other,), 1.0))
    'no difference'
    """
    value = baseline.value(score.name)
    if value is None:
        return None
    error = baseline.errors.get(score.name)
    return verdict(score, value, _unpaired(score, value) if error is None else error)


def verdict(score: Score, value: float, error: float | None) -> Verdict:
    """Whether a score is off by more than 1.96 standard errors of the difference, where known."""
    gain = score.value - value
    if error is not None and abs(gain) <= IN_LEVEL * error:
        return "no difference"
    if not gain:
        return "equal"
    return "better" if (gain > 0) == (score.better == "higher") else "worse"


def is_ahead(score: Score, value: float) -> bool:
    """Whether a score is better than a value, by however little."""
    return score.value > value if score.better == "higher" else score.value < value


def opposed(scores: Sequence[Score], baseline: Baseline, found: Verdict) -> dict[Score, Verdict]:
    """The scores that clearly say something else than the verdict found by the first one."""
    verdicts = ((score, verdict_on(score, baseline)) for score in scores)
    other = {"better", "worse"} - {found}
    return {score: verdict for score, verdict in verdicts if verdict and verdict in other}


def _unpaired(score: Score, value: float) -> float | None:
    """The standard error of the difference of two shares at most, as if of different rows.

    Nothing for metrics that are no means over the examples: it takes their outputs.
    """
    metric = METRICS.get(score.name)
    is_mean = metric is not None and metric.per_example and metric.sums is None
    shares = score.value, value
    is_share = is_mean or score.name.startswith(SHARES)
    if not is_share or not score.count or not all(0 <= share <= 1 for share in shares):
        return None
    return math.sqrt(sum(share * (1 - share) for share in shares) / score.count)
