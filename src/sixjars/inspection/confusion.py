"""Which labels are taken for which: truth against prediction; as a picture file and in the terminal.

Dims: K labels; a row is a true label, a column a predicted one.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from sixjars.errors import ShapeError
from sixjars.inspection.heatmap import GREY, saved_figure, shaded

Counts = Sequence[Sequence[int]]

WIDEST_TABLE = 78
"""Letters; where the names of the columns would need more, they are numbered."""


def draw_confusion(path: Path, labels: Sequence[str], counts: Counts) -> None:
    """Each cell is how often the label of its row was taken for that of its column; its colour is the row's share."""
    counts_KK, shares_KK = _checked(labels, counts)
    cell = 0.5 if len(labels) <= 24 else 0.36
    longest = max(len(label) for label in labels)
    width, height = 2.0 + cell * len(labels) + 0.09 * longest, 1.5 + cell * len(labels) + 0.07 * longest
    with saved_figure(path, width, height, layout="constrained") as figure:
        axes = figure.add_subplot()
        axes.imshow(shares_KK, cmap="Blues", vmin=0.0, vmax=1.0)
        axes.set_xticks(range(len(labels)), labels, rotation=45, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(labels)), labels)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("predicted", color=GREY)
        axes.set_ylabel("true", color=GREY)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        between = [at - 0.5 for at in range(len(labels) + 1)]
        axes.set_xticks(between, minor=True)
        axes.set_yticks(between, minor=True)
        axes.grid(which="minor", color="#e8eef4", linewidth=1.0)
        axes.tick_params(which="minor", length=0)
        for row, column in np.argwhere(counts_KK > 0):
            color = "white" if shares_KK[row, column] > 0.5 else "black"
            count = str(counts_KK[row, column])
            size = min(8.0, 100 * cell / len(count))
            axes.text(column, row, count, ha="center", va="center", fontsize=size, color=color)
        told = axes.annotate(_told(counts_KK), (0.5, 0.0), (0.0, -6.0), "axes fraction", "offset points")
        told.set(ha="center", va="top", fontsize=8, color=GREY)


def confusion_in_terminal(labels: Sequence[str], counts: Counts) -> Table:
    """The same as a table of shaded cells; where the labels are too long to stand above it, their numbers do."""
    counts_KK, shares_KK = _checked(labels, counts)
    widest = max(len(label) for label in labels) + 2 + sum(max(len(label) + 2, 4) for label in labels)
    numbered = widest > WIDEST_TABLE
    above = [str(at + 1) if numbered else label for at, label in enumerate(labels)]
    beside = [f"{label}  {at + 1}" if numbered else label for at, label in enumerate(labels)]
    table = Table(box=None, padding=(0, 0), show_edge=False, caption=_told(counts_KK), caption_justify="left")
    table.add_column("true ↓  predicted →", justify="right", header_style="grey50", style="bold", no_wrap=True)
    table.add_column("  ")
    digits = len(str(counts_KK.max()))
    for name in above:
        table.add_column(Text(f" {name} "), justify="center", header_style="bold", no_wrap=True)
    for name, counts_K, shares_K in zip(beside, counts_KK, shares_KK, strict=True):
        cells = [
            shaded(str(count or "·"), share, max(len(head), digits) + 2)
            for count, share, head in zip(counts_K, shares_K, above, strict=True)
        ]
        table.add_row(Text(name), "  ", *cells)
    return table


def _checked(labels: Sequence[str], counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The counts, and each as its share of its row; both (K, K)."""
    sizes = [len(row) for row in counts]
    if not labels or sizes != [len(labels)] * len(labels):
        raise ShapeError(f"{len(labels)} labels need as many rows of as many counts, but the rows have {sizes}.")
    counts_KK = np.asarray(counts, dtype=np.int64)
    return counts_KK, counts_KK / counts_KK.sum(axis=1, keepdims=True).clip(min=1)


def _told(counts_KK: NDArray[np.int64]) -> str:
    """How many are right.

    >>> _told(np.array([[3, 1], [0, 4]]))
    '7 of 8 are right, 88%.'
    """
    right, all_of_them = counts_KK.trace(), counts_KK.sum()
    return f"{right} of {all_of_them} are right, {right / max(all_of_them, 1):.0%}."
