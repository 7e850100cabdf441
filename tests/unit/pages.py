"""What is on a page that was drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from numpy.typing import NDArray

from sixjars.drawing.view import Output, View

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


def runs(mask: NDArray[np.bool_], axis: int, least: int = 1) -> list[tuple[int, int]]:
    """Where stretches with something True begin and end, along the rows (0) or the columns (1) of a page."""
    there = np.asarray(mask.sum(axis=1 - axis) >= least, dtype=np.int64)
    edges = np.flatnonzero(np.diff(there, prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def view_of(text: str, tokens: Any, weights: Any, copied: Any = (), **values: Any) -> View:
    """One output of an input that is called `in`."""
    output = Output(text, tuple(tokens), tuple(map(tuple, weights)), copied=tuple(copied))
    return View({"x": "in"}, (output,), **values)


def written_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is put on a page, in order."""
    texts: list[str] = []
    plain = Axes.text

    def text(self: Axes, x: float, y: float, s: str, *arguments: Any, **how: Any) -> object:
        texts.append(s)
        return plain(self, x, y, s, *arguments, **how)

    monkeypatch.setattr(Axes, "text", text)
    return texts


def saved_figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved."""
    found: list[Figure] = []
    plain = Figure.savefig

    def savefig(self: Figure, *arguments: Any, **how: Any) -> None:
        plain(self, *arguments, **how)
        found.append(self)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return found
