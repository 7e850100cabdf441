"""Lines between an input and an output, as thick as their attention weights; as an image file.

Dims: T output tokens, S source positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.figure import GREY, fit, saved_page, widths_of
from sixjars.drawing.view import View
from sixjars.drawing.weights import LEAST, checked, copied_links
from sixjars_runtime.errors import DataError

LEAST_WIDE, WIDEST, BETWEEN, APART = 4.5, 13.0, 1.5, 0.16
"""Inches of a page with one sentence above the other, between them, and between two words."""
ROW, COLUMN, GAP = 0.26, 2.6, 2.2
"""Inches of a line of a page with sentences side by side, of its longest word, between them."""
LETTERS, THICKEST = 11.0, 7.0
"""The sizes of letters and of the thickest line, in points."""
BLUE, ORANGE = "#2171b5", "#b45309"
Spot = tuple[float, float]


def draw_lines(path: Path, view: View, *, copying: bool = False) -> None:
    """Draw the input above the output, or beside it where one is long, with lines for weights.

    With `copying`, only words that are copied have lines.
    """
    output, source = view.outputs[0], view.names
    target, copied = output.tokens, output.copied if copying else ()
    weights_TS = checked(output.weights, len(target), len(source), positions="source tokens")
    if not weights_TS.size:
        raise DataError("there are no attention weights to draw.")
    links_TS = _links(weights_TS, copied_links(source, target, copied)) if copied else weights_TS
    certain = [at is not None for at in copied] or [False] * len(target)
    places = _Places.of(source, target)
    caption = _caption(copied, across=places.across)
    with saved_page(path, *places.size, title=view.title, caption=caption) as page:
        links = [(links_TS[step, at], step, at) for step, at in np.argwhere(links_TS >= LEAST)]
        for weight, step, at in sorted(links):  # the thin ones first, below the others
            places.link(page, at, step, weight, ORANGE if certain[step] else BLUE)
        for at, word in enumerate(source):
            places.write(page, word, places.source[at], "source", _ink(copied, links_TS[:, at]))
        for step, word in enumerate(target):
            color = ORANGE if certain[step] else _ink(copied, links_TS[step])
            places.write(page, word, places.target[step], "target", color)


def _ink(copied: Sequence[int | None], weights: NDArray[np.float64]) -> str:
    """The colour of a word; grey where only copied words have lines, and this one has none."""
    return GREY if copied and not (weights > 0).any() else "black"


def _caption(copied: Sequence[int | None], *, across: bool) -> str:
    above = "Above: the input." if across else "On the left: the input."
    if not copied:
        return f"{above} Thickness: the attention weight, where it is at least {LEAST:.2f}."
    if all(at is None for at in copied):
        above += " No word of this output had to be copied."
    return (
        f"{above} Orange: words that are not in the vocabulary, so they can only be copied. "
        "Other lines: words that the input has too. Thickness: the attention weight there."
    )


def _links(weights_TS: NDArray[np.float64], places: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """The weights at these places of each row; the others are 0."""
    links_TS = np.zeros_like(weights_TS)
    for step, positions in enumerate(places):
        links_TS[step, positions] = weights_TS[step, positions]
    return links_TS


@final
@dataclass(frozen=True)
class _Places:
    """Where the middle of each word lies, in inches."""

    source: list[Spot]
    target: list[Spot]
    size: Spot
    """The size of the page."""
    across: bool
    """Whether the sentences lie above each other, and not beside each other."""

    @classmethod
    def of(cls, source: Sequence[str], target: Sequence[str]) -> "_Places":
        """Place the sentences above each other where both have room, else side by side."""
        widths = widths_of([*source, *target], LETTERS)
        rows = [[widths[word] for word in words] for words in (source, target)]
        wide = max(LEAST_WIDE, *(sum(row) + APART * (len(row) - 1) for row in rows))
        if wide <= WIDEST:
            above, below = _row(rows[0], wide, 0.1), _row(rows[1], wide, BETWEEN + 0.35)
            return cls(above, below, (wide, BETWEEN + 0.5), across=True)
        left = [(COLUMN, y) for y in _down(len(source), len(target))]
        right = [(COLUMN + GAP, y) for y in _down(len(target), len(source))]
        size = 2 * COLUMN + GAP, ROW * max(len(source), len(target))
        return cls(left, right, size, across=False)

    def link(self, page: Axes, at: int, step: int, weight: float, color: str) -> None:
        """A curve from a word of the source to one of the target, as thick as the weight."""
        (x, y), (to_x, to_y) = self.source[at], self.target[step]
        if self.across:
            begin, end = (x, y + 0.15), (to_x, to_y - 0.25)
            middle = 0.5 * (begin[1] + end[1])
            bend = [(x, middle), (to_x, middle)]
        else:
            begin, end = (x + 0.08, y), (to_x - 0.08, to_y)
            middle = 0.5 * (begin[0] + end[0])
            bend = [(middle, y), (middle, to_y)]
        curve = Curve([begin, *bend, end], [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
        alpha = 0.25 + 0.6 * min(weight, 1.0)
        style = {"linewidth": THICKEST * weight, "alpha": alpha, "edgecolor": color}
        page.add_patch(PathPatch(curve, fill=False, capstyle="round", **style))

    def write(
        self, page: Axes, word: str, spot: Spot, side: Literal["source", "target"], color: str
    ) -> None:
        """Write a word in its place, smaller where it is too long for a column."""
        if self.across:
            page.text(*spot, word, ha="center", va="center", fontsize=LETTERS, color=color)
            return
        align: Literal["left", "right"] = "right" if side == "source" else "left"
        fit(
            page.text(*spot, word, ha=align, va="center", fontsize=LETTERS - 1, color=color), COLUMN
        )


def _row(widths: Sequence[float], wide: float, y: float) -> list[Spot]:
    """Words beside each other, spread over a page that is so wide, but not without end."""
    between = min((wide - sum(widths)) / max(len(widths) - 1, 1), 4 * APART)
    left = (wide - sum(widths) - between * (len(widths) - 1)) / 2
    spots = []
    for width in widths:
        spots.append((left + width / 2, y))
        left += width + between
    return spots


def _down(count: int, other: int) -> list[float]:
    """The heights of words below each other; the shorter sentence is spread out, in the middle."""
    step = ROW * min(max(other / count, 1.0), 3.0)
    top = (ROW * max(count, other) - step * count) / 2
    return [top + (at + 0.5) * step for at in range(count)]
