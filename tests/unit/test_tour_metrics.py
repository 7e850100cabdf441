"""Metrics of tours against arithmetic by hand."""

import math
from itertools import product
from random import Random

import numpy as np
import pytest

from sixjars.errors import DataError
from sixjars.evaluation.metrics import METRICS, Outcome, score
from sixjars.samples import tours

KITE = "0,0 3,4 3,0 0,4"
"""A rectangle of 3 by 4, its diagonal 5: round it is 14, over the diagonals 18 or 16."""
NAMES = ("tour_length_ratio", "tour_over_nearest", "valid_tours")


def values(*outcomes: Outcome) -> list[float]:
    return [one.value for one in score(outcomes, NAMES)]


def outputs(*orders: str, truth: str = "0 2 1 3", points: str = KITE) -> list[Outcome]:
    return [Outcome((truth,), (order,), given=points) for order in orders]


def test_lengths_by_hand() -> None:
    assert values(*outputs("0 2 1 3")) == pytest.approx([1.0, 1.0, 1.0])
    # from elsewhere, the other way round
    assert values(*outputs("1 2 0 3")) == pytest.approx([1.0, 1.0, 1.0])
    assert values(*outputs("0 1 2 3")) == pytest.approx([18 / 14, 18 / 14, 1.0])
    assert values(*outputs("0 1 3 2")) == pytest.approx([16 / 14, 16 / 14, 1.0])
    assert values(*outputs("0 1 2 3", "0 2 1 3")) == pytest.approx([16 / 14, 16 / 14, 1.0])


def test_nearest_neighbour_by_hand() -> None:
    """On a line the nearest goes 0, 1, -1.5, 4 and home: 1 + 2.5 + 5.5 + 4; the best is 11."""
    line = "0 1 -1.5 4"
    assert values(*outputs("0 1 3 2", truth="0 1 3 2", points=line)) == pytest.approx(
        [1.0, 11 / 13, 1.0]
    )


@pytest.mark.parametrize(
    "order", ["", "0 2 1", "0 2 1 3 3", "0 2 1 1", "0 2 1 4", "0 2 one 3", "0 2 1 3 4"]
)
def test_what_is_no_tour_has_no_length(order: str) -> None:
    assert values(*outputs(order)) == [math.inf, math.inf, 0.0]
    assert values(*outputs(order, "0 1 2 3", order, order)) == pytest.approx(
        [18 / 14, 18 / 14, 0.25]
    )


def test_points_that_are_all_the_same_and_a_single_one() -> None:
    assert values(*outputs("2 1 0", truth="0 1 2", points="1,1 1,1 1,1")) == [1.0, 1.0, 1.0]
    assert values(*outputs("0", truth="0", points="1,1")) == [1.0, 1.0, 1.0]


def test_nearest_neighbour_is_that_of_the_corpus() -> None:
    rng = Random(1)
    for _ in range(20):
        points = [(rng.random(), rng.random()) for _ in range(9)]
        text = " ".join(f"{across},{up}" for across, up in points)
        apart = np.array([math.dist(one, two) for one, two in product(points, points)]).reshape(
            1, 9, 9
        )
        order = " ".join(map(str, tours.nearest(apart)[0].tolist()))
        assert values(*outputs(order, truth=order, points=text)) == pytest.approx([1.0, 1.0, 1.0])


def test_what_the_metrics_need() -> None:
    assert [METRICS[name].better for name in NAMES] == ["lower", "lower", "higher"]
    told = "tour_length_ratio|closed|first reference|valid tours"
    assert score(outputs("0 1 2 3"), NAMES)[0].signature.startswith(told)
    for name in NAMES:
        told = f"^{name} compares outputs with the input, but example 1 of 1 "
        with pytest.raises(DataError, match=told):
            score([Outcome(("0 1",), ("0 1",))], [name])
        told = r"^A tour is measured by its points, but 'x,y' are none: 'x' of point "
        with pytest.raises(DataError, match=told):
            score(outputs("0", points="x,y"), [name])


def test_a_true_order_that_is_no_tour_is_no_measure() -> None:
    with pytest.raises(DataError) as error:
        score(outputs("0 1 2 3", truth="0 2 1"), ["tour_length_ratio"])
    assert str(error.value) == (
        "tour_length_ratio compares with a true tour, but the order '0 2 1' does not come to each "
        "of 4 points once. "
        "Use exact_match where orders are no tours."
    )
    assert score(outputs("0 1 2 3", truth="0 2 1"), ["tour_over_nearest"])[
        0
    ].value == pytest.approx(18 / 14)
