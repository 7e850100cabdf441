"""Extracted features of images or videos: arrays of numbers, by the names of their files.

Dims: C channels, S positions (regions, cells or frames), H and W rows and columns of cells.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.batches import ArrayColumn, FieldValues
from sixjars.data.field import Positions
from sixjars.data.fields.image import FileField, FileSettings
from sixjars.data.media.arrays import ARRAY_ARCHIVES, ARRAY_ENDINGS, read_array, shape_of
from sixjars.data.media.files import MediaFiles
from sixjars.data.storage.cache import Examples, ExampleTable
from sixjars.flow.features import FeatureShape
from sixjars.flow.limits import Positive
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FilePath
from sixjars_runtime.errors import DataError, RunError

WIDEST = 8  # bytes of the largest kind of number
HEADER = 1 << 16  # bytes that a file may have besides its numbers
ASSUMED = FeatureShape(2048, (None,))  # the shape where there is no file yet


class FeaturesSettings(FileSettings):
    """One column of `.npy` files, or of the names of arrays in an archive."""

    kind: str = "features"
    column: ColumnName = "features"
    media: FilePath | tuple[FilePath, ...] = "."
    """Where the arrays are: a folder or `.zip` with `.npy` files, a `.npz` or `.h5`, or a list of
    those."""
    max_numbers: Positive = 20_000_000
    """A larger array is refused before it is read."""


@final
class FeaturesField(FileField):
    """One vector (C), one for each region or frame (N, C), or a grid (H, W, C); 32-bit numbers.

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
    readers = 4

    def __init__(self, name: str, settings: Any, shape: FeatureShape | None = None) -> None:
        super().__init__(name, settings)
        self.shape = shape

    @cached_property
    def files(self) -> MediaFiles:
        """The files of arrays; `.npy` may be left out of a name."""
        largest = WIDEST * self.settings.max_numbers + HEADER
        places = self.equipment.places
        return MediaFiles(places, memory=self.memory, endings=[".npy"], largest=largest)

    @property
    def shape_column(self) -> str:
        """The name of the column with the shapes of the arrays."""
        return f"{self.name} shape"

    def examined(self, names: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """A hash of the content of each array, and its shape."""
        keys, faults = self.files.keys(names, self.equipment.reporter)
        return {self.key_column: keys, self.shape_column: self._shapes(list(keys), faults)}, faults

    def _shapes(self, names: Sequence[str], faults: dict[str, str]) -> dict[str, str]:
        """The shape of each array, as text; what is wrong with the others goes to `faults`.

        Where none is known yet, the commonest is the right one.
        """
        what = "reading features"
        sizes = dict(self._each(names, lambda name: self._read(name).shape, faults, what))
        shapes = {name: FeatureShape.of(size) for name, size in sizes.items()}
        expected = self.shape
        other = "the training set"
        if expected is None and shapes:
            [(expected, _)] = Counter(shapes.values()).most_common(1)
            other = next(name for name, shape in shapes.items() if shape == expected)
        for name, shape in shapes.items():
            if expected and shape != expected:
                faults[name] = _differ(name, shape, other, expected)
        return {name: json.dumps(size) for name, size in sizes.items()}

    def _read(self, name: str) -> NDArray[np.float32]:
        with self.files.open(name) as file:
            return read_array(file, name, max_numbers=self.settings.max_numbers)

    def learned(self, texts: Iterable[str]) -> Self:
        """The field with the shape of the first array."""
        if self.shape is not None:
            return self
        name = next(iter(texts))
        with self.files.open(name) as file:
            size = shape_of(file, name, max_numbers=self.settings.max_numbers)
        return self._with(FeatureShape.of(size))

    def settled(self, train: Examples) -> Self:
        """The field with the shape of the training set."""
        return self.learned(train.table.column(self.name).slice(0, 1).to_pylist())

    def assumed(self) -> Self:
        """The field with the most usual shape: vectors of regions."""
        return self if self.shape is not None else self._with(ASSUMED)

    def _with(self, shape: FeatureShape) -> Self:
        return type(self)(self.name, self.settings, shape).equipped(self.equipment)

    def to_json(self) -> str:
        """The shape, to be saved."""
        return json.dumps(asdict(self._known))

    def restored(self, text: str) -> Self:
        """The field with a saved shape."""
        try:
            saved = json.loads(text)
            shape = FeatureShape(saved["channels"], tuple(saved["positions"]))
            if not all(isinstance(size, int | None) for size in (shape.channels, *shape.positions)):
                raise ValueError("its sizes are no whole numbers")
            return self._with(shape)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(f"The saved shape of the features is damaged: {error}.") from error

    @property
    def _known(self) -> FeatureShape:
        assert self.shape is not None, f"data.{self.name} has learned nothing yet"
        return self.shape

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """The vectors of each array, (S, C), read when they are needed."""
        names = table.texts(self.name)
        sizes = [tuple(json.loads(text)) for text in table.texts(self.shape_column)]
        for name, size in zip(names, sizes, strict=True):
            if (shape := FeatureShape.of(size)) != self._known:
                fault = _differ(name, shape, "the training set", self._known)
                raise DataError(f"the {self.name}: {fault}")

        def take(row: int) -> NDArray[np.float32]:
            array = self._read(names[row])
            if array.shape != sizes[row]:
                raise DataError(
                    f"the {self.name}: {names[row]} has changed since it was first read; start "
                    "again."
                )
            return array.reshape(-1, array.shape[-1])

        counts = np.array([math.prod(size[:-1]) for size in sizes], dtype=np.int64)
        return ArrayColumn(take, counts)

    def frozen_features(
        self, table: ExampleTable, rows: Sequence[int]
    ) -> NDArray[np.float32] | None:
        """The mean over the vectors of each array."""
        arrays = map(self._read, table.texts(self.name, rows))
        return np.stack([array.reshape(-1, self._known.channels).mean(0) for array in arrays])

    def blank(self) -> Padded:
        """An array of zeros."""
        count = math.prod(size or 1 for size in self._known.positions)
        values = torch.zeros(1, count, self._known.channels)
        return Padded(values, torch.ones(1, count, dtype=torch.bool))

    def positions(self, table: ExampleTable, row: int, count: int) -> Positions:
        """The numbers of the regions, cells or frames, from 1."""
        return Positions(tuple(str(number) for number in range(1, count + 1)))

    def backdrop(self, text: str) -> Any:
        """An empty image where there are cells, else nothing."""
        if not self._known.grid:
            return None
        height, width = self._known.grid
        return np.full((32 * height, 32 * width, 3), 255, dtype=np.uint8), (0.0, 0.0, 1.0, 1.0)

    def facts(self) -> dict[str, Any]:
        """The shape; there are no pixels."""
        return {"pixels": 0, "feature_shape": self._known}

    def describe(self) -> str:
        """The shape."""
        return f"given features, {self._known}"


def _differ(name: str, shape: FeatureShape, other: str, expected: FeatureShape) -> str:
    return f"{name} has {shape}, but {other} has {expected}; all must have the same."
