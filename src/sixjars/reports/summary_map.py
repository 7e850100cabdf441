"""The map of summary vectors: their places in two dimensions, their neighbours and colours.

Dims: N examples, D features of a vector.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.reports.charts import Axis
from sixjars.reports.tables import map_table, shown_number
from sixjars.reports.values import SummaryScatter

NEAREST = 5
"""Neighbours of each example."""
COLORS = 8
"""Colours of classes; further classes share one."""
WIDTH, HEIGHT, MARGIN = 600, 450, 14


def projected(
    vectors_ND: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[float, float]] | None:
    """Principal components: the place of each vector in two dimensions, and the variance of both.

    None where all vectors are the same, as without an input, or where one is not finite.

    >>> spots, shares = projected(np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]]))
    >>> spots.round(6).tolist(), shares
    ([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]], (1.0, 0.0))
    """
    if len(vectors_ND) < 2 or not np.isfinite(vectors_ND).all():
        return None
    centred_ND = vectors_ND - vectors_ND.mean(0)
    if np.abs(centred_ND).max() < 1e-9:
        return None
    _, sizes, axes_DD = np.linalg.svd(centred_ND, full_matrices=False)
    two = axes_DD[:2]
    # The largest number of each axis is positive: its sign would be a matter of chance.
    signs = np.sign(two[np.arange(len(two)), np.abs(two).argmax(1)])
    spots = centred_ND @ (two * signs[:, None]).T
    variances = sizes**2 / (sizes**2).sum()
    if spots.shape[1] < 2:  # vectors of one number
        spots, variances = np.column_stack([spots, np.zeros(len(spots))]), np.append(variances, 0.0)
    return spots, (float(variances[0]), float(variances[1]))


def neighbours_of(vectors_ND: NDArray[np.float64]) -> list[list[tuple[int, float]]]:
    """The nearest other vectors of each by cosine similarity, the nearest first.

    >>> neighbours_of(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))[0][0][0]
    1
    """
    lengths = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit_ND = vectors_ND / np.where(lengths > 0, lengths, 1.0)
    neighbours = []
    for at, row in enumerate(unit_ND):
        alike = unit_ND @ row
        alike[at] = -np.inf
        best = np.argsort(-alike, kind="stable")[: min(NEAREST, len(alike) - 1)]
        neighbours.append([(int(other), float(alike[other])) for other in best])
    return neighbours


@final
@dataclass(frozen=True)
class Scale:
    """A value of each example, by which the points may be coloured."""

    name: str
    values: Sequence[float | None]
    is_reversed: bool = False
    """Whether lower values are better; the best has the same colour everywhere."""

    @property
    def known(self) -> list[float]:
        """The values of the examples that have one."""
        return [value for value in self.values if value is not None]

    @property
    def ends(self) -> list[str]:
        """The numbers on the left and on the right of the legend."""
        numbers = [shown_number(float(end)) for end in (min(self.known), max(self.known))]
        return numbers[::-1] if self.is_reversed else numbers

    @property
    def shares(self) -> list[float]:
        """The values from 0 to 1; an unknown one is the lowest."""
        known = self.known or [0.0]
        axis = Axis(min(known), max(known), 0.0, 1.0)
        shares = [0.0 if value is None else axis.place(value) for value in self.values]
        return [1.0 - share for share in shares] if self.is_reversed else shares


def map_values(summary: SummaryScatter, ranked_by: str) -> dict[str, Any]:
    """The points of the map, what they may be coloured by, where that differs, and their table."""
    lengths = Scale("length of the input", [example.length for example in summary.examples])
    scores = Scale(ranked_by, [example.score for example in summary.examples], summary.lower)
    scales = {"length": lengths, "score": scores}
    scales = {name: scale for name, scale in scales.items() if len(set(scale.known)) > 1}
    colours = {"class": "class"} if len(set(summary.labels)) > 1 else {}
    frequent = [label for label, _ in Counter(summary.labels).most_common(COLORS)]
    classes = list(enumerate(frequent))
    if len(set(summary.labels)) > COLORS:
        classes.append((COLORS, "others"))
    # points that lie so close cover each other
    places = np.unique(np.round(summary.spots / np.ptp(summary.spots), 4), axis=0)
    across, upwards = (f"{share:.0%}" for share in summary.shares)
    return {
        "across": across,
        "upwards": upwards,
        "count": len(summary.examples),
        "places": len(places),
        "colours": colours | {name: scale.name for name, scale in scales.items()},
        "classes": classes,
        "ramps": {name: scale.ends for name, scale in scales.items()},
        "width": WIDTH,
        "height": HEIGHT,
        "dots": _dots(summary, lengths.shares, scores.shares, frequent),
        "table": map_table(summary, ranked_by),
    }


def _dots(
    summary: SummaryScatter,
    lengths: Sequence[float],
    scores: Sequence[float],
    frequent: Sequence[str],
) -> list[tuple[float, float, str]]:
    """The place and the style of each point: its length and score from 0 to 1, and its class."""
    low, high = summary.spots.min(0).tolist(), summary.spots.max(0).tolist()
    across = Axis(low[0], high[0], MARGIN, WIDTH - MARGIN)
    up = Axis(low[1], high[1], HEIGHT - 0.75 * MARGIN, 0.75 * MARGIN)
    dots = []
    for at, (x, y) in enumerate(summary.spots.tolist()):
        style = f"--l:{lengths[at]:.2f};--s:{scores[at]:.2f}"
        if summary.labels:
            label = summary.labels[at]
            style += f";--k:var(--k{frequent.index(label) if label in frequent else COLORS})"
        dots.append((across.place(x), up.place(y), style))
    return dots
