"""Points of the plane and the corners of their convex hull, and numbers to be put in order."""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row

STEPS = 10_000
"""Numbers are 0.0000, 0.0001, … 0.9999, so that integers decide on sides of lines."""
CORNERS, NUMBERS = 5, 3
"""The fewest points of a hull, and the fewest numbers to be sorted."""

Place = tuple[int, int]


def places(rng: Random, count: int) -> list[Place]:
    """Random different places of the grid."""
    grid: dict[Place, None] = {}
    while len(grid) < count:
        grid[rng.randrange(STEPS), rng.randrange(STEPS)] = None
    return list(grid)


def as_text(points: list[Place]) -> str:
    """The text of points in the unit square.

    >>> as_text([(1200, 7000), (30, 9999)])
    '0.1200,0.7000 0.0030,0.9999'
    """
    return " ".join(f"0.{across:04d},0.{up:04d}" for across, up in points)


def hull(points: list[Place]) -> list[int]:
    """The numbers of the corners, counter-clockwise from the lowest; points on an edge are none.

    Andrew 1979, "Another efficient algorithm for convex hulls in two dimensions": along the points
    from left to right and back, leave out every one at which the way does not turn left.

    >>> hull([(5, 5), (9, 0), (0, 0), (9, 9), (0, 9), (4, 0)])
    [1, 3, 4, 2]
    """
    ordered = sorted(range(len(points)), key=points.__getitem__)
    corners: list[int] = []
    for way in (ordered, ordered[::-1]):
        kept: list[int] = []
        for place in way:
            while len(kept) > 1 and _turn(points[kept[-2]], points[kept[-1]], points[place]) <= 0:
                kept.pop()
            kept.append(place)
        corners += kept[:-1]  # the last begins the way back
    first = corners.index(min(corners))
    return corners[first:] + corners[:first]


def _turn(a: Place, b: Place, c: Place) -> int:
    """More than 0 where the way over three points turns left: twice the area between them."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@partial(Corpus, "pointing", ["points"], "order", tokens="points", lengths=(CORNERS, 10))
def hulls(rng: Random, longest: int) -> Row:
    """Points in a square, and the corners of their convex hull, counter-clockwise."""
    points = places(rng, rng.randint(CORNERS, longest))
    return {"points": as_text(points), "order": " ".join(map(str, hull(points)))}


@partial(Corpus, "pointing", ["points"], "order", tokens="points", lengths=(NUMBERS, 8), most=STEPS)
def sorting(rng: Random, longest: int) -> Row:
    """Numbers between 0 and 1 to be put in order, the smallest first."""
    numbers = rng.sample(range(STEPS), rng.randint(NUMBERS, longest))
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    points = " ".join(f"0.{number:04d}" for number in numbers)
    return {"points": points, "order": " ".join(map(str, order))}
