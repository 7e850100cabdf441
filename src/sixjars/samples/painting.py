"""From things to pixels: coloured shapes on pale backgrounds, for the synthetic images and videos.

Dims: F frames, H height, W width, 3 red, green and blue.
"""

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sixjars.data.media.images import need_pillow
from sixjars.errors import DataError

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
SHAPES: dict[str, Point] = {"circle": (1.0, 1.0), "square": (0.88, 0.88), "triangle": (1.0, 0.86), "star": (1.05, 1.0)}
"""Half the width and half the height of each shape of size 1: a larger thing is larger in area too, whatever its
shape."""

FINE = 4
"""Shapes are drawn so many times larger, then averaged: their edges become smooth."""
EDGE = 1.3
"""How many pixels the darker edge of a shape is wide, near enough."""
BACKGROUND = (216, 250)
"""The darkest and the lightest background."""
NOISE = 2.0
"""The standard deviation of the background's noise, in steps of 255."""
JITTER = 10
"""How far the shade of a thing may lie from its colour's, in steps of 255."""


@final
@dataclass(frozen=True)
class Thing:
    """A coloured shape; the middle of its bounding box and its size are in pixels.

    >>> Thing("red", "square", 30, 20, 10).box
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


def painted(frames: Sequence[Sequence[Thing]], side: int, seed: int) -> NDArray[np.uint8]:
    """Square frames (F, H, W, 3) on one background; the first thing has the same shade in all of them, and so on."""
    need_pillow()
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(seed)
    background = Image.fromarray(_background(side, rng)).resize((side * FINE, side * FINE), Image.Resampling.NEAREST)
    shades = [_shade(thing.colour, rng) for thing in frames[0]]
    made = np.empty((len(frames), side, side, 3), dtype=np.uint8)
    for number, things in enumerate(frames):
        canvas = background.copy()
        pen = ImageDraw.Draw(canvas)
        for thing, shade in zip(things, shades, strict=True):
            _draw(pen, thing, shade)
        made[number] = np.asarray(canvas.reduce(FINE))
    return made


def image_file(pixels_HW3: NDArray[np.uint8], ending: str) -> bytes:
    """The bytes of a `png` or a `jpg` file."""
    from PIL import Image

    file = io.BytesIO()
    image = Image.fromarray(pixels_HW3)
    if ending == "png":
        image.save(file, "PNG", compress_level=3)
    else:
        image.save(file, "JPEG", quality=92)
    return file.getvalue()


def video_file(frames_FHW3: NDArray[np.uint8], rate: float) -> bytes:
    """The bytes of an `mp4` file with so many frames a second."""
    from sixjars.data.media.videos import write_video

    file = io.BytesIO()
    write_video(file, frames_FHW3, rate=rate)
    return file.getvalue()


def _background(side: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A gradient from one pale tint to another, with a little noise."""
    from_3, to_3 = rng.uniform(*BACKGROUND, (2, 3))
    turn = rng.uniform(0, 2 * math.pi)
    steps = np.linspace(-0.5, 0.5, side)
    way_HW = np.clip(0.5 + steps[None, :] * math.cos(turn) + steps[:, None] * math.sin(turn), 0, 1)
    tints_HW3 = from_3 + way_HW[..., None] * (to_3 - from_3) + rng.normal(0, NOISE, (side, side, 1))
    background_HW3: NDArray[np.uint8] = np.clip(np.rint(tints_HW3), 0, 255).astype(np.uint8)
    return background_HW3


def _shade(colour: str, rng: np.random.Generator) -> Shade:
    red, green, blue = (int(part) for part in np.array(COLOURS[colour]) + rng.integers(-JITTER, JITTER + 1, 3))
    return red, green, blue


def _draw(pen: "ImageDraw", thing: Thing, shade: Shade) -> None:
    """The whole shape in a darker shade, then its inside."""
    red, green, blue = shade
    inside = 1 - EDGE / thing.size
    for share, fill in ((1.0, (red * 3 // 4, green * 3 // 4, blue * 3 // 4)), (inside, shade)):
        if thing.shape == "circle":
            reach = thing.size * share
            # Pillow paints the last row and column that it is given as well.
            ends = (thing.x - reach, thing.y - reach, thing.x + reach - 1 / FINE, thing.y + reach - 1 / FINE)
            pen.ellipse(tuple(end * FINE for end in ends), fill=fill)
        else:
            pen.polygon(_corners(thing, share), fill=fill)


def _corners(thing: Thing, share: float) -> list[Point]:
    """Where the corners are on the fine canvas, with the shape shrunk to a share about their middle."""
    outline = OUTLINES[thing.shape]
    wide, high = thing.half
    middle_x, middle_y = (sum(ends) / len(outline) for ends in zip(*outline, strict=True))
    return [
        (
            (thing.x + wide * (middle_x + share * (x - middle_x))) * FINE - 0.5,
            (thing.y + high * (middle_y + share * (y - middle_y))) * FINE - 0.5,
        )
        for x, y in outline
    ]


_THING = rf"({'|'.join(COLOURS)})-({'|'.join(SHAPES)})-(\d{{1,2}})-(\d{{1,2}})-([1-9]\d?)"
_NAME = re.compile(rf"{_THING}(?:_{_THING}){{0,2}}\.(?:png|jpg)")


def name_of(things: Iterable[Thing]) -> str:
    """The file name of an image with these things; half of all images are `png` files, the others `jpg`.

    >>> name_of([Thing("red", "circle", 20, 20, 16)])
    'red-circle-20-20-16.jpg'
    """
    stem = "_".join(f"{t.colour}-{t.shape}-{t.x}-{t.y}-{t.size}" for t in things)
    return f"{stem}.{'png' if crc32(stem.encode()) % 2 else 'jpg'}"


def things_of(name: str) -> tuple[Thing, ...]:
    """What is in an image, read from its name.

    >>> things_of("red-circle-20-20-16.jpg")
    (Thing(colour='red', shape='circle', x=20, y=20, size=16),)
    """
    if not _NAME.fullmatch(name):
        raise DataError(
            f"{name!r} names no synthetic image; names are like 'red-circle-20-20-16_blue-square-50-44-10.png'."
        )
    found = re.findall(_THING, name)
    return tuple(Thing(colour, shape, int(x), int(y), int(size)) for colour, shape, x, y, size in found)


def paint(name: str) -> bytes:
    """The bytes of the image file of this name."""
    things = things_of(name)
    stem, ending = name.rsplit(".", 1)
    return image_file(painted([things], SIDE, crc32(stem.encode()))[0], ending)


def box_of(thing: Thing, *words: int) -> str:
    """The bounding box of a thing as shares of the image, once for each word (counted from 0) that names it.

    >>> box_of(Thing("red", "circle", 32, 32, 16), 1, 2)
    '1:0.250,0.250,0.750,0.750 2:0.250,0.250,0.750,0.750'
    """
    box = ",".join(f"{end / SIDE:.3f}" for end in thing.box)
    return " ".join(f"{word}:{box}" for word in words)


def reach(half: float, side: int = SIDE) -> tuple[int, int]:
    """The first and the last position of the middle of a thing that keep it inside the border."""
    return math.ceil(MARGIN + half), math.floor(side - MARGIN - half)
