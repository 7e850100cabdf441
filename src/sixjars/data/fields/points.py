"""Points of any number of dimensions, written as text: `0.1,0.7 0.3,0.2`.

Dims: B rows, S points, N dimensions of a point, M all points of all rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.batches import Column, Rows
from sixjars.data.field import Field, Positions, kept_rows
from sixjars.data.storage.cache import Examples, Table
from sixjars.data.text.points import counted, points_of, text_of_points
from sixjars.flow.limits import Size
from sixjars.flow.values import Padded
from sixjars.recipe.sections import Column as ColumnName
from sixjars.recipe.sections import FieldSettings

_COMMA, _SPACE, _LINE = b", \n"


class PointsSettings(FieldSettings):
    """One column of points (or numbers): `0.1,0.7 0.3,0.2`, or a list of lists in JSON lines."""

    kind: str = "points"
    column: ColumnName = "points"
    dimensions: Size = 2
    """Coordinates of each point: 2 in a plane, 1 for plain numbers."""


@final
class PointColumn:
    """The points of many rows, each of as many coordinates.

    >>> PointColumn.parsed(["0.5,1 2,3", "4,5"]).padded(np.array([1, 0])).values
    tensor([[[4.0000, 5.0000],
             [0.0000, 0.0000]],
    <BLANKLINE>
            [[0.5000, 1.0000],
             [2.0000, 3.0000]]])
    """

    def __init__(self, points: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        self.points_MN = points
        self.lengths = lengths
        self.begins = np.cumsum(lengths) - lengths

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> "PointColumn":
        """From their texts; a `ValueError` names the first row, counted from 1, that is not as it should be."""
        found = _parsed_at_once([" ".join(text.split()) for text in texts])
        return cls(*(_parsed_one_by_one(texts) if found is None else found))

    @property
    def dimensions(self) -> int:
        """N, how many coordinates a point has."""
        return int(self.points_MN.shape[1])

    def padded(self, rows: Rows) -> Padded:
        """Coordinates (B, S, N), zeros behind each row's last point."""
        lengths_B = self.lengths[rows]
        positions_S = np.arange(int(lengths_B.max(initial=0)))
        inside_BS = positions_S < lengths_B[:, None]
        values_BSN = np.zeros((*inside_BS.shape, self.dimensions), dtype=np.float32)
        values_BSN[inside_BS] = self.points_MN[(self.begins[rows][:, None] + positions_S)[inside_BS]]
        return Padded(torch.from_numpy(values_BSN), torch.from_numpy(inside_BS))


def _parsed_at_once(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
    """All points and the number of each row's, or nothing where some text is unusual or wrong.

    One call parses the whole column, a hundred times as fast as point by point. It only sees numbers, so what stands
    between them is checked first: inside a point commas, after it a space or the end of the row.
    """
    if not texts:
        return None
    whole = "\n".join(texts)
    letters = np.frombuffer(whole.encode(errors="replace"), dtype=np.uint8)
    ends = np.append(letters[(letters == _COMMA) | (letters == _SPACE) | (letters == _LINE)], _LINE)
    size = int(np.argmax(ends != _COMMA)) + 1
    if len(ends) % size or not np.array_equal(ends.reshape(-1, size) == _COMMA, _commas(len(ends), size)):
        return None
    try:
        flat = np.array(whole.replace(",", " ").split(), dtype=np.float64)
    except ValueError:
        return None
    narrow = flat.astype(np.float32) if np.abs(flat).max(initial=0.0) <= np.finfo(np.float32).max else None
    if narrow is None or len(flat) != len(ends):
        return None
    lasts = np.flatnonzero(ends[size - 1 :: size] == _LINE)
    return narrow.reshape(-1, size), np.diff(lasts, prepend=-1).astype(np.int64)


def _commas(count: int, size: int) -> NDArray[np.bool_]:
    """Where a comma stands behind a number: within a point, not after its last."""
    return np.tile(np.arange(size) < size - 1, (count // size, 1))


def _parsed_one_by_one(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rows: list[list[tuple[float, ...]]] = []
    for number, text in enumerate(texts, start=1):
        try:
            rows.append(points_of(text))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error
        wanted, got = len(rows[0][0]), len(rows[-1][0])
        if got != wanted:
            raise ValueError(f"row {number}: its points have {counted(got)}, but those of row 1 have {wanted}.")
    if not rows:
        raise ValueError("there is no row of points.")
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.array([point for row in rows for point in row], dtype=np.float32), lengths


@final
class PointsField(Field):
    """Points, as the numbers that an encoder reads.

    >>> PointsField("points", PointsSettings()).text_of([[0.5, 1], [2, 3]])
    '0.5,1 2,3'
    """

    kind = "points"
    settings_class = PointsSettings
    holds = "points"
    tells = ("dimensions",)
    lists = "value"

    def text_of(self, value: object) -> str:
        """`0.1,0.7 0.3,0.2`."""
        return text_of_points(value)

    def arguments(self, given: str) -> list[Any]:
        """A JSON list is a list of points."""
        import json

        try:
            return [json.loads(given)] if given.lstrip().startswith("[") else [given]
        except (ValueError, RecursionError):
            return [given]

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """Points of as many dimensions as the settings say."""
        found, wanted = len(points_of(text)[0]), self.settings.dimensions
        if found != wanted:
            raise ValueError(f"a point has {counted(found)}, but data.{self.name}.dimensions is {wanted}.")

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """Only rows of such points; all are parsed at once, and one by one only where something is wrong."""
        texts = examples.table.column(self.name).to_pylist()
        found = _parsed_at_once([" ".join(text.split()) for text in texts])
        if found is not None and found[0].shape[1] == self.settings.dimensions:
            return examples
        faults: dict[int, str] = {}
        for at, text in enumerate(texts):
            try:
                self.check(text, {})
            except ValueError as error:
                faults[at] = str(error)
        return kept_rows(examples, [at not in faults for at in range(len(texts))], faults, skip=skip)

    def column(self, table: Table, *, training: bool = False) -> Column:
        """Coordinates."""
        return PointColumn.parsed(table.texts(self.name))

    def blank(self) -> Padded:
        """Two points at the origin."""
        return Padded(torch.zeros(1, 2, self.settings.dimensions), torch.ones(1, 2, dtype=torch.bool))

    def positions(self, table: Table, row: int, count: int) -> Positions:
        """The points as they are written."""
        return Positions(tuple(table.texts(self.name, [row])[0].split()))

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """Each point is its own."""
        return [list(range(len(text.split()))) for text in texts]

    def backdrop(self, text: str) -> list[tuple[float, ...]]:
        """The points."""
        return points_of(text)

    def facts(self) -> dict[str, Any]:
        """Coordinates of each point."""
        return {"dimensions": self.settings.dimensions}

    def describe(self) -> str:
        """Coordinates of each point."""
        return f"{counted(self.settings.dimensions)} each"

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Points, as text or in lists, and their coordinates."""
        try:
            sizes = {len(points_of(text_of_points(value))[0]) for value in values}
        except ValueError:
            return None
        return {"dimensions": sizes.pop()} if len(sizes) == 1 else None
