"""Heat maps of attention weights, output tokens against source positions.

They are files or tables in the terminal, as is a confusion matrix: how often each label was
predicted for each true one.

Dims: T output tokens, S source positions; K labels, a row is a true one, a column a predicted one.
"""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from sixjars.drawing.page import (
    GREY,
    SMALL,
    Weights,
    checked,
    digits,
    drawable,
    even_lines,
    figure_of,
    ink,
    save,
    shortened,
    title_lines,
)
from sixjars_runtime.errors import DataError, ShapeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

LONGEST = 32
"""Characters of a label."""
WIDEST = 32
"""Columns; a longer input is drawn in several parts, one below the other."""
GRID = "#e8eef4"
SMALL_WEIGHT = 0.05
"""Smaller weights have no number in the terminal."""
LOW = 5
"""Rows from which the label of the colour bar has room on one line."""
ROOM = 78
"""Characters of a line; the labels of a confusion matrix that would need more are numbered."""


def heat_map(
    path: str | Path,
    weights: Weights,
    *,
    source: Sequence[str],
    target: Sequence[str],
    title: str = "",
    note: str = "",
    segments: Sequence[int] = (),
) -> None:
    """Draw attention weights as a picture file: a row for each target, a column for each source.

    A caption below says so, with a `note` behind it. Where each position belongs to a sentence or
    turn (`segments`), a dark line is drawn where the next one begins.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> weights = [[0.9, 0.1], [0.2, 0.8]]
    >>> with TemporaryDirectory() as folder:
    ...     heat_map(f"{folder}/go.png", weights, source=["I", "go"], target=["mein", "jaata"])
    ...     [file.name for file in Path(folder).iterdir()]
    ['go.png']
    """
    weights_TS = checked(weights, len(target), len(source), positions="source tokens")
    if not weights_TS.size:
        raise DataError("there are no attention weights to draw.")
    above = [shortened(token, LONGEST) for token in source]
    beside = [shortened(token, LONGEST) for token in target]
    blocks = _blocks(len(source))
    # labels of more than eight letters need more room
    width = 2.2 + 0.55 * len(blocks[0]) + 0.08 * max(0, max(map(len, beside)) - 8)
    panel = 1.2 + 0.42 * len(target) + 0.06 * max(0, max(map(len, above)) - 8)
    height = len(blocks) * panel + 0.4
    lines = "Dark lines: where a sentence or turn begins. " if len(set(segments)) > 1 else ""
    notes = even_lines(f"Rows: the output. Columns: the input. {lines}{note}", int(width * 15))
    height += 0.18 * max(0, len(title_lines(title, width)) - 1) + 0.16 * len(notes)
    figure = figure_of(width, height, "constrained")
    above, beside = ([drawable(figure, name) for name in names] for names in (above, beside))
    panels = figure.subplots(len(blocks), 1, squeeze=False)[:, 0].tolist()
    for axes, block in zip(panels, blocks, strict=True):
        image = show_cells(axes, weights_TS[:, block], peak=peak_of(weights_TS))
        axes.set_xlim(-0.5, len(blocks[0]) - 0.5)
        _name_cells(axes, [above[at] for at in block], beside)
        new = [at for at in block[1:] if segments and segments[at] != segments[at - 1]]
        begins = [at - block[0] - 0.5 for at in new]
        axes.vlines(begins, -0.5, len(target) - 0.5, color=GREY, linewidth=1.2)
    bar = figure.colorbar(image, ax=panels, shrink=0.8 / len(blocks))
    # beside few rows the label would be cut off, so it has two lines and small letters
    between, size = ("\n", SMALL) if len(target) * len(blocks) < LOW else (" ", None)
    bar.set_label(f"attention weight α,{between}at most {peak_of(weights_TS):.2f}", fontsize=size)
    figure.supxlabel("\n".join(notes), fontsize=SMALL, color=GREY)
    save(figure, path, title)


def _blocks(columns: int) -> list[range]:
    """The columns of each part of a heat map, parts of about the same size.

    >>> _blocks(32), _blocks(90)
    ([range(0, 32)], [range(0, 30), range(30, 60), range(60, 90)])
    """
    count = ceil(columns / WIDEST)
    size = ceil(columns / count)
    return [range(at, min(at + size, columns)) for at in range(0, columns, size)]


