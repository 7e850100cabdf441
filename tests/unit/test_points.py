"""Points and orders: texts, JSON, rectangles and tokens."""

import time
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.fields.points import Places, PointColumn, order_of, points_of, text_of_order, text_of_points
from sixjars.errors import DataError, RunError
from sixjars.model.encoders.points import PointsEncoder

finite = st.floats(allow_nan=False, allow_infinity=False, width=32).filter(lambda number: abs(number) < 3e38)
clouds = st.integers(1, 3).flatmap(
    lambda size: st.lists(
        st.lists(st.lists(finite, min_size=size, max_size=size), min_size=1, max_size=5), min_size=1, max_size=6
    )
)


# Texts


def test_points_of_any_size() -> None:
    assert points_of(" 0.5,-1  2e-1,3 ") == [(0.5, -1.0), (0.2, 3.0)]
    assert points_of("3 1.5 2") == [(3.0,), (1.5,), (2.0,)]
    assert points_of("1,2,3") == [(1.0, 2.0, 3.0)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no point; write at least one, like 0.12,0.7 0.3,0.25."),
        (" \t", "there is no point; write at least one, like 0.12,0.7 0.3,0.25."),
        ("1,2 3,x", "'x' of point '3,x' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ("1,2 3,", "'' of point '3,' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ("1, 2", "'' of point '1,' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ("1,nan", "'nan' of point '1,nan' is not a number that can be reckoned with."),
        ("-inf,0", "'-inf' of point '-inf,0' is not a number that can be reckoned with."),
        ("1e39,0", "'1e39' of point '1e39,0' is not a number that can be reckoned with."),
        (
            "1,2 3",
            "a point has 1 number and the first has 2 numbers; all must have as many, like 0.12,0.7 0.3,0.25.",
        ),
    ],
)
def test_what_is_no_point(text: str, told: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole sentence is read below
        points_of(text)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no position; write at least one, like 2 0 1."),
        ("0 one", "'one' is not a position; write whole numbers counted from 0, like 2 0 1."),
        ("0 -1", "'-1' is not a position; write whole numbers counted from 0, like 2 0 1."),
        ("0 1.0", "'1.0' is not a position; write whole numbers counted from 0, like 2 0 1."),
        ("0 ²", "'²' is not a position; write whole numbers counted from 0, like 2 0 1."),
        ("0 3", "position 3 is not there: there are 3 points, counted from 0."),
        ("1 0 1", "position 1 comes 2 times; each may come once."),
    ],
)
def test_what_is_no_order(text: str, told: str) -> None:
    assert order_of("2 0", points=3) == [2, 0]
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole sentence is read below
        order_of(text, points=3)
    assert str(error.value) == told


