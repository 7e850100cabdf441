"""Whether a model is better than a baseline, as far as so many examples can tell."""

import math
from collections.abc import Sequence
from typing import Final, Literal

from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.bootstrap import IN_LEVEL
from sixjars.evaluation.metrics import METRICS, Score

Verdict = Literal["better", "worse", "no difference", "equal"]
"""On the model: `no difference` that the examples can show, or scores that are just `equal`."""
SHARES: Final = ("accuracy@", "exact_match")
"""Beginnings of metrics that are means over the examples, between 0 and 1."""


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
