"""Images, by the names of their files; and what they share with videos and with arrays.

Dims: F frames of a file, X frames of several, H and W pixels, C channels, N numbers of a frame.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from glob import glob, has_magic
from os.path import isdir, isfile
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, Self, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field as Limit

from sixjars.data.bad_rows import LEAVE_FILES_OUT, without_bad
from sixjars.data.batches import ArrayColumn, FieldValues
from sixjars.data.field import Equipment, FeatureExtractor, Field
from sixjars.data.media.arrays import ARRAY_ENDINGS
from sixjars.data.media.files import MediaFiles, is_hidden
from sixjars.data.storage.cache import Examples, ExampleTable, cache_folder
from sixjars.data.storage.features import FeatureStore, MemoryStore, Store, rounded
from sixjars.flow.limits import Positive
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings, FilePath
from sixjars_runtime.errors import DataError
from sixjars_runtime.images import IMAGE_ENDINGS, placed, read_image, upright

FORMAT = 2  # of the numbers: a new one makes all older ones unread
Pixels = NDArray[np.uint8]
T = TypeVar("T")


class FileSettings(FieldSettings):
    """One column of file names."""

    media: FilePath | tuple[FilePath, ...] = "."
    """Where the files are: a folder, a `.zip` that is read in place, or a list of those."""


class FileField(Field):
    """A field of files, named in a column."""

    is_media = True
    endings: ClassVar[frozenset[str]]
    """Endings of such files, lowercased."""
    readers: ClassVar[int]
    """Threads that read files."""

    def equipped(self, equipment: Equipment) -> Self:
        """The field with files and a store of its own, not those of this one."""
        field = super().equipped(equipment)
        for name in ("files", "store"):
            field.__dict__.pop(name, None)
        return field

    @cached_property
    def files(self) -> MediaFiles:
        """The places where names are looked up."""
        return MediaFiles(self.equipment.places, memory=self.memory)

    @property
    def memory(self) -> Path | None:
        """The folder of remembered hashes; None for predictions, which would fill it."""
        return cache_folder() if self.equipment.stored else None

    @property
    def key_column(self) -> str:
        """The name of the column with the hashes of the files."""
        return f"{self.name} key"

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """The examples whose files can be used, with a column for each fact about the files."""
        import pyarrow

        names = examples.table.column(self.name).to_pylist()
        columns, faults = self.examined(names)
        bad = {}
        for row, name in enumerate(names):
            if name in faults:
                bad[row] = f"the {self.name}: {faults[name]}"
        if bad:
            advice = LEAVE_FILES_OUT if self.equipment.stored else ""
            examples = without_bad(examples, bad, skip=skip, advice=advice)
        kept = [name for name in names if name not in faults]
        table = examples.table
        for column, values in columns.items():
            texts = pyarrow.array([values[name] for name in kept], pyarrow.string())
            table = table.append_column(column, texts)
        return replace(examples, table=table)

    @abstractmethod
    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """The columns to keep, each from name to value; and a fault for each bad file."""

    def _each(
        self, names: Sequence[str], use: Callable[[str], T], faults: dict[str, str], what: str = ""
    ) -> Iterator[tuple[str, T]]:
        """What `use` makes of files, several at once; what is wrong with bad ones goes to `faults`.

        `what` names it where progress is reported.
        """

        def tried(name: str) -> T | DataError:
            try:
                return use(name)
            except DataError as error:
                return error

        with ThreadPoolExecutor(self.readers) as pool:
            pairs = zip(names, pool.map(tried, names), strict=True)
            for done, (name, value) in enumerate(pairs, start=1):
                if what:
                    self.equipment.reporter.preparing(what, done=done, total=len(names))
                if isinstance(value, DataError):
                    faults[name] = str(value)
                else:
                    yield name, value

    def arguments(self, argument: str) -> list[Any]:
        """The files of a path, or those of a known ending in a folder or glob."""
        if isfile(argument) or not (isdir(argument) or has_magic(argument)):
            return [argument]
        if isdir(argument):
            below = Path(argument).rglob("*")
            files = [str(file) for file in below if not is_hidden(file.relative_to(argument))]
        else:
            files = glob(_any_case(argument, self.endings), recursive=True)
        known = [file for file in files if Path(file).suffix.lower() in self.endings]
        if kept := sorted(filter(isfile, known)):
            return list(kept)
        endings = " ".join(sorted(self.endings))
        raise DataError(f"{argument} holds no {self.kind} file (known endings: {endings}).")

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """Raise ValueError unless the file is there."""
        super().check(text, row)
        if not self.files.has(text):
            wrong = "is a folder" if isdir(text) else "does not exist"
            raise ValueError(f"the {self.name} file {text[:300]} {wrong}.")

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """No settings where the values are names of files of a known ending."""
        return {} if nearly_all_end(values, cls.endings) else None


class MediaSettings(FileSettings):
    """One column of file names, and how the files become pixels."""

    size: Annotated[int, Limit(ge=1, le=4096, strict=True)] | None = None
    """Pixels of each side as the network gets them; the backbone's usual size when absent."""
    fit: Literal["crop", "pad", "stretch"] = "crop"
    """How another shape becomes a square: its middle, bars at the sides, or stretched."""
    max_pixels: Positive = 50_000_000
    """A larger image (width times height) is refused before it is decoded."""


