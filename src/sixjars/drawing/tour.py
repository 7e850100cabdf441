"""Points in the order of a pointer's output: a closed line, or bars for numbers; as a picture file.

Dims: T steps, S points.
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.heatmap import GRID, peak_of, show_cells
from sixjars.drawing.page import GREY, Weights, checked, figure_of, ink, save
from sixjars.evaluation.metrics.tours import nearest_tour
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, ...]]

PANEL = 5.4
"""Inches along a side."""
LINE_COLOR, START_COLOR, LEFT_OUT = "#2171b5", "#e08600", "#b6bcc6"
MOST_SOLVED = 10
"""Points whose shortest tour is found for comparison; with more it takes too long."""
NEARLY_ZERO, TINY = 1e-9, 1e-12
"""Of an area and of a length, beside rounding."""
ROUNDS = 50
"""Times that points are moved apart."""
MOVED = "Points that would cover each other are drawn side by side."
MOST_NAMED, MOST_NUMBERS = 30, 12
"""Points that have their names beside the heat map, and those that have room for numbers in its cells."""


def draw_tour(
    path: Path, *, points: Points, order: Sequence[int], title: str = "", weights: Weights = ()
) -> None:
    """Points with the line that goes through them in `order` and back to the first; it may be a tour or a hull.

    Points of one coordinate are bars in that order, as for sorting. Points have the numbers of their positions in the
    input, counted from 0 as in `order`. With `weights`, a row for each step over the points, a heat map of the
    attention weights is beside it; the row of the step that output `<stop>` may follow.
    """
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
    save(figure, path, title)


def _dimensions(points: Points, order: Sequence[int]) -> int:
    """How many coordinates a point has."""
    if not points:
        raise DataError("there are no points to draw.")
    sizes = [len(point) for point in points]
    wrong = next((at for at, size in enumerate(sizes) if size != sizes[0]), None)
    if wrong is not None:
        raise DataError(
            f"all points need as many coordinates, but point 0 has {sizes[0]} and point {wrong} has {sizes[wrong]}."
        )
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


def tour_title(points: Points, order: Sequence[int]) -> str:
    """What the order amounts to: the length of the closed line and how it compares, or whether numbers are sorted.

    >>> tour_title([(0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (1.0, 1.0)], [0, 1, 2])
    'A closed line through 3 of 4 points, length 12.00: their convex hull'
    >>> tour_title([(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)], [0, 1, 2, 3])
    'A closed line through all 4 points, length 4.83: 1.21 times the shortest'
    >>> tour_title([(3.0,), (1.0,), (2.0,)], [1, 0, 2])
    '3 numbers, not sorted: 1 of 2 steps goes down'
    """
    if points and len(points[0]) == 1:
        down = sum(points[one][0] > points[two][0] for one, two in pairwise(order))
        how = f"not sorted: {down} of {len(order) - 1} steps {'goes' if down == 1 else 'go'} down"
        return f"{len(order)} numbers, {how if down else 'in ascending order'}"
    length = tour_length(points, order)
    if sorted(order) != list(range(len(points))) or len(order) < 2:
        hull = ": their convex hull" if _is_hull(points, order) else ""
        return f"A closed line through {len(set(order))} of {len(points)} points, length {length:.2f}{hull}"
    best, unit = _compared(points)
    ratio = f": {length / best:.2f} times {unit}" if best else ""
    return f"A closed line through all {len(points)} points, length {length:.2f}{ratio}"


def _is_hull(points: Points, order: Sequence[int]) -> bool:
    """Whether all points lie on the same side of each line from one point of the order to the next, or on it."""
    if len(order) < 3 or len(set(order)) < len(order):
        return False
    sides = [
        _side(points[one], points[two], point)
        for one, two in pairwise([*order, order[0]])
        for point in points
    ]
    return min(sides) > -NEARLY_ZERO or max(sides) < NEARLY_ZERO


def _side(here: tuple[float, ...], there: tuple[float, ...], point: tuple[float, ...]) -> float:
    """Above 0 where the point lies on the left of the way from here to there."""
    (x, y), (u, v), (px, py) = here, there, point
    return (u - x) * (py - y) - (v - y) * (px - x)


def _compared(points: Points) -> tuple[float, str]:
    """The length to compare a tour with, and what it is: the shortest where there are few points."""
    if len(points) > MOST_SOLVED:
        return tour_length(points, nearest_tour(points)), "the nearest-neighbour tour"
    return shortest_length(points), "the shortest"


def apart(points: Points, least: float) -> NDArray[np.float64]:
    """Where points of two coordinates are drawn, (S, 2): those that are closer than `least` are moved apart.

    Of many points all stay where they are.

    >>> apart([(0.0, 0.0), (0.0, 0.2), (5.0, 5.0)], 1.0).round(2).tolist()
    [[0.0, -0.4], [0.0, 0.6], [5.0, 5.0]]
    """
    spots = np.array(points, dtype=np.float64)
    if len(points) > MOST_NAMED:
        return spots
    turns = 2.4 * np.arange(len(points))  # points in the same place go different ways
    around = 0.01 * least * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    for _ in range(ROUNDS):
        ways = spots[:, None] - spots[None]
        ways = np.where(ways.any(axis=-1, keepdims=True), ways, around[:, None] - around[None])
        far = np.linalg.norm(ways, axis=-1, keepdims=True)
        pushes = np.maximum(least - far, 0.0) / 2 * ways / np.maximum(far, TINY)
        if not pushes.any():
            break
        spots = spots + pushes.sum(axis=1)
    return spots


def tour_length(points: Points, order: Sequence[int]) -> float:
    """Of the closed line through the points in that order."""
    return math.fsum(
        math.dist(points[one], points[two]) for one, two in pairwise([*order, *order[:1]])
    )


def shortest_length(points: Points) -> float:
    """The length of the shortest tour, by dynamic programming over subsets (Held & Karp 1962).

    >>> shortest_length([(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
    4.0
    """
    rest = range(1, len(points))
    paths = {
        (frozenset([at]), at): math.dist(points[0], points[at]) for at in rest
    }  # from 0 through a set, to one
    for size in range(2, len(points)):
        for chosen in map(frozenset, combinations(rest, size)):
            for end in chosen:
                before = chosen - {end}
                paths[chosen, end] = min(
                    paths[before, at] + math.dist(points[at], points[end]) for at in before
                )
    return min(
        (paths[frozenset(rest), at] + math.dist(points[at], points[0]) for at in rest), default=0.0
    )


def _note(points: Points, order: Sequence[int]) -> str:
    """The points that are not in the order, or more than once.

    >>> _note([(0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (1.0, 1.0)], [0, 1, 2])
    'Not in the output: 3.'
    """
    notes = []
    for what, some in (
        ("Not in the output", [at for at in range(len(points)) if at not in set(order)]),
        ("More than once", sorted({at for at in order if order.count(at) > 1})),
    ):
        if some:
            names = ", ".join(str(at) for at in some[:8]) + (
                f" and {len(some) - 8} more" if len(some) > 8 else ""
            )
            notes.append(f"{what}: {names}.")
    return " ".join(notes)


def _line(axes: "Axes", points: Points, order: Sequence[int]) -> None:
    """Points of two coordinates; arrows lead from one to the next."""
    from matplotlib.colors import to_rgb

    size = min(max(80 / math.sqrt(len(points)), 10.0), 15.0)
    inch = (
        1.2 * float(np.ptp(points, axis=0).max() or 1.0) / PANEL
    )  # about, in the units of the points
    spots = apart(points, 1.1 * inch * size / 72)
    arrow = {
        "arrowstyle": "-|>",
        "color": LINE_COLOR,
        "linewidth": 1.3,
        "shrinkA": size / 2,
        "shrinkB": size / 2,
    }
    for here, there in pairwise([*order, *order[:1]]):
        if (spots[here] != spots[there]).any():
            axes.annotate("", spots[there], spots[here], arrowprops=arrow)
    for at, (x, y) in enumerate(spots):
        first, gone = bool(order) and at == order[0], at in order
        above = 3 + at / len(points)  # a point that covers another covers its number too
        inside, edge = (
            (START_COLOR, START_COLOR) if first else ("white", LINE_COLOR if gone else LEFT_OUT)
        )
        axes.plot(
            [x],
            [y],
            "o",
            markersize=size,
            markerfacecolor=inside,
            markeredgecolor=edge,
            zorder=above,
        )
        color = ink(to_rgb(inside)) if first or gone else GREY
        axes.text(
            x,
            y,
            str(at),
            ha="center",
            va="center_baseline",
            fontsize=0.47 * size,
            color=color,
            zorder=above,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    moved = "" if np.array_equal(spots, points) else f"\n{MOVED}"
    _quiet(axes, f"Numbers: positions in the input. Orange: the first of the output.{moved}")


def _bars(axes: "Axes", points: Points, order: Sequence[int]) -> None:
    """Numbers as bars, in the order of the output; the others follow, pale."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    heights = [points[at][0] for at in shown]
    colors = (
        [START_COLOR] * len(order[:1])
        + [LINE_COLOR] * len(order[1:])
        + [LEFT_OUT] * (len(shown) - len(order))
    )
    bars = axes.bar(range(len(shown)), heights, color=colors, width=0.8)
    if len(shown) <= MOST_NAMED:
        axes.bar_label(
            bars,
            [f"{height:.3g}" for height in heights],
            fontsize=min(8.0, 110 / len(shown)),
            padding=2,
        )
        axes.set_xticks(range(len(shown)), [str(at) for at in shown], fontsize=8)
    else:
        axes.set_xticks([])
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.margins(x=0.02, y=0.08)
    _quiet(axes, "Below: positions in the input, in the order of the output; the first is orange.")


def _heat(axes: "Axes", weights_TS: NDArray[np.float64], order: Sequence[int]) -> None:
    """The attention weights of each step, downwards; what it output has a frame."""
    from matplotlib.patches import Rectangle

    steps, points = weights_TS.shape
    show_cells(axes, weights_TS, numbers=max(points, steps) <= MOST_NUMBERS)
    names = [*(str(at) for at in order), "<stop>"][:steps]
    every = math.ceil(max(points, steps) / MOST_NAMED)
    axes.set_xticks(
        range(0, points, every), [str(at) for at in range(0, points, every)], fontsize=7
    )
    axes.set_yticks(range(0, steps, every), names[::every], fontsize=7)
    for row, at in enumerate(order):
        axes.add_patch(
            Rectangle((at - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=START_COLOR, linewidth=1.2)
        )
    lines: dict[str, Any] = {"color": GRID, "linewidth": 0.6, "zorder": 0.5}
    axes.vlines([at - 0.5 for at in range(1, points)], -0.5, steps - 0.5, **lines)
    axes.hlines([at - 0.5 for at in range(1, steps)], -0.5, points - 0.5, **lines)
    stop = "\nThe rest of a row, up to 1, is the weight of <stop>." if steps > len(order) else ""
    peak = peak_of(weights_TS)
    _quiet(
        axes,
        f"Each row is a step: its attention weights, darkest for {peak:.2f}. Framed: its output.{stop}",
    )


def _quiet(axes: "Axes", caption: str) -> None:
    """Thin grey axes without ticks, and a caption below."""
    axes.tick_params(length=0, labelsize=8, labelcolor=GREY)
    axes.spines[:].set_color("#d1d5db")
    axes.set_xlabel(caption, fontsize=8, color=GREY)
