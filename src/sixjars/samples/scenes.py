"""Images of one or two coloured shapes, and their captions.

Exactly one caption is right: the larger thing is named first, and its position relative to the other one is
unambiguous, because one distance is at least twice the other. An image's name describes all that is in it:
`red-circle-20-20-16_blue-square-50-44-10.png` has a red circle of size 16 with its middle at (20, 20).
"""

import math
from dataclasses import replace
from random import Random

from sixjars.samples.painting import COLOURS, GAP, SHAPES, Thing, box_of, name_of, paint, reach
from sixjars.samples.sample import Row, Sample

CLEAR = 2
"""At least this many times the smaller distance is the greater one, where a relation is unambiguous."""
LARGE, SMALL = (15, 17), (10, 11)
"""Smallest and greatest size of the thing that is named first, and of the other one."""
ALONE = 0.15
"""How often there is one thing only."""


def relation(one: Thing, other: Thing) -> str | None:
    """The position of one thing relative to another; nothing where that is ambiguous.

    >>> relation(Thing("red", "circle", 20, 20, 10), Thing("blue", "star", 50, 25, 10))
    'left of'
    """
    right, down = one.x - other.x, one.y - other.y
    if abs(right) >= CLEAR * abs(down):
        return "right of" if right > 0 else "left of"
    if abs(down) >= CLEAR * abs(right):
        return "below" if down > 0 else "above"
    return None


def draw(rng: Random, _longest: int) -> Row:
    """One image by its name, its caption, and the bounding boxes of the words for colours and shapes."""
    if rng.random() < ALONE:
        thing = somewhere(rng, *appearance(rng), rng.randint(SMALL[0], LARGE[1]))
        return {"image": name_of([thing]), "caption": f"a {thing.colour} {thing.shape}", "boxes": box_of(thing, 1, 2)}
    one, other = _pair(rng)
    where = relation(one, other)
    assert where is not None
    start = f"a {one.colour} {one.shape} {where} a"
    words = len(start.split())
    return {
        "image": name_of((one, other)),
        "caption": f"{start} {other.colour} {other.shape}",
        "boxes": f"{box_of(one, 1, 2)} {box_of(other, words, words + 1)}",
    }


def appearance(rng: Random) -> tuple[str, str]:
    """A colour and a shape."""
    return rng.choice(list(COLOURS)), rng.choice(list(SHAPES))


def somewhere(rng: Random, colour: str, shape: str, size: int) -> Thing:
    """A thing anywhere in the image."""
    wide, high = Thing(colour, shape, 0, 0, size).half
    return Thing(colour, shape, rng.randint(*reach(wide)), rng.randint(*reach(high)), size)


def _pair(rng: Random) -> tuple[Thing, Thing]:
    """A large thing and a small one of another appearance, in an unambiguous relation."""
    one, other = appearance(rng), appearance(rng)
    while other == one:
        other = appearance(rng)
    pair = Thing(*one, 0, 0, rng.randint(*LARGE)), Thing(*other, 0, 0, rng.randint(*SMALL))
    axis, turned = rng.randrange(2), rng.random() < 0.5
    first, second = (thing.half for thing in (pair[::-1] if turned else pair))
    along = _in_line(rng, first[axis], second[axis])
    beside = [rng.randint(*reach(half[1 - axis])) for half in (first, second)]
    while CLEAR * abs(beside[1] - beside[0]) > along[1] - along[0]:
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
    description="Images of one or two coloured shapes; the caption gives their relation, the larger one first.",
    draw=draw,
    media="image",
    paint=paint,
    target="caption",
    boxes="boxes",
)
