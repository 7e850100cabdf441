"""Metrics of the length of tours that a model outputs.

A tour is an order of all points that returns to the first one. An output that is none (it names a
point that is not there, leaves one out or has one twice) has no length: `valid_tours` is the share
of outputs that are tours, and the other two metrics are over those alone. So report it beside them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from sixjars.evaluation.metrics.outcome import Outcome
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.points import order_of, points_of

Point = tuple[float, ...]


def tour_length_ratio(outcomes: Sequence[Outcome]) -> float:
    r"""Mean length of the output tour over that of the true one; infinite if no output is a tour.

    .. math:: \frac{1}{|T|} \sum_{i \in T} \frac{L(\hat y_i)}{L(y_i)}, \quad
              L(y) = \sum_t \lVert p_{y_t} - p_{y_{t+1}} \rVert

    T are the outputs that are tours. The true one is the first reference; where it is the shortest
    there is, 1 is the best. The comparison of Vinyals, Fortunato & Jaitly 2015, section 4.4
    (https://arxiv.org/abs/1506.03134), example by example. 1 where all points are the same.

    >>> square = "0,0 0,1 1,1 1,0"
    >>> round(tour_length_ratio([Outcome(("0 1 2 3",), ("0 2 1 3",), given=square)]), 4)
    1.2071
    """
    return _mean_ratio(outcomes, _true_length)


def tour_over_nearest(outcomes: Sequence[Outcome]) -> float:
    r"""Mean length of the output tour over that of the nearest-neighbour tour; infinite if none.

    .. math:: \frac{1}{|T|} \sum_{i \in T} \frac{L(\hat y_i)}{L(n_i)}

    `n` begins at point 0 and goes on to the nearest point that is left, of equally near ones to the
    first. With many points it is about a fourth longer than the shortest (Johnson & McGeoch 1997,
    "The traveling salesman problem: a case study in local optimization"), so a good model is below
    1. No true tours are needed; otherwise as `tour_length_ratio`.

    >>> tour_over_nearest([Outcome(("0 1 2 3",), ("0 1 2 3",), given="0,0 0,1 1,1 1,0")])
    1.0
    """
    return _mean_ratio(outcomes, lambda points, _: tour_length(points, nearest_tour(points)))


def valid_tours(outcomes: Sequence[Outcome]) -> float:
    r"""Share of outputs that are tours: every point once; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \text{ is an order of all points}]

    Vinyals, Fortunato & Jaitly 2015 (https://arxiv.org/abs/1506.03134), section 4.4, enforce it in
    search; so does a pointer decoder here that visits all.

    >>> square = "0,0 0,1 1,1 1,0"
    >>> outputs = ("3 1 0 2", "0 1 1 2", "0 1 2")
    >>> valid_tours([Outcome(("0 1 2 3",), (output,), given=square) for output in outputs])
    0.3333333333333333
    """
    return len(list(_valid(outcomes))) / len(outcomes)


def nearest_tour(points: Sequence[Point]) -> list[int]:
    """A tour from point 0, always to the nearest point left; of equally near ones to the first.

    >>> nearest_tour([(0.0,), (5.0,), (1.0,), (-2.0,)])
    [0, 2, 3, 1]
    """
    tour = [0]
    left = list(range(1, len(points)))
    while left:
        tour.append(min(left, key=lambda place: math.dist(points[tour[-1]], points[place])))
        left.remove(tour[-1])
    return tour


def tour_length(points: Sequence[Point], tour: Sequence[int]) -> float:
    """The length of the closed line through the points in that order, back to the first."""
    edges = pairwise([*tour, *tour[:1]])
    return math.fsum(math.dist(points[a], points[b]) for a, b in edges)


def _mean_ratio(
    outcomes: Sequence[Outcome], unit_of: Callable[[list[Point], Outcome], float]
) -> float:
    ratios = []
    for points, tour, outcome in _valid(outcomes):
        length, unit = tour_length(points, tour), unit_of(points, outcome)
        ratios.append(length / unit if unit else 1.0)
    return math.fsum(ratios) / len(ratios) if ratios else math.inf


def _valid(outcomes: Sequence[Outcome]) -> Iterator[tuple[list[Point], list[int], Outcome]]:
    for outcome in outcomes:
        assert outcome.given is not None
        try:
            points = points_of(outcome.given)
        except ValueError as error:
            raise DataError(
                f"A tour is measured by its points, but {outcome.given!r} are none: {error}"
            ) from error
        tour = _tour(outcome.candidates[0], len(points))
        if tour is not None:
            yield points, tour, outcome


def _tour(text: str, points: int) -> list[int] | None:
    try:
        order = order_of(text, points)
    except ValueError:
        return None
    return order if len(order) == points else None


def _true_length(points: list[Point], outcome: Outcome) -> float:
    tour = _tour(outcome.references[0], len(points))
    if tour is None:
        raise DataError(
            f"tour_length_ratio compares with a true tour, but the order {outcome.references[0]!r} "
            f"does not come to each of {len(points)} points once. "
            "Use exact_match where orders are no tours."
        )
    return tour_length(points, tour)
