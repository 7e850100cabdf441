"""Points in the order of a pointer's output: a closed line, or bars for numbers; as an image file.

Dims: T steps, S points.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.figure import GREY, figure_of, save
from sixjars.drawing.matplotlib.heatmap import GRID, peak_of, show_cells
from sixjars.drawing.tours import MOVED, Points, apart, tour_title
from sixjars.drawing.view import View
from sixjars.drawing.weights import checked, ink
from sixjars_runtime.errors import DataError

PANEL = 5.4
"""Inches along a side."""
LINE_COLOR, START_COLOR, LEFT_OUT = "#2171b5", "#e08600", "#b6bcc6"
MOST_NAMED, MOST_NUMBERS = 30, 12
"""Points with names beside the heat map, and with room for numbers in its cells."""


def draw_tour(path: Path, view: View) -> None:
    """Draw points with the closed line through them in the order of the output: a tour or a hull.

    Points of one coordinate are bars in that order, as for sorting. Points have the numbers of
    their positions in the input. A heat map of the attention weights is beside it, if there are
    any; the row of the step that output `<stop>` may be the last one.
    """
    points, output = view.backdrop, view.outputs[0]
    order, weights = output.order, output.weights
    dimensions = _dimensions(points, order)
    steps = len(order) + (len(weights) > len(order))
    weights_TS = checked(weights, steps, len(points), positions="points") if len(weights) else None
    panels = 1 if weights_TS is None else 2
    figure = figure_of(PANEL * panels + 0.4 * (panels - 1), PANEL + 0.5, "constrained")
    axes = figure.add_subplot(1, panels, 1)
    (_bars if dimensions == 1 else _line)(axes, points, order)
    axes.set_title(_note(points, order), fontsize=8, color=GREY)
    if weights_TS is not None:
        _heat(figure.add_subplot(1, 2, 2), weights_TS, order)
    save(figure, path, tour_title(points, order))


def _dimensions(points: Points, order: Sequence[int]) -> int:
    if not points:
        raise DataError("there are no points to draw.")
    sizes = [len(point) for point in points]
    wrong = next((at for at, size in enumerate(sizes) if size != sizes[0]), None)
    if wrong is not None:
        counts = f"point 0 has {sizes[0]} and point {wrong} has {sizes[wrong]}"
        raise DataError(f"all points need as many coordinates, but {counts}.")
    if sizes[0] not in (1, 2):
        raise DataError(
            f"only points of 1 or 2 coordinates can be drawn, but these have {sizes[0]}."
        )
    outside = next((at for at in order if not 0 <= at < len(points)), None)
    if outside is not None:
        raise DataError(
            f"the order names point {outside}, but there are {len(points)} points, counted from 0."
        )
    return sizes[0]


def _note(points: Points, order: Sequence[int]) -> str:
    """The points that are not in the order, or more than once.

    >>> _note([(0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (1.0, 1.0)], [0, 1, 2])
    'Not in the output: 3.'
    """
    lists = {
        "Not in the output": [at for at in range(len(points)) if at not in set(order)],
        "More than once": sorted({at for at in order if order.count(at) > 1}),
    }
    return " ".join(f"{name}: {_first(numbers)}." for name, numbers in lists.items() if numbers)


def _first(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    return ", ".join(map(str, numbers[:8])) + more


def _line(axes: Axes, points: Points, order: Sequence[int]) -> None:
    """Points of two coordinates; arrows lead from one to the next."""
    size = min(max(80 / math.sqrt(len(points)), 10.0), 15.0)
    # an inch in the units of the points, about
    inch = 1.2 * float(np.ptp(points, axis=0).max() or 1.0) / PANEL
    spots = apart(points, 1.1 * inch * size / 72)
    shape = {"arrowstyle": "-|>", "shrinkA": size / 2, "shrinkB": size / 2}
    arrow = {**shape, "color": LINE_COLOR, "linewidth": 1.3}
    for here, there in pairwise([*order, *order[:1]]):
        if (spots[here] != spots[there]).any():
            axes.annotate("", spots[there], spots[here], arrowprops=arrow)
    place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 0.47 * size}
    for at, (x, y) in enumerate(spots):
        inside, edge, color = "white", LEFT_OUT, GREY
        if at in order:
            inside = START_COLOR if at == order[0] else "white"
            edge = START_COLOR if at == order[0] else LINE_COLOR
            color = ink(to_rgb(inside))
        above = 3 + at / len(points)  # a point that covers another covers its number too
        colors: dict[str, Any] = {"markerfacecolor": inside, "markeredgecolor": edge}
        axes.plot([x], [y], "o", markersize=size, zorder=above, **colors)
        axes.text(x, y, str(at), color=color, zorder=above, **place)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    moved = "" if np.array_equal(spots, points) else f"\n{MOVED}"
    _quiet(axes, f"Numbers: positions in the input. Orange: the first of the output.{moved}")


def _bars(axes: Axes, points: Points, order: Sequence[int]) -> None:
    """Numbers as bars, in the order of the output; the others follow, pale."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    heights = [points[at][0] for at in shown]
    colors = [START_COLOR] * len(order[:1]) + [LINE_COLOR] * len(order[1:])
    colors += [LEFT_OUT] * (len(shown) - len(order))
    bars = axes.bar(range(len(shown)), heights, color=colors, width=0.8)
    if len(shown) <= MOST_NAMED:
        numbers = [f"{height:.3g}" for height in heights]
        axes.bar_label(bars, numbers, fontsize=min(8.0, 110 / len(shown)), padding=2)
        axes.set_xticks(range(len(shown)), [str(at) for at in shown], fontsize=8)
    else:
        axes.set_xticks([])
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.margins(x=0.02, y=0.08)
    _quiet(axes, "Below: positions in the input, in the order of the output; the first is orange.")


def _heat(axes: Axes, weights_TS: NDArray[np.float64], order: Sequence[int]) -> None:
    """The attention weights of each step, downwards; what it output has a frame."""
    steps, points = weights_TS.shape
    show_cells(axes, weights_TS, numbers=max(points, steps) <= MOST_NUMBERS)
    names = [*(str(at) for at in order), "<stop>"][:steps]
    every = math.ceil(max(points, steps) / MOST_NAMED)
    named = range(0, points, every)
    axes.set_xticks(named, [str(at) for at in named], fontsize=7)
    axes.set_yticks(range(0, steps, every), names[::every], fontsize=7)
    frame: dict[str, Any] = {"fill": False, "edgecolor": START_COLOR, "linewidth": 1.2}
    for row, at in enumerate(order):
        axes.add_patch(Rectangle((at - 0.5, row - 0.5), 1, 1, **frame))
    lines: dict[str, Any] = {"color": GRID, "linewidth": 0.6, "zorder": 0.5}
    axes.vlines([at - 0.5 for at in range(1, points)], -0.5, steps - 0.5, **lines)
    axes.hlines([at - 0.5 for at in range(1, steps)], -0.5, points - 0.5, **lines)
    stop = "\nThe rest of a row, up to 1, is the weight of <stop>." if steps > len(order) else ""
    weights = f"its attention weights, darkest for {peak_of(weights_TS):.2f}"
    _quiet(axes, f"Each row is a step: {weights}. Framed: its output.{stop}")


def _quiet(axes: Axes, caption: str) -> None:
    axes.tick_params(length=0, labelsize=8, labelcolor=GREY)
    axes.spines[:].set_color("#d1d5db")
    axes.set_xlabel(caption, fontsize=8, color=GREY)
