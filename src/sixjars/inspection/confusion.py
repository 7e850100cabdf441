"""A confusion matrix in the terminal: how often each label was predicted for each true one.

Dims: K labels; a row is a true label, a column a predicted one.
"""

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from sixjars.errors import ShapeError
from sixjars.inspection.heatmap import shaded_table

WIDEST = 78
"""Characters; where the names of the columns would need more, they are numbered."""


def confusion_in_terminal(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    """Counts in cells as bright as their share of the row; labels too long to be above the columns are numbered."""
    sizes = [len(row) for row in counts]
    if not labels or sizes != [len(labels)] * len(labels):
        raise ShapeError(f"{len(labels)} labels need as many rows of as many counts, but the rows have {sizes}.")
    counts_KK = np.asarray(counts, dtype=np.int64)
    shares_KK = counts_KK / counts_KK.sum(axis=1, keepdims=True).clip(min=1)
    above, beside = list(labels), list(labels)
    if max(len(label) for label in labels) + 2 + sum(max(len(label) + 2, 4) for label in labels) > WIDEST:
        above = [str(at) for at in range(1, len(labels) + 1)]
        beside = [f"{label}  {number}" for label, number in zip(labels, above, strict=True)]
    texts = [[f" {count} " if count else "·" for count in row] for row in counts]
    table = shaded_table(shares_KK.tolist(), texts, above=above, beside=beside, corner="true ↓  predicted →")
    right, every = counts_KK.trace(), counts_KK.sum()
    table.caption = f"{right} of {every} are right, {right / max(every, 1):.0%}."
    table.caption_justify = "left"
    return table
