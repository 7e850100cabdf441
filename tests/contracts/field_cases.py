"""One case or more for each kind of field: values that it takes, and values that it refuses.

Dims: X frames, H and W pixels, N numbers of a frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from PIL import Image
from torch import Tensor

from sixjars.data.field import Equipment, Field
from sixjars.data.fields.image import ImageField, ImageSettings
from sixjars.data.fields.label import LabelField, LabelSettings
from sixjars.data.fields.order import OrderField, OrderSettings
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.fields.video import VideoField, VideoSettings
from sixjars.data.media.videos import write_video

SIDE = 6


@final
@dataclass(frozen=True)
class Extractor:
    """A stand-in for a feature extractor: all pixels of a frame, or its mean colour alone."""

    cells: bool
    """Whether the pixels are handed on."""
    pixels: int = SIDE
    name: str = "stand-in"
    fingerprint: str | None = "1"

    def plan(self) -> dict[str, Any]:
        """All that the numbers depend on."""
        return {"cells": self.cells}

    def __call__(self, pixels: Tensor, /) -> Tensor:
        """(X, 3, H, W) to (X, N)."""
        return pixels.flatten(1) if self.cells else pixels.float().mean((2, 3)).half()


@final
@dataclass(frozen=True)
class Case:
    """A field before anything is learned, and values for it.

    `make` is given a folder with the files that `draw` makes.
    """

    make: Callable[[Path], Field]
    values: tuple[Any, ...]
    """Of JSON or Python, of different lengths; all are learned from."""
    bad: tuple[Any, ...]
    """What is refused with a sentence."""
    foreign: tuple[Any, ...]
    """A column that cannot hold this kind of field."""
    texts: tuple[str, ...] = ()
    """What is kept of each value, where it is not the value itself."""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other columns of the same examples, which stand before this one."""
    is_output: bool = False
    """Whether a decoder can output it: then what it outputs must come back as text."""
    source: Field | None = None
    """The input that an output is tied to, before anything is learned."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The text of each value."""
        return self.texts or self.values


def draw(folder: Path) -> None:
    """The images and videos that the cases name, and files that are none."""
    for number, colour in enumerate(("red", "green", "blue")):
        Image.new("RGB", (10 + number, 12), colour).save(folder / f"{colour}.png")
    for name, count in (("short", 1), ("long", 4), ("longest", 9)):
        frames = np.random.default_rng(count).integers(0, 255, (count, 16, 16, 3), dtype=np.uint8)
        write_video(folder / f"{name}.mp4", frames, rate=5)
    for name in ("notes.png", "notes.mp4"):
        (folder / name).write_text("neither an image nor a video")


def output(made: Field, **options: Any) -> Field:
    """A field as the output of a decoder."""
    return made.equipped(Equipment(target_options=options))


def text(name: str = "source", **settings: Any) -> Field:
    """A field of text."""
    return TextField(name, TextSettings(**settings))


def media(kind: type[ImageField | VideoField], settings: Any, *, cells: bool) -> Callable[[Path], Field]:
    """A field of files, with the stand-in."""
    name = "image" if kind is ImageField else "video"
    return lambda folder: kind(name, settings).equipped(Equipment((folder,), Extractor(cells), stored=True))


