"""The map of summary vectors: their places in two dimensions, and their neighbours.

Dims: N examples, D features of a vector.
"""

import numpy as np
from numpy.typing import NDArray

NEAREST = 5
"""Neighbours of each example."""


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
