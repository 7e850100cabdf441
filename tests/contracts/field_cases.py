"""One case or more for each kind of field: values that it takes, and values that it refuses.

Dims: X frames, H and W pixels, N numbers of a frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor

from sixjars.data.field import Equipment, Field
from sixjars.data.fields.features import FeaturesField, FeaturesSettings
from sixjars.data.fields.image import ImageField, ImageSettings
from sixjars.data.fields.label import LabelField, LabelSettings
from sixjars.data.fields.order import OrderField, OrderSettings
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.fields.video import VideoField, VideoSettings
from sixjars.samples.video_files import write_video

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

    @property
    def vector(self) -> int:
        """The mean colour, where it is all there is."""
        return 0 if self.cells else 3

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
    bad: tuple[tuple[Any, str], ...]
    """What is refused, and what the sentence about it says: in a prediction, or, where it is only
    found then, in training."""
    foreign: tuple[Any, ...]
    """A column that cannot hold this kind of field."""
    described: str
    """What `explain` prints of the field, with what it learned from the values."""
    drawn: tuple[str, ...] = ()
    """What a picture of attention shows at the first value; nothing for an image or an output."""
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
    for name, count in (("short", 1), ("long", 4), ("longest", 9)):
        np.save(folder / f"{name}.npy", np.random.default_rng(count).normal(size=(count, 5)))
        np.save(folder / f"{name} grid.npy", np.full((2, 3, 5), count, dtype=np.int16))
        np.save(folder / f"{name} vector.npy", np.arange(5, dtype=np.float16) + count)
    np.save(folder / "wide.npy", np.zeros((2, 6)))
    np.save(folder / "deep.npy", np.zeros((1, 2, 3, 5)))
    np.save(folder / "nan.npy", np.array([[1, 2, 3, 4, np.nan]]))
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("notes.png", "notes.mp4", "notes.npy"):
        (folder / name).write_text("neither an image nor a video")


def output(made: Field, **options: Any) -> Field:
    """A field as the output of a decoder."""
    return made.equipped(Equipment(target_options=options))


def text(name: str = "source", **settings: Any) -> Field:
    """A field of text."""
    return TextField(name, TextSettings(**settings))


def media(
    kind: type[ImageField | VideoField], settings: Any, *, cells: bool
) -> Callable[[Path], Field]:
    """A field of files, with the stand-in."""
    name = "image" if kind is ImageField else "video"
    return lambda folder: kind(name, settings).equipped(
        Equipment((folder,), Extractor(cells), stored=True)
    )


NO_TEXT = ((5, "must be a text, but is 5."), (None, "must be a text, but is None."))
EMPTY = (("", " is empty."), (" \n", " is empty."))
NO_LIST: tuple[tuple[Any, str], ...] = (
    ([], "holds an empty list."),
    ([["a"]], "holds a list with a list in it; it may hold texts alone."),
    ([None], "holds a list with null in it; it may hold texts alone."),
)
SENTENCES = ("The cat sat. It slept!", "Rain.", "A dog ran, far away. It came back. It ate.")
WORDS = ("The", "cat", "sat", ".", "It", "slept", "!")
of_text = Case(
    lambda _: text(),
    SENTENCES,
    bad=(
        *EMPTY,
        *NO_TEXT,
        (["a"], "must be a text, but is ['a']."),
        ({"a": 1}, "must be a text, but is {'a': 1}."),
    ),
    foreign=(5, 1.5),
    described="words, a vocabulary of 21",
    drawn=WORDS,
)


def tokens_of_a_file(folder: Path, **equipment: Any) -> Field:
    """A field whose tokenizer comes with the data, special tokens of its own included."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=200, special_tokens=["[CLS]", "[UNK]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 0))
    tokenizer.save(str(folder / "tokenizer.json"))
    return text(tokens={"file": "tokenizer.json"}).equipped(Equipment((folder,), **equipment))


