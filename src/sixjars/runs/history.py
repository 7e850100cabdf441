"""The history of a training: the log of its validations, and a picture of the learning curves."""

import json
from collections.abc import Sequence
from typing import Literal

from sixjars.evaluation.metrics import metric_named
from sixjars.inspection.curves import draw_learning
from sixjars.runs.folder import RunFolder, read_limited

PICTURE = "curves.png"


def history_of(run: RunFolder) -> list[dict[str, float]]:
    """One record for each validation, the first one first."""
    return [json.loads(line) for line in read_limited(run.folder / "log.jsonl").splitlines()]


def draw_history(run: RunFolder) -> None:
    """The learning curves as a picture in the folder of the run; one validation makes no curve."""
    records, metric = history_of(run), run.recipe.learning.metric or "loss"
    if len(records) < 2:
        return
    better = "lower" if metric == "loss" else metric_named(metric, run.outside).better
    shown = metric if metric != "loss" else _first_score(records)
    best = best_of(records, metric, better=better)
    average = run.recipe.learning.average
    kept = "the weights of" if average == 1 else f"the mean of the weights of the {average} best, first of all"
    place = f"{kept} step {best['step']:,.0f}, epoch {best['epoch']:.3g}"
    title = f"Kept: {place}; {metric.replace('_', ' ')} on the validation set: {best[metric]:.4g}"
    draw_learning(run.folder / PICTURE, records, metric=shown, best=best["step"], title=title)


def best_of(
    records: Sequence[dict[str, float]], metric: str, *, better: Literal["higher", "lower"]
) -> dict[str, float]:
    """The best validation, as training keeps it: of equal scores the one with the lower loss.

    >>> best_of([{"step": 1, "f": 1.0, "loss": 2.0}, {"step": 2, "f": 1.0, "loss": 1.0}], "f", better="higher")
    {'step': 2, 'f': 1.0, 'loss': 1.0}
    """
    sign = 1.0 if better == "lower" else -1.0
    return min(records, key=lambda record: (sign * record[metric], record["loss"]))


def _first_score(records: Sequence[dict[str, float]]) -> str | None:
    """The first metric besides the losses, where there is one."""
    names = [name for name in records[0] if name not in {"epoch", "step", "rate", "train_loss", "loss"}]
    return names[0] if names else None
