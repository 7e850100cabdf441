"""Readers that turn the inputs of a model into the numbers that its encoder takes.

Dims: B rows, S positions, N numbers of a position, F frames, P segments of a row, M segments of all
      rows, L positions of the longest of them.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import shown
from sixjars_runtime.exported.graphs import ROWS, OnnxGraph, Sizes, fits
from sixjars_runtime.exported.settings import FEATURES
from sixjars_runtime.images import read_image
from sixjars_runtime.small_files import values_of_json
from sixjars_runtime.special_tokens import STOP, UNK
from sixjars_runtime.text.points import points_of_field, text_of_points
from sixjars_runtime.text.segments import (
    segments_of,
    shortened,
    text_of_segments,
    words_of_segments,
)
from sixjars_runtime.text.spelling import Spelling, unknown_named
from sixjars_runtime.text.tokenizer_files import GivenTokenizer
from sixjars_runtime.videos import read_video

Numbers = NDArray[Any]
_SEGMENTS: Final = tuple(
    f"segments.{part}" for part in ("packs.0", "segment_index", "position_index", "segment_of")
)


@final
class Tokenizer(Spelling):
    """Splits texts as the toolkit does, without its columns of data: text by text, word by word."""

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """Return the ids of each text; with `open`, each unknown word has a number of its own."""
        words = [text.split() or [""] for text in texts]
        skipped = int(self._kind == "characters")  # the first word of a text follows no space
        rows = [self._ids_of_words(some, open=open) for some in words]
        return [[number for ids in row for number in ids][skipped:] for row in rows]


def tokenizer_of(learned: str) -> Tokenizer | GivenTokenizer:
    """Make a tokenizer of a learned vocabulary, or of somebody's own, as a run has kept it."""
    values = values_of_json(learned)
    from_file = isinstance(values, dict) and values.get("kind") == "file"
    return GivenTokenizer.from_json(learned) if from_file else Tokenizer.from_json(learned)


@final
@dataclass(frozen=True)
class ReadInput:
    """One value, read: what stands at each position, (S,) or (S, N)."""

    values: Numbers
    text: str
    names: tuple[str, ...] = ()
    """What a person reads at each position."""
    lengths: tuple[int, ...] | None = None
    """Of a text in segments, the positions of each."""
    copy_ids: NDArray[np.int64] | None = None
    """Where words are copied, what copying each position outputs."""
    words: tuple[str, ...] = ()
    """Where words may be copied, the word at each position as the output spells it."""

    @property
    def segments(self) -> tuple[int, ...]:
        """The segment that each position belongs to."""
        return tuple(at for at, length in enumerate(self.lengths or ()) for _ in range(length))


class InputReader(ABC):
    """Reads the values of one input; whatever is wrong with one is a ValueError with a sentence.

    It is made of the field's name, its settings and what it learned.
    """

    numbers: tuple[int | None, ...] = ()
    """How many numbers a position has, where it is not one id; None where any will do."""
    has_segments = False
    """Whether a value is a text in segments."""

    def text_of(self, value: object) -> str:
        """Return a value as text; most are a text, or the path of a file."""
        return plain_text(value)

    @abstractmethod
    def read(self, text: str) -> ReadInput:
        """Return the numbers of a text."""


