"""What a reader of scores should know: which set chose the weights, and which rows were left out."""

from collections.abc import Iterator

from sixjars.progress import number_of
from sixjars.runs.data import Splits
from sixjars.runs.evaluate import JudgedRun
from sixjars.runs.folder import RunFolder
from sixjars.runs.folds import note_of_folds


def notes_of(run: RunFolder, one: JudgedRun, *, own: bool) -> Iterator[str]:
    """A sentence each; `own` says that the run was scored on its own data, not on another file."""
    learning = run.recipe.learning
    if learning.folds is None:
        kept = "are those" if learning.average == 1 else f"are the mean of the {learning.average} checkpoints"
        yield f"The validation set chose the weights: they {kept} with the best {learning.metric or 'loss'} on it."
    elif own:
        sentence = note_of_folds(run)
        yield f"{sentence[:1].upper()}{sentence[1:]}"
    if not own or one.splits is None:
        yield _counted(one.dataset.skipped, "bad row", "skipped in reading this file")
        return
    if one.splits.test is None and learning.folds is None:
        yield "There is no test set, so these scores are of the validation set too, and may be too good."
    yield from _rows(one.splits)


def _rows(splits: Splits) -> Iterator[str]:
    yield _counted(splits.skipped, "bad row", "skipped in reading the data")
    why = f" ({splits.train.why_dropped})" if splits.train.dropped else ""
    yield _counted(splits.train.dropped, "training row", f"dropped{why}")


def _counted(count: int, row: str, how: str) -> str:
    """What happened to so many rows."""
    many = f"No {row}" if not count else number_of(count, row)
    return f"{many} {'was' if count < 2 else 'were'} {how}."
