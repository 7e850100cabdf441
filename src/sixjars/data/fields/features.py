"""Features of images or videos that somebody extracted beforehand: arrays of numbers, by the names of their files.

Dims: C channels, S positions (regions, cells or frames), H and W rows and columns of cells.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.batches import ArrayColumn, Column
from sixjars.data.field import Positions
from sixjars.data.fields.image import FileField, FileSettings
from sixjars.data.media.arrays import ARRAY_ARCHIVES, ARRAY_ENDINGS, read_array, shape_of
from sixjars.data.media.files import MediaFiles
from sixjars.data.storage.cache import Examples, Table
from sixjars.flow.features import FeatureShape
from sixjars.flow.limits import Positive
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FilePath
from sixjars_runtime.errors import DataError, RunError

READERS = 4
"""Threads that read files."""
WIDEST = 8
"""Bytes of the largest kind of number."""
HEADER = 1 << 16
"""Bytes that a file may have besides its numbers."""
ASSUMED = FeatureShape(2048, (None,))
"""Where there is no file to tell."""


class FeaturesSettings(FileSettings):
    """One column of `.npy` files, or of the names of arrays in an archive."""

    kind: str = "features"
    column: ColumnName = "features"
    media: FilePath | tuple[FilePath, ...] = "."
    """Where the arrays are: a folder or `.zip` with `.npy` files, a `.npz` or `.h5`, or a list of those."""
    max_numbers: Positive = 20_000_000
    """A larger array is refused before it is read."""


@final
class FeaturesField(FileField):
    """One vector (C), one for each region or frame (N, C), or a grid of them (H, W, C), as 32-bit numbers.

    >>> FeaturesField.guess(["1.npy", "2.NPY"]), FeaturesField.guess(["1.png"])
    ({}, None)
    """

    kind = "features"
    settings_class = FeaturesSettings
    holds = "features"
    fact_names = ("pixels", "feature_shape")
    learns = True
    endings = ARRAY_ENDINGS
    archive_endings = ARRAY_ARCHIVES

    def __init__(self, name: str, settings: Any, shape: FeatureShape | None = None) -> None:
        super().__init__(name, settings)
        self.shape = shape

    @cached_property
    def files(self) -> MediaFiles:
        """Where names are looked up; `.npy` may be left out."""
        largest = WIDEST * self.settings.max_numbers + HEADER
        return MediaFiles(
            self.equipment.places, memory=self.memory, endings=[".npy"], largest=largest
        )

    @property
    def shape_column(self) -> str:
        """The column with the shapes of the arrays."""
        return f"{self.name} shape"

    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """The key of the content of each array, and its shape."""
        keys, faults = self.files.keys(names, self.equipment.reporter)
        return {self.key_column: keys, self.shape_column: self._shapes(list(keys), faults)}, faults

    def _shapes(self, names: Sequence[str], faults: dict[str, str]) -> dict[str, str]:
        """The shape of each array, as text; what is wrong with the others goes to `faults`.

        Where none is known yet, the commonest is the right one.
        """
        found: dict[str, tuple[int, ...]] = {}

        def tried(name: str) -> tuple[int, ...] | str:
            try:
                return self._read(name).shape
            except DataError as error:
                return str(error)

        with ThreadPoolExecutor(READERS) as pool:
            for done, (name, shape) in enumerate(
                zip(names, pool.map(tried, names), strict=True), start=1
            ):
                self.equipment.reporter.preparing("reading features", done=done, total=len(names))
                if isinstance(shape, str):
                    faults[name] = shape
                else:
                    found[name] = shape
        owns = {name: FeatureShape.of(shape) for name, shape in found.items()}
        wanted, other = self.shape, "the training set"
        if wanted is None and owns:
            [(wanted, _)] = Counter(owns.values()).most_common(1)
            other = next(name for name, own in owns.items() if own == wanted)
        faults |= {
            name: _differ(name, own, other, wanted)
            for name, own in owns.items()
            if wanted and own != wanted
        }
        return {name: json.dumps(shape) for name, shape in found.items()}

    def _read(self, name: str) -> NDArray[np.float32]:
        with self.files.open(name) as file:
            return read_array(file, name, max_numbers=self.settings.max_numbers)

    def learned(self, texts: Iterable[str]) -> Self:
        """The shape of the first array, which all others have been found to have."""
        if self.shape is not None:
            return self
        name = next(iter(texts))
        with self.files.open(name) as file:
            return self._with(
                FeatureShape.of(shape_of(file, name, max_numbers=self.settings.max_numbers))
            )

    def settled(self, train: Examples) -> Self:
        """The shape of the training set is that of the others."""
        return self.learned(train.table.column(self.name).slice(0, 1).to_pylist())

    def assumed(self) -> Self:
        """Regions, of as many numbers as is usual."""
        return self if self.shape is not None else self._with(ASSUMED)

    def _with(self, shape: FeatureShape) -> Self:
        return type(self)(self.name, self.settings, shape).equipped(self.equipment)

    def to_json(self) -> str:
        """The shape."""
        return json.dumps(asdict(self._known))

    def restored(self, text: str) -> Self:
        """With a shape that was kept."""
        try:
            whole = json.loads(text)
            shape = FeatureShape(whole["channels"], tuple(whole["positions"]))
            if not all(
                isinstance(size, int)
                for size in (shape.channels, *shape.positions)
                if size is not None
            ):
                raise ValueError("its sizes are no whole numbers")
            return self._with(shape)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(f"The saved shape of the features is damaged: {error}.") from error

    @property
    def _known(self) -> FeatureShape:
        assert self.shape is not None, f"data.{self.name} has learned nothing yet"
        return self.shape

    def column(self, table: Table, *, training: bool = False) -> Column:
        """The vectors of each array, (S, C); read where they are when they are needed."""
        names, shapes = (
            table.texts(self.name),
            [tuple(json.loads(one)) for one in table.texts(self.shape_column)],
        )
        for name, shape in zip(names, shapes, strict=True):
            if FeatureShape.of(shape) != self._known:
                told = _differ(name, FeatureShape.of(shape), "the training set", self._known)
                raise DataError(f"the {self.name}: {told}")

        def take(row: int) -> NDArray[np.float32]:
            found = self._read(names[row])
            if found.shape != shapes[row]:
                raise DataError(
                    f"the {self.name}: {names[row]} has changed since it was first read; start again."
                )
            return found.reshape(-1, found.shape[-1])

        return ArrayColumn(
            take, np.array([math.prod(shape[:-1]) for shape in shapes], dtype=np.int64)
        )

    def frozen_features(self, table: Table, rows: Sequence[int]) -> NDArray[np.float32] | None:
        """The mean over the vectors of each array."""
        names = table.texts(self.name, rows)
        return np.stack(
            [self._read(name).reshape(-1, self._known.channels).mean(0) for name in names]
        )

    def blank(self) -> Padded:
        """All zero."""
        count = math.prod(size or 1 for size in self._known.positions)
        values = torch.zeros(1, count, self._known.channels)
        return Padded(values, torch.ones(1, count, dtype=torch.bool))

    def positions(self, table: Table, row: int, count: int) -> Positions:
        """The numbers of the regions, cells or frames, from 1."""
        return Positions(tuple(str(number) for number in range(1, count + 1)))

    def backdrop(self, text: str) -> Any:
        """There is no image; cells are drawn on an empty one."""
        if not self._known.grid:
            return None
        height, width = self._known.grid
        return np.full((32 * height, 32 * width, 3), 255, dtype=np.uint8), (0.0, 0.0, 1.0, 1.0)

    def facts(self) -> dict[str, Any]:
        """There are no pixels; the shape instead."""
        return {"pixels": 0, "feature_shape": self._known}

    def describe(self) -> str:
        """The shape."""
        return f"given features, {self._known}"


def _differ(name: str, own: FeatureShape, other: str, wanted: FeatureShape) -> str:
    return f"{name} has {own}, but {other} has {wanted}; all must have the same."
