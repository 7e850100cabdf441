"""Questions about pictures of two or three coloured shapes, each with one right answer of one word.

A question alone hardly tells its answer: yes is as frequent as no, and colours, shapes and numbers change
from picture to picture. Nothing is asked that is not plain: a thing is named by its shape only where no
other has that shape, and two things lie plainly (see `scenes.relation`) where it is asked how they lie.
"""

from collections.abc import Callable, Sequence
from random import Random

from sixjars.data.samples.painting import COLOURS, SHAPES, Thing
from sixjars.data.samples.sample import Row, Sample
from sixjars.data.samples.scenes import OPPOSITES, apart, name_of, paint, place_of, relation, somewhere, things_of

NUMBERS = ("zero", "one", "two", "three")
SIZES = {2: (10, 14), 3: (10, 12)}
"""Smallest and greatest size, by how many things there are."""
ALIKE = 0.5
"""How often the shapes of a picture are drawn from two only, so that there is something to count."""
BESIDE = 4
"""So many pixels to one side of a thing, it is plain that something is not on the other side."""

Asked = tuple[str, str, Thing | None]
"""A question, its answer, and the one thing that tells it, where there is one."""


def scene(rng: Random) -> list[Thing]:
    """Two or three things, no two with the same colour and shape, with gaps between them; from left to right."""
    count = rng.choice(tuple(SIZES))
    shapes = rng.sample(list(SHAPES), 2 if rng.random() < ALIKE else len(SHAPES))
    looks: set[tuple[str, str]] = set()
    while len(looks) < count:
        looks.add((rng.choice(list(COLOURS)), rng.choice(shapes)))
    sizes = [(colour, shape, rng.randint(*SIZES[count])) for colour, shape in sorted(looks)]
    things = [somewhere(rng, *size) for size in sizes]
    while not apart(things):
        things = [somewhere(rng, *size) for size in sizes]
    return sorted(things, key=lambda thing: (thing.x, thing.y))


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
    colours = [thing.colour for thing in things]
    single = [thing for thing in things if colours.count(thing.colour) == 1]
    return [(f"what shape is {thing.colour}?", thing.shape, thing) for thing in single]


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


def _lies(rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """Whether one thing lies so from another, or the opposite."""
    pairs = [(one, other) for one in _unlike(things) for other in _unlike(things) if one is not other]
    found: list[Asked] = []
    for one, other in pairs:
        if where := relation(one, other):
            so, answer = (where, "yes") if rng.random() < 0.5 else (OPPOSITES[where], "no")
            found.append((f"is the {one.shape} {so} the {other.shape}?", answer, None))
    return found


def _neighbours(_rng: Random, things: Sequence[Thing]) -> list[Asked]:
    """What lies so from a thing, where one other does and the rest are plainly on the other side."""
    found: list[Asked] = []
    for thing in _unlike(things):
        for where in OPPOSITES:
            near = [other for other in things if other is not thing and not _past(other, thing, where)]
            if len(near) == 1 and relation(near[0], thing) == where:
                found.append((f"what shape is {where} the {thing.shape}?", near[0].shape, near[0]))
    return found


def _past(other: Thing, thing: Thing, where: str) -> bool:
    """Whether it is plain that something does not lie so from a thing."""
    right, down = other.x - thing.x, other.y - thing.y
    return {"left of": right, "right of": -right, "above": down, "below": -down}[where] >= BESIDE


KINDS: dict[Callable[[Random, Sequence[Thing]], list[Asked]], int] = {
    _colours: 2,
    _shapes: 2,
    _presence: 2,
    _counts: 2,
    _lies: 3,
    _neighbours: 3,
}
"""What can be asked, and how often it is tried; each gives all questions of its kind that are plain in a picture."""

SAMPLE = Sample(
    task="image_question_answering",
    description="Pictures of two or three coloured shapes; questions on colours, shapes, numbers and places.",
    draw=draw,
    source=None,
    media="image",
    question="question",
    paint=paint,
    target="answer",
    boxes="boxes",
    again=asked,
    each=1,
    shortest=1,
    longest=None,
    categories={
        "colours": tuple(COLOURS),
        "shapes": tuple(SHAPES),
        "shapes of many": tuple(f"{shape}s" for shape in SHAPES),
        "places": ("above", "below", "left", "right"),
        "questions": ("what", "how", "many", "colour", "shape"),
        "verbs": ("is", "are", "there"),
        "function words": ("a", "the", "of", "?"),
    },
)
