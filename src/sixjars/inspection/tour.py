"""Points in the order in which a pointer chose them: a closed line, or bars for numbers; as a picture file.

Dims: T steps, S points.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sixjars.errors import DataError, ShapeError
from sixjars.inspection.heatmap import GREY, Weights, saved_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, ...]]

PANEL = 5.4
"""Inches along a side."""
LINE_COLOR, START_COLOR, LEFT_OUT = "#2171b5", "#e08600", "#b6bcc6"
MOST_NAMED, MOST_NUMBERS = 30, 12
"""Points that have their names beside the heat map, and those that have room for numbers in its cells."""


def draw_tour(path: Path, *, points: Points, order: Sequence[int], title: str = "", weights: Weights = ()) -> None:
    """Points with the line that goes through them in `order` and back to the first; it may be a tour or a hull.

    For points of one number: bars in that order, as for sorting. Points have the numbers of their places in the input,
    counted from 0 as in `order`. With `weights`, a row for each step over the points, a heat map of where it pointed
    stands beside it; the row of the step that stopped may follow.
    """
    sizes = _checked(points, order)
    steps_TS = _steps(weights, points, order)
    panels = 2 if len(steps_TS) else 1
    with saved_figure(path, PANEL * panels + 0.4 * (panels - 1), PANEL + 0.5, layout="constrained") as figure:
        axes = figure.add_subplot(1, panels, 1)
        if sizes == 1:
            _bars(axes, points, order)
        else:
            _line(axes, points, order)
        axes.set_title(_told(points, order), fontsize=8, color=GREY)
        if panels == 2:
            _heat(figure.add_subplot(1, 2, 2), steps_TS, order)
        if title:
            figure.suptitle(fill(title, int(PANEL * panels * 11), max_lines=3, placeholder=" …"), fontsize=11)


def _checked(points: Points, order: Sequence[int]) -> int:
    """How many numbers a point has."""
    if not points:
        raise DataError("there are no points to draw.")
    sizes = [len(point) for point in points]
    wrong = next((at for at, size in enumerate(sizes) if size != sizes[0]), None)
    if wrong is not None:
        raise DataError(
            f"all points need as many numbers, but point 0 has {sizes[0]} and point {wrong} has {sizes[wrong]}."
        )
    if sizes[0] not in (1, 2):
        raise DataError(f"a picture shows points of 1 or 2 numbers, but these have {sizes[0]}.")
    outside = next((at for at in order if not 0 <= at < len(points)), None)
    if outside is not None:
        raise DataError(f"the order names point {outside}, but there are {len(points)} points, counted from 0.")
    return sizes[0]


def _steps(weights: Weights, points: Points, order: Sequence[int]) -> NDArray[np.float64]:
    """The weights as (T, S)."""
    if not len(weights):
        return np.zeros((0, len(points)))
    if len(weights) - len(order) not in (0, 1):
        raise ShapeError(f"the order has {len(order)} steps, but there are {len(weights)} rows of weights.")
    wrong = next((len(row) for row in weights if len(row) != len(points)), None)
    if wrong is not None:
        raise ShapeError(f"there are {len(points)} points, but {wrong} weights for a step.")
    return np.asarray(weights, dtype=np.float64)


def _told(points: Points, order: Sequence[int]) -> str:
    """How long the closed line is, where there is one, and what was never or more than once pointed at.

    >>> _told([(0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (1.0, 1.0)], [0, 1, 2])
    'The closed line is 12.00 long. Not pointed at: 3.'
    """
    told = []
    if len(points[0]) == 2 and len(order) > 1:
        told.append(f"The closed line is {_length(points, order):.2f} long.")
    for what, some in (
        ("Not pointed at", [at for at in range(len(points)) if at not in set(order)]),
        ("More than once", sorted({at for at in order if order.count(at) > 1})),
    ):
        if some:
            names = ", ".join(str(at) for at in some[:8]) + (f" and {len(some) - 8} more" if len(some) > 8 else "")
            told.append(f"{what}: {names}.")
    return " ".join(told)


def _length(points: Points, order: Sequence[int]) -> float:
    """Along the order and back to its first point."""
    return math.fsum(math.dist(points[here], points[there]) for here, there in pairwise([*order, order[0]]))


def _line(axes: "Axes", points: Points, order: Sequence[int]) -> None:
    """Points of two numbers; arrows lead from one to the next."""
    size = min(max(80 / math.sqrt(len(points)), 10.0), 15.0)
    for here, there in pairwise([*order, *order[:1]]):
        if points[here] != points[there]:
            (x, y), (next_x, next_y) = points[here], points[there]
            arrow = {"arrowstyle": "-|>", "color": LINE_COLOR, "linewidth": 1.3}
            ends = {"shrinkA": size / 2, "shrinkB": size / 2}
            axes.annotate("", (next_x, next_y), (x, y), arrowprops=arrow | ends)
    for at, (x, y) in enumerate(points):
        first, gone = bool(order) and at == order[0], at in order
        above = 3 + at / len(points)  # a point that covers another covers its number too
        inside, edge = (START_COLOR, START_COLOR) if first else ("white", LINE_COLOR if gone else LEFT_OUT)
        axes.plot([x], [y], "o", markersize=size, markerfacecolor=inside, markeredgecolor=edge, zorder=above)
        ink = "white" if first else "black" if gone else GREY
        axes.text(x, y, str(at), ha="center", va="center_baseline", fontsize=0.47 * size, color=ink, zorder=above)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    _quiet(axes)
    axes.set_xlabel("Numbers: places in the input. Orange: where it starts.", fontsize=8, color=GREY)


def _bars(axes: "Axes", points: Points, order: Sequence[int]) -> None:
    """Numbers as bars, in the order in which they were pointed at; the others follow, pale."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    heights = [points[at][0] for at in shown]
    colors = [START_COLOR] * len(order[:1]) + [LINE_COLOR] * len(order[1:]) + [LEFT_OUT] * (len(shown) - len(order))
    bars = axes.bar(range(len(shown)), heights, color=colors, width=0.8)
    if len(shown) <= MOST_NAMED:
        axes.bar_label(bars, [f"{height:.3g}" for height in heights], fontsize=min(8.0, 110 / len(shown)), padding=2)
        axes.set_xticks(range(len(shown)), [str(at) for at in shown], fontsize=8)
    else:
        axes.set_xticks([])
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.margins(x=0.02, y=0.08)
    _quiet(axes)
    told = "Below: places in the input, in the order in which it pointed at them; the first is orange."
    axes.set_xlabel(told, fontsize=8, color=GREY)


def _quiet(axes: "Axes") -> None:
    """Thin grey axes without ticks."""
    axes.tick_params(length=0, labelsize=8, labelcolor=GREY)
    axes.spines[:].set_color("#d1d5db")


def _heat(axes: "Axes", weights_TS: NDArray[np.float64], order: Sequence[int]) -> None:
    """Where it pointed at each step, downwards; what it chose has a frame."""
    from matplotlib.patches import Rectangle

    steps, points = weights_TS.shape
    axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    names = [*(str(at) for at in order), "stop"][:steps]
    every = math.ceil(max(points, steps) / MOST_NAMED)
    axes.set_xticks(range(0, points, every), [str(at) for at in range(0, points, every)], fontsize=7)
    axes.set_yticks(range(0, steps, every), names[::every], fontsize=7)
    axes.xaxis.tick_top()
    _quiet(axes)
    for row, at in enumerate(order):
        axes.add_patch(Rectangle((at - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=START_COLOR, linewidth=1.2))
    if max(points, steps) <= MOST_NUMBERS:
        for row, column in np.argwhere(weights_TS >= 0.1):
            weight = weights_TS[row, column]
            ink = "white" if weight > 0.5 else "black"
            axes.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=ink)
    told = "Each row is a step: its weights over the points, darkest for 1. Framed: the point it chose."
    axes.set_xlabel(told, fontsize=8, color=GREY)
