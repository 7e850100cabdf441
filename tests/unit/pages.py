"""What is on a page that was drawn."""

from pathlib import Path

import numpy as np
from matplotlib.image import imread
from numpy.typing import NDArray

Pixels = NDArray[np.float64]


def red(high: int, wide: int) -> NDArray[np.uint8]:
    """Something that is easily found on a page of black, white and grey."""
    image = np.zeros((high, wide, 3), dtype=np.uint8)
    image[:, :, 0] = 255
    return image


def one_hot(size: int) -> list[list[float]]:
    return np.eye(size).tolist()


def read(path: Path) -> Pixels:
    assert path.read_bytes().startswith(b"\x89PNG")
    return np.asarray(imread(path), dtype=np.float64)


def runs(mask: NDArray[np.bool_], axis: int) -> list[tuple[int, int]]:
    """Where stretches with something True begin and end, along the rows (0) or the columns (1) of a page."""
    there = np.asarray(mask.any(axis=1 - axis), dtype=np.int64)
    edges = np.flatnonzero(np.diff(there, prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
