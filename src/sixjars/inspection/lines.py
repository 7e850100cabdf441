"""Lines between an input and an output, as thick as their attention weights; as a picture file.

Dims: T output tokens, S source positions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sixjars.errors import DataError
from sixjars.inspection.page import GREY, Weights, checked, figure_of, fit, saved_page, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 0.05
"""Smaller weights have no line."""
WIDEST, BETWEEN, APART = 13.0, 1.5, 0.16
"""Inches of a page whose sentences lie above each other, from one to the other, and between two words."""
ROW, COLUMN, GAP = 0.26, 2.6, 2.2
"""Inches of a line of a page whose sentences stand beside each other, of its longest word, and between the two."""
LETTERS, THICKEST = 11.0, 7.0
"""Points."""
BLUE, ORANGE = "#2171b5", "#b45309"

Spot = tuple[float, float]


def draw_lines(
    path: Path,
    weights: Weights,
    *,
    source: Sequence[str],
    target: Sequence[str],
    copied: Sequence[int | None] = (),
    title: str = "",
) -> None:
    """The input above the output, or beside it where one of them is long; a line for each weight that is not small.

    With `copied`, the position that each output token was copied from, or none: only these have lines, and colour.
    """
    weights_TS = checked(weights, len(target), len(source), positions="source tokens")
    if not weights_TS.size:
        raise DataError("there are no attention weights to draw.")
    links_TS = _links(weights_TS, copied_links(source, target, copied)) if copied else weights_TS
    marked = [at is not None for at in copied] or [False] * len(target)
    colors = [[GREY if copied and not (links_TS[:, at] > 0).any() else "black" for at in range(len(source))]]
    colors.append(
        [ORANGE if one else GREY if copied and not links_TS[at].any() else "black" for at, one in enumerate(marked)]
    )
    widths = [_widths(source), _widths(target)]
    wide = max(sum(row) + APART * (len(row) - 1) for row in widths)
    if wide <= WIDEST:
        spots = [_row(row, wide) for row in widths]
        size, across = (wide, BETWEEN + 0.5), True
    else:
        spots = [[(COLUMN, at) for at in _rows(len(source), len(target))], []]
        spots[1] = [(COLUMN + GAP, at) for at in _rows(len(target), len(source))]
        size, across = (2 * COLUMN + GAP, ROW * max(len(source), len(target))), False
    with saved_page(path, *size, title=title, caption=_caption(copied)) as page:
        _draw_links(page, links_TS, spots, across=across, color=ORANGE if copied else BLUE)
        for side, (words, places) in enumerate(zip((source, target), spots, strict=True)):
            _write(page, words, places, colors[side], side=side, across=across)


def _caption(copied: Sequence[int | None]) -> str:
    above = "Above or on the left: the input."
    if not copied:
        return f"{above} Thickness: the attention weight, where it is at least {LEAST:.2f}."
    if all(at is None for at in copied):
        above += " No word of this output had to be copied."
    return (
        f"{above} Orange: words that are not in the vocabulary, so they can only be copied. Other lines: words that "
        "the input has too. Thickness: the attention weight there."
    )


def copied_links(source: Sequence[str], target: Sequence[str], copied: Sequence[int | None]) -> list[list[int]]:
    """For each output token the positions that have the same word, that which it was copied from among them.

    >>> copied_links(["Rex", "is", "Rex"], ["Rex", "ran"], [0, None])
    [[0, 2], []]
    """
    return [
        [place for place, word in enumerate(source) if word == token or place == at]
        for token, at in zip(target, copied, strict=True)
    ]


def _links(weights_TS: NDArray[np.float64], places: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """The weights at these places of each row; the others are 0."""
    links_TS = np.zeros_like(weights_TS)
    for step, own in enumerate(places):
        links_TS[step, own] = weights_TS[step, own]
    return links_TS


def _widths(words: Sequence[str]) -> list[float]:
    figure = figure_of(1.0, 1.0)
    return [width_of(figure.text(0.0, 0.0, word, fontsize=LETTERS)) for word in words]


def _row(widths: Sequence[float], wide: float) -> list[Spot]:
    """The middle of each word of a sentence on one line, the words spread over the page."""
    room = (wide - sum(widths)) / max(len(widths) - 1, 1) if len(widths) > 1 else 0.0
    room = min(room, 4 * APART)
    left = (wide - sum(widths) - room * (len(widths) - 1)) / 2
    spots = []
    for width in widths:
        spots.append((left + width / 2, 0.0))
        left += width + room
    return spots


def _rows(own: int, other: int) -> list[float]:
    """The middle of each word of a sentence that goes downwards; the shorter one is spread out, but not without end."""
    step = ROW * min(max(other / own, 1.0), 3.0)
    return [(at + 0.5) * step for at in range(own)]


def _draw_links(
    page: "Axes", links_TS: NDArray[np.float64], spots: Sequence[Sequence[Spot]], *, across: bool, color: str
) -> None:
    """Curves, the thin ones first."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    found = [(links_TS[step, at], step, at) for step, at in np.argwhere(links_TS >= LEAST)]
    for weight, step, at in sorted(found):
        (x, y), (to_x, to_y) = spots[0][at], spots[1][step]
        if across:
            begin, end = (x, 0.25), (to_x, BETWEEN + 0.1)
            bend = [(begin[0], 0.5 * (begin[1] + end[1])), (end[0], 0.5 * (begin[1] + end[1]))]
        else:
            begin, end = (x + 0.08, y), (to_x - 0.08, to_y)
            bend = [(0.5 * (begin[0] + end[0]), begin[1]), (0.5 * (begin[0] + end[0]), end[1])]
        curve = Curve([begin, *bend, end], [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
        look = {"linewidth": max(THICKEST * weight, 0.5), "alpha": 0.25 + 0.6 * min(weight, 1.0)}
        page.add_patch(PathPatch(curve, fill=False, edgecolor=color, capstyle="round", **look))


def _write(
    page: "Axes", words: Sequence[str], spots: Sequence[Spot], colors: Sequence[str], *, side: int, across: bool
) -> None:
    for word, (x, y), color in zip(words, spots, colors, strict=True):
        if across:
            place = BETWEEN + 0.35 if side else 0.1
            page.text(x, place, word, ha="center", va="center", fontsize=LETTERS, color=color)
        else:
            how = "left" if side else "right"
            text = page.text(x, y, word, ha=how, va="center", fontsize=LETTERS - 1, color=color)
            fit(text, COLUMN)
