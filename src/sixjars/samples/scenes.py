"""Images of one or two coloured shapes on pale backgrounds, and their captions.

Exactly one caption is right: the larger thing is named first, and its position relative to the
other one is unambiguous, because one distance is at least twice the other. An image's name
describes all that is in it: `red-circle-20-20-16_blue-square-50-44-10.png` has a red circle of size
16 with its middle at (20, 20).

Dims: F frames, H height, W width, 3 red, green and blue.
"""

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sixjars.samples.sample import Corpus, Row
from sixjars_runtime.errors import DataError
from sixjars_runtime.images import need_pillow

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIDE = 64
"""Pixels of each side of an image."""
MARGIN = 1
"""Pixels between a thing and the border."""
GAP = 2
"""Pixels between the boxes of two things, at least."""
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""
Shade = tuple[int, int, int]
COLOURS: dict[str, Shade] = {
    "red": (217, 68, 72),
    "yellow": (245, 203, 62),
    "green": (76, 163, 92),
    "blue": (66, 120, 206),
    "purple": (148, 90, 178),
    "black": (52, 56, 66),
}
SHAPES: dict[str, Point] = {
    "circle": (1.0, 1.0),
    "square": (0.88, 0.88),
    "triangle": (1.0, 0.86),
    "star": (1.05, 1.0),
}
"""Half the width and height of each shape of size 1: all shapes of one size have similar areas."""
FINE = 4
"""Shapes are drawn so many times larger, then averaged: their edges become smooth."""
EDGE = 1.3
"""The width of the darker edge of a shape in pixels, about."""
BACKGROUND = (216, 250)
"""The darkest and the lightest background."""
NOISE = 2.0
"""The standard deviation of the background's noise, in steps of 255."""
JITTER = 10
"""How far the shade of a thing may lie from its colour's, in steps of 255."""
FORMATS: dict[str, Any] = {
    "png": {"format": "PNG", "compress_level": 3},
    "jpg": {"format": "JPEG", "quality": 92},
}
CLEAR = 2
"""The least ratio of the two distances between things where their relation is unambiguous."""
LARGE, SMALL = (15, 17), (10, 11)
"""Smallest and greatest size of the thing that is named first, and of the other one."""
ALONE = 0.15
"""How often there is one thing only."""


@final
@dataclass(frozen=True)
class ColouredShape:
    """A coloured shape; the middle of its bounding box and its size are in pixels.

    >>> ColouredShape("red", "square", 30, 20, 10).box
    (21.2, 11.2, 38.8, 28.8)
    """

    colour: str
    shape: str
    x: float
    y: float
    size: float

    @property
    def half(self) -> Point:
        """Half its width and half its height."""
        wide, high = SHAPES[self.shape]
        return wide * self.size, high * self.size

    @property
    def box(self) -> Box:
        """Its bounding box."""
        wide, high = self.half
        return self.x - wide, self.y - high, self.x + wide, self.y + high


def _star() -> tuple[Point, ...]:
    """Five outer and five inner corners, stretched to a box from -1 to 1."""
    spokes = [(1.0 if at % 2 == 0 else 0.5, math.pi * (at / 5 - 0.5)) for at in range(10)]
    points = [(far * math.cos(turn), far * math.sin(turn)) for far, turn in spokes]
    right, low = max(x for x, _ in points), max(y for _, y in points)
    return tuple((x / right, 2 * (y + 1) / (low + 1) - 1) for x, y in points)


