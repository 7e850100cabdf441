"""Where the points of a tour lie on a page, and the arrows or bars for them, as values of SVG."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sixjars.drawing.tours import MOST_NAMED, MOVED, Points, apart, tour_title

Spot = tuple[float, float]


def tour_values(points: Points, order: Sequence[int]) -> dict[str, Any]:
    """The values of the template: bars for numbers, else spots and arrows from one to the next."""
    drawn = _bars(points, order) if len(points[0]) == 1 else _spots(points, order)
    return {"title": tour_title(points, order), "bars": [], **drawn}


def _spots(points: Points, order: Sequence[int]) -> dict[str, Any]:
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    spread = float(max(high - low)) or 1.0
    offsets = [(440 * (x - low[0]) / spread, 440 * (y - low[1]) / spread) for x, y in points]
    places = [(30 + right, 470 - up) for right, up in offsets]
    spots = [(float(x), float(y)) for x, y in apart(places, 28.0)]
    left, top = np.min(spots, axis=0)
    right, bottom = np.max(spots, axis=0)
    width = max(right - left + 32, 500.0)  # points that were moved apart may lie outside
    box = (left + right - width) / 2, top - 16, width, bottom - top + 32
    return {
        "spots": spots,
        "arrows": [_arrow(spots[a], spots[b]) for a, b in pairwise([*order, *order[:1]])],
        "box": " ".join(f"{side:.0f}" for side in box),
        "moved": MOVED if spots != places else "",
    }


def _arrow(here: Spot, there: Spot) -> tuple[Spot, Spot, list[Spot]]:
    """The ends of a line between two circles, from edge to edge, and the corners of its head."""
    (x, y), (u, v) = here, there
    far = max(float(np.hypot(u - x, v - y)), 1e-6)
    along_x, along_y = (u - x) / far, (v - y) / far
    edge = min(14.0, far / 2)
    tip_x, tip_y = u - edge * along_x, v - edge * along_y
    back_x, back_y = tip_x - 12 * along_x, tip_y - 12 * along_y
    left = back_x - 4 * along_y, back_y + 4 * along_x
    right = back_x + 4 * along_y, back_y - 4 * along_x
    return (x + edge * along_x, y + edge * along_y), (back_x, back_y), [(tip_x, tip_y), left, right]


def _bars(points: Points, order: Sequence[int]) -> dict[str, Any]:
    """Numbers in the order of the output; the others follow. Of many, none has its number."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    numbers = [point[0] for point in points]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    unit, wide = 230 / ((high - low) or 1.0), 480 / len(shown)
    ground = 250 + unit * low
    bars = []
    for place, at in enumerate(shown):
        left = 10 + place * wide
        bar = {"at": at, "number": numbers[at], "x": left + wide / 10, "middle": left + wide / 2}
        height = unit * numbers[at]
        size = {"top": ground - max(height, 0), "width": 0.8 * wide, "height": abs(height)}
        bars.append(bar | size)
    return {"bars": bars, "letters": min(13.0, wide / 2.5) if len(shown) <= MOST_NAMED else 0.0}