class MediaField(FileField):
    """Files of images or videos, each as the numbers of its frames."""

    holds = "pixels"
    fact_names = ("pixels", "cells", "pretrained")
    block: ClassVar[int]
    """Files between two saves: what a kill can cost."""
    taken: ClassVar[tuple[str, ...]] = ()
    """Settings that say which of its frames are taken."""
    readers = 8  # while the backbone computes

    @property
    def extractor(self) -> FeatureExtractor:
        """The feature extractor, which must have been handed over."""
        extractor = self.equipment.extractor
        assert extractor is not None, f"data.{self.name} was handed no feature extractor"
        return extractor

    @cached_property
    def store(self) -> Store:
        """The store of features, one for each plan."""
        if not self.equipment.stored:
            return MemoryStore()
        plan = {"format": FORMAT, "pixels": self.extractor.pixels, "fit": self.settings.fit}
        plan |= self.plan() | self.extractor.plan()
        return FeatureStore(cache_folder() / "frames", plan)

    def plan(self) -> dict[str, Any]:
        """The settings that the pixels of a file depend on."""
        return {key: getattr(self.settings, key) for key in self.taken}

    @staticmethod
    @abstractmethod
    def read(*args: Any, **settings: Any) -> Pixels:
        """The frames of a file, (F, 3, H, W), by its stream, its name and settings.

        `check` is called for each frame, and may end the decoding with an error.
        """

    def unpacked(self, name: str) -> Pixels:
        """One file as frames, (F, 3, H, W)."""
        check = self.equipment.check
        check()
        settings = {"fit": self.settings.fit, "max_pixels": self.settings.max_pixels, **self.plan()}
        with self.files.open(name) as file:
            return self.read(file, name, size=self.extractor.pixels, check=check, **settings)

    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """The keys of all files that can be decoded; their numbers are then in the store."""
        reporter = self.equipment.reporter
        keys, faults = self.files.keys(names, reporter)
        missing = set(self.store.missing(list(keys.values())))
        # Of copies with the same content, the first one is decoded.
        firsts = {keys[name]: name for name in reversed(keys) if keys[name] in missing}
        names = list(firsts.values())[::-1]
        what = f"{self.extractor.name} of {self.kind} files"
        for begin in range(0, len(names), self.block):
            block = names[begin : begin + self.block]
            if decoded := dict(self._each(block, self.unpacked, faults)):
                numbers = self._numbers(list(decoded.values()))
                self.store.add([keys[name] for name in decoded], numbers)
            reporter.preparing(what, done=begin + len(block), total=len(names))
        broken = {keys[name]: name for name in faults if name in keys}
        for name, key in keys.items():
            if key in broken:  # the same content under another name
                faults[name] = faults[broken[key]].replace(broken[key], name, 1)
        return {self.key_column: keys}, faults

    def _numbers(self, files: Sequence[Pixels]) -> list[NDArray[Any]]:
        """The stored numbers of each file, (F, N); those kept for another run have 16 bits."""
        numbers_XN = self.extractor(torch.from_numpy(np.concatenate(files))).numpy()
        numbers_XN = rounded(numbers_XN) if self.equipment.stored else numbers_XN
        ends = np.cumsum([len(file) for file in files])
        return np.split(numbers_XN, ends[:-1])

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """The stored features of the frames."""
        keys = table.texts(self.key_column)
        return ArrayColumn(lambda row: self.store.take(keys[row]), self.store.lengths(keys))

    def frozen_features(
        self, table: ExampleTable, rows: Sequence[int]
    ) -> NDArray[np.float32] | None:
        """The mean over frames of the frozen backbone's vector of each."""
        count = self.extractor.vector
        if not count:
            return None
        records = map(self.store.take, table.texts(self.key_column, rows))
        return np.stack([record[:, -count:].astype(np.float32).mean(0) for record in records])

    def blank(self) -> Padded:
        """One black frame, as numbers."""
        size = self.extractor.pixels
        numbers_XN = self.extractor(torch.zeros(1, 3, size, size, dtype=torch.uint8))
        return Padded(numbers_XN.unsqueeze(0), torch.ones(1, 1, dtype=torch.bool))

    def facts(self) -> dict[str, Any]:
        """Sides and cells of a frame; and that a new network begins with pretrained weights."""
        return {"pixels": self.extractor.pixels, "cells": self.extractor.cells, "pretrained": True}

    def describe(self) -> str:
        """The sides of an image."""
        return f"{self.extractor.pixels}×{self.extractor.pixels} pixels"

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """As for files; names of arrays are extracted features."""
        if nearly_all_end(values, ARRAY_ENDINGS):
            return {"kind": "features"}
        return super().guess(values)


