"""Heat maps of attention weights, output tokens against source positions; as an image file.

Dims: T output tokens, S source positions.
"""

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.figure import (
    GREY,
    SMALL,
    drawable,
    even_lines,
    figure_of,
    save,
    title_lines,
)
from sixjars.drawing.view import shortened
from sixjars.drawing.weights import Weights, checked, ink
from sixjars_runtime.errors import DataError

LONGEST = 32
"""Characters of a label."""
WIDEST = 32
"""Columns; a longer input is drawn in several parts, one below the other."""
GRID = "#e8eef4"
LOW = 5
"""Rows from which the label of the colour bar has room on one line."""


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
    """Draw attention weights as an image file: a row for each target, a column for each source.

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


def _name_cells(axes: Axes, above: Sequence[str], beside: Sequence[str]) -> None:
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
    axes: Axes,
    weights_TS: NDArray[np.float64],
    *,
    numbers: bool = True,
    peak: float | None = None,
) -> AxesImage:
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
