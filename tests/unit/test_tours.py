"""Synthetic tours, hulls and numbers to sort against brute force."""

import math
import time
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.samples import Row, generate, tours
from sixjars.samples.points import hull

Point = tuple[float, ...]
KINDS = ("tours", "hull", "sorting")


def length(points: list[Point], order: list[int]) -> float:
    return sum(math.dist(points[order[at - 1]], points[order[at]]) for at in range(len(order)))


def rows(kind: str, size: int, longest: int | None = None) -> list[tuple[list[Point], list[int]]]:
    made = generate("pointing", kind=kind, size=size, valid=0, test=0, longest=longest)["train"]
    return [(points_of(row), [int(place) for place in row["order"].split()]) for row in made]


def points_of(row: Row) -> list[Point]:
    return [tuple(float(number) for number in point.split(",")) for point in row["points"].split()]


# Tours


@pytest.mark.parametrize("cities", [5, 6, 7, 8])
def test_no_order_of_the_cities_is_shorter(cities: int) -> None:
    for points, order in rows("tours", 8, cities):
        every = ([0, *rest] for rest in permutations(range(1, cities)))
        assert length(points, order) == pytest.approx(min(length(points, one) for one in every))


@pytest.mark.parametrize("cities", [5, 10, 12, 13, 20])
def test_a_tour_is_over_all_cities_from_the_first_in_one_direction(cities: int) -> None:
    for points, order in rows("tours", 40, cities):
        assert len(points) == cities
        assert sorted(order) == list(range(cities))
        assert order[0] == 0
        assert order[1] < order[-1]


def test_no_exchange_of_two_edges_helps_a_long_tour() -> None:
    for points, order in rows("tours", 10, 16):
        for low, high in combinations(range(17), 2):
            other = order[:low] + order[low:high][::-1] + order[high:]
            assert length(points, other) > length(points, order) - 1e-8


def test_long_tours_are_near_the_shortest() -> None:
    """Where both can be had, exchanging edges ends a little above the shortest."""
    cities = np.random.default_rng(0).random((200, 10, 2))
    apart = np.hypot(*(cities[:, :, None] - cities[:, None]).transpose(3, 0, 1, 2))
    near = tours.nearest(apart)
    best, good, begun = (
        np.array([length(*pair) for pair in zip(cities.tolist(), orders.tolist(), strict=True)])
        for orders in (tours.shortest(apart), tours.exchanged(near, apart), near)
    )
    assert (best <= good + 1e-9).all()
    assert (good <= begun + 1e-9).all()
    assert (good / best).mean() < 1.05 < (begun / best).mean()


def test_ten_thousand_tours_take_seconds() -> None:
    begin = time.process_time()
    made = generate("pointing", size=10_000, valid=0, test=0)["train"]
    assert time.process_time() - begin < 30
    assert len({row["points"] for row in made}) == 10_000


def test_one_city_and_the_next_are_solved_alike_alone_and_in_company() -> None:
    company = generate("pointing", size=300, valid=0, test=0)["train"]
    alone = [tours.solve([{"points": row["points"]}])[0] for row in company[::30]]
    assert alone == company[::30]
    assert tours.solve([]) == []


# Hulls and numbers


def brute_hull(points: list[Point]) -> set[int]:
    """Corners are points outside every triangle of others, and on no line between two others."""

    def side(one: Point, two: Point, three: Point) -> float:
        return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])

    corners = set()
    for number, point in enumerate(points):
        others = [other for other in points if other != point]
        for one, two in permutations(others, 2):
            if side(one, point, two) == 0 and math.dist(one, two) > max(
                math.dist(one, point), math.dist(two, point)
            ):
                break
        else:
            triangles = (
                [side(a, b, point), side(b, c, point), side(c, a, point)]
                for a, b, c in combinations(others, 3)
            )
            if not any(min(sides) > 0 or max(sides) < 0 for sides in triangles):
                corners.add(number)
    return corners


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=9, unique=True)
)
def test_corners_are_those_that_no_others_surround(points: list[tuple[int, int]]) -> None:
    found = hull(points)
    assert set(found) == brute_hull([(float(across), float(up)) for across, up in points])
    assert len(set(found)) == len(found)
    assert found[0] == min(found)
    around = list(zip(found, [*found[1:], found[0]], strict=True))
    area = sum(
        points[one][0] * points[two][1] - points[two][0] * points[one][1] for one, two in around
    )
    assert area > 0 or len(found) == 2  # counter-clockwise


def test_hulls_of_a_corpus_have_every_point_on_their_left() -> None:
    made = rows("hull", 100)
    assert {len(points) for points, _ in made} == set(range(5, 11))
    for points, order in made:
        for one, two in zip(order, [*order[1:], order[0]], strict=True):
            (left, low), (right, high) = points[one], points[two]
            assert all(
                (right - left) * (up - low) - (high - low) * (at - left) > -1e-12
                for at, up in points
            )


def test_numbers_are_sorted() -> None:
    made = rows("sorting", 200)
    assert {len(points) for points, _ in made} == set(range(3, 9))
    for points, order in made:
        assert len(points[0]) == 1
        assert [points[place] for place in order] == sorted(points)
        assert len(set(points)) == len(points)


# Kinds of samples


def test_the_task_alone_is_tours() -> None:
    whole = generate("pointing", size=5, valid=2, test=2)
    assert whole == generate("pointing", kind="tours", size=5, valid=2, test=2)
    assert whole == generate("pointing/tours", size=5, valid=2, test=2)
    made = [str(generate("pointing", kind=kind, size=5, valid=2, test=2)) for kind in KINDS]
    assert len(set(made)) == 3
