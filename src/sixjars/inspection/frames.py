"""P4: the frames of a film with their weights, a row for each output word; as a picture file and in the terminal.

Dims: F frames, G groups of neighbouring frames, H height and W width of a frame in pixels, C colours,
T output words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sixjars.errors import ShapeError
from sixjars.inspection.heatmap import GREY, Weights, fit, in_terminal, saved_page
from sixjars.inspection.overlay import resized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FRAMES = 16
"""So many are shown; of a longer film, so many groups of neighbours."""
MARGIN, GAP, LABEL, LINE = 0.2, 0.06, 0.2, 0.2
"""Inches around everything, between frames, for the number above a frame, and for a line of text."""


def draw_frames(
    path: Path, frames: NDArray[np.uint8], weights: Weights, *, words: Sequence[str], title: str = ""
) -> None:
    """The frames (F, H, W, 3) in a row and, below, for each word a bar under each frame, as high as its weight.

    Of more than 16 frames, 16 are shown, evenly chosen, and each stands for its neighbours: their weights are added.
    """
    if frames.ndim != 4 or frames.shape[3] != 3 or not frames.size:
        raise ShapeError(f"frames must be (number, height, width, 3), but are {frames.shape}.")
    groups = _groups(len(frames))
    weights_TG = _pooled(weights, words, groups)
    aspect = min(max(frames.shape[2] / frames.shape[1], 0.05), 20.0)  # a thread of pixels would vanish
    strip = _Strip.of(len(groups), words, aspect=aspect, title=title)
    with saved_page(path, strip.width, strip.height) as page:
        for at, group in enumerate(groups):
            strip.show(page, at, resized(frames[group[len(group) // 2]]), _name(group))
        peak = float(weights_TG.max(initial=0.0)) or 1.0
        for row, (word, weights_G) in enumerate(zip(words, weights_TG, strict=True)):
            strip.bars(page, row, word, weights_G, peak)
        told = f"Height: the weight, from 0 to {peak:.2f}." if words else "No word was written."
        if len(groups) < len(frames):
            told += f" {len(groups)} of {len(frames)} frames; the weights of those between are added to theirs."
        strip.write(page, told)


def in_terminal_frames(weights: Weights, *, words: Sequence[str]) -> Table:
    """The same as a table of shaded cells; a column that stands for several frames has the number of the first."""
    groups = _groups(len(weights[0]) if weights else 0)
    shown: list[list[float]] = _pooled(weights, words, groups).tolist()
    return in_terminal(shown, source=[str(group[0] + 1) for group in groups], target=words)


def _pooled(weights: Weights, words: Sequence[str], groups: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """The weights of each group together, (T, G)."""
    if len(weights) != len(words):
        raise ShapeError(f"there are {len(words)} words, but {len(weights)} rows of weights.")
    frames = sum(len(group) for group in groups)
    wrong = next((len(row) for row in weights if len(row) != frames), frames)
    if wrong != frames:
        raise ShapeError(f"there are {frames} frames, but {wrong} weights for a word.")
    weights_TF = np.asarray(weights, dtype=np.float64).reshape(len(words), frames)
    belongs_FG = np.zeros((frames, len(groups)))
    for at, group in enumerate(groups):
        belongs_FG[group, at] = 1.0
    return weights_TF @ belongs_FG


def _groups(frames: int) -> list[list[int]]:
    """Frames that are shown as one: each by itself, or neighbours when there are many.

    >>> _groups(3), [len(group) for group in _groups(24)]
    ([[0], [1], [2]], [2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1])
    """
    groups: list[list[int]] = [[] for _ in range(min(frames, MOST_FRAMES))]
    for frame in range(frames):
        groups[frame * len(groups) // frames].append(frame)
    return groups


def _name(group: Sequence[int]) -> str:
    """The numbers of the frames, counted from 1."""
    return str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}"


@final
@dataclass(frozen=True)
class _Strip:
    """Where everything lies; in inches from the top left corner."""

    frame_width: float
    frame_height: float
    names: float
    row: float
    top: float
    width: float
    height: float
    heading: tuple[str, ...]

    @classmethod
    def of(cls, frames: int, words: Sequence[str], *, aspect: float, title: str) -> "_Strip":
        """Room for so many frames that are `aspect` times as wide as high, and a row for each word."""
        frame_width = round(min(max(10.0 / frames, 0.7), 1.8, 2.4 * aspect), 2)
        frame_height = round(frame_width / aspect, 2)
        names = min(max((0.11 * len(word) for word in words), default=0.0) + 0.1, 1.6)
        row = 0.46 if len(words) < 20 else 0.4
        width = max(2 * MARGIN + names + frames * (frame_width + GAP) - GAP, 3.2)
        heading = tuple(wrap(title, int(width * 11)))
        top = MARGIN + LINE * len(heading) + LABEL
        height = top + frame_height + row * len(words) + 0.12 + LINE + MARGIN
        return cls(frame_width, frame_height, names, row, top, width, height, heading)

    def left(self, at: int) -> float:
        """Where a frame begins."""
        return MARGIN + self.names + at * (self.frame_width + GAP)

    def show(self, page: "Axes", at: int, frame: NDArray[np.uint8], name: str) -> None:
        """A frame in its place, with its number above."""
        left = self.left(at)
        page.imshow(
            frame, extent=(left, left + self.frame_width, self.top + self.frame_height, self.top), aspect="auto"
        )
        page.text(left + self.frame_width / 2, self.top - 0.05, name, ha="center", fontsize=7.5, color=GREY)

    def bars(self, page: "Axes", row: int, word: str, weights: NDArray[np.float64], peak: float) -> None:
        """A word and its bars, the strongest of all words at full height; numbers where the weight is not small."""
        from matplotlib import colormaps

        ground = self.top + self.frame_height + (row + 1) * self.row
        fit(page.text(MARGIN, ground - 0.04, word, fontsize=10, fontweight="bold"), self.names - 0.08)
        lefts = [self.left(at) for at in range(len(weights))]
        full = self.row - 0.16
        heights = full * weights / peak
        colors = colormaps["Blues"](0.35 + 0.55 * weights / peak)
        page.bar(lefts, -full, self.frame_width, ground, align="edge", color="#f3f5f8")
        page.bar(lefts, -heights, self.frame_width, ground, align="edge", color=colors)
        for left, weight, height in zip(lefts, weights, heights, strict=True):
            if weight >= 0.1:
                middle = left + self.frame_width / 2
                page.text(middle, ground - height - 0.025, f"{weight:.2f}", ha="center", fontsize=6.5)

    def write(self, page: "Axes", caption: str) -> None:
        """The title above and the caption below."""
        for at, line in enumerate(self.heading):
            page.text(self.width / 2, MARGIN + (at + 0.4) * LINE, line, ha="center", va="center", fontsize=11)
        page.text(self.left(0), self.height - MARGIN - 0.06, caption, va="center", fontsize=7.5, color=GREY)
