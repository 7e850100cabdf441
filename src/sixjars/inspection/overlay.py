"""P3: a picture with the attended region lit, once for each output word; as a picture file and in the terminal.

Dims: H height and W width of the picture in pixels, C colours, h rows and w columns of cells, T output words,
P pixels and N cells along one side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.text import Text

from sixjars.errors import ShapeError
from sixjars.inspection.heatmap import GREY, Weights, fit, saved_page, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
"""Left, top, right and bottom as shares of the picture's width and height."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
DARK = 0.2
"""The light that is left where nothing is attended to."""
GLOW = 0.15
"""How far full light lifts a pixel towards white, so that it shows on black too."""
SHARPEST = 600
"""The pixels along the longer side of a panel; more would not be seen."""
CAPTION = "Light: the weights; each word's strongest place is at full light. Number: the weight of that place."
SHADES = "·░▒▓█"
"""What is seen of a block in a terminal without colours."""
WIDEST_GRID = 14
MARGIN, GAP, LABEL, LINE, SMALL_LINE = 0.2, 0.16, 0.24, 0.2, 0.16
"""Inches around the panels, between them, for the word above a panel, for a line of the title and the caption."""


def draw_regions(
    path: Path,
    picture: NDArray[np.uint8],
    weights: Weights,
    *,
    grid: tuple[int, int],
    words: Sequence[str],
    seen: Box = WHOLE,
    title: str = "",
) -> None:
    """The picture (H, W, 3) by itself, then once for each word with its attended region lit.

    `weights` has a row for each word over the cells of `grid`, (rows, columns), in reading order. The cells fill
    the box `seen`, the part of the picture that the network saw; outside it the picture stays dark.
    """
    maps_Thw = _maps(weights, grid, words)
    if picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ShapeError(f"a picture must be (height, width, 3), but is {picture.shape}.")
    if seen[0] >= seen[2] or seen[1] >= seen[3]:
        raise ShapeError(f"the box that was seen must be (left, top, right, bottom), but is {seen}.")
    picture_HWC = resized(picture)
    caption = CAPTION if words else "No word was written."
    if _cut(seen):
        caption += " Dashed: what the network saw."
    aspect = min(max(picture.shape[1] / picture.shape[0], 0.05), 20.0)  # a thread of pixels would vanish
    sheet = _Sheet.of(len(words) + 1, aspect=aspect, title=title, caption=caption)
    with saved_page(path, sheet.width, sheet.height) as page:
        sheet.write(page)
        sheet.show(page, 0, picture_HWC)
        if _cut(seen):
            sheet.outline(page, seen)
        for at, (word, map_hw) in enumerate(zip(words, maps_Thw, strict=True), start=1):
            sheet.show(page, at, lit(picture_HWC, map_hw, seen))
            sheet.label(page, at, word, percent(map_hw.max()))


def lit(picture: NDArray[np.uint8], weights: NDArray[np.float64], seen: Box = WHOLE) -> NDArray[np.uint8]:
    """The picture (H, W, 3) darkened, and bright where the weights (h, w) are.

    Cells flow into each other as cubic B-splines, which never overshoot; full light is the strongest cell's.

    >>> grey = np.full((4, 4, 3), 100, dtype=np.uint8)
    >>> lit(grey, np.array([[0.0, 0.0], [0.0, 1.0]]))[:, :, 0].diagonal().tolist()
    [21, 36, 92, 123]
    """
    high, wide = weights.shape
    rows_Hh = _spread(picture.shape[0], high, seen[1], seen[3])
    columns_Ww = _spread(picture.shape[1], wide, seen[0], seen[2])
    peak = (_spread(high, high, 0.0, 1.0) @ weights @ _spread(wide, wide, 0.0, 1.0).T).max()
    light_HW = (rows_Hh @ weights @ columns_Ww.T / peak).clip(0.0, 1.0) if peak > 0 else np.zeros(picture.shape[:2])
    light_HW1 = light_HW[:, :, None]
    shown_HWC = picture * (DARK + (1 - DARK) * light_HW1)
    lifted: NDArray[np.float64] = shown_HWC + GLOW * light_HW1 * (255 - shown_HWC)
    return lifted.round().astype(np.uint8)


def in_terminal_regions(weights: Weights, *, grid: tuple[int, int], words: Sequence[str]) -> Columns:
    """For each word a small grid of shaded blocks, as many beside each other as the terminal has room for."""
    maps_Thw = _maps(weights, grid, words)
    return Columns([_blocks(word, map_hw) for word, map_hw in zip(words, maps_Thw, strict=True)], padding=(1, 3))


def percent(weight: float) -> str:
    """A weight as its share of the whole.

    >>> percent(0.314), percent(0.0051), percent(0.0)
    ('31%', '0.5%', '0%')
    """
    return f"{weight:.1%}" if 0 < weight < 0.0995 else f"{weight:.0%}"


def _maps(weights: Weights, grid: tuple[int, int], words: Sequence[str]) -> NDArray[np.float64]:
    """The weights as (T, h, w)."""
    if len(weights) != len(words):
        raise ShapeError(f"there are {len(words)} words, but {len(weights)} rows of weights.")
    cells = grid[0] * grid[1]
    wrong = next((len(row) for row in weights if len(row) != cells), cells)
    if wrong != cells:
        raise ShapeError(f"a grid of {grid[0]} × {grid[1]} has {cells} cells, but there are {wrong} weights.")
    return np.asarray(weights, dtype=np.float64).reshape(len(words), *grid)


