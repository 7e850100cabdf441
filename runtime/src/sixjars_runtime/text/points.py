"""Points, and orders of points, as texts: `0.12,0.7 0.3,0.25` and `1 0`."""

from typing import Any

from sixjars_runtime.errors import shown

LARGEST = 3.4e38
"""The farthest from zero that a 32-bit number goes."""


def points_of(text: str) -> list[tuple[float, ...]]:
    """Read the points of a text; ValueError with a sentence where it is wrong.

    >>> points_of("0.12,0.7 0.3,0.25")
    [(0.12, 0.7), (0.3, 0.25)]
    """
    points = [tuple(_number(one, point) for one in point.split(",")) for point in text.split()]
    if not points:
        raise ValueError("there is no point; write at least one, like 0.12,0.7 0.3,0.25.")
    for point in points:
        if len(point) != len(points[0]):
            raise ValueError(
                f"a point has {counted(len(point))} and the first has {counted(len(points[0]))}; "
                "all must have as many, like 0.12,0.7 0.3,0.25."
            )
    return points


def points_of_field(text: str, name: str, dimensions: int) -> list[tuple[float, ...]]:
    """Read the points of a field, each with as many coordinates as its settings say.

    >>> points_of_field("1 2", "points", 2)
    Traceback (most recent call last):
        ...
    ValueError: a point has 1 coordinate, but data.points.dimensions is 2.
    """
    try:
        points = points_of(text)
    except ValueError as error:
        raise ValueError(f"the {name}: {error}") from None
    if len(points[0]) != dimensions:
        raise ValueError(
            f"a point has {counted(len(points[0]))}, but data.{name}.dimensions is {dimensions}."
        )
    return points


def _number(spelled: str, point: str) -> float:
    try:
        number = float(spelled)
    except ValueError:
        raise ValueError(
            f"{shown(spelled)} of point {shown(point)} is not a number; write points like 0.12,0.7 "
            "0.3,0.25."
        ) from None
    if not abs(number) <= LARGEST:
        raise ValueError(f"{shown(spelled)} of point {shown(point)} is not a finite 32-bit number.")
    return number


def counted(numbers: int) -> str:
    """Return so many coordinates in words, also where it is one."""
    return "1 coordinate" if numbers == 1 else f"{numbers} coordinates"


def order_of(text: str, points: int) -> list[int]:
    """Read the positions of a text, counted from 0; ValueError where one is wrong.

    >>> order_of("2 0 1", points=3)
    [2, 0, 1]
    """
    order = whole_numbers(text)
    if not order:
        raise ValueError("there is no position; write at least one, like 2 0 1.")
    for place in order:
        if place >= points:
            raise ValueError(
                f"position {place} is not there: there are {points} points, counted from 0."
            )
        if order.count(place) > 1:
            raise ValueError(
                f"position {place} comes {order.count(place)} times; each may come once."
            )
    return order


def whole_numbers(text: str) -> list[int]:
    """Read the numbers 0, 1, 2, … of a text; ValueError names the first that is none."""
    words = text.split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise ValueError(
                f"{shown(word)} is not a position; write whole numbers counted from 0, like 2 0 1."
            )
    return [int(word) for word in words]


def text_of_points(value: Any) -> str:
    """Return the text of points that came as JSON: a list of numbers, or of lists of numbers.

    A text stays as it is.

    Numbers may be spelled out already. What is wrong with their spelling is for `points_of` to say.

    >>> text_of_points([[0.12, "0.7"], [0.3, 0.25]]), text_of_points([3, 1.5])
    ('0.12,0.7 0.3,0.25', '3 1.5')
    """
    message = "must be a list of points like [[0.12, 0.7], [0.3, 0.25]], or of numbers"
    if isinstance(value, str):
        return value
    listed = _listed(value, message)
    points = [point if isinstance(point, list) and point else [point] for point in listed]
    return " ".join(",".join(_spelled(number, message) for number in point) for point in points)


def text_of_order(value: Any) -> str:
    """Return the text of an order that came as JSON, a list of positions or a text.

    >>> text_of_order([2, "0", 1])
    '2 0 1'
    """
    message = "must be a list of positions like [2, 0, 1]"
    if isinstance(value, str):
        return value
    return " ".join(_spelled(place, message) for place in _listed(value, message))


def _listed(value: Any, message: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{message}, but is {shown(value)}.")
    return value


def _spelled(number: Any, message: str) -> str:
    plain = isinstance(number, int | float | str) and not isinstance(number, bool)
    # What is between spaces would be read as a point of its own.
    if not plain or len(str(number).split()) != 1:
        raise ValueError(f"{message}, but has {shown(number)} in it.")
    return str(number).strip()
