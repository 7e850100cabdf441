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
"""Points whose shortest tour is found for comparison; the time doubles with each more."""
NEARLY_ZERO, TINY = 1e-9, 1e-12
"""An area and a length that are 0 but for rounding."""
ROUNDS = 50
"""Times that points are moved apart."""
MOVED = "Points that would cover each other are drawn side by side."
MOST_NAMED, MOST_NUMBERS = 30, 12
"""Points with names beside the heat map, and with room for numbers in its cells."""


def draw_tour(
    path: Path, *, points: Points, order: Sequence[int], title: str = "", weights: Weights = ()
) -> None:
    """Draw points with the closed line through them in `order`, which may be a tour or a hull.

    Points of one coordinate are bars in that order, as for sorting. Points have the numbers of
    their positions in the input, counted from 0 as in `order`. With `weights`, a row for each step
    over the points, a heat map of the attention weights is beside it; the row of the step that
    output `<stop>` may follow.
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


def tour_title(points: Points, order: Sequence[int]) -> str:
    """The length of the closed line and how it compares, or whether numbers are sorted.

    >>> tour_title([(0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (1.0, 1.0)], [0, 1, 2])
    'A closed line through 3 of 4 points, length 12.00: their convex hull'
    >>> tour_title([(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)], [0, 1, 2, 3])
    'A closed line through all 4 points, length 4.83: 1.21 times the shortest'
    >>> tour_title([(3.0,), (1.0,), (2.0,)], [1, 0, 2])
    '3 numbers, not sorted: 1 of 2 steps goes down'
    """
    if points and len(points[0]) == 1:
        down = sum(points[a][0] > points[b][0] for a, b in pairwise(order))
        falls = f"{down} of {len(order) - 1} steps {'goes' if down == 1 else 'go'} down"
        return f"{len(order)} numbers, {f'not sorted: {falls}' if down else 'in ascending order'}"
    length = tour_length(points, order)
    if sorted(order) != list(range(len(points))) or len(order) < 2:
        through = f"{len(set(order))} of {len(points)}"
        comparison = ": their convex hull" if _is_hull(points, order) else ""
    else:
        through = f"all {len(points)}"
        best, unit = _compared(points)
        comparison = f": {length / best:.2f} times {unit}" if best else ""
    return f"A closed line through {through} points, length {length:.2f}{comparison}"


def _is_hull(points: Points, order: Sequence[int]) -> bool:
    """Whether all points lie on the same side of each line of the closed order, or on it."""
    if len(order) < 3 or len(set(order)) < len(order):
        return False
    edges = [(points[a], points[b]) for a, b in pairwise([*order, order[0]])]
    sides = [_side(here, there, point) for here, there in edges for point in points]
    return min(sides) > -NEARLY_ZERO or max(sides) < NEARLY_ZERO


def _side(here: tuple[float, ...], there: tuple[float, ...], point: tuple[float, ...]) -> float:
    """Above 0 where the point lies on the left of the way from here to there."""
    (x, y), (u, v), (px, py) = here, there, point
    return (u - x) * (py - y) - (v - y) * (px - x)


def _compared(points: Points) -> tuple[float, str]:
    """The length to compare a tour with, and its name: the shortest where there are few points."""
    if len(points) > MOST_SOLVED:
        return tour_length(points, nearest_tour(points)), "the nearest-neighbour tour"
    return shortest_length(points), "the shortest"


def apart(points: Points, least: float) -> NDArray[np.float64]:
    """Spots for points of two coordinates, (S, 2); those closer than `least` are moved apart.

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
    """The length of the closed line through the points in that order."""
    edges = pairwise([*order, *order[:1]])
    return math.fsum(math.dist(points[a], points[b]) for a, b in edges)


def shortest_length(points: Points) -> float:
    """The length of the shortest tour, by dynamic programming over subsets (Held & Karp 1962).

    >>> shortest_length([(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
    4.0
    """
    rest = range(1, len(points))
    # the shortest path from 0 through all points of a set to one of them
    paths = {(frozenset([at]), at): math.dist(points[0], points[at]) for at in rest}
    for size in range(2, len(points)):
        for chosen in map(frozenset, combinations(rest, size)):
            for end in chosen:
                before, goal = chosen - {end}, points[end]
                lengths = (paths[before, at] + math.dist(points[at], goal) for at in before)
                paths[chosen, end] = min(lengths)
    everywhere = frozenset(rest)
    tours = (paths[everywhere, at] + math.dist(points[at], points[0]) for at in rest)
    return min(tours, default=0.0)


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
    """At most eight numbers as a text."""
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    return ", ".join(map(str, numbers[:8])) + more


def _line(axes: "Axes", points: Points, order: Sequence[int]) -> None:
    """Points of two coordinates; arrows lead from one to the next."""
    from matplotlib.colors import to_rgb

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


def _bars(axes: "Axes", points: Points, order: Sequence[int]) -> None:
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


def _heat(axes: "Axes", weights_TS: NDArray[np.float64], order: Sequence[int]) -> None:
    """The attention weights of each step, downwards; what it output has a frame."""
    from matplotlib.patches import Rectangle

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


def _quiet(axes: "Axes", caption: str) -> None:
    """Thin grey axes without ticks, and a caption below."""
    axes.tick_params(length=0, labelsize=8, labelcolor=GREY)
    axes.spines[:].set_color("#d1d5db")
    axes.set_xlabel(caption, fontsize=8, color=GREY)
