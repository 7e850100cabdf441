"""Questions about images of one or two coloured shapes, each with one right answer of one word.

A question alone hardly predicts its answer: yes is as frequent as no, and colours, shapes and sides
change from image to image. No question is ambiguous: no two things have the same colour or the same
shape, and none lies near the middle of the image.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.scenes import (
    GAP,
    SHAPES,
    SIDE,
    ColouredShape,
    box_of,
    name_of,
    paint,
    reach,
    things_of,
)

COLOURS = ("red", "yellow", "green", "blue")
"""Fewer colours than in captions, for the task is to relate a question to an image."""
SIZES = (13, 14)
"""The smallest and the greatest size of a thing."""
QUARTERS = ((False, False), (True, False), (False, True), (True, True))
"""Whether a quarter of the image is on the right, and at the bottom; none has two things."""
BESIDE = 12
"""Pixels between a thing's middle and the middle line of the image, at least."""
YES = 0.56
"""How often a question of presence is about a thing that is there: above a half, because these
questions are more often duplicates, as an image has few things, and a question counts once."""
COUNTS = {1: 2, 2: 1}
"""How many things are in an image, and how often; single things teach colours and shapes first."""

Question = tuple[str, str, ColouredShape | None]
"""A question, its answer, and the one thing that is its evidence, where there is one."""


def scene(rng: Random) -> list[ColouredShape]:
    """One or two things of different colours, shapes and quarters, from left to right."""
    count = rng.choices(list(COUNTS), list(COUNTS.values()))[0]
    shapes = rng.sample(list(SHAPES), count)
    colours, quarters = rng.sample(COLOURS, count), rng.sample(QUARTERS, count)
    things = [
        _in_quarter(
            rng, ColouredShape(colour, shape, 0, 0, rng.randint(*SIZES)), quarter, alone=count == 1
        )
        for colour, shape, quarter in zip(colours, shapes, quarters, strict=True)
    ]
    return sorted(things, key=lambda thing: (thing.x, thing.y))


def _in_quarter(
    rng: Random, thing: ColouredShape, quarter: tuple[bool, bool], *, alone: bool
) -> ColouredShape:
    """The thing in its quarter; one that is alone may reach over its sides."""
    places = []
    for half, far in zip(thing.half, quarter, strict=True):
        last = SIDE // 2 - BESIDE if alone else math.floor(SIDE / 2 - GAP / 2 - half)
        place = rng.randint(reach(half)[0], last)
        places.append(SIDE - place if far else place)
    return replace(thing, x=places[0], y=places[1])


def another(rng: Random, row: Row) -> Row:
    """A question about the image of a row, its answer, and the bounding box of the evidence."""
    things = things_of(row["image"])
    kind = rng.choices(KINDS)[0]
    question, answer, evidence = rng.choice(kind(rng, things))
    boxes = "" if evidence is None else box_of(evidence, 0)
    return {"image": row["image"], "question": question, "answer": answer, "boxes": boxes}


@partial(
    Corpus,
    "image_question_answering",
    ["image", "question"],
    "answer",
    media="image",
    paint=paint,
    truths=["boxes"],
    again=another,
    each=3,
)
def question(rng: Random, _longest: int) -> Row:
    """Images of one or two coloured shapes; questions on colours, shapes and sides."""
    return another(rng, {"image": name_of(scene(rng))})


def _colours(_rng: Random, things: Sequence[ColouredShape]) -> list[Question]:
    return [(f"what colour is the {thing.shape}?", thing.colour, thing) for thing in things]


def _shapes(_rng: Random, things: Sequence[ColouredShape]) -> list[Question]:
    return [(f"what shape is {thing.colour}?", thing.shape, thing) for thing in things]


def _presence(rng: Random, things: Sequence[ColouredShape]) -> list[Question]:
    """Questions about a thing that is there, or not; half of those mix two that are there."""
    there = {(thing.colour, thing.shape): thing for thing in things}
    if rng.random() < YES:
        return [(_is_there(*pair), "yes", thing) for pair, thing in there.items()]
    mixed = {(thing.colour, other.shape) for thing in things for other in things} - set(there)
    absent = {(colour, shape) for colour in COLOURS for shape in SHAPES} - set(there)
    if mixed and rng.random() < 0.5:
        absent = mixed
    return [(_is_there(*pair), "no", None) for pair in sorted(absent)]


def _is_there(colour: str, shape: str) -> str:
    return f"is there a {colour} {shape}?"


def _sides(_rng: Random, things: Sequence[ColouredShape]) -> list[Question]:
    """Questions on the side of the image where a thing is."""
    questions: list[Question] = []
    for thing in things:
        across = "left" if thing.x < SIDE / 2 else "right"
        down = "top" if thing.y < SIDE / 2 else "bottom"
        questions.append((f"is the {thing.shape} on the left or on the right?", across, thing))
        questions.append((f"is the {thing.shape} at the top or at the bottom?", down, thing))
    return questions


Kind = Callable[[Random, Sequence[ColouredShape]], list[Question]]
"""A function that gives all questions of its kind about an image."""
KINDS: tuple[Kind, ...] = (_colours, _shapes, _presence, _sides)
