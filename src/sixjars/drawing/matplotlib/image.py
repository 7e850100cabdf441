"""An image overlaid with attention weights, once for each output token; as an image file.

Dims: H height and W width of the image in pixels, C colours, h rows and w columns of cells,
N cells together, T output tokens.
"""

from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any, final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.figure import fit, saved_page, small_text, width_of
from sixjars.drawing.view import View
from sixjars.drawing.weights import DARK, WHOLE, Box, checked, lightness, percent
from sixjars_runtime.errors import ShapeError

GLOW = 0.15
"""How far full attention lifts a pixel towards white, so that it shows on black too."""
SHARPEST = 600
"""The pixels along the longer side of a panel; more would not be seen."""
CAPTION = (
    "Brightness: the attention weight, relative to the largest of the token. "
    "Number: the largest weight."
)
GAP, LABEL = 0.16, 0.24
"""Inches between panels, and for the token above a panel."""


def draw_overlay(path: Path, view: View) -> None:
    """Draw the image (H, W, 3), then once for each output token, bright where it attends.

    The cells fill the box that was the network's input; outside it the image stays dark.
    """
    (image, box), (rows, columns) = view.backdrop, view.layout.shape
    tokens = view.outputs[0].tokens
    weights_TN = checked(view.outputs[0].weights, len(tokens), rows * columns, positions="cells")
    maps_Thw = weights_TN.reshape(len(tokens), rows, columns)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ShapeError(f"an image must be (height, width, 3), but is {image.shape}.")
    if box[0] >= box[2] or box[1] >= box[3]:
        raise ShapeError(
            f"the box of the network's input must be (left, top, right, bottom), but is {box}."
        )
    image_HWC = resized(image)
    cropped = box[0] > 0 or box[1] > 0 or box[2] < 1 or box[3] < 1
    caption = CAPTION if tokens else "The output is empty."
    caption += " Dashed: the network's input." if cropped else ""
    panels = _Panels.of(len(tokens) + 1, aspect=aspect_of(image))
    with saved_page(path, *panels.page, title=view.title, caption=caption) as page:
        panels.show(page, 0, image_HWC)
        if cropped:  # black and white dashes, which show on any image
            panels.outline(page, 0, box, color="black", linewidth=1.0)
            panels.outline(page, 0, box, color="white", linewidth=1.0, linestyle=(0, (4, 4)))
        for at, (token, map_hw) in enumerate(zip(tokens, maps_Thw, strict=True), start=1):
            panels.show(page, at, overlaid(image_HWC, map_hw, box))
            panels.label(page, at, token, percent(map_hw.max()))


def overlaid(
    image: NDArray[np.uint8], weights: NDArray[np.float64], box: Box = WHOLE
) -> NDArray[np.uint8]:
    """The image (H, W, 3) darkened, and bright where the weights (h, w) are large.

    Cells flow into each other as cubic B-splines, which never overshoot; the largest weight has
    full brightness.

    >>> grey = np.full((4, 4, 3), 100, dtype=np.uint8)
    >>> overlaid(grey, np.array([[0.0, 0.0], [0.0, 1.0]]))[:, :, 0].diagonal().tolist()
    [21, 36, 92, 123]
    """
    light_HW = lightness(weights, image.shape[0], image.shape[1], box)
    light_HW1 = light_HW[:, :, None]
    shown_HWC = image * (DARK + (1 - DARK) * light_HW1)
    lifted: NDArray[np.float64] = shown_HWC + GLOW * light_HW1 * (255 - shown_HWC)
    return lifted.round().astype(np.uint8)


def aspect_of(image: NDArray[np.uint8]) -> float:
    """Width over height, within limits: a thread of pixels would vanish."""
    height, width = image.shape[:2]
    return float(min(max(width / height, 0.05), 20.0))


def resized(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The image with about as many pixels as a panel: means of blocks, or repeated pixels."""
    longer = max(image.shape[:2])
    if longer <= SHARPEST:
        times = ceil(SHARPEST / 2 / longer)
        return image.repeat(times, axis=0).repeat(times, axis=1)
    values = image.astype(np.float64)
    step = ceil(longer / SHARPEST)
    for axis in (0, 1):
        starts = np.arange(0, values.shape[axis], step)
        sizes = np.diff(starts, append=values.shape[axis])  # the last block may be smaller
        sums = np.add.reduceat(values, starts, axis=axis)
        values = sums / (sizes[:, None, None] if axis == 0 else sizes[:, None])
    return values.round().astype(np.uint8)


@final
@dataclass(frozen=True)
class _Panels:
    """Where the copies of the image lie, in inches."""

    columns: int
    width: float
    height: float
    slot: float
    """From the left of one panel to that of the next."""
    page: tuple[float, float]
    """Width and height of all panels together."""

    @classmethod
    def of(cls, count: int, *, aspect: float) -> "_Panels":
        """Room for so many panels of an image that is `aspect` times as wide as high."""
        width = round(min(sqrt((3.2 if count < 20 else 2.4) * aspect), 3.4, 4.4 * aspect), 2)
        height, slot = round(width / aspect, 2), max(width, 1.1) + GAP
        rows = ceil(count / min(6, int(12.6 / slot)))
        columns = ceil(count / rows)
        page = columns * slot - GAP, rows * (LABEL + height + GAP)
        return cls(columns, width, height, slot, page)

    def corner(self, at: int) -> tuple[float, float]:
        row, column = divmod(at, self.columns)
        return column * self.slot, row * (LABEL + self.height + GAP) + LABEL

    def show(self, page: Axes, at: int, image: NDArray[np.uint8]) -> None:
        """An image in its panel, with a thin frame that a white image needs on white paper."""
        left, top = self.corner(at)
        page.imshow(image, extent=(left, left + self.width, top + self.height, top), aspect="auto")
        self.outline(page, at, WHOLE, color="#d1d5db", linewidth=0.6)

    def label(self, page: Axes, at: int, token: str, share: str) -> None:
        """A token above its panel on the left, its largest weight on the right."""
        left, top = self.corner(at)
        room = self.slot - GAP
        number = small_text(page, left + room, top - 0.05, share, ha="right")
        name = page.text(left, top - 0.05, token, fontsize=10, fontweight="bold")
        fit(name, room - width_of(number) - 0.08)

    def outline(self, page: Axes, at: int, box: Box, **style: Any) -> None:
        """Draw the edges of a box, as far as it lies in the panel."""
        (left, top) = self.corner(at)
        sides = np.array(box).clip(0, 1)
        x, y = self.width * sides[[0, 2, 2, 0, 0]], self.height * sides[[1, 1, 3, 3, 1]]
        page.plot(left + x, top + y, **style)
