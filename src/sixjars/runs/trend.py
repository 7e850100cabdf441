"""What the log of a run says of its training: too short, or too long for what there is to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sixjars.evaluation.metrics import metric_named
from sixjars.runs.extension import FEWEST, LATE, still_improves
from sixjars.runs.folder import RunFolder, best_of
from sixjars.runs.folds import fold_runs
from sixjars_runtime.errors import SixJarsError

RISEN: Final = 1.02
"""Times the lowest validation loss, from which on it is called rising."""


@final
@dataclass(frozen=True)
class Trend:
    """How training and validation loss went.

    >>> Trend(overfits=False, improves=True, stopped_early=False, has_gap=True).improves
    True
    """

    overfits: bool
    """Whether the validation loss rose long before the end, with the training loss below it."""
    improves: bool
    """Whether the last validation is the best."""
    stopped_early: bool
    """Whether patience ended the training."""
    has_gap: bool
    """Whether the training loss is below the validation loss at the end."""


def trend_of(run: RunFolder) -> Trend | None:
    """That of a run; of its folds what most of them say. Nothing without a log of some length."""
    folds = (
        run.recipe.learning.folds is not None
    )  # the last model has no rows of its own to validate by
    try:
        found = [_trend(one) for one in (fold_runs(run) if folds else [run])]
    except SixJarsError:  # a log that is damaged stops nobody from reading scores
        return None
    known = [one for one in found if one is not None]
    if not known:
        return None

    def most(values: Sequence[bool]) -> bool:
        return 2 * sum(values) > len(values)

    return Trend(
        overfits=most([one.overfits for one in known]),
        improves=most([one.improves for one in known]),
        stopped_early=most([one.stopped_early for one in known]),
        has_gap=most([one.has_gap for one in known]),
    )


def _trend(run: RunFolder) -> Trend | None:
    learning = run.recipe.learning
    metric = learning.metric or "loss"
    better = "lower" if metric == "loss" else metric_named(metric, run.outside).better
    history = run.history()
    whole = all({"train_loss", metric} <= record.keys() for record in history)
    if len(history) < FEWEST or not whole:
        return None
    losses = [record["loss"] for record in history]
    lowest = losses.index(min(losses))
    has_gap = history[-1]["train_loss"] < losses[-1]
    rises = losses[-1] > RISEN * losses[lowest]
    since = len(history) - 1 - history.index(best_of(history, metric, better=better))
    long_before = lowest < len(losses) - len(losses) // LATE
    return Trend(
        overfits=has_gap and rises and long_before,
        improves=still_improves(history, metric, better),
        stopped_early=learning.patience is not None and since >= learning.patience,
        has_gap=has_gap,
    )
