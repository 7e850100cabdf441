"""The end of a training in words: that it stopped early, or that it was still improving."""

from collections.abc import Mapping, Sequence

from sixjars.learning.loop import Trainer
from sixjars.progress import number_of
from sixjars.recipe.sections import LearningSettings
from sixjars.runs.training.trend import still_improves


def sentence_of_end(
    trainer: Trainer, history: Sequence[Mapping[str, float]], *, resumable: bool
) -> str:
    """A sentence for the end of a training; nothing where all went as planned.

    `history` has the validations; a run that is not `resumable` by itself is one of several folds.
    """
    if trainer.state.step < trainer.total:
        return stopped_early(trainer)
    metric = trainer.settings.metric or "loss"
    if not resumable or not still_improves(history, metric, trainer.hooks.better):
        return ""
    steps = f"at step {trainer.total:,} of {trainer.total:,}"
    return (
        f"it was still improving when it stopped, {steps} ({metric} of the last validation is the "
        f"best): `--resume {extended(trainer.settings, trainer.total)}` continues."
    )


def stopped_early(trainer: Trainer) -> str:
    """Why a training ended before its last step."""
    learning, step = trainer.settings, trainer.state.step
    times = number_of(learning.patience or 0, "validation")
    return (
        f"stopped early at step {step:,} of {trainer.total:,}: {learning.metric or 'loss'} has not "
        f"improved for {times} (learning.patience); the best weights are kept."
    )


def extended(settings: LearningSettings, total: int) -> str:
    """The override that allows twice as many updates, of the key that ended training.

    >>> extended(LearningSettings(epochs=5), 40), extended(LearningSettings(steps=40), 40)
    ('learning.epochs=10', 'learning.steps=80')
    """
    if settings.steps == total or settings.epochs is None:
        return f"learning.steps={2 * total}"
    return f"learning.epochs={2 * settings.epochs}"
