"""The trend in the log of a run: too little training, or too much for the data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, final

from sixjars.runs.folder.run_folder import RunFolder, best_of
from sixjars.runs.recipes import chosen_by
from sixjars.runs.training.folds import fold_runs
from sixjars_runtime.errors import SixJarsError

FEWEST: Final = 4
"""Validations that show a trend; of fewer the last is the best by chance too often."""
LATE: Final = 4
"""The last validations are the last quarter."""
WORTH: Final = 0.01
"""The gain that they must show, as a share of the best before: less does not pay for more steps."""
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


def still_improves(
    history: Sequence[Mapping[str, float]], metric: str, better: Literal["higher", "lower"]
) -> bool:
    """Whether the last validation is the best, and the last quarter 1 % better than all before.

    A metric that is 0 all along, such as BLEU at the beginning, says nothing yet; then the loss
    counts.

    >>> still_improves([{"loss": loss} for loss in (4.0, 3.0, 2.5, 2.2)], "loss", "lower")
    True
    >>> still_improves([{"loss": loss} for loss in (4.0, 3.0, 2.5, 2.49)], "loss", "lower")
    False
    >>> records = [{"loss": loss, "bleu": 0.0} for loss in (4.0, 3.0, 2.5, 2.2)]
    >>> still_improves(records, "bleu", "higher")
    True
    """
    if len(history) < FEWEST:
        return False
    if not any(record[metric] for record in history):
        return metric != "loss" and still_improves(history, "loss", "lower")
    sign = 1.0 if better == "higher" else -1.0
    scores = [sign * record[metric] for record in history]
    late = len(scores) // LATE
    gain = scores[-1] - max(scores[:-late])
    return scores[-1] == max(scores) and gain > WORTH * abs(max(scores[:-late]))
