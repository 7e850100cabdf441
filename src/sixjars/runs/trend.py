"""The trend in the log of a run: too little training, or too much for the data."""

from dataclasses import asdict, dataclass
from typing import Final, final

from sixjars.runs.extension import FEWEST, LATE, still_improves
from sixjars.runs.folder.run_folder import RunFolder, best_of
from sixjars.runs.folds import fold_runs
from sixjars.runs.recipes import chosen_by
from sixjars_runtime.errors import SixJarsError

RISEN: Final = 1.02
"""The validation loss is called rising from so many times its lowest value."""


@final
@dataclass(frozen=True)
class Trend:
    """The course of the training and the validation loss.

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
    """The trend of a run, for folds that of most; None without a log of some length."""
    has_folds = run.recipe.learning.folds is not None
    try:  # the last model of a cross-validation has no rows of its own to validate by
        trends = [_trend(each) for each in (fold_runs(run) if has_folds else [run])]
    except SixJarsError:  # a log that is damaged stops nobody from reading scores
        return None
    known = [asdict(trend) for trend in trends if trend is not None]
    if not known:
        return None
    return Trend(**{name: 2 * sum(each[name] for each in known) > len(known) for name in known[0]})


def _trend(run: RunFolder) -> Trend | None:
    learning = run.recipe.learning
    metric, better = chosen_by(run.recipe, run.outside)
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
