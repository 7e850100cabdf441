"""Pictures of one or two coloured shapes, and what is to be said of them.

Exactly one caption is right: the larger thing is named first, and where it lies from the other one is
plain, because one distance is at least twice the other. A picture's name says all that is in it:
`red-circle-20-20-16_blue-square-50-44-10.png` has a red circle of size 16 with its middle at (20, 20).
"""

import math
from dataclasses import replace
from random import Random

from sixjars.samples.painting import COLOURS, GAP, SHAPES, Thing, name_of, paint, place_of, reach
from sixjars.samples.sample import Row, Sample

PLAIN = 2
"""How many times the greater distance is the smaller one, at least, where two things lie plainly."""
LARGE, SMALL = (15, 17), (10, 11)
"""Smallest and greatest size of the thing that is named first, and of the other one."""
ALONE = 0.15
"""How often there is one thing only."""


def relation(one: Thing, other: Thing) -> str | None:
    """Where one thing lies from another; nothing where that is not plain.

    >>> relation(Thing("red", "circle", 20, 20, 10), Thing("blue", "star", 50, 25, 10))
    'left of'
    """
    right, down = one.x - other.x, one.y - other.y
    if abs(right) >= PLAIN * abs(down):
        return "right of" if right > 0 else "left of"
    if abs(down) >= PLAIN * abs(right):
        return "below" if down > 0 else "above"
    return None


def draw(rng: Random, _longest: int) -> Row:
    """One picture by its name, its caption, and the places of the words for colours and shapes."""
    if rng.random() < ALONE:
        thing = somewhere(rng, *look(rng), rng.randint(SMALL[0], LARGE[1]))
        return {"image": name_of([thing]), "caption": f"a {thing.colour} {thing.shape}", "boxes": place_of(thing, 1, 2)}
    one, other = _pair(rng)
    where = relation(one, other)
    assert where is not None
    start = f"a {one.colour} {one.shape} {where} a"
    words = len(start.split())
    return {
        "image": name_of((one, other)),
        "caption": f"{start} {other.colour} {other.shape}",
        "boxes": f"{place_of(one, 1, 2)} {place_of(other, words, words + 1)}",
    }


def look(rng: Random) -> tuple[str, str]:
    """A colour and a shape."""
    return rng.choice(list(COLOURS)), rng.choice(list(SHAPES))


def somewhere(rng: Random, colour: str, shape: str, size: int) -> Thing:
    """A thing anywhere in the picture."""
    wide, high = Thing(colour, shape, 0, 0, size).half
    return Thing(colour, shape, rng.randint(*reach(wide)), rng.randint(*reach(high)), size)


def _pair(rng: Random) -> tuple[Thing, Thing]:
    """A large thing and a small one of another look, which lie plainly."""
    one, other = look(rng), look(rng)
    while other == one:
        other = look(rng)
    pair = Thing(*one, 0, 0, rng.randint(*LARGE)), Thing(*other, 0, 0, rng.randint(*SMALL))
    axis, turned = rng.randrange(2), rng.random() < 0.5
    first, second = (thing.half for thing in (pair[::-1] if turned else pair))
    along = _in_line(rng, first[axis], second[axis])
    beside = [rng.randint(*reach(half[1 - axis])) for half in (first, second)]
    while PLAIN * abs(beside[1] - beside[0]) > along[1] - along[0]:
        beside = [rng.randint(*reach(half[1 - axis])) for half in (first, second)]
    places = list(zip(beside, along, strict=True) if axis else zip(along, beside, strict=True))
    large, small = places[::-1] if turned else places
    return replace(pair[0], x=large[0], y=large[1]), replace(pair[1], x=small[0], y=small[1])


def _in_line(rng: Random, first: float, second: float) -> tuple[int, int]:
    """The middles of two things of these half lengths, one after the other."""
    between, (start, _), (_, end) = first + second + GAP, reach(first), reach(second)
    middle = rng.randint(start, math.floor(end - between))
    return middle, rng.randint(math.ceil(middle + between), end)


SAMPLE = Sample(
    task="image_captioning",
    description="Pictures of one or two coloured shapes; the caption says which lies where, the larger one first.",
    draw=draw,
    source=None,
    media="image",
    paint=paint,
    target="caption",
    boxes="boxes",
    shortest=1,
    longest=None,
    categories={},
)
