"""The map of summary vectors: their places in two dimensions, their neighbours and colours.

Dims: N examples, D features of a vector.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

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


def map_values(summary: SummaryScatter, ranked_by: str) -> dict[str, Any]:
    """The points of the map, what they may be coloured by, where that differs, and their table."""
    examples, labels = summary.examples, summary.labels
    lengths, of_lengths = scaled([example.length for example in examples])
    scores, of_scores = scaled([example.score for example in examples], is_reversed=summary.lower)
    scales = {"length": ("length of the input", of_lengths), "score": (ranked_by, of_scores)}
    scales = {name: scale for name, scale in scales.items() if scale[1]}
    colours = {"class": "class"} if len(set(labels)) > 1 else {}
    frequent = [label for label, _ in Counter(labels).most_common(COLORS)]
    classes = list(enumerate(frequent))
    if len(set(labels)) > COLORS:
        classes.append((COLORS, "others"))
    styles = [f"--l:{x:.2f};--s:{y:.2f}" for x, y in zip(lengths, scores, strict=True)]
    for at, label in enumerate(labels):
        color = frequent.index(label) if label in frequent else COLORS
        styles[at] += f";--k:var(--k{color})"
    # points that lie so close cover each other
    places = np.unique(np.round(summary.spots / np.ptp(summary.spots), 4), axis=0)
    across, upwards = (f"{share:.0%}" for share in summary.shares)
    return {
        "across": across,
        "upwards": upwards,
        "count": len(examples),
        "places": len(places),
        "colours": colours | {name: text for name, (text, _) in scales.items()},
        "classes": classes,
        "ramps": {name: ends for name, (_, ends) in scales.items()},
        "width": WIDTH,
        "height": HEIGHT,
        "dots": [(*spot, style) for spot, style in zip(_spots(summary), styles, strict=True)],
        "table": map_table(summary, ranked_by),
    }


def scaled(
    values: Sequence[float | None], *, is_reversed: bool = False
) -> tuple[list[float], list[str]]:
    """Values from 0 to 1, and the numbers at both ends of the legend; none where all are the same.

    An unknown value is the lowest. Where lower ones are better, the order is reversed: the best has
    the same colour everywhere.
    """
    known = [value for value in values if value is not None]
    axis = Axis(min(known, default=0.0), max(known, default=0.0), 0.0, 1.0)
    shares = [0.0 if value is None else axis.place(value) for value in values]
    ends = [shown_number(float(end)) for end in (axis.low, axis.high)]
    if is_reversed:
        shares, ends = [1.0 - share for share in shares], ends[::-1]
    return shares, ends if len(set(known)) > 1 else []


def _spots(summary: SummaryScatter) -> list[tuple[float, float]]:
    low, high = summary.spots.min(0).tolist(), summary.spots.max(0).tolist()
    across = Axis(low[0], high[0], MARGIN, WIDTH - MARGIN)
    up = Axis(low[1], high[1], HEIGHT - 0.75 * MARGIN, 0.75 * MARGIN)
    return [(across.place(x), up.place(y)) for x, y in summary.spots.tolist()]
