"""Labels of the data that is scored which a run has not learned: each counts as wrong, and is seldom meant so."""

from collections import Counter
from typing import Final

from sixjars.data.dataset import Dataset
from sixjars.data.fields.label import LabelField
from sixjars_runtime.errors import shown

NAMED: Final = 3
"""Labels that the sentence names, the most frequent ones."""


def unknown_labels(dataset: Dataset) -> str:
    """How many rows have labels that the run has not learned, in a sentence; empty where none has."""
    field = dataset.fields.output
    if not isinstance(field, LabelField):
        return ""
    rows, labels = 0, Counter[str]()
    for text in dataset.table.texts(field.name):
        unknown = field.unknown(text)
        rows += bool(unknown)
        labels.update(unknown)
    if not rows:
        return ""
    spelled = {name.casefold(): name for name in field.names}
    named = [
        f"{label!r} (it knows {spelled[label.casefold()]!r})"
        if label.casefold() in spelled
        else shown(label)
        for label, _ in labels.most_common(NAMED)
    ]
    listed = ", ".join(named) + (", ..." if len(labels) > NAMED else "")
    have = "rows has labels" if rows == 1 else "rows have labels"
    count = "are never found" if field.multi_label else "count as wrong"
    return f"{rows:,} of {len(dataset):,} {have} that the run has not learned, such as {listed}: they {count}."
