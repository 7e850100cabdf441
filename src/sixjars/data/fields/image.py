"""Images, by the names of their files; and what they share with videos and with arrays, which come in files too.

Dims: F frames of a file, X frames of several files, H and W pixels, C channels, N all numbers of a frame.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from glob import glob, has_magic
from os.path import isdir, isfile
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, Self, final

import numpy as np
import pyarrow
import torch
from numpy.typing import NDArray
from pydantic import Field as Limit

from sixjars.data.bad_rows import LEAVE_FILES_OUT, without_bad
from sixjars.data.batches import ArrayColumn, Column
from sixjars.data.field import Equipment, FeatureExtractor, Field
from sixjars.data.media.arrays import ARRAY_ENDINGS
from sixjars.data.media.files import MediaFiles, is_hidden
from sixjars.data.storage.cache import Examples, Table, cache_folder
from sixjars.data.storage.features import FeatureStore, MemoryStore, Store, rounded
from sixjars.flow.limits import Positive
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings, FilePath
from sixjars_runtime.errors import DataError
from sixjars_runtime.images import IMAGE_ENDINGS, placed, read_image, upright

FORMAT = 2
"""Changes when the same file gives other numbers, so that none of the old are used."""
READERS = 8
"""Threads that decode files while the backbone computes."""
Pixels = NDArray[np.uint8]


class FileSettings(FieldSettings):
    """One column of file names."""

    media: FilePath | tuple[FilePath, ...] = "."
    """Where the files are: a folder, a `.zip` that is read in place, or a list of those."""


class FileField(Field):
    """Files by their names."""

    is_media = True
    endings: ClassVar[frozenset[str]]
    """How the names of such files end, lowercased."""

    def equipped(self, equipment: Equipment) -> Self:
        """With files and a store of its own."""
        made = super().equipped(equipment)
        for name in ("files", "store"):
            made.__dict__.pop(name, None)
        return made

    @cached_property
    def files(self) -> MediaFiles:
        """Where names are looked up."""
        return MediaFiles(self.equipment.places, memory=self.memory)

    @property
    def memory(self) -> Path | None:
        """Where hashes are remembered; those of files that are only predicted from would pile up."""
        return cache_folder() if self.equipment.stored else None

    @property
    def key_column(self) -> str:
        """The column with the keys of the content of the files."""
        return f"{self.name} key"

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """The examples whose files can be used, each with what was found out about its file."""
        names = examples.table.column(self.name).to_pylist()
        columns, faults = self.examined(names)
        bad = {
            at: f"the {self.name}: {faults[name]}"
            for at, name in enumerate(names)
            if name in faults
        }
        if bad:
            advice = LEAVE_FILES_OUT if self.equipment.stored else ""
            examples = without_bad(examples, bad, skip=skip, advice=advice)
        kept, table = [name for name in names if name not in faults], examples.table
        for column, values in columns.items():
            table = table.append_column(
                column, pyarrow.array([values[name] for name in kept], pyarrow.string())
            )
        return replace(examples, table=table)

    @abstractmethod
    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """What is kept of each file, by the column that it is kept in; and what is wrong with the bad files."""

    def arguments(self, given: str) -> list[Any]:
        """The files that a path, a folder or a glob means; in folders and globs only those of a known ending."""
        if isfile(given) or not (isdir(given) or has_magic(given)):
            return [given]
        found = glob(_any_case(given, self.endings), recursive=True)
        if isdir(given):
            below = (
                file for file in Path(given).rglob("*") if not is_hidden(file.relative_to(given))
            )
            found = [str(file) for file in below]
        kept = sorted(
            file for file in found if Path(file).suffix.lower() in self.endings and isfile(file)
        )
        if not kept:
            endings = " ".join(sorted(self.endings))
            raise DataError(f"{given} holds no {self.kind} file (known endings: {endings}).")
        return list(kept)

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """The file must be there."""
        super().check(text, row)
        if not self.files.has(text):
            wrong = "is a folder" if isdir(text) else "does not exist"
            raise ValueError(f"the {self.name} file {text[:300]} {wrong}.")

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Names of files of a known ending."""
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

    @property
    def extractor(self) -> FeatureExtractor:
        """Handed over before it is used."""
        assert self.equipment.extractor is not None, (
            f"data.{self.name} was handed no feature extractor"
        )
        return self.equipment.extractor

    @cached_property
    def store(self) -> Store:
        """Where the numbers are kept: all that they depend on is its plan."""
        if not self.equipment.stored:
            return MemoryStore()
        plan = {"format": FORMAT, "pixels": self.extractor.pixels, "fit": self.settings.fit}
        return FeatureStore(
            cache_folder() / "frames", {**plan, **self.plan(), **self.extractor.plan()}
        )

    def plan(self) -> dict[str, Any]:
        """What else the pixels of a file depend on."""
        return {key: getattr(self.settings, key) for key in self.taken}

    @staticmethod
    @abstractmethod
    def read(*given: Any, **how: Any) -> Pixels:
        """The frames of a file, (F, 3, H, W), given it and its name, and how: the size of a side, settings, `check`.

        That is called on the way, and may end it.
        """

    def unpacked(self, name: str) -> Pixels:
        """One file as frames, (F, 3, H, W)."""
        how = {"fit": self.settings.fit, "max_pixels": self.settings.max_pixels, **self.plan()}
        self.equipment.check()
        with self.files.open(name) as file:
            return self.read(
                file, name, size=self.extractor.pixels, check=self.equipment.check, **how
            )

    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """The keys of all files that can be decoded; their numbers are then in the store."""
        reporter = self.equipment.reporter
        keys, faults = self.files.keys(names, reporter)
        missing = set(self.store.missing(list(keys.values())))
        wanted = list(
            {keys[name]: name for name in reversed(keys) if keys[name] in missing}.values()
        )[::-1]
        for begin in range(0, len(wanted), self.block):
            block = wanted[begin : begin + self.block]
            decoded = dict(self._decoded(block, faults))
            if decoded:
                self.store.add(
                    [keys[name] for name in decoded], self._numbers(list(decoded.values()))
                )
            done = begin + len(block)
            reporter.preparing(
                f"{self.extractor.name} of {self.kind} files", done=done, total=len(wanted)
            )
        broken = {keys[name]: sentence for name, sentence in faults.items() if name in keys}
        faults |= {
            name: broken[key] for name, key in keys.items() if key in broken
        }  # copies of a bad file
        return {self.key_column: keys}, faults

    def _decoded(
        self, names: Sequence[str], faults: dict[str, str]
    ) -> Iterator[tuple[str, Pixels]]:
        """Files in order, several decoded at once; what is wrong with a bad one goes to `faults`."""

        def tried(name: str) -> Pixels | str:
            try:
                return self.unpacked(name)
            except DataError as error:
                return str(error)

        with ThreadPoolExecutor(READERS) as pool:
            for name, found in zip(names, pool.map(tried, names), strict=True):
                if isinstance(found, str):
                    faults[name] = found
                else:
                    yield name, found

    def _numbers(self, files: Sequence[Pixels]) -> list[NDArray[Any]]:
        """What is stored of each file, (F, N); what is kept for the next time has 16 bits."""
        numbers_XN = self.extractor(torch.from_numpy(np.concatenate(files))).numpy()
        numbers_XN = rounded(numbers_XN) if self.equipment.stored else numbers_XN
        ends = np.cumsum([len(file) for file in files])
        return np.split(numbers_XN, ends[:-1])

    def column(self, table: Table, *, training: bool = False) -> Column:
        """Frames."""
        keys = table.texts(self.key_column)
        return ArrayColumn(lambda row: self.store.take(keys[row]), self.store.lengths(keys))

    def frozen_features(self, table: Table, rows: Sequence[int]) -> NDArray[np.float32] | None:
        """The mean over frames of what a frozen backbone says of each."""
        count = self.extractor.vector
        if not count:
            return None
        keys = table.texts(self.key_column, rows)
        return np.stack(
            [self.store.take(key)[:, -count:].astype(np.float32).mean(0) for key in keys]
        )

    def blank(self) -> Padded:
        """One black frame, as numbers."""
        size = self.extractor.pixels
        numbers_XN = self.extractor(torch.zeros(1, 3, size, size, dtype=torch.uint8))
        return Padded(numbers_XN.unsqueeze(0), torch.ones(1, 1, dtype=torch.bool))

    def facts(self) -> dict[str, Any]:
        """The sides of an image, what of each frame there is, and that a new network begins with pretrained weights."""
        return {"pixels": self.extractor.pixels, "cells": self.extractor.cells, "pretrained": True}

    def describe(self) -> str:
        """The sides of an image."""
        return f"{self.extractor.pixels}×{self.extractor.pixels} pixels"

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Names of files of a known ending; those of arrays are features that were extracted beforehand."""
        return (
            super().guess(values)
            if not nearly_all_end(values, ARRAY_ENDINGS)
            else {"kind": "features"}
        )


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
    def read(file: BinaryIO, name: str, **how: Any) -> Pixels:
        """(1, 3, H, W); nothing ends the decoding of one image."""
        del how["check"]
        return read_image(file, name, **how)[None]

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
    letters = "".join(f"[{one.lower()}{one.upper()}]" if one.isalpha() else one for one in ending)
    return pattern.removesuffix(ending) + letters


def nearly_all_end(values: Sequence[object], endings: Collection[str]) -> bool:
    """Whether nine of ten values are names that end so, in whatever case: a few may be mistyped.

    >>> nearly_all_end(["dog.jpg", "beach.PNG"], [".jpg", ".png"]), nearly_all_end(["dog.jpg", "a dog"], [".jpg"])
    (True, False)
    """
    ends = sum(
        isinstance(value, str) and value.lower().endswith(tuple(endings)) for value in values
    )
    return ends >= 0.9 * len(values)
