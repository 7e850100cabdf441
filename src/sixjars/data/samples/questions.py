"""Questions about pictures of one to three coloured shapes, each with one right answer of one word.

A question alone hardly tells its answer: yes is as frequent as no, and colours, shapes, numbers and places
change from picture to picture. Nothing is asked that is not plain: a thing is named by its shape only where
no other has that shape, and no two things have the same colour.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from sixjars.data.samples.painting import COLOURS, SHAPES, Thing
from sixjars.data.samples.sample import Row, Sample
from sixjars.data.samples.scenes import GAP, SIDE, name_of, paint, place_of, relation, things_of

NUMBERS = ("zero", "one", "two", "three")
SIZES = (11, 13)
"""The smallest and the greatest size of a thing."""
QUARTERS = ((16, 16), (48, 16), (16, 48), (48, 48))
"""The middles of the quarters of a picture; no quarter has two things."""
COUNTS = {1: 1, 2: 2, 3: 1}
"""How many things are in a picture, and how often. Those that are alone are easy, so colours and shapes are learned
from them first."""
PLACES = {"left of": (-1, 0), "right of": (1, 0), "above": (0, -1), "below": (0, 1)}
"""In which direction each lies."""
ALIKE = 0.35
"""How often the shapes of a picture are drawn from two only, so that there is something to count."""

Asked = tuple[str, str, Thing | None]
"""A question, its answer, and the one thing that tells it, where there is one."""


def scene(rng: Random) -> list[Thing]:
    """One to three things of different colours, each in a quarter of the picture; from left to right."""
    count = rng.choices(list(COUNTS), list(COUNTS.values()))[0]
    few = rng.sample(list(SHAPES), 2)
    shapes = rng.choices(few, k=count) if rng.random() < ALIKE else rng.sample(list(SHAPES), count)
    colours, quarters = rng.sample(list(COLOURS), count), rng.sample(QUARTERS, count)
    things = [_in_quarter(rng, *found) for found in zip(colours, shapes, quarters, strict=True)]
    return sorted(things, key=lambda thing: (thing.x, thing.y))


def _in_quarter(rng: Random, colour: str, shape: str, middle: tuple[int, int]) -> Thing:
    """A thing with half a gap, at least, to the sides of its quarter."""
    thing = Thing(colour, shape, *middle, rng.randint(*SIZES))
    wide, high = (math.floor(SIDE / 4 - GAP / 2 - half) for half in thing.half)
    return replace(thing, x=thing.x + rng.randint(-wide, wide), y=thing.y + rng.randint(-high, high))


def asked(rng: Random, row: Row) -> Row:
    """A question about the picture of a row, its answer, and the place that tells it."""
    things = things_of(row["image"])
    found: list[Asked] = []
    while not found:
        found = rng.choices(list(KINDS), list(KINDS.values()))[0](rng, things)
    question, answer, telling = rng.choice(found)
    places = "" if telling is None else place_of(telling, 0)
    return {"image": row["image"], "question": question, "answer": answer, "boxes": places}


def draw(rng: Random, _longest: int) -> Row:
    """A new picture by its name, with a question about it."""
    return asked(rng, {"image": name_of(scene(rng))})


def _unlike(things: Sequence[Thing]) -> list[Thing]:
    """The things whose shape no other one has."""
    shapes = [thing.shape for thing in things]
    return [thing for thing in things if shapes.count(thing.shape) == 1]


def _colours(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    return [(f"what colour is the {thing.shape}?", thing.colour, thing) for thing in _unlike(things)]


def _shapes(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    return [(f"what shape is {thing.colour}?", thing.shape, thing) for thing in things]


def _presence(rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """A thing that is there, or one that is not: most often the colour of one with the shape of another."""
    looks = {(thing.colour, thing.shape): thing for thing in things}
    if rng.random() < 0.5:
        return [(_is_there(*look), "yes", thing) for look, thing in looks.items()]
    mixed = {(one.colour, other.shape) for one in things for other in things} - set(looks)
    every = {(colour, shape) for colour in COLOURS for shape in SHAPES} - set(looks)
    return [(_is_there(*look), "no", None) for look in sorted(mixed if mixed and rng.random() < 0.7 else every)]


def _is_there(colour: str, shape: str) -> str:
    return f"is there a {colour} {shape}?"


def _counts(rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """A shape of which there are none, one, two or three, each number as often as it can be."""
    shapes = [thing.shape for thing in things]
    number = rng.choice(sorted({shapes.count(shape) for shape in SHAPES}))
    return [
        (f"how many {shape}s are there?", NUMBERS[number], None) for shape in SHAPES if shapes.count(shape) == number
    ]


def _sides(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """On which side of the picture a thing is."""
    found: list[Asked] = []
    for thing in _unlike(things):
        across, down = "left" if thing.x < SIDE / 2 else "right", "top" if thing.y < SIDE / 2 else "bottom"
        found.append((f"is the {thing.shape} on the left or on the right?", across, thing))
        found.append((f"is the {thing.shape} at the top or at the bottom?", down, thing))
    return found


def _neighbours(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """What lies so from a thing, where one other plainly does, and no other lies aslant on that side."""
    found: list[Asked] = []
    for thing in _unlike(things):
        for where, (right, down) in PLACES.items():
            there = [other for other in things if right * (other.x - thing.x) + down * (other.y - thing.y) > 0]
            near = [other for other in there if relation(other, thing) in (where, None)]
            if len(near) == 1 and relation(near[0], thing) == where:
                found.append((f"what shape is {where} the {thing.shape}?", near[0].shape, near[0]))
    return found


KINDS: dict[Callable[[Random, Sequence[Thing]], list[Asked]], int] = {
    _colours: 3,
    _shapes: 3,
    _presence: 3,
    _counts: 2,
    _sides: 2,
    _neighbours: 2,
}
"""What can be asked, and how often it is tried; each gives all questions of its kind that are plain in a picture."""

SAMPLE = Sample(
    task="image_question_answering",
    description="Pictures of one to three coloured shapes; questions on colours, shapes, numbers and places.",
    draw=draw,
    source=None,
    media="image",
    question="question",
    paint=paint,
    target="answer",
    boxes="boxes",
    again=asked,
    each=3,
    shortest=1,
    longest=None,
    categories={
        "colours": tuple(COLOURS),
        "shapes": tuple(SHAPES),
        "shapes of many": tuple(f"{shape}s" for shape in SHAPES),
        "places": ("above", "below", "left", "right", "top", "bottom"),
        "questions": ("what", "how", "many", "colour", "shape"),
        "verbs": ("is", "are", "there"),
        "function words": ("a", "the", "of", "on", "at", "or", "?"),
    },
)