SENTENCES = ("The cat sat. It slept!", "Rain.", "A dog ran, far away. It came back. It ate.")
of_text = Case(lambda _: text(), SENTENCES, bad=("", " \n", 5, None, ["a"], {"a": 1}), foreign=(5, 1.5))
LISTS = (["the cat sat", "it slept"], ["rain"], ["a dog ran", "far away", "it came back"])
in_lines = Case(
    lambda _: text(segments="lines"),
    LISTS,
    texts=tuple("\n".join(lines) for lines in LISTS),
    bad=("", [], [["a"]], [None], 5),
    foreign=([1], []),
)
of_label = Case(
    lambda _: output(LabelField("label", LabelSettings())),
    ("cat", "dog", "cat", "a long label"),
    bad=("", " ", 1.5, None, ["cat"]),
    foreign=(1.5, None),
    is_output=True,
)
TOURS = ("0.1,0.7 0.3,0.2 1,1", "5,6", "0,0 1,0 1,1 0,1")
of_order = Case(
    lambda _: output(OrderField("order", OrderSettings())),
    ([2, 0, 1], "0", [3, 1]),
    texts=("2 0 1", "0", "3 1"),
    bad=("", "0 x", "1 1", "0 9", [[0]], 1.5, None),
    foreign=("to be", "not"),
    beside={"points": TOURS},
    is_output=True,
)
of_points = Case(
    lambda _: PointsField("points", PointsSettings()),
    (TOURS[0], [[5, 6]], [["0", 0], [1, 0], [1, 1], [0, 1]]),
    texts=TOURS,
    bad=("", "1,x", "1,2,3", "1,2 3", "1,nan", [[1, [2]]], [True], {"x": 1}, None),
    foreign=("to be", "not"),
)
IMAGES, VIDEOS = ("red.png", "blue.png", "green.png"), ("long.mp4", "short.mp4", "longest.mp4")
of_image = Case(
    media(ImageField, ImageSettings(), cells=True), IMAGES, bad=("gone.png", "notes.png", "", 5), foreign=("a dog",)
)
of_video = Case(
    media(VideoField, VideoSettings(frames=5), cells=True),
    VIDEOS,
    bad=("gone.mp4", "notes.mp4", "", ["long.mp4"]),
    foreign=("red.png",),
)

CASES: dict[str, Case] = {
    "text": of_text,
    "text, lowercased": replace(of_text, make=lambda _: text(lowercase=True, min_count=2)),
    "text, spaces": replace(of_text, make=lambda _: text(split="spaces")),
    "text, characters": replace(of_text, make=lambda _: text(tokens="characters")),
    "text, bpe": replace(of_text, make=lambda _: text(tokens="bpe", size=40)),
    "text, unigram": replace(of_text, make=lambda _: text(tokens="unigram", size=40)),
    "text, cut": replace(of_text, make=lambda _: text(max_length=3)),
    "text, sentences": replace(of_text, make=lambda _: text(segments="sentences"), bad=("", [], [["a"]], 5)),
    "text, lines": in_lines,
    "text, turns": replace(in_lines, make=lambda _: text(segments="turns")),
    "text, turns, cut": replace(in_lines, make=lambda _: text(segments="turns", max_length=5)),
    "text, output": replace(of_text, make=lambda _: output(text("target")), is_output=True),
    "text, output of characters": replace(
        of_text, make=lambda _: output(text("target", tokens="characters")), is_output=True
    ),
    "text, output of bpe": replace(
        of_text, make=lambda _: output(text("target", tokens="bpe", size=40)), is_output=True
    ),
    "text, output with copying": replace(
        of_text,
        make=lambda _: output(text("target", min_count=2), copies=True),
        beside={"source": ("It slept! The cat sat.", "Rain.", "A dog came back, far away. It ran. It ate.")},
        is_output=True,
        source=text(segments="sentences"),
    ),
    "label": of_label,
    "label, several": replace(
        of_label,
        make=lambda _: output(LabelField("label", LabelSettings(multi_label=True))),
        values=(["grain", "wheat"], ["wheat"], ["corn", "grain", "wheat"]),
        texts=("grain, wheat", "wheat", "corn, grain, wheat"),
        bad=("", [], ["a, b"], [["a"]], [" "], None),
        foreign=([1.5], [None]),
    ),
    "order": of_order,
    "order, all points": replace(
        of_order,
        make=lambda _: output(OrderField("order", OrderSettings()), complete=True),
        values=([2, 0, 1], "0", [3, 1, 0, 2]),
        texts=("2 0 1", "0", "3 1 0 2"),
        bad=("0 1", "", "0 0 1"),
    ),
    "points": of_points,
    "points, numbers": replace(
        of_points,
        make=lambda _: PointsField("points", PointsSettings(dimensions=1)),
        values=([3, 1.5], "7", "1 2 3 4"),
        texts=("3 1.5", "7", "1 2 3 4"),
        bad=("", "1,2", "x", [[1, 2]], None),
    ),
    "image": of_image,
    "image, features": replace(of_image, make=media(ImageField, ImageSettings(fit="pad"), cells=False)),
    "video": of_video,
    "video, features": replace(of_video, make=media(VideoField, VideoSettings(rate=2.0), cells=False)),
}
