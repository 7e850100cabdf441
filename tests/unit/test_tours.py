"""Made-up tours, hulls and numbers to sort against brute force; metrics of tours against arithmetic by hand."""

import math
import time
from itertools import combinations, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.fields.points import order_of, points_of
from sixjars.errors import DataError
from sixjars.evaluation.metrics import METRICS, Outcome, score
from sixjars.samples import SAMPLES, Row, make, materialise, tours, vectors
from sixjars.samples.hull import hull

Point = tuple[float, ...]
KINDS = ("tours", "hull", "sorting")


def length(points: list[Point], order: list[int]) -> float:
    return sum(math.dist(points[order[at - 1]], points[order[at]]) for at in range(len(order)))


def rows(kind: str, size: int, longest: int | None = None) -> list[tuple[list[Point], list[int]]]:
    made = make("pointing", kind=kind, size=size, valid=0, test=0, longest=longest)["train"]
    return [(points_of(row["points"]), order_of(row["order"], len(points_of(row["points"])))) for row in made]


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
    """Where both can be had, exchanging edges ends a little above the shortest, and well below where it began."""
    cities = np.random.default_rng(0).random((200, 10, 2))
    apart = np.hypot(*(cities[:, :, None] - cities[:, None]).transpose(3, 0, 1, 2))
    near = tours.nearest(apart)
    best, good, begun = (
        np.array([length(points.tolist(), one.tolist()) for points, one in zip(cities, orders, strict=True)])
        for orders in (tours.shortest(apart), tours.exchanged(near, apart), near)
    )
    assert (best <= good + 1e-9).all()
    assert (good <= begun + 1e-9).all()
    assert (good / best).mean() < 1.05 < (begun / best).mean()


def test_ten_thousand_tours_take_seconds() -> None:
    begin = time.process_time()
    made = make("pointing", size=10_000, valid=0, test=0)["train"]
    assert time.process_time() - begin < 30
    assert len({row["points"] for row in made}) == 10_000


def test_one_city_and_the_next_are_solved_alike_alone_and_in_company() -> None:
    company = make("pointing", size=300, valid=0, test=0)["train"]
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
            if side(one, point, two) == 0 and math.dist(one, two) > max(math.dist(one, point), math.dist(two, point)):
                break
        else:
            triangles = (
                [side(a, b, point), side(b, c, point), side(c, a, point)] for a, b, c in combinations(others, 3)
            )
            if not any(min(sides) > 0 or max(sides) < 0 for sides in triangles):
                corners.add(number)
    return corners


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=9, unique=True))
def test_corners_are_those_that_no_others_surround(points: list[tuple[int, int]]) -> None:
    found = hull(points)
    assert set(found) == brute_hull([(float(across), float(up)) for across, up in points])
    assert len(set(found)) == len(found)
    assert found[0] == min(found)
    around = list(zip(found, [*found[1:], found[0]], strict=True))
    area = sum(points[one][0] * points[two][1] - points[two][0] * points[one][1] for one, two in around)
    assert area > 0 or len(found) == 2  # counter-clockwise


def test_hulls_of_a_corpus_have_every_point_on_their_left() -> None:
    made = rows("hull", 100)
    assert {len(points) for points, _ in made} == set(range(5, 11))
    for points, order in made:
        for one, two in zip(order, [*order[1:], order[0]], strict=True):
            (left, low), (right, high) = points[one], points[two]
            assert all((right - left) * (up - low) - (high - low) * (at - left) > -1e-12 for at, up in points)


def test_numbers_are_sorted() -> None:
    made = rows("sorting", 200)
    assert {len(points) for points, _ in made} == set(range(3, 9))
    for points, order in made:
        assert len(points[0]) == 1
        assert [points[place] for place in order] == sorted(points)
        assert len(set(points)) == len(points)


# Kinds of samples


def test_the_task_alone_is_tours() -> None:
    whole = make("pointing", size=5, valid=2, test=2)
    assert whole == make("pointing", kind="tours", size=5, valid=2, test=2)
    assert whole == make("pointing/tours", size=5, valid=2, test=2)
    assert len({str(make("pointing", kind=kind, size=5, valid=2, test=2)) for kind in KINDS}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_points_and_an_order_and_parts_share_nothing(kind: str) -> None:
    made = make("pointing", kind=kind, size=200, valid=50, test=50)
    every: list[Row] = [row for part in made.values() for row in part]
    assert all(list(row) == ["points", "order"] for row in every)
    assert SAMPLES[f"pointing/{kind}"].columns == ("points", "order")
    assert len({row["points"] for row in every}) == len(every) == 300
    assert all(
        len(number) == 6 and number.startswith("0.")
        for number in " ".join(row["points"].replace(",", " ") for row in every).split()
    )


def test_kinds_that_are_not_there() -> None:
    told = "^kind of the pointing sample 'tour' is unknown. Did you mean 'tours'\\? Known: hull, sorting, tours\\.$"
    with pytest.raises(DataError, match=told):
        make("pointing", kind="tour", size=1, valid=1, test=1)
    with pytest.raises(DataError, match=told):
        vectors("pointing", kind="tour", size=3)
    told = "^The translation sample is of one kind, but kind 'tours' is asked for. Remove `kind`.$"
    with pytest.raises(DataError, match=told):
        make("translation", kind="tours", size=1, valid=1, test=1)
    with pytest.raises(DataError, match=r"^sample 'pointin' is unknown\. Did you mean 'pointing'\? Known: [^/]*$"):
        make("pointin", size=1, valid=1, test=1)


def test_what_points_do_not_have(tmp_path: object) -> None:
    with pytest.raises(DataError, match=r"^The pointing sample has no word vectors, for it reads no words\."):
        vectors("pointing", kind="hull", size=3)
    with pytest.raises(DataError, match=r"^The pointing sample has no pictures or films to paint;"):
        materialise("pointing", ["x"], tmp_path, kind="hull")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "longest", "told"),
    [
        ("tours", 4, "must be 5 points or more, but is 4."),
        ("tours", 21, "must be 20 points or fewer, but is 21."),
        ("hull", 4, "must be 5 points or more, but is 4."),
        ("sorting", 2, "must be 3 points or more, but is 2."),
    ],
)
def test_too_few_and_too_many_points(kind: str, longest: int, told: str) -> None:
    with pytest.raises(DataError) as error:
        make("pointing", kind=kind, size=1, valid=1, test=1, longest=longest)
    assert str(error.value) == f"'longest' of the pointing sample {told}"


