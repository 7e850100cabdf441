"""Readers that turn the inputs of a model into the numbers that its encoder takes.

Dims: B rows, S positions, N numbers of a position, P segments of a row, M segments of all rows,
      L positions of the longest of them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import shown
from sixjars_runtime.exported.settings import FEATURES
from sixjars_runtime.exported.tokenizers import AnyTokenizer, tokenizer_of
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
from sixjars_runtime.text.word_pieces import unknown_named
from sixjars_runtime.videos import read_video

Numbers = NDArray[Any]


@final
@dataclass(frozen=True)
class Row:
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


class Reader(Protocol):
    """Reads the values of one input; whatever is wrong with one is a ValueError with a sentence."""

    def text_of(self, value: object) -> str:
        """Return a value as text."""
        ...

    def read(self, text: str) -> Row:
        """Return the numbers of a text."""
        ...


def padded(rows: Sequence[Row]) -> dict[str, Numbers]:
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
    position_BS, of_BS = (np.zeros((len(lengths), width), dtype=np.int64) for _ in "ab")
    position_BS[mask_BS], of_BS[mask_BS] = np.flatnonzero(inside_ML), np.repeat(places_M, lengths_M)
    names = ("packs.0", "segment_index", "position_index", "segment_of")
    return dict(
        zip(
            (f"segments.{name}" for name in names),
            (pack_ML, index_BP, position_BS, of_BS),
            strict=True,
        )
    )


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"must be a text, but is {shown(value)}.")


@final
class TextReader:
    """Reads a text, tokenized as the run's own texts were."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, self.settings = name, field["settings"]
        self.kind: str = self.settings["segments"]
        self.tokenizer = tokenizer_of(learned)
        self.limit: int = self.settings["max_length"]
        self.cut_at = self.limit if self.settings["on_long"] in (None, "cut") else None

    def text_of(self, value: object) -> str:
        """Return a text; a list of segments becomes a line for each."""
        return (
            text_of_segments(value)
            if isinstance(value, list) and self.kind != "none"
            else _plain(value)
        )

    def read(self, text: str) -> Row:
        """Return the ids of a text."""
        ids = self.ids(text, self.tokenizer)
        values = np.array([number for number in ids if number != STOP], dtype=np.int64)
        if not len(values):
            raise ValueError(
                f"the {self.name} is empty{': it has no token' if text.strip() else ''}."
            )
        if len(ids) > self.limit:
            raise ValueError(f"the {self.name} is longer than data.{self.name}.max_length.")
        lengths = None if self.kind == "none" else tuple(map(len, _split(ids)))
        names = self.tokenizer.tokens(values.tolist())
        if UNK in ids:
            names = unknown_named(
                names, list(map(self.tokenizer.plain, self.words(text, self.tokenizer)))
            )
        return Row(values, text, tuple(names), lengths)

    def ids(self, text: str, tokenizer: AnyTokenizer, *, open: bool = False) -> list[int]:
        """Return the ids of a text, numbered by this tokenizer; each segment ends in `<stop>`."""
        if self.kind == "none":
            ids = tokenizer.encode_many([text], open=open)[0]
        else:
            rows = tokenizer.encode_many(segments_of(text, self.kind), open=open)
            ids = [number for row in rows for number in (*row, STOP)]
        return shortened(ids, self.cut_at, self.kind, end=STOP)

    def words(self, text: str, tokenizer: AnyTokenizer) -> list[str]:
        """Return what stands at each position, as a tokenizer spells it."""
        return words_of_segments(text, self.kind, tokenizer.split, self.cut_at)


def _split(ids: Sequence[int]) -> list[list[int]]:
    """Split ids behind each `<stop>`; the last segment may have been cut before it."""
    segments: list[list[int]] = [[]]
    for number in ids:
        if number == STOP:
            segments.append([])
        else:
            segments[-1].append(number)
    return segments if segments[-1] else segments[:-1]