OUTLINES: dict[str, tuple[Point, ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle": ((0, -1), (1, 1), (-1, 1)),
    "star": _star(),
}
"""The corners of a shape in a box from -1 to 1; a circle has none."""


def painted(frames: Sequence[Sequence[ColouredShape]], side: int, seed: int) -> NDArray[np.uint8]:
    """Square frames (F, H, W, 3) on one background; each thing keeps its shade in all of them."""
    need_pillow()
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(seed)
    fine = side * FINE, side * FINE
    background = Image.fromarray(_background(side, rng)).resize(fine, Image.Resampling.NEAREST)
    near = [COLOURS[thing.colour] + rng.integers(-JITTER, JITTER + 1, 3) for thing in frames[0]]
    shades = [tuple(shade_3.tolist()) for shade_3 in near]
    pixels = np.empty((len(frames), side, side, 3), dtype=np.uint8)
    for number, things in enumerate(frames):
        canvas = background.copy()
        pen = ImageDraw.Draw(canvas)
        for thing, shade in zip(things, shades, strict=True):
            _draw(pen, thing, shade)
        pixels[number] = np.asarray(canvas.reduce(FINE))
    return pixels


def _background(side: int, rng: "np.random.Generator") -> NDArray[np.uint8]:
    """A gradient from one pale tint to another, with a little noise."""
    from_3, to_3 = rng.uniform(*BACKGROUND, (2, 3))
    turn = rng.uniform(0, 2 * math.pi)
    steps = np.linspace(-0.5, 0.5, side)
    way_HW = np.clip(0.5 + steps[None, :] * math.cos(turn) + steps[:, None] * math.sin(turn), 0, 1)
    tints_HW3 = from_3 + way_HW[..., None] * (to_3 - from_3) + rng.normal(0, NOISE, (side, side, 1))
    background_HW3: NDArray[np.uint8] = np.clip(np.rint(tints_HW3), 0, 255).astype(np.uint8)
    return background_HW3


def _draw(pen: "ImageDraw", thing: ColouredShape, shade: tuple[int, ...]) -> None:
    """The whole shape in a darker shade, then its inside."""
    inside = 1 - EDGE / thing.size
    for share, fill in ((1.0, tuple(part * 3 // 4 for part in shade)), (inside, shade)):
        if thing.shape == "circle":
            reach = thing.size * share
            begin = thing.x - reach, thing.y - reach
            # Pillow paints the last row and column that it is given as well.
            end = thing.x + reach - 1 / FINE, thing.y + reach - 1 / FINE
            pen.ellipse(tuple(side * FINE for side in (*begin, *end)), fill=fill)
        else:
            pen.polygon(_corners(thing, share), fill=fill)


def _corners(thing: ColouredShape, share: float) -> list[Point]:
    """The corners on the fine canvas, with the shape shrunk to a share about their middle."""
    sides = []
    ends = zip(*OUTLINES[thing.shape], strict=True)
    for middle, half, places in zip((thing.x, thing.y), thing.half, ends, strict=True):
        mean = sum(places) / len(places)
        shrunk = (mean + share * (place - mean) for place in places)
        sides.append([(middle + half * place) * FINE - 0.5 for place in shrunk])
    return list(zip(*sides, strict=True))


_THING = rf"({'|'.join(COLOURS)})-({'|'.join(SHAPES)})-(\d{{1,2}})-(\d{{1,2}})-([1-9]\d?)"
_NAME = re.compile(rf"{_THING}(?:_{_THING}){{0,2}}\.(?:png|jpg)")


def name_of(things: Iterable[ColouredShape]) -> str:
    """The file name of an image with these things: half are `png` files, the others `jpg`.

    >>> name_of([ColouredShape("red", "circle", 20, 20, 16)])
    'red-circle-20-20-16.jpg'
    """
    stem = "_".join(f"{t.colour}-{t.shape}-{t.x}-{t.y}-{t.size}" for t in things)
    return f"{stem}.{'png' if crc32(stem.encode()) % 2 else 'jpg'}"


def things_of(name: str) -> tuple[ColouredShape, ...]:
    """The things in an image, read from its name.

    >>> things_of("red-circle-20-20-16.jpg")
    (ColouredShape(colour='red', shape='circle', x=20, y=20, size=16),)
    """
    if not _NAME.fullmatch(name):
        raise DataError(
            f"{name!r} names no synthetic image; "
            "names are like 'red-circle-20-20-16_blue-square-50-44-10.png'."
        )
    things = re.findall(_THING, name)
    return tuple(
        ColouredShape(colour, shape, *map(int, numbers)) for colour, shape, *numbers in things
    )


def paint(name: str) -> bytes:
    """The bytes of the image file of this name."""
    from PIL import Image

    stem, ending = name.rsplit(".", 1)
    file = io.BytesIO()
    [frame] = painted([things_of(name)], SIDE, crc32(stem.encode()))
    Image.fromarray(frame).save(file, **FORMATS[ending])
    return file.getvalue()


def box_of(thing: ColouredShape, *words: int) -> str:
    """The bounding box of a thing as shares of the image, for each word (from 0) that names it.

    >>> box_of(ColouredShape("red", "circle", 32, 32, 16), 1, 2)
    '1:0.250,0.250,0.750,0.750 2:0.250,0.250,0.750,0.750'
    """
    box = ",".join(f"{end / SIDE:.3f}" for end in thing.box)
    return " ".join(f"{word}:{box}" for word in words)


def reach(half: float, side: int = SIDE) -> tuple[int, int]:
    """The first and the last position of the middle of a thing that keep it inside the border."""
    return math.ceil(MARGIN + half), math.floor(side - MARGIN - half)


def relation(thing: ColouredShape, other: ColouredShape) -> str | None:
    """The position of a thing relative to another; nothing where that is ambiguous.

    >>> relation(ColouredShape("red", "circle", 20, 20, 10), ColouredShape("blue", "star", 50, 25, 10))
    'left of'
    """
    right, down = thing.x - other.x, thing.y - other.y
    if abs(right) >= CLEAR * abs(down):
        return "right of" if right > 0 else "left of"
    if abs(down) >= CLEAR * abs(right):
        return "below" if down > 0 else "above"
    return None


@partial(
    Corpus, "image_captioning", ["image"], "caption", media="image", paint=paint, truths=["boxes"]
)
def captioned(rng: Random, _longest: int) -> Row:
    """Images of one or two coloured shapes; the caption relates them, the larger one first."""
    if rng.random() < ALONE:
        thing = _alone(rng)
        caption = f"a {thing.colour} {thing.shape}"
        return {"image": name_of([thing]), "caption": caption, "boxes": box_of(thing, 1, 2)}
    large, small = _pair(rng)
    start = f"a {large.colour} {large.shape} {relation(large, small)} a"
    words = len(start.split())
    boxes = f"{box_of(large, 1, 2)} {box_of(small, words, words + 1)}"
    caption = f"{start} {small.colour} {small.shape}"
    return {"image": name_of((large, small)), "caption": caption, "boxes": boxes}


def _appearance(rng: Random) -> tuple[str, str]:
    return rng.choice(list(COLOURS)), rng.choice(list(SHAPES))


def _alone(rng: Random) -> ColouredShape:
    """A thing of any size, anywhere in the image."""
    thing = ColouredShape(*_appearance(rng), 0, 0, rng.randint(SMALL[0], LARGE[1]))
    wide, high = thing.half
    return replace(thing, x=rng.randint(*reach(wide)), y=rng.randint(*reach(high)))


def _pair(rng: Random) -> tuple[ColouredShape, ColouredShape]:
    """A large thing and a small one of another appearance, in an unambiguous relation."""
    first_look = second_look = _appearance(rng)
    while second_look == first_look:
        second_look = _appearance(rng)
    sizes = rng.randint(*LARGE), rng.randint(*SMALL)
    looks = zip((first_look, second_look), sizes, strict=True)
    pair = [ColouredShape(*look, 0, 0, size) for look, size in looks]
    axis, turned = rng.randrange(2), rng.random() < 0.5
    first, second = (thing.half for thing in (pair[::-1] if turned else pair))
    along = _in_line(rng, first[axis], second[axis])
    while True:
        beside = [rng.randint(*reach(half[1 - axis])) for half in (first, second)]
        if CLEAR * abs(beside[1] - beside[0]) <= along[1] - along[0]:
            break
    places = list(zip(beside, along, strict=True) if axis else zip(along, beside, strict=True))
    large, small = places[::-1] if turned else places
    return replace(pair[0], x=large[0], y=large[1]), replace(pair[1], x=small[0], y=small[1])


def _in_line(rng: Random, first: float, second: float) -> tuple[int, int]:
    """The middles of two things of these half lengths, one after the other."""
    between, (start, _), (_, end) = first + second + GAP, reach(first), reach(second)
    middle = rng.randint(start, math.floor(end - between))
    return middle, rng.randint(math.ceil(middle + between), end)


@partial(
    Corpus, "image_classification", ["image"], "label", media="image", paint=paint, truths=["boxes"]
)
def classified(rng: Random, _longest: int) -> Row:
    """Images of one coloured shape; the shape is the class."""
    thing = _alone(rng)
    return {"image": name_of([thing]), "label": thing.shape, "boxes": box_of(thing, 0)}
