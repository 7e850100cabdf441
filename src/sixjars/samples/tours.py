"""Points of the plane, and a short tour over them: the travelling salesperson's problem.

Dims: B instances, C cities, M = C - 1 cities besides the first, E pairs of edges.

A tour is written from city 0 on, in the direction in which the second city has a smaller number
than the last. Up to 12 cities it is the shortest there is; beyond, it is a good one: no exchange of
two edges makes it shorter. All rows of a corpus have the same number of cities, exactly `longest`:
so all tours are found at once.
"""

from functools import partial
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sixjars.samples.points import as_text, places
from sixjars.samples.sample import Corpus, Row

FEWEST, MOST = 5, 20
OPTIMAL_UP_TO: Final = 12
"""Cities up to which all subsets are searched; the time doubles with each more."""
TABLE: Final = 4_000_000
"""The most numbers in memory at once for that: 32 MB."""
GAIN: Final = 1e-9
"""The least gain of an exchange of edges; less is rounding."""

Orders = NDArray[np.int64]
Distances = NDArray[np.float64]


def solve(rows: list[Row]) -> list[Row]:
    """The same rows with the tour of each.

    >>> solve([{"points": "0.0,0.0 0.5,0.5 0.5,0.0 0.0,0.5"}])
    [{'points': '0.0,0.0 0.5,0.5 0.5,0.0 0.0,0.5', 'order': '0 2 1 3'}]
    """
    if not rows:
        return []
    numbers = np.array([row["points"].replace(",", " ").split() for row in rows], dtype=np.float64)
    pairs = zip(rows, tours(numbers.reshape(len(rows), -1, 2)).tolist(), strict=True)
    return [row | {"order": " ".join(map(str, order))} for row, order in pairs]


def tours(cities_BC2: NDArray[np.float64]) -> Orders:
    """A tour of each instance, (B, C): the shortest, or beyond 12 cities a good one."""
    apart = cities_BC2[:, :, None] - cities_BC2[:, None]
    distances_BCC = np.hypot(apart[..., 0], apart[..., 1])
    cities = cities_BC2.shape[1]
    if cities > OPTIMAL_UP_TO:
        return directed(exchanged(nearest(distances_BCC), distances_BCC))
    at_once = max(1, TABLE // (2 ** (cities - 1) * (cities - 1)))
    starts = range(0, len(distances_BCC), at_once)
    orders = [shortest(distances_BCC[start : start + at_once]) for start in starts]
    return directed(np.concatenate(orders))


def directed(orders: Orders) -> Orders:
    """Each tour in the direction in which the second city has a smaller number than the last."""
    backwards = np.concatenate([orders[:, :1], orders[:, :0:-1]], axis=1)
    return np.where(orders[:, 1:2] > orders[:, -1:], backwards, orders)


def shortest(distances_BCC: Distances) -> Orders:
    r"""The shortest tours from city 0, (B, C).

    .. math:: g(S, k) = \min_{j \in S \setminus \{k\}} g(S \setminus \{k\}, j) + d_{jk}

    is the length of the shortest way from city 0 through all of S that ends in k: Held & Karp 1962,
    "A dynamic programming approach to sequencing problems". All instances are computed side by
    side.
    """
    between = np.ascontiguousarray(distances_BCC.transpose(1, 2, 0))
    home_MB, others_MMB = between[0, 1:], between[1:, 1:]
    others = len(home_MB)
    # by subset of the cities, its last city, and instance
    lengths = np.full((2**others, *home_MB.shape), np.inf)
    for subset in range(1, 2**others):
        for last in range(others):
            rest = subset ^ (1 << last)
            if rest > subset:
                continue  # `last` is not in it
            before = (lengths[rest] + others_MMB[:, last]).min(0) if rest else home_MB[last]
            lengths[subset, last] = before
    return _traced(lengths, home_MB, others_MMB)


def _traced(lengths: Distances, home_MB: Distances, others_MMB: Distances) -> Orders:
    """The shortest tours, traced back from the lengths of the shortest ways."""
    others, instances = home_MB.shape
    each_B = np.arange(instances)
    subset_B = np.full(instances, 2**others - 1)
    last_B = (lengths[-1] + home_MB).argmin(0)
    visited = [last_B]
    for _ in range(others - 1):
        subset_B = subset_B ^ (1 << last_B)
        last_B = (lengths[subset_B, :, each_B] + others_MMB[:, last_B, each_B].T).argmin(1)
        visited.append(last_B)
    return np.stack([np.full(instances, -1), *visited[::-1]], axis=1) + 1


def nearest(distances_BCC: Distances) -> Orders:
    """Tours from city 0 that always go on to the nearest city not visited yet, (B, C)."""
    each_B = np.arange(len(distances_BCC))
    open_BC = np.ones(distances_BCC.shape[:2], dtype=bool)
    visited = [np.zeros(len(each_B), dtype=np.int64)]
    for _ in range(distances_BCC.shape[1] - 1):
        open_BC[each_B, visited[-1]] = False
        visited.append(np.where(open_BC, distances_BCC[each_B, visited[-1]], np.inf).argmin(1))
    return np.stack(visited, axis=1)


def exchanged(orders: Orders, distances_BCC: Distances) -> Orders:
    """The tours after the best exchanges of two edges, until none makes a tour shorter.

    Croes 1958, "A method for solving traveling-salesman problems": with the edges behind places i
    and j gone, all from i + 1 to j is walked the other way round.
    """
    orders = orders.copy()
    firsts_E, seconds_E = np.triu_indices(orders.shape[1], k=2)
    open_rows = np.arange(len(orders))
    while len(open_rows):
        order_BC = orders[open_rows]
        along_BCC = distances_BCC[open_rows[:, None, None], order_BC[:, :, None], order_BC[:, None]]
        onward_BC = np.roll(along_BCC, -1, axis=2).diagonal(axis1=1, axis2=2)
        across_BCC = np.roll(along_BCC, (-1, -1), axis=(1, 2))
        gains_BE = onward_BC[:, firsts_E] + onward_BC[:, seconds_E]
        gains_BE -= along_BCC[:, firsts_E, seconds_E]
        gains_BE -= across_BCC[:, firsts_E, seconds_E]
        best_B = gains_BE.argmax(1)
        better_B = gains_BE[np.arange(len(open_rows)), best_B] > GAIN
        low_B1, high_B1 = firsts_E[best_B][:, None], seconds_E[best_B][:, None]
        places_C = np.arange(orders.shape[1])
        turned_BC = (low_B1 < places_C) & (places_C <= high_B1)
        way_BC = np.where(turned_BC, low_B1 + 1 + high_B1 - places_C, places_C)
        open_rows = open_rows[better_B]
        orders[open_rows] = np.take_along_axis(order_BC, way_BC, axis=1)[better_B]
    return orders


@partial(
    Corpus,
    "pointing",
    ["points"],
    "order",
    solve=solve,
    tokens="points",
    lengths=(FEWEST, 10),
    most=MOST,
)
def tour(rng: Random, longest: int) -> Row:
    """Exactly `longest` points in a square, and a closed tour over all of them.

    Up to 12 the tour is the shortest, beyond 12 one that no exchange of two edges makes shorter.
    """
    return {"points": as_text(places(rng, longest))}
