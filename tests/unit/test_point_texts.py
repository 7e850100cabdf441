"""Points and orders as texts, and as lists of JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars_runtime.text.points import (
    counted,
    order_of,
    points_of,
    text_of_order,
    text_of_points,
    whole_numbers,
)

NO_POSITION = "is not a position; write whole numbers counted from 0, like 2 0 1."
LIST = r"^must be a list of points like .*, but has"


def test_points_of_any_size() -> None:
    assert points_of(" 0.5,-1  2e-1,3 ") == [(0.5, -1.0), (0.2, 3.0)]
    assert points_of("3 1.5 2") == [(3.0,), (1.5,), (2.0,)]
    assert points_of("1,2,3") == [(1.0, 2.0, 3.0)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *((text, "there is no point; write at least one, {like}.") for text in ("", " \t")),
        *(
            (text, f"{number!r} of point {point!r} is not a number; write points {{like}}.")
            for text, number, point in (
                ("1,2 3,x", "x", "3,x"),
                ("1,2 3,", "", "3,"),
                ("1, 2", "", "1,"),
            )
        ),
        *(
            (text, f"{number!r} of point {text!r} is not a finite 32-bit number.")
            for text, number in (("1,nan", "nan"), ("-inf,0", "-inf"), ("1e39,0", "1e39"))
        ),
        (
            "1,2 3",
            "a point has 1 coordinate and the first has 2 coordinates; all must have as many, {like}.",
        ),
    ],
)
def test_what_is_no_point(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole sentence is read below
        points_of(text)
    assert str(error.value) == sentence.format(like="like 0.12,0.7 0.3,0.25")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "there is no position; write at least one, like 2 0 1."),
        *((f"0 {word}", f"{word!r} {NO_POSITION}") for word in ("one", "-1", "1.0", "²")),
        ("0 3", "position 3 is not there: there are 3 points, counted from 0."),
        ("1 0 1", "position 1 comes 2 times; each may come once."),
    ],
)
def test_what_is_no_order(text: str, sentence: str) -> None:
    assert order_of("2 0", points=3) == [2, 0]
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole sentence is read below
        order_of(text, points=3)
    assert str(error.value) == sentence


def test_json_becomes_text() -> None:
    assert text_of_points([["0.1", 2], [3.5, "-4e-2"]]) == "0.1,2 3.5,-4e-2"
    assert text_of_points([5, " 0.25\n"]) == "5 0.25"
    assert text_of_points(["0.1,2", [3, 4]]) == "0.1,2 3,4"
    assert text_of_points("0.1,2 3,4") == "0.1,2 3,4"
    assert text_of_order([2, "0", 1]) == "2 0 1"
    assert text_of_order("2 0 1") == "2 0 1"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            {"x": 1},
            r"^must be a list of points like \[\[0.12, 0.7\], .* or of numbers, but is {'x': 1}\.$",
        ),
        ([[1, [2]]], rf"{LIST} \[2\] in it\.$"),
        ([[1, None]], rf"{LIST} None in it\.$"),
        ([True], rf"{LIST} True in it\.$"),
        ([[0.1, 0.2], []], rf"{LIST} \[\] in it\.$"),
        (["0.1,0.2 0.5,0.6", [0.3, 0.4]], rf"{LIST} '0.1,0.2 0.5,0.6' in it\.$"),
        ([[0.1, "0.2\t0.3"]], rf"{LIST} '0.2\\t0.3' in it\.$"),
        ([0.1, " "], rf"{LIST} ' ' in it\.$"),
    ],
)
def test_json_that_is_no_points(value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        text_of_points(value)


def test_json_that_is_no_order() -> None:
    told = r"^must be a list of positions like \[2, 0, 1\], but"
    wrong = {"is 3": 3, r"has \[1\] in it": [0, [1]], "has '0 1' in it": ["0 1", 2]}
    for end, value in wrong.items():
        with pytest.raises(ValueError, match=rf"{told} {end}\.$"):
            text_of_order(value)


@given(st.lists(st.lists(st.floats(-3e38, 3e38), min_size=2, max_size=2), min_size=1, max_size=9))
def test_points_come_back_from_their_text(points: list[list[float]]) -> None:
    assert points_of(text_of_points(points)) == [tuple(point) for point in points]


@given(st.integers(1, 30).flatmap(lambda count: st.permutations(range(count))))
def test_orders_come_back_from_their_text(order: list[int]) -> None:
    assert order_of(text_of_order(order), points=len(order)) == order
    assert whole_numbers(text_of_order(order)) == order


def test_coordinates_are_counted() -> None:
    expected = ["0 coordinates", "1 coordinate", "2 coordinates"]
    assert [counted(number) for number in (0, 1, 2)] == expected


@pytest.mark.parametrize("text", ["x" * 100_000, "1," * 50_000, "1,2 " + "9" * 100_000])
def test_messages_echo_only_the_beginning(text: str) -> None:
    for reader in (points_of, whole_numbers):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - its length is what counts
            reader(text)
        assert len(str(error.value)) < 300
    with pytest.raises(ValueError, match="must be a list of points") as error:
        text_of_points({"x": [text]})
    assert len(str(error.value)) < 300
