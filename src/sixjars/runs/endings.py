"""Why a training ended, for a person: it stopped early, or its updates were made, maybe too few."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from sixjars.learning.loop import Trainer
from sixjars.progress import number_of
from sixjars.recipe.sections import LearningSettings

FEWEST: Final = 4
"""Validations that show a trend; of fewer the last is the best by chance too often."""
LATE: Final = 4
"""The last validations are the last quarter."""
WORTH: Final = 0.01
"""What they must have gained, as a share of the best score before: less is not worth another training."""


def sentence_of_end(trainer: Trainer, history: Sequence[Mapping[str, float]], *, resumable: bool) -> str:
    """What is said when training has ended; nothing where all went as planned.

    `history` has the validations; a run that is not `resumable` by itself is one of several folds.
    """
    if trainer.state.step < trainer.total:
        return stopped_early(trainer)
    metric = trainer.settings.metric or "loss"
    if not resumable or not still_improves(history, metric, trainer.around.better):
        return ""
    return (
        f"it was still improving when it stopped, at step {trainer.total:,} of {trainer.total:,} ({metric} of the last "
        f"validation is the best): `--resume {extended(trainer.settings, trainer.total)}` continues."
    )


def stopped_early(trainer: Trainer) -> str:
    """Why a training ended before its last step."""
    learning, step = trainer.settings, trainer.state.step
    times = number_of(learning.patience or 0, "validation")
    return (
        f"stopped early at step {step:,} of {trainer.total:,}: {learning.metric or 'loss'} has not improved for "
        f"{times} (learning.patience); the best weights are kept."
    )


def extended(settings: LearningSettings, total: int) -> str:
    """The override that allows twice as many updates, of the key that ended training.

    >>> extended(LearningSettings(epochs=5), 40), extended(LearningSettings(steps=40), 40)
    ('learning.epochs=10', 'learning.steps=80')
    """
    if settings.steps == total or settings.epochs is None:
        return f"learning.steps={2 * total}"
    return f"learning.epochs={2 * settings.epochs}"


def still_improves(history: Sequence[Mapping[str, float]], metric: str, better: Literal["higher", "lower"]) -> bool:
    """Whether the last validation is the best, and the last quarter is better by 1 % than all before.

    A metric that is 0 all along, such as BLEU at the beginning, says nothing yet; then the loss counts.

    >>> still_improves([{"loss": loss} for loss in (4.0, 3.0, 2.5, 2.2)], "loss", "lower")
    True
    >>> still_improves([{"loss": loss} for loss in (4.0, 3.0, 2.5, 2.49)], "loss", "lower")
    False
    >>> still_improves([{"loss": loss, "bleu": 0.0} for loss in (4.0, 3.0, 2.5, 2.2)], "bleu", "higher")
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