class ImageSettings(MediaSettings):
    """One column of image files."""

    kind: str = "image"
    column: ColumnName = "image"


@final
class ImageField(MediaField):
    """An image: a video of one frame.

    >>> ImageField.guess(["dog.jpg", "beach.PNG"]), ImageField.guess(["a dog"])
    ({}, None)
    """

    kind = "image"
    settings_class = ImageSettings
    endings = IMAGE_ENDINGS
    block = 256

    @staticmethod
    def read(file: BinaryIO, name: str, **settings: Any) -> Pixels:
        """Decode an image, (1, 3, H, W), which `check` does not interrupt."""
        del settings["check"]
        return read_image(file, name, **settings)[None]

    def backdrop(self, text: str) -> Any:
        """The whole image (H, W, 3), and the box of it that the network got."""
        with self.files.open(text) as file:
            image_HWC = upright(file, text, max_pixels=self.settings.max_pixels)
        return image_HWC, placed(image_HWC.shape[0], image_HWC.shape[1], self.settings.fit)


def _any_case(pattern: str, endings: Collection[str]) -> str:
    """A pattern whose ending is taken in whatever case, as cameras write it.

    >>> _any_case("new/*.jpg", [".jpg"]), _any_case("new/*", [".jpg"])
    ('new/*.[jJ][pP][gG]', 'new/*')
    """
    ending = Path(pattern).suffix
    if ending.lower() not in endings:
        return pattern
    cases = (f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in ending)
    return pattern.removesuffix(ending) + "".join(cases)


def nearly_all_end(values: Sequence[object], endings: Collection[str]) -> bool:
    """Whether nine of ten values are names that end so, in whatever case: a few may be mistyped.

    >>> nearly_all_end(["dog.jpg", "beach.PNG"], [".jpg", ".png"])
    True
    >>> nearly_all_end(["dog.jpg", "a dog"], [".jpg"])
    False
    """
    names = [value.lower() for value in values if isinstance(value, str)]
    return sum(name.endswith(tuple(endings)) for name in names) >= 0.9 * len(values)