# Metrics

KITE = "0,0 3,4 3,0 0,4"
"""A rectangle of 3 by 4, its diagonal 5: round it is 14, over the diagonals 18 or 16."""
NAMES = ("tour_length_ratio", "tour_over_nearest", "valid_tours")


def values(*outcomes: Outcome) -> list[float]:
    return [one.value for one in score(outcomes, NAMES)]


def said(*orders: str, truth: str = "0 2 1 3", points: str = KITE) -> list[Outcome]:
    return [Outcome((truth,), (order,), given=points) for order in orders]


def test_lengths_by_hand() -> None:
    assert values(*said("0 2 1 3")) == pytest.approx([1.0, 1.0, 1.0])
    assert values(*said("1 2 0 3")) == pytest.approx([1.0, 1.0, 1.0])  # from elsewhere, the other way round
    assert values(*said("0 1 2 3")) == pytest.approx([18 / 14, 18 / 14, 1.0])
    assert values(*said("0 1 3 2")) == pytest.approx([16 / 14, 16 / 14, 1.0])
    assert values(*said("0 1 2 3", "0 2 1 3")) == pytest.approx([16 / 14, 16 / 14, 1.0])


def test_nearest_neighbour_by_hand() -> None:
    """On a line the nearest each time goes from 0 to 1, to -1.5, to 4 and home: 1 + 2.5 + 5.5 + 4; the best is 11."""
    line = "0 1 -1.5 4"
    assert values(*said("0 1 3 2", truth="0 1 3 2", points=line)) == pytest.approx([1.0, 11 / 13, 1.0])


@pytest.mark.parametrize("order", ["", "0 2 1", "0 2 1 3 3", "0 2 1 1", "0 2 1 4", "0 2 one 3", "0 2 1 3 4"])
def test_what_is_no_tour_has_no_length(order: str) -> None:
    assert values(*said(order)) == [math.inf, math.inf, 0.0]
    assert values(*said(order, "0 1 2 3", order, order)) == pytest.approx([18 / 14, 18 / 14, 0.25])


def test_points_that_are_all_the_same_and_a_single_one() -> None:
    assert values(*said("2 1 0", truth="0 1 2", points="1,1 1,1 1,1")) == [1.0, 1.0, 1.0]
    assert values(*said("0", truth="0", points="1,1")) == [1.0, 1.0, 1.0]


def test_nearest_neighbour_is_that_of_the_corpus() -> None:
    rng = Random(1)
    for _ in range(20):
        points = [(rng.random(), rng.random()) for _ in range(9)]
        text = " ".join(f"{across},{up}" for across, up in points)
        apart = np.array([math.dist(one, two) for one, two in product(points, points)]).reshape(1, 9, 9)
        order = " ".join(map(str, tours.nearest(apart)[0].tolist()))
        assert values(*said(order, truth=order, points=text)) == pytest.approx([1.0, 1.0, 1.0])


def test_what_the_metrics_need() -> None:
    assert [METRICS[name].better for name in NAMES] == ["lower", "lower", "higher"]
    assert score(said("0 1 2 3"), NAMES)[0].signature.startswith("tour_length_ratio|closed|first reference|valid tours")
    for name in NAMES:
        with pytest.raises(DataError, match=f"^{name} compares outputs with what the model read, but example 1 of 1 "):
            score([Outcome(("0 1",), ("0 1",))], [name])
        with pytest.raises(DataError, match=r"^A tour is measured by its points, but 'x,y' are none: 'x' of point "):
            score(said("0", points="x,y"), [name])


def test_a_true_order_that_is_no_tour_is_no_measure() -> None:
    with pytest.raises(DataError) as error:
        score(said("0 1 2 3", truth="0 2 1"), ["tour_length_ratio"])
    assert str(error.value) == (
        "tour_length_ratio compares with a true tour, but the order '0 2 1' does not come to each of 4 points once. "
        "Ask for exact_match where orders are no tours."
    )
    assert score(said("0 1 2 3", truth="0 2 1"), ["tour_over_nearest"])[0].value == pytest.approx(18 / 14)