def plain_text(value: object) -> str:
    """Return a text, or a path as text; ValueError with the end of a sentence for anything else."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise ValueError(f"must be a text, but is {shown(value)}.")


def sizes_of(readers: Mapping[str, InputReader], *, copies: bool) -> dict[str, Sizes]:
    """Return the sizes of the tensors that `padded` makes of inputs, by the names of graphs."""
    tensors: dict[str, Sizes] = {}
    for at, (name, reader) in enumerate(readers.items()):
        tensors |= {f"{name}.values": (*ROWS, *reader.numbers), f"{name}.mask": ROWS}
        tensors |= {f"{name}.{part}": ROWS for part in _SEGMENTS if reader.has_segments}
        tensors |= {f"{name}.copy_ids": ROWS} if copies and at == 0 else {}
    return tensors


def padded(rows: Sequence[ReadInput]) -> dict[str, Numbers]:
    """Put rows into one rectangle, and return its tensors as the graphs name them."""
    lengths_B = np.array([len(row.values) for row in rows])
    mask_BS = np.arange(lengths_B.max(initial=0)) < lengths_B[:, None]

    def rectangle(parts: Sequence[Numbers]) -> Numbers:
        whole = np.zeros((*mask_BS.shape, *parts[0].shape[1:]), dtype=parts[0].dtype)
        whole[mask_BS] = np.concatenate(parts)
        return whole

    tensors = {"values": rectangle([row.values for row in rows]), "mask": mask_BS}
    copies = [row.copy_ids for row in rows if row.copy_ids is not None]
    tensors |= {"copy_ids": rectangle(copies)} if copies else {}
    segments = [row.lengths for row in rows if row.lengths is not None]
    return tensors | (packed(segments, mask_BS) if segments else {})


def packed(lengths: Sequence[Sequence[int]], mask_BS: NDArray[np.bool_]) -> dict[str, Numbers]:
    """Put the segments of all rows into one rectangle, as `packed` of the toolkit does."""
    width, most = mask_BS.shape[1], max(1, *(len(row) for row in lengths))
    lengths_M = np.array([length for row in lengths for length in row], dtype=np.int64)
    counts_B = np.array([len(row) for row in lengths], dtype=np.int64)
    rows_M = np.repeat(np.arange(len(lengths)), counts_B)
    places_M = np.arange(len(rows_M)) - np.repeat(np.cumsum(counts_B) - counts_B, counts_B)
    inside_ML = np.arange(max(1, lengths_M.max(initial=0))) < lengths_M[:, None]
    pack_ML = np.full(inside_ML.shape, -1, dtype=np.int64)
    pack_ML[inside_ML] = np.flatnonzero(mask_BS)
    index_BP = np.full((len(lengths), most), -1, dtype=np.int64)
    index_BP[rows_M, places_M] = np.arange(len(rows_M))
    position_BS = np.zeros((len(lengths), width), dtype=np.int64)
    position_BS[mask_BS] = np.flatnonzero(inside_ML)
    of_BS = np.zeros_like(position_BS)
    of_BS[mask_BS] = np.repeat(places_M, lengths_M)
    return dict(zip(_SEGMENTS, (pack_ML, index_BP, position_BS, of_BS), strict=True))


@final
class TextReader(InputReader):
    """Reads a text, tokenized as the run's own texts were."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, self.settings = name, field["settings"]
        self.kind: str = self.settings["segments"]
        self.has_segments = self.kind != "none"
        self.tokenizer = tokenizer_of(learned)
        self.limit: int = self.settings["max_length"]
        self.cut_at = self.limit if self.settings["on_long"] in (None, "cut") else None

    def text_of(self, value: object) -> str:
        """Return a text; a list of segments becomes a line for each."""
        if isinstance(value, list) and self.has_segments:
            return text_of_segments(value)
        return super().text_of(value)

    def read(self, text: str) -> ReadInput:
        """Return the ids of a text."""
        ids = self.ids(text, self.tokenizer)
        values = np.array([number for number in ids if number != STOP], dtype=np.int64)
        if not len(values):
            raise ValueError(
                f"the {self.name} is empty{': it has no token' if text.strip() else ''}."
            )
        if len(ids) > self.limit:
            raise ValueError(f"the {self.name} is longer than data.{self.name}.max_length.")
        names = self.tokenizer.tokens(values.tolist())
        if UNK in ids:
            words = self.words(text, self.tokenizer)
            names = unknown_named(names, list(map(self.tokenizer.plain, words)))
        return ReadInput(values, text, tuple(names), _lengths(ids) if self.has_segments else None)

    def ids(
        self, text: str, tokenizer: Tokenizer | GivenTokenizer, *, open: bool = False
    ) -> list[int]:
        """Return the ids of a text, numbered by this tokenizer; each segment ends in `<stop>`."""
        if not self.has_segments:
            ids = tokenizer.encode_many([text], open=open)[0]
        else:
            rows = tokenizer.encode_many(segments_of(text, self.kind), open=open)
            ids = [number for row in rows for number in (*row, STOP)]
        return shortened(ids, self.cut_at, self.kind, end=STOP)

    def words(self, text: str, tokenizer: Tokenizer | GivenTokenizer) -> list[str]:
        """Return what stands at each position, as a tokenizer spells it."""
        return words_of_segments(text, self.kind, tokenizer.split, self.cut_at)

    def copied(self, row: ReadInput, output: Tokenizer | GivenTokenizer) -> ReadInput:
        """Return a row with what copying each word outputs: its id, or where it stands first."""
        ids = [number for number in self.ids(row.text, output, open=True) if number != STOP]
        first: dict[int, int] = {}
        copies = [
            number if number < output.size else output.size + first.setdefault(number, at)
            for at, number in enumerate(ids)
        ]
        words = tuple(self.words(row.text, output))
        names = tuple(map(output.plain, words))
        return replace(row, names=names, copy_ids=np.array(copies, dtype=np.int64), words=words)