of_a_file = Case(
    tokens_of_a_file,
    SENTENCES,
    bad=of_text.bad,
    foreign=(5, 1.5),
    described="tokens of tokenizer.json, a vocabulary of 80",
    drawn=("▁The", "▁cat", "▁sat.", "▁It", "▁slept!"),
)
LISTS = (["the cat sat", "it slept"], ["rain"], ["a dog ran", "far away", "it came back"])
in_lines = Case(
    lambda _: text(segments="lines"),
    LISTS,
    texts=tuple("\n".join(lines) for lines in LISTS),
    bad=(*EMPTY, *NO_TEXT, *NO_LIST),
    foreign=([1], []),
    described="words in lines, a vocabulary of 17",
    drawn=("the", "cat", "sat", "it", "slept"),
)
to_text = replace(of_text, make=lambda _: output(text("target")), drawn=(), is_output=True)
of_label = Case(
    lambda _: output(LabelField("label", LabelSettings())),
    ("cat", "dog", "cat", "a long label"),
    bad=(
        *EMPTY,
        (1.5, "must be a text, but is 1.5."),
        (["cat"], "must be a text, but is ['cat']."),
    ),
    foreign=(1.5, None),
    described="one of 3",
    is_output=True,
)
TOURS = ("0.1,0.7 0.3,0.2 1,1", "5,6", "0,0 1,0 1,1 0,1")
NO_ORDER = "must be a list of positions like [2, 0, 1], but "
NO_POINTS = "must be a list of points like [[0.12, 0.7]"
of_order = Case(
    lambda _: output(OrderField("order", OrderSettings())),
    ([2, 0, 1], "0", [3, 1]),
    texts=("2 0 1", "0", "3 1"),
    bad=(
        ("", "there is no position; write at least one, like 2 0 1."),
        ("0 x", "'x' is not a position; write whole numbers counted from 0, like 2 0 1."),
        ("1 1", "position 1 comes 2 times; each may come once."),
        ("0 9", "position 9 is not there: there are 3 points, counted from 0."),
        ([[0]], NO_ORDER + "has [0] in it."),
        (1.5, NO_ORDER + "is 1.5."),
    ),
    foreign=("to be", "not"),
    described="positions of the input, each at most once",
    beside={"points": TOURS},
    is_output=True,
)
of_points = Case(
    lambda _: PointsField("points", PointsSettings()),
    (TOURS[0], [[5, 6]], [["0", 0], [1, 0], [1, 1], [0, 1]]),
    texts=TOURS,
    bad=(
        ("", "there is no point; write at least one, like 0.12,0.7 0.3,0.25."),
        ("1,x", "'x' of point '1,x' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ("1,2,3", "a point has 3 coordinates, but data.points.dimensions is 2."),
        (
            "1,2 3",
            "a point has 1 coordinate and the first has 2 coordinates; all must have as many",
        ),
        ("1,2,3 4", "a point has 1 coordinate and the first has 3 coordinates; all must have"),
        ("3,,4", "'' of point '3,,4' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ("1,½", "'½' of point '1,½' is not a number; write points like 0.12,0.7 0.3,0.25."),
        *(
            (f"1,{number}", f"{number!r} of point '1,{number}' is not a finite 32-bit number.")
            for number in ("nan", "1e300", "3.4001e38")
        ),
        ([[1, [2]]], "has [2] in it."),
        ([True], "has True in it."),
        ({"x": 1}, NO_POINTS),
        (None, NO_POINTS),
    ),
    foreign=("to be", "not"),
    described="2 coordinates each",
    drawn=("0.1,0.7", "0.3,0.2", "1,1"),
)
IMAGES, VIDEOS = ("red.png", "blue.png", "green.png"), ("long.mp4", "short.mp4", "longest.mp4")
of_image = Case(
    media(ImageField, ImageSettings(), cells=True),
    IMAGES,
    bad=(
        *EMPTY,
        *NO_TEXT,
        ("gone.png", "file gone.png does not exist."),
        ("notes.png", "notes.png is not an image, or damaged from its first bytes; JPEG, PNG, "),
    ),
    foreign=("a dog",),
    described="6×6 pixels",
)
of_video = Case(
    media(VideoField, VideoSettings(frames=5), cells=True),
    VIDEOS,
    bad=(
        *EMPTY,
        *NO_TEXT,
        ("gone.mp4", "file gone.mp4 does not exist."),
        ("notes.mp4", "notes.mp4 is not a video, or is cut off or damaged from its first bytes."),
    ),
    foreign=("red.png",),
    described="6×6 pixels",
    drawn=("1", "2", "3", "4"),
)
of_features = Case(
    lambda folder: FeaturesField("image", FeaturesSettings()).equipped(
        Equipment((folder,), stored=True)
    ),
    ("long.npy", "short.npy", "longest.npy"),
    bad=(
        *EMPTY,
        *NO_TEXT,
        ("gone.npy", "file gone.npy does not exist."),
        (
            "notes.npy",
            "notes.npy is not a .npy file of numbers, or is damaged from its first bytes.",
        ),
        ("wide.npy", "wide.npy has vectors of 6 numbers, but "),
        (
            "deep.npy",
            "deep.npy has the shape (1, 2, 3, 5), but features are (C), (N, C) or (H, W, C): one "
            "vector, ",
        ),
        ("nan.npy", "nan.npy has nan at [0, 4], which is no finite 32-bit number."),
        (
            "objects.npy",
            "objects.npy holds pickled Python objects, which are never loaded; save an array of "
            "numbers.",
        ),
    ),
    foreign=("red.png",),
    described="given features, vectors of 5 numbers",
    drawn=("1", "2", "3", "4"),
)

CASES: dict[str, Case] = {
    "text": of_text,
    "text, tokens of a file": of_a_file,
    "text to output, tokens of a file": replace(
        of_a_file,
        make=lambda folder: tokens_of_a_file(folder, target_options={}),
        drawn=(),
        is_output=True,
    ),
    "text, lowercased": replace(
        of_text,
        make=lambda _: text(lowercase=True, min_count=2),
        described="words, a vocabulary of 6",
        drawn=("<unk:the>", "<unk:cat>", "<unk:sat>", ".", "it", "<unk:slept>", "<unk:!>"),
    ),
    "text, spaces": replace(
        of_text,
        make=lambda _: text(split="spaces"),
        described="words, a vocabulary of 18",
        drawn=("The", "cat", "sat.", "It", "slept!"),
    ),
    "text, characters": replace(
        of_text,
        make=lambda _: text(tokens="characters"),
        described="characters, a vocabulary of 32",
        drawn=tuple("The␣cat␣sat.␣It␣slept!"),
    ),
    "text, bpe": replace(
        of_text,
        make=lambda _: text(tokens="bpe", size=40),
        described="bpe, a vocabulary of 40",
        drawn=("▁", "Th", "e", "▁c", "at", "▁s", "at", ".", "▁It", "▁s", "l", "e", "p", "t", "!"),
    ),
    "text, unigram": replace(
        of_text,
        make=lambda _: text(tokens="unigram", size=40),
        described="unigram, a vocabulary of 35",
        drawn=tuple("▁ T h e ▁ca t ▁s at . ▁ I t ▁s l e p t !".split()),
    ),
    "text, cut": replace(of_text, make=lambda _: text(max_length=3), drawn=WORDS[:3]),
    "text, sentences": replace(
        of_text,
        make=lambda _: text(segments="sentences"),
        bad=in_lines.bad,
        described="words in sentences, a vocabulary of 21",
    ),
    "text, lines": in_lines,
    "text, turns": replace(
        in_lines,
        make=lambda _: text(segments="turns"),
        described="words in turns, a vocabulary of 19",
        drawn=("<", "the", "cat", "sat", ">", "it", "slept"),
    ),
    "text, turns, cut": replace(
        in_lines,
        make=lambda _: text(segments="turns", max_length=5),
        described="words in turns, a vocabulary of 19",
        drawn=(">", "it", "slept"),
    ),
    "text, output": to_text,
    "text, output of characters": replace(
        to_text,
        make=lambda _: output(text("target", tokens="characters")),
        described="characters, a vocabulary of 32",
    ),
    "text, output of bpe": replace(
        to_text,
        make=lambda _: output(text("target", tokens="bpe", size=40)),
        described="bpe, a vocabulary of 40",
    ),
    "text, output with copying": replace(
        to_text,
        make=lambda _: output(text("target", min_count=2), copies=True),
        beside={
            "source": (
                "It slept! The cat sat.",
                "Rain.",
                "A dog came back, far away. It ran. It ate.",
            )
        },
        source=text(segments="sentences"),
        described="words, a vocabulary of 6",
    ),
    "label": of_label,
    "label, several": replace(
        of_label,
        make=lambda _: output(LabelField("label", LabelSettings(multi_label=True))),
        values=(["grain", "wheat"], ["wheat"], ["corn", "grain", "wheat"]),
        texts=("grain, wheat", "wheat", "corn, grain, wheat"),
        bad=(
            *EMPTY,
            *NO_LIST,
            ([" "], "holds an empty label."),
            (
                ["a, b"],
                "holds the label 'a, b', but a comma stands between labels; write it without.",
            ),
        ),
        foreign=([1.5], [None]),
        described="any of 3",
    ),
    "order": of_order,
    "order, all points": replace(
        of_order,
        make=lambda _: output(OrderField("order", OrderSettings()), complete=True),
        values=([2, 0, 1], "0", [3, 1, 0, 2]),
        texts=("2 0 1", "0", "3 1 0 2"),
        bad=(
            ("0 1", "has 2 of 3 points, but model.decoder.visits is all; say visits: some."),
            *of_order.bad,
        ),
    ),
    "points": of_points,
    "points, numbers": replace(
        of_points,
        make=lambda _: PointsField("points", PointsSettings(dimensions=1)),
        values=([3, 1.5], "7", "1 2 3 4"),
        texts=("3 1.5", "7", "1 2 3 4"),
        bad=(
            ("1,2", "a point has 2 coordinates, but data.points.dimensions is 1."),
            ([[1, 2]], "a point has 2 coordinates, but data.points.dimensions is 1."),
            ("x", "'x' of point 'x' is not a number; write points like 0.12,0.7 0.3,0.25."),
        ),
        described="1 coordinate each",
        drawn=("3", "1.5"),
    ),
    "image": of_image,
    "image, features": replace(
        of_image, make=media(ImageField, ImageSettings(fit="pad"), cells=False)
    ),
    "video": of_video,
    "video, features": replace(
        of_video, make=media(VideoField, VideoSettings(rate=2.0), cells=False), drawn=("1", "2")
    ),
    "features": of_features,
    "features, grid": replace(
        of_features,
        values=("long grid.npy", "short grid.npy", "longest grid.npy"),
        bad=(("long.npy", "long.npy has vectors of 5 numbers, but "), *of_features.bad[6:]),
        described="given features, 2×3 cells of 5 numbers",
        drawn=("1", "2", "3", "4", "5", "6"),
    ),
    "features, one vector": replace(
        of_features,
        values=("long vector.npy", "short vector.npy", "longest vector.npy"),
        bad=(("long grid.npy", "long grid.npy has 2×3 cells of 5 numbers, but "),),
        described="given features, one vector of 5 numbers",
        drawn=("1",),
    ),
}
