"""Points of any number of dimensions, written as text: `0.1,0.7 0.3,0.2`.

Dims: B rows, S points, N dimensions of a point, M all points of all rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.field import Field, Positions
from sixjars.data.storage.cache import Examples, ExampleTable
from sixjars.flow.limits import Size
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings
from sixjars_runtime.text.points import LARGEST, counted, points_of, points_of_field, text_of_points

_COMMA, _SPACE, _LINE = b", \n"


class PointsSettings(FieldSettings):
    """One column of points (or numbers): `0.1,0.7 0.3,0.2`, or a list of lists in JSON lines."""

    kind: str = "points"
    column: ColumnName = "points"
    dimensions: Size = 2
    """Coordinates of each point: 2 in a plane, 1 for plain numbers."""


Parsed = tuple[NDArray[np.float32], NDArray[np.int64]]
"""All points of all rows (M, N), and how many each row has."""


def parsed(texts: Sequence[str]) -> Parsed | None:
    """The points of all texts, or nothing where some text is unusual or wrong.

    One call of numpy parses the whole column, a hundred times as fast as point by point. It only
    sees numbers, so what stands between them is checked first: inside a point commas, after it a
    space or the end of the row.

    >>> points, lengths = parsed(["0.5,1 2,3", "4,5"])
    >>> points.tolist(), lengths.tolist()
    ([[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]], [2, 1])
    """
    joined = "\n".join(" ".join(text.split()) for text in texts)
    letters = np.frombuffer(joined.encode(errors="replace"), dtype=np.uint8)
    ends = np.append(letters[(letters == _COMMA) | (letters == _SPACE) | (letters == _LINE)], _LINE)
    size = int(np.argmax(ends != _COMMA)) + 1  # numbers of the first point, and so of every other
    commas = np.tile(np.arange(size) < size - 1, len(ends) // size)
    if not np.array_equal(ends == _COMMA, commas):
        return None
    try:
        flat = np.array(joined.replace(",", " ").split(), dtype=np.float64)
    except ValueError:
        return None
    # A number that is missing between two commas, or infinite, is for the slow way to tell about.
    if len(flat) != len(ends) or not np.abs(flat).max(initial=0.0) <= LARGEST:
        return None
    lasts = np.flatnonzero(ends[size - 1 :: size] == _LINE)
    return flat.astype(np.float32).reshape(-1, size), np.diff(lasts, prepend=-1).astype(np.int64)


@final
class PointsField(Field):
    """Points, as the numbers that an encoder reads.

    >>> PointsField("points", PointsSettings()).text_of([[0.5, 1], [2, 3]])
    '0.5,1 2,3'
    """

    kind = "points"
    settings_class = PointsSettings
    holds = "points"
    fact_names = ("dimensions",)
    lists = "value"

    def as_text(self, value: object) -> str:
        """Write points as `0.1,0.7 0.3,0.2`."""
        return text_of_points(value)

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """Raise ValueError unless points have as many dimensions as the settings say."""
        points_of_field(text, self.name, self.settings.dimensions)

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """Only rows of such points; parsed at once, and one by one where something is wrong."""
        points = parsed(examples.table.column(self.name).to_pylist())
        right = points is not None and points[0].shape[1] == self.settings.dimensions
        return examples if right else super().admit(examples, skip=skip)

    def arrays(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Coordinates (S, N) of each text."""
        points = parsed(texts)
        if points is None:
            return [np.array(points_of(text), dtype=np.float32) for text in texts]
        return np.split(points[0], np.cumsum(points[1])[:-1])

    def blank(self) -> Padded:
        """Two points at the origin."""
        points = torch.zeros(1, 2, self.settings.dimensions)
        return Padded(points, torch.ones(1, 2, dtype=torch.bool))

    def positions(self, table: ExampleTable, row: int, count: int) -> Positions:
        """The points as they are written."""
        return Positions(tuple(table.texts(self.name, [row])[0].split()))

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """Each point is a word of its own."""
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