def _name_cells(axes: "Axes", above: Sequence[str], beside: Sequence[str]) -> None:
    """The names of columns and rows, and a quiet grid between the cells."""
    axes.set_xticks(range(len(above)), above, rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(beside)), beside)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks([at - 0.5 for at in range(1, len(above))], minor=True)
    axes.grid(which="minor", axis="x", color=GRID, linewidth=1.0)
    between = [at - 0.5 for at in range(1, len(beside))]
    # a last part may have fewer columns
    axes.hlines(between, -0.5, len(above) - 0.5, color=GRID, linewidth=1.0)
    axes.tick_params(which="minor", length=0)


def peak_of(weights_TS: NDArray[np.float64]) -> float:
    """The largest weight, which is drawn darkest, so that thin attention shows too."""
    return float(weights_TS.max(initial=0.0)) or 1.0


def show_cells(
    axes: "Axes",
    weights_TS: NDArray[np.float64],
    *,
    numbers: bool = True,
    peak: float | None = None,
) -> "AxesImage":
    """Draw weights as cells, darkest for the largest (or `peak`), with numbers in large ones.

    Columns are named above.
    """
    peak = peak or peak_of(weights_TS)
    image = axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=peak, aspect="auto")
    axes.xaxis.tick_top()
    for row, column in np.argwhere(weights_TS >= min(0.1, peak / 2)) if numbers else ():
        weight = weights_TS[row, column]
        color = ink(tuple(image.to_rgba(weight)))
        axes.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=color)
    return image


def in_terminal(
    weights: Weights, *, source: Sequence[str], target: Sequence[str], peak: float | None = None
) -> Table:
    """A heat map for the terminal, with two digits in large cells; brightest for `peak`."""
    texts = [
        [digits(weight) if weight >= SMALL_WEIGHT else "·" for weight in row] for row in weights
    ]
    peak = peak or max((weight for row in weights for weight in row), default=0.0) or 1.0
    shares = [[weight / peak for weight in row] for row in weights]
    return shaded_table(shares, texts, above=source, beside=target)


def confusion_in_terminal(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    """Counts in cells as bright as their share of the row; labels too long are numbered."""
    sizes = [len(row) for row in counts]
    if not labels or sizes != [len(labels)] * len(labels):
        raise ShapeError(
            f"{len(labels)} labels need as many rows of as many counts, but the rows have {sizes}."
        )
    counts_KK = np.asarray(counts, dtype=np.int64)
    shares_KK = counts_KK / counts_KK.sum(axis=1, keepdims=True).clip(min=1)
    above, beside = list(labels), list(labels)
    if max(map(len, labels)) + 2 + sum(max(len(label) + 2, 4) for label in labels) > ROOM:
        above = [str(at) for at in range(1, len(labels) + 1)]
        beside = [f"{label}  {number}" for label, number in zip(labels, above, strict=True)]
    texts = [[f" {count} " if count else "·" for count in row] for row in counts]
    corner = "true ↓  predicted →"
    table = shaded_table(shares_KK.tolist(), texts, above=above, beside=beside, corner=corner)
    right, every = counts_KK.trace(), counts_KK.sum()
    table.caption = f"{right} of {every} are right, {right / max(every, 1):.0%}."
    table.caption_justify = "left"
    return table


def shaded_table(
    shares: Weights,
    texts: Sequence[Sequence[str]],
    *,
    above: Sequence[str],
    beside: Sequence[str],
    corner: str = "",
) -> Table:
    """A table of cells as bright as their shares, with texts in them and names around them."""
    table = Table(box=None, padding=(0, 0), show_edge=False)
    table.add_column(corner, justify="right", header_style="grey50", style="bold", no_wrap=True)
    table.add_column(" ")
    for name in above:
        table.add_column(Text(f" {name} "), justify="center", header_style="bold", no_wrap=True)
    widest = max((len(text) for row in texts for text in row), default=0)
    for name, row, words in zip(beside, shares, texts, strict=True):
        cells = []
        for share, text, head in zip(row, words, above, strict=True):
            centred = text.center(max(len(head) + 2, widest, 4))
            cells.append(Text(centred, style=style_of(share)))
        table.add_row(Text(name), " ", *cells)
    return table


def style_of(share: float) -> str:
    """The style of a cell as bright as its share of the largest."""
    step = round(share * 23)  # of the greys of a terminal, 8, 18, ... 238 of 255
    return f"{ink([(8 + 10 * step) / 255] * 3)} on color({232 + step})"
