"""The light on an image: bright where attention weights are large.

Dims: H height and W width of the image in pixels, h rows and w columns of cells, P pixels
and N cells along one side.
"""

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
"""Left, top, right and bottom as fractions of the image's width and height."""
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
DARK = 0.2
"""The brightness of a pixel without attention."""


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
