"""Questions about pictures of one or two coloured shapes, each with one right answer of one word.

A question alone hardly tells its answer: yes is as frequent as no, and colours, shapes and sides change from
picture to picture. Nothing is asked that is not plain: no two things have the same colour or the same shape,
and none lies near the middle of the picture.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from sixjars.samples.painting import GAP, SHAPES, SIDE, Thing, name_of, paint, place_of, reach, things_of
from sixjars.samples.sample import Row, Sample

COLOURS = ("red", "yellow", "green", "blue")
"""Fewer than there are: what is learned here is what a question has to do with a picture."""
SIZES = (13, 14)
"""The smallest and the greatest size of a thing."""
QUARTERS = ((False, False), (True, False), (False, True), (True, True))
"""Whether a quarter of the picture is on the right, and whether it is at the bottom; none has two things."""
BESIDE = 12
"""So many pixels from the middle line of the picture, it is plain on which side a thing is."""
YES = 0.56
"""How often it is asked for a thing that is there: above a half, for a picture has few things, so this is more often
asked twice, and a question counts once."""
COUNTS = {1: 2, 2: 1}
"""How many things are in a picture, and how often. Those that are alone are easy, so colours and shapes are learned
from them first."""

Asked = tuple[str, str, Thing | None]
"""A question, its answer, and the one thing that tells it, where there is one."""


def scene(rng: Random) -> list[Thing]:
    """One or two things of different colours and shapes, each in a quarter of the picture; from left to right."""
    count = rng.choices(list(COUNTS), list(COUNTS.values()))[0]
    shapes = rng.sample(list(SHAPES), count)
    colours, quarters = rng.sample(COLOURS, count), rng.sample(QUARTERS, count)
    things = [
        _in_quarter(rng, Thing(colour, shape, 0, 0, rng.randint(*SIZES)), quarter, alone=count == 1)
        for colour, shape, quarter in zip(colours, shapes, quarters, strict=True)
    ]
    return sorted(things, key=lambda thing: (thing.x, thing.y))


def _in_quarter(rng: Random, thing: Thing, quarter: tuple[bool, bool], *, alone: bool) -> Thing:
    """The thing in its quarter; one that is alone may reach over its sides."""
    places = []
    for half, far in zip(thing.half, quarter, strict=True):
        last = SIDE // 2 - BESIDE if alone else math.floor(SIDE / 2 - GAP / 2 - half)
        place = rng.randint(reach(half)[0], last)
        places.append(SIDE - place if far else place)
    return replace(thing, x=places[0], y=places[1])


def asked(rng: Random, row: Row) -> Row:
    """A question about the picture of a row, its answer, and the place that tells it."""
    things = things_of(row["image"])
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    question, answer, telling = rng.choice(kind(rng, things))
    places = "" if telling is None else place_of(telling, 0)
    return {"image": row["image"], "question": question, "answer": answer, "boxes": places}


def draw(rng: Random, _longest: int) -> Row:
    """A new picture by its name, with a question about it."""
    return asked(rng, {"image": name_of(scene(rng))})


def _colours(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    return [(f"what colour is the {thing.shape}?", thing.colour, thing) for thing in things]


def _shapes(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    return [(f"what shape is {thing.colour}?", thing.shape, thing) for thing in things]


def _presence(rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """A thing that is there, or one that is not: half of these have the colour of one and the shape of another."""
    looks = {(thing.colour, thing.shape): thing for thing in things}
    if rng.random() < YES:
        return [(_is_there(*look), "yes", thing) for look, thing in looks.items()]
    mixed = {(one.colour, other.shape) for one in things for other in things} - set(looks)
    every = {(colour, shape) for colour in COLOURS for shape in SHAPES} - set(looks)
    return [(_is_there(*look), "no", None) for look in sorted(mixed if mixed and rng.random() < 0.5 else every)]


def _is_there(colour: str, shape: str) -> str:
    return f"is there a {colour} {shape}?"


def _sides(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """On which side of the picture a thing is."""
    found: list[Asked] = []
    for thing in things:
        across, down = "left" if thing.x < SIDE / 2 else "right", "top" if thing.y < SIDE / 2 else "bottom"
        found.append((f"is the {thing.shape} on the left or on the right?", across, thing))
        found.append((f"is the {thing.shape} at the top or at the bottom?", down, thing))
    return found


KINDS: dict[Callable[[Random, Sequence[Thing]], list[Asked]], int] = {
    _colours: 3,
    _shapes: 3,
    _presence: 3,
    _sides: 3,
}
"""What can be asked, and how often; each gives all questions of its kind about a picture."""

SAMPLE = Sample(
    task="image_question_answering",
    description="Pictures of one or two coloured shapes; questions on colours, shapes and sides.",
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
        "colours": COLOURS,
        "shapes": tuple(SHAPES),
        "sides": ("left", "right", "top", "bottom"),
        "questions": ("what", "colour", "shape"),
        "verbs": ("is", "there"),
        "function words": ("a", "the", "on", "at", "or", "?"),
    },
)