def test_json_becomes_text() -> None:
    assert text_of_points([["0.1", 2], [3.5, "-4e-2"]]) == "0.1,2 3.5,-4e-2"
    assert text_of_points([5, " 0.25\n"]) == "5 0.25"
    assert text_of_points(["0.1,2", [3, 4]]) == "0.1,2 3,4"
    assert text_of_points("0.1,2 3,4") == "0.1,2 3,4"
    assert text_of_order([2, "0", 1]) == "2 0 1"
    assert text_of_order("2 0 1") == "2 0 1"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"x": 1}, r"^must be a list of points like \[\[0.12, 0.7\], .* or of numbers, but is {'x': 1}\.$"),
        ([[1, [2]]], r"^must be a list of points like .*, but has \[2\] in it\.$"),
        ([[1, None]], r"^must be a list of points like .*, but has None in it\.$"),
        ([True], r"^must be a list of points like .*, but has True in it\.$"),
        ([[0.1, 0.2], []], r"^must be a list of points like .*, but has \[\] in it\.$"),
        (["0.1,0.2 0.5,0.6", [0.3, 0.4]], r"^must be a list of points like .*, but has '0.1,0.2 0.5,0.6' in it\.$"),
        ([[0.1, "0.2\t0.3"]], r"^must be a list of points like .*, but has '0.2\\t0.3' in it\.$"),
        ([0.1, " "], r"^must be a list of points like .*, but has ' ' in it\.$"),
    ],
)
def test_json_that_is_no_points(value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        text_of_points(value)


def test_json_that_is_no_order() -> None:
    with pytest.raises(ValueError, match=r"^must be a list of positions like \[2, 0, 1\], but is 3\.$"):
        text_of_order(3)
    with pytest.raises(ValueError, match=r"^must be a list of positions like \[2, 0, 1\], but has \[1\] in it\.$"):
        text_of_order([0, [1]])
    with pytest.raises(ValueError, match=r"^must be a list of positions like \[2, 0, 1\], but has '0 1' in it\.$"):
        text_of_order(["0 1", 2])


# Rectangles


@given(clouds)
def test_a_rectangle_holds_what_the_texts_say(cloud: list[list[list[float]]]) -> None:
    numbers = PointColumn.parsed([text_of_points(row) for row in cloud])
    assert numbers.numbers == len(cloud[0][0])
    assert numbers.lengths.tolist() == [len(row) for row in cloud]
    rows = list(range(len(cloud)))[::-1]
    padded = numbers.padded(np.array(rows))
    assert padded.values.dtype == torch.float32
    for at, row in enumerate(rows):
        assert torch.equal(padded.values[at][padded.mask[at]], torch.tensor(cloud[row], dtype=torch.float32))
        assert not padded.values[at][~padded.mask[at]].any()
        assert padded.mask[at].sum() == len(cloud[row])


def test_unusual_spelling_is_read_all_the_same() -> None:
    usual, unusual = PointColumn.parsed(["1000,2 3,4"]), PointColumn.parsed([" 1_000,2\t3,4 "])
    assert np.array_equal(usual.points_MN, unusual.points_MN)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["1,2 3,4", "1,2,3 4"], "row 2: a point has 1 number and the first has 3 numbers;"),  # as many numbers in all
        (["1,2 3,4", "1,2,3 4,5,6"], "row 2: its points have 3 numbers, but those of row 1 have 2."),
        (["1,2", "3,4", ""], "row 3: there is no point;"),
        (["1,2", "3,4x"], "row 2: '4x' of point '3,4x' is not a number;"),
        (["1,2", "3,,4"], "row 2: '' of point '3,,4' is not a number;"),
        (["1,nan"], "row 1: 'nan' of point '1,nan' is not a number that can be reckoned with."),
        (["1,1e300"], "row 1: '1e300' of point '1,1e300' is not a number that can be reckoned with."),
        (["1,½"], "row 1: '½' of point '1,½' is not a number;"),
        ([], "there is no row of points."),
    ],
)
def test_the_row_that_is_wrong_is_named(texts: list[str], told: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the sentence is read below
        PointColumn.parsed(texts)
    assert str(error.value).startswith(told)


def test_many_rows_are_read_fast() -> None:
    rng = Random(0)
    texts = [" ".join(f"{rng.random():.4f},{rng.random():.4f}" for _ in range(10)) for _ in range(2000)] * 100
    begin = time.process_time()
    numbers = PointColumn.parsed(texts)
    assert time.process_time() - begin < 10
    assert numbers.lengths.sum() == len(numbers.points_MN) == 2_000_000
    assert points_of(texts[-1])[-1] == pytest.approx(tuple(numbers.points_MN[-1].tolist()))


# TextTokenizer


def test_places_stand_where_tokens_can() -> None:
    places = Places.from_json(Places().to_json())
    assert places.size == 4
    assert places.encode_many(["2 0 1", " 10 ", ""]) == [[6, 4, 5], [14], []]
    assert places.decode([1, 6, 4, 5, 2, 0, 3]) == "2 0 1"
    assert places.tokens([6, 2, 14]) == ["2", "<stop>", "10"]
    assert places.normal(" 02  0\t1 ") == "2 0 1"
    assert places.normal("2  and 1") == "2 and 1"


@given(st.lists(st.integers(0, 999), min_size=1))
def test_orders_and_tokens_are_each_other_s_opposite(order: list[int]) -> None:
    [ids] = Places().encode_many([text_of_order(order)])
    assert Places().decode(ids) == " ".join(Places().tokens(ids)) == text_of_order(order)


def test_an_order_that_cannot_be_read() -> None:
    with pytest.raises(DataError, match=r"^An order of points cannot be read: 'x' is not a position; write whole "):
        Places().encode_many(["0 1", "0 x"])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 2, "places": ""}', '{"format": 1, "labels": []}'])
def test_damaged_places(text: str) -> None:
    with pytest.raises(RunError, match=r"^The saved places are damaged or of another version: "):
        Places.from_json(text)


# The encoder


def test_each_point_is_embedded_before_it_is_read() -> None:
    encoder = PointsEncoder(numbers=2, embedding=3, cell="rnn", size=4)
    points = PointColumn.parsed(["0.5,1 2,3 -1,0"]).padded(np.array([0]))
    [onward] = encoder.reading.readers[0].values()  # type: ignore[operator]
    stack, state = onward.stack, torch.zeros(4)
    for at, point in enumerate(points.values[0]):
        embedded = encoder.embedding.weight @ point + encoder.embedding.bias
        given_4 = stack.weight_ih_l0 @ embedded + stack.bias_ih_l0
        state = torch.tanh(given_4 + stack.weight_hh_l0 @ state + stack.bias_hh_l0)
        torch.testing.assert_close(encoder(points).memory[0, at], state)
    torch.testing.assert_close(encoder(points).summary[0], state)
    assert encoder.equations()[:2] == ["x_t = W_e p_t + b_e", "h_t = tanh(U x_t + W h_{t-1} + b)"]
