"""The shape of features that are given and not computed by a backbone.

Dims: C channels, N regions or frames, H and W rows and columns of cells.
"""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class FeatureShape:
    """The shape that the arrays of all examples share.

    >>> [str(FeatureShape.of(shape)) for shape in ((512,), (36, 512), (7, 7, 512))]
    ['one vector of 512 numbers', 'vectors of 512 numbers', '7×7 cells of 512 numbers']
    """

    channels: int
    """C, the numbers of each vector."""
    positions: tuple[int | None, ...] = ()
    """() for one vector, (None,) for any number of vectors, the rows and columns of a grid."""

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> "FeatureShape":
        """From the shape of an array: (C), (N, C) or (H, W, C); N may differ."""
        *before, channels = shape
        return cls(channels, (None,) if len(before) == 1 else tuple(before))

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns, where the positions are cells."""
        match self.positions:
            case (int(rows), int(columns)):
                return rows, columns
        return None

    def __str__(self) -> str:
        if not self.positions:
            return f"one vector of {self.channels} numbers"
        cells = "vectors" if self.grid is None else "{}×{} cells".format(*self.grid)
        return f"{cells} of {self.channels} numbers"
