"""Attention weights as drawings need them: checked, as texts, and over some of the positions.

Dims: T output tokens, F frames, G groups of neighbouring frames, H height and W width of an image in
pixels, h rows and w columns of cells, P pixels and N cells along one side.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import ShapeError

Weights = Sequence[Sequence[float]]
LEAST = 0.05
"""Smaller weights have no number in a cell, and no line."""
MOST_FRAMES = 16
"""So many are shown; of a longer video, so many groups of neighbours."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom as fractions of the image's width and height."""
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
DARK = 0.2
"""The brightness of a pixel without attention."""


def checked(weights: Weights, rows: int, columns: int, *, positions: str) -> NDArray[np.float64]:
    """Attention weights as an array (rows, columns): a row for each output token.

    >>> checked([[0.5, 0.5]], 1, 3, positions="frames")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.ShapeError: 1 output tokens and 3 frames need 1 rows of 3 attention weights, ...
    """
    sizes = [len(row) for row in weights]
    if sizes != [columns] * rows:
        raise ShapeError(
            f"{rows} output tokens and {columns} {positions} need {rows} rows of {columns} "
            f"attention weights, but the rows have {sizes}."
        )
    return np.asarray(weights, dtype=np.float64).reshape(rows, columns)


def percent(weight: float) -> str:
    """A weight as its share of the whole.

    >>> percent(0.314), percent(0.0051), percent(0.0)
    ('31%', '0.5%', '0%')
    """
    return f"{weight:.1%}" if 0 < weight < 0.0995 else f"{weight:.0%}"


def digits(weight: float) -> str:
    """A weight as a cell has room for it.

    >>> digits(0.314), digits(1.0)
    ('.31', '1.00')
    """
    return f"{weight:.2f}".removeprefix("0")


def ink(shade: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a shade, (red, green, blue) from 0 to 1.

    By the contrast of WCAG 2.1: relative luminance, whose geometric middle is 0.18.

    >>> ink((1.0, 1.0, 1.0)), ink((0.03, 0.19, 0.42))
    ('black', 'white')
    """
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shade[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if luminance > 0.179 else "white"


def copied_links(
    source: Sequence[str], target: Sequence[str], copied: Sequence[int | None]
) -> list[list[int]]:
    """For each output token the positions of the same word, with the one it was copied from.

    >>> copied_links(["Rex", "is", "Rex"], ["Rex", "ran"], [0, None])
    [[0, 2], []]
    """
    return [
        [place for place, word in enumerate(source) if word == token or place == at]
        for token, at in zip(target, copied, strict=True)
    ]


def frame_groups(frames: int) -> list[range]:
    """Frames that are shown as one: each by itself, or neighbours when there are many.

    >>> frame_groups(3), [len(group) for group in frame_groups(24)]
    ([range(0, 1), range(1, 2), range(2, 3)], [2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1])
    """
    count = min(frames, MOST_FRAMES)
    return [range(-(-at * frames // count), -(-(at + 1) * frames // count)) for at in range(count)]


def grouped(weights_TF: NDArray[np.float64], groups: Sequence[range]) -> NDArray[np.float64]:
    """The weights of the frames of each group added."""
    return np.add.reduceat(weights_TF, [group[0] for group in groups], axis=1)


def group_name(group: range) -> str:
    """The numbers of the frames, counted from 1."""
    return str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}"


def lightness(
    weights: NDArray[np.float64], height: int, width: int, box: Box = WHOLE
) -> NDArray[np.float64]:
    """The brightness of each pixel, (H, W): cells (h, w) as cubic B-splines, 1 at the largest."""
    high, wide = weights.shape
    rows_Hh = _splines(height, high, box[1], box[3])
    columns_Ww = _splines(width, wide, box[0], box[2])
    peak = (_splines(high, high, 0.0, 1.0) @ weights @ _splines(wide, wide, 0.0, 1.0).T).max()
    if peak <= 0:
        return np.zeros((height, width))
    light_HW: NDArray[np.float64] = (rows_Hh @ weights @ columns_Ww.T / peak).clip(0.0, 1.0)
    return light_HW


def _splines(pixels: int, cells: int, start: float, end: float) -> NDArray[np.float64]:
    """The share of each cell in each pixel of a side, (P, N); cells lie from `start` to `end`."""
    place_P = ((np.arange(pixels) + 0.5) / pixels - start) / (end - start) * cells - 0.5
    beside = np.arange(-2, cells + 2)  # the outermost cells go on beyond the edge
    far = np.abs(place_P[:, None] - beside)
    near = 2 / 3 - far**2 + far**3 / 2
    bumps = np.where(far < 1, near, np.where(far < 2, (2 - far) ** 3 / 6, 0.0))
    inside_P1 = ((place_P >= -0.5) & (place_P <= cells - 0.5))[:, None]
    share_PN = np.zeros((pixels, cells))
    for cell, bump_P in zip(beside.clip(0, cells - 1), (bumps * inside_P1).T, strict=True):
        share_PN[:, cell] += bump_P
    return share_PN