def _lengths(ids: Sequence[int]) -> tuple[int, ...]:
    """Count the ids before each `<stop>`; the last segment may have been cut before its own."""
    lengths = [0]
    for number in ids:
        if number == STOP:
            lengths.append(0)
        else:
            lengths[-1] += 1
    return tuple(lengths if lengths[-1] else lengths[:-1])


@final
class PointsReader(InputReader):
    """Reads points, written as `0.12,0.7 0.3,0.25` or as lists of numbers."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, self.dimensions = name, int(field["settings"]["dimensions"])
        self.numbers = (self.dimensions,)

    def text_of(self, value: object) -> str:
        """Return points as text."""
        return text_of_points(value)

    def read(self, text: str) -> ReadInput:
        """Return the coordinates of points."""
        points = points_of_field(text, self.name, self.dimensions)
        return ReadInput(np.array(points, dtype=np.float32), text, tuple(text.split()))


@final
class FileReader(InputReader):
    """Reads images or videos, by the names of their files."""

    def __init__(
        self,
        name: str,
        field: Mapping[str, Any],
        learned: str,
        *,
        read: Callable[..., Numbers],
        keys: Sequence[str] = (),
    ) -> None:
        self.name, self.side, self.has_frames = name, int(field["pixels"]), bool(keys)
        settings = {key: field["settings"][key] for key in ("fit", "max_pixels", *keys)}
        self._read = partial(read, size=self.side, **settings)
        self.numbers = (3 * self.side**2,)
        self.backbone: OnnxGraph | None = None

    def computed_by(self, backbone: OnnxGraph) -> None:
        """Let the graph of a frozen backbone compute features, (F, N), of pixels, (F, 3, H, W)."""
        self.backbone, self.numbers = backbone, (None,)

    def read(self, text: str) -> ReadInput:
        """Return the pixels of a file, (F, N)."""
        with _file(self.name, text).open("rb") as file:
            pixels = self._read(file, text)
        values = pixels.reshape(1 if pixels.ndim == 3 else len(pixels), -1)
        return ReadInput(values, text, _numbered(values) if self.has_frames else ())

    def computed(self, rows: Sequence[ReadInput]) -> list[ReadInput]:
        """Return the rows with features in place of pixels, where a backbone computes them."""
        if self.backbone is None:
            return list(rows)
        pixels = np.concatenate([row.values for row in rows]).reshape(-1, 3, self.side, self.side)
        ends = np.cumsum([len(row.values) for row in rows])[:-1]
        features = np.split(self.backbone({"pixels": pixels}, rows=len(pixels))["values"], ends)
        return [replace(row, values=values) for row, values in zip(rows, features, strict=True)]


@final
class FeaturesReader(InputReader):
    """Reads features that somebody extracted, from `.npy` files."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, shape = name, values_of_json(learned)
        FEATURES(shape, "")
        self.shape = (*shape["positions"], shape["channels"])
        self.numbers = self.shape[-1:]

    def read(self, text: str) -> ReadInput:
        """Return the vectors of a file, (S, C)."""
        path = _file(self.name, text if text.endswith(".npy") else f"{text}.npy")
        array = np.load(path, allow_pickle=False).astype(np.float32)
        if not fits(self.shape, array.shape) or not np.isfinite(array).all():
            raise ValueError(
                f"the {self.name}: {text} has the shape {array.shape}, but {self.shape} is needed."
            )
        values = array.reshape(-1, array.shape[-1])
        return ReadInput(values, text, _numbered(values))


def _file(name: str, text: str) -> Path:
    if not text.strip():
        raise ValueError(f"the {name} is empty.")
    path = Path(text)
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"the {name} file {text[:300]} {reason}.")
    return path


def _numbered(values: Numbers) -> tuple[str, ...]:
    return tuple(str(at + 1) for at in range(len(values)))


READERS: Mapping[str, Callable[[str, Mapping[str, Any], str], InputReader]] = {
    "text": TextReader,
    "points": PointsReader,
    "image": partial(FileReader, read=read_image),
    "video": partial(FileReader, read=read_video, keys=("frames", "rate")),
    "features": FeaturesReader,
}
"""By the kind of a field."""