def _spread(pixels: int, cells: int, start: float, end: float) -> NDArray[np.float64]:
    """How much of each cell falls on each pixel of a side, (P, N), when the cells lie from `start` to `end`."""
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


def resized(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same picture with about as many pixels as a panel has: means of blocks, or pixels repeated."""
    longer = max(picture.shape[:2])
    if longer <= SHARPEST:
        times = ceil(SHARPEST / 2 / longer)
        return picture.repeat(times, axis=0).repeat(times, axis=1)
    return _means(picture.astype(np.float64), ceil(longer / SHARPEST)).round().astype(np.uint8)


def _means(values: NDArray[np.float64], step: int) -> NDArray[np.float64]:
    """The means of blocks of `step` × `step` over the first two axes; those at the end may be smaller."""
    for axis in (0, 1):
        starts = np.arange(0, values.shape[axis], step)
        sizes = np.diff(starts, append=values.shape[axis])
        sums = np.add.reduceat(values, starts, axis=axis)
        values = sums / sizes.reshape([-1 if at == axis else 1 for at in range(values.ndim)])
    return values


def _cut(seen: Box) -> bool:
    """Whether some of the picture was not seen."""
    return seen[0] > 0 or seen[1] > 0 or seen[2] < 1 or seen[3] < 1


def _blocks(word: str, map_hw: NDArray[np.float64]) -> Text:
    """A word, its largest weight, and the grid below: a block is as bright as its weight beside the largest."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(word, style="bold").append(f" {percent(map_hw.max())}", style="grey50")
    pooled = _means(map_hw, ceil(max(map_hw.shape) / WIDEST_GRID))
    for line in pooled / (pooled.max() or 1.0):
        text.append("\n")
        for light in line:
            shade = f"color({232 + round(23 * light)})"
            text.append(SHADES[round(light * (len(SHADES) - 1))] * 2, style=f"{shade} on {shade}")
    return text


@final
@dataclass(frozen=True)
class _Sheet:
    """Where everything lies; in inches from the top left corner."""

    columns: int
    panel_width: float
    panel_height: float
    slot_width: float
    width: float
    height: float
    heading: tuple[str, ...]
    caption: tuple[str, ...]

    @classmethod
    def of(cls, panels: int, *, aspect: float, title: str, caption: str) -> "_Sheet":
        """Room for so many panels of a picture that is `aspect` times as wide as high."""
        area = 3.2 if panels < 20 else 2.4
        panel_width = min(sqrt(area * aspect), 3.4, 4.4 * aspect)
        panel_width, panel_height = round(panel_width, 2), round(panel_width / aspect, 2)
        slot_width = max(panel_width, 1.1) + GAP
        rows = ceil(panels / min(6, int(12.6 / slot_width)))
        columns = ceil(panels / rows)
        width = max(2 * MARGIN + columns * slot_width - GAP, 2.4)
        heading = tuple(wrap(title, int(width * 11)))
        told = tuple(wrap(caption, int(width * 16)))
        height = 2 * MARGIN + rows * (LABEL + panel_height + GAP) + LINE * len(heading) + SMALL_LINE * len(told)
        return cls(columns, panel_width, panel_height, slot_width, width, height, heading, told)

    def corner(self, at: int) -> tuple[float, float]:
        """The top left corner of a panel."""
        row, column = divmod(at, self.columns)
        top = MARGIN + LINE * len(self.heading) + row * (LABEL + self.panel_height + GAP) + LABEL
        return MARGIN + column * self.slot_width, top

    def write(self, page: "Axes") -> None:
        """The title above and the caption below."""
        for at, line in enumerate(self.heading):
            page.text(self.width / 2, MARGIN + (at + 0.4) * LINE, line, ha="center", va="center", fontsize=11)
        for at, line in enumerate(reversed(self.caption)):
            y = self.height - MARGIN - (at + 0.4) * SMALL_LINE
            page.text(MARGIN, y, line, va="center", fontsize=7.5, color=GREY)

    def show(self, page: "Axes", at: int, picture: NDArray[np.uint8]) -> None:
        """A picture in its panel, with a thin frame that a white picture needs on white paper."""
        left, top = self.corner(at)
        page.imshow(picture, extent=(left, left + self.panel_width, top + self.panel_height, top), aspect="auto")
        self._line(page, at, WHOLE, color="#d1d5db", linewidth=0.6)

    def label(self, page: "Axes", at: int, word: str, share: str) -> None:
        """A word above its panel on the left, its largest weight on the right."""
        left, top = self.corner(at)
        room = self.slot_width - GAP
        number = page.text(left + room, top - 0.05, share, ha="right", fontsize=7.5, color=GREY)
        name = page.text(left, top - 0.05, word, fontsize=10, fontweight="bold")
        fit(name, room - width_of(number) - 0.08)

    def outline(self, page: "Axes", seen: Box) -> None:
        """What was seen of the first picture, in dashes of black and white that show on any picture."""
        self._line(page, 0, seen, color="black", linewidth=1.0)
        self._line(page, 0, seen, color="white", linewidth=1.0, linestyle=(0, (4, 4)))

    def _line(self, page: "Axes", at: int, box: Box, **how: Any) -> None:
        left, top, right, bottom = np.array(box).clip(0, 1)
        corner = self.corner(at)
        x = corner[0] + self.panel_width * np.array([left, right, right, left, left])
        y = corner[1] + self.panel_height * np.array([top, top, bottom, bottom, top])
        page.plot(x, y, **how)