@final
class PointsReader:
    """Reads points, written as `0.12,0.7 0.3,0.25` or as lists of numbers."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, self.dimensions = name, int(field["settings"]["dimensions"])

    def text_of(self, value: object) -> str:
        """Return points as text."""
        return text_of_points(value)

    def read(self, text: str) -> Row:
        """Return the coordinates of points."""
        points = points_of_field(text, self.name, self.dimensions)
        return Row(np.array(points, dtype=np.float32), text, tuple(text.split()))


class Features(Protocol):
    """The graph of a frozen backbone."""

    def __call__(self, tensors: Mapping[str, Numbers], *, rows: int) -> Mapping[str, Numbers]:
        """Compute `values`, (F, N), from `pixels`, (F, 3, H, W)."""
        ...


@final
class FileReader:
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
        self.name, self.side, self.frames = name, int(field["pixels"]), bool(keys)
        settings = {key: field["settings"][key] for key in ("fit", "max_pixels", *keys)}
        self._read = partial(read, size=self.side, **settings)
        self.features: Features | None = None
        """Handed over where a frozen backbone computes them."""

    def text_of(self, value: object) -> str:
        """Return the path of a file."""
        return os.fspath(value) if isinstance(value, os.PathLike) else _plain(value)

    def read(self, text: str) -> Row:
        """Return the pixels of a file, (F, N)."""
        path = _file(self.name, text)
        with path.open("rb") as file:
            pixels = self._read(file, text)
        values = pixels.reshape(1 if pixels.ndim == 3 else len(pixels), -1)
        return Row(
            values, text, tuple(str(at + 1) for at in range(len(values))) if self.frames else ()
        )

    def computed(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows with features in place of pixels, where a backbone computes them."""
        if self.features is None:
            return list(rows)
        pixels = np.concatenate([row.values for row in rows]).reshape(-1, 3, self.side, self.side)
        ends = np.cumsum([len(row.values) for row in rows])[:-1]
        features = np.split(self.features({"pixels": pixels}, rows=len(pixels))["values"], ends)
        return [replace(row, values=values) for row, values in zip(rows, features, strict=True)]


def _file(name: str, text: str) -> Path:
    if not text.strip():
        raise ValueError(f"the {name} is empty.")
    path = Path(text)
    if not path.is_file():
        raise ValueError(
            f"the {name} file {text[:300]} {'is a folder' if path.is_dir() else 'does not exist'}."
        )
    return path


@final
class FeaturesReader:
    """Reads features that somebody extracted, from `.npy` files."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.name, self.shape = name, values_of_json(learned)
        FEATURES(self.shape, "")

    def text_of(self, value: object) -> str:
        """Return the path of a file."""
        return os.fspath(value) if isinstance(value, os.PathLike) else _plain(value)

    def read(self, text: str) -> Row:
        """Return the vectors of a file, (S, C)."""
        path = _file(self.name, text if text.endswith(".npy") else f"{text}.npy")
        array = np.load(path, allow_pickle=False).astype(np.float32)
        expected = (*self.shape["positions"], self.shape["channels"])
        fits = array.ndim == len(expected) and all(
            size in (None, actual) for size, actual in zip(expected, array.shape, strict=True)
        )
        if not fits or not np.isfinite(array).all():
            raise ValueError(
                f"the {self.name}: {text} has the shape {array.shape}, but {expected} is needed."
            )
        values = array.reshape(-1, array.shape[-1])
        return Row(values, text, tuple(str(at + 1) for at in range(len(values))))


READERS: Mapping[str, Callable[[str, Mapping[str, Any], str], Reader]] = {
    "text": TextReader,
    "points": PointsReader,
    "image": partial(FileReader, read=read_image),
    "video": partial(FileReader, read=read_video, keys=("frames", "rate")),
    "features": FeaturesReader,
}
"""By the kind of a field."""
