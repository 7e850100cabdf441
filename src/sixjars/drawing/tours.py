"""Points in the order of a pointer's output: how good the order is, and where points can be seen."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sixjars.evaluation.metrics.tours import nearest_tour, tour_length
from sixjars.samples.tours import tours

Points = Sequence[tuple[float, ...]]
MOST_SOLVED = 10
"""Points whose shortest tour is found for comparison; the time doubles with each more."""
NEARLY_ZERO, TINY = 1e-9, 1e-12
"""An area and a length that are 0 but for rounding."""
ROUNDS = 50
"""Times that points are moved apart."""
MOVED = "Points that would cover each other are drawn side by side."
MOST_NAMED = 30
"""Points that have names, and that are moved apart where they would cover each other."""


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
    [shortest] = tours(np.array([points])).tolist()
    return tour_length(points, shortest), "the shortest"


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
