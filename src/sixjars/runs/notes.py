"""What a person should know of the data before a model is trained on it."""

from collections.abc import Iterator, Sequence

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.errors import shown
from sixjars.runs.data import Splits
from sixjars.runs.splits import LEAST


def notes_on(splits: Splits) -> Iterator[str]:
    """A sentence for each."""
    yield from splits.notes
    if splits.fields.output.single_label:
        yield from _labels(splits)
    if len(splits.valid) < LEAST:
        yield (
            f"the validation set has {_examples(len(splits.valid))}, too few to choose a checkpoint by; "
            "hold out more (data.valid), or say learning.folds: 5."
        )
    if splits.test is None:
        yield (
            "there is no test set (data.test); the final scores are of the validation set, "
            "which also chooses the checkpoint."
        )


def _examples(count: int) -> str:
    return f"{count} example{'' if count == 1 else 's'}"


def label_counts(dataset: Dataset) -> dict[str, int]:
    """How many rows have each label of the list."""
    field = dataset.fields.output
    counts = np.bincount(dataset.table.ids(field.name)[0], minlength=field.facts()["classes"])
    return {field.decode([number]): int(count) for number, count in enumerate(counts)}


def _labels(splits: Splits) -> Iterator[str]:
    """Labels that can hardly be learned, or not be measured."""
    single = [name for name, count in label_counts(splits.train).items() if count == 1]
    if single:
        yield (
            f"{_some(single)} in the training set only once; is that a mistake? "
            "data.label.min_count=2 leaves such labels out."
        )
    missing = [name for name, count in label_counts(splits.valid).items() if count == 0]
    if missing:
        yield f"{_some(missing)} not in the validation set, so nothing is chosen by how well that is recognized."


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"the label {listed} is" if len(names) == 1 else f"{len(names)} labels ({listed}) are"
