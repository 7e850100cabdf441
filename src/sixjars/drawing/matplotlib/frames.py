"""An image of the frames of a video, with their attention weights for each output token.

Dims: F frames, G groups of neighbouring frames, T output tokens.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.figure import fit, saved_page, small_text
from sixjars.drawing.matplotlib.image import aspect_of, resized
from sixjars.drawing.view import View
from sixjars.drawing.weights import checked, frame_groups, group_name, grouped
from sixjars_runtime.errors import ShapeError

GAP, LABEL = 0.06, 0.2
"""Inches between frames, and for the number above a frame."""


def draw_frames(path: Path, view: View) -> None:
    """Draw the frames (F, height, width, 3) in a row, and a row of bars for each output token.

    Of more than 16 frames, 16 are shown, evenly chosen, with the weights of neighbours added.
    """
    frames, tokens = view.backdrop, view.outputs[0].tokens
    if frames.ndim != 4 or frames.shape[3] != 3 or not frames.size:
        raise ShapeError(f"frames must be (number, height, width, 3), but are {frames.shape}.")
    weights_TF = checked(view.outputs[0].weights, len(tokens), len(frames), positions="frames")
    groups = frame_groups(len(frames))
    weights_TG = grouped(weights_TF, groups)
    peak = float(weights_TG.max(initial=0.0)) or 1.0
    caption = "The output is empty."
    if tokens:
        caption = f"Height: the attention weight, from 0 to {peak:.2f}."
    if len(groups) < len(frames):
        caption += f" {len(groups)} of {len(frames)} frames; "
        caption += "the weights of those between are added to theirs."
    aspect = aspect_of(frames[0])
    wide = round(min(max(10.0 / len(groups), 0.7), 1.8, 2.4 * aspect), 2)
    names = min(max((0.11 * len(token) for token in tokens), default=0.0) + 0.1, 1.6)
    row = 0.46 if len(tokens) < 20 else 0.4
    lefts = [names + at * (wide + GAP) for at in range(len(groups))]
    ground = LABEL + round(wide / aspect, 2)
    size = lefts[-1] + wide, ground + row * len(tokens) + 0.12
    with saved_page(path, *size, title=view.title, caption=caption) as page:
        for left, group in zip(lefts, groups, strict=True):
            image = resized(frames[group[len(group) // 2]])
            page.imshow(image, extent=(left, left + wide, ground, LABEL), aspect="auto")
            small_text(page, left + wide / 2, LABEL - 0.05, group_name(group), ha="center")
        for token, weights_G in zip(tokens, weights_TG, strict=True):
            ground += row
            fit(page.text(0.0, ground - 0.04, token, fontsize=10, fontweight="bold"), names - 0.08)
            _bars(page, lefts, (wide, row - 0.16, ground), weights_G, peak)


def _bars(
    page: Axes,
    lefts: Sequence[float],
    size: tuple[float, float, float],
    weights: NDArray[np.float64],
    peak: float,
) -> None:
    """Draw the bars of a token; `size` is (width, height, ground), and the peak has full height."""
    wide, full, ground = size
    heights = full * weights / peak
    page.bar(lefts, -full, wide, ground, align="edge", color="#f3f5f8")
    blues = colormaps["Blues"](0.35 + 0.55 * weights / peak)
    page.bar(lefts, -heights, wide, ground, align="edge", color=blues)
    for left, weight, height in zip(lefts, weights, heights, strict=True):
        if weight >= 0.1:
            x, y = left + wide / 2, ground - height - 0.025
            page.text(x, y, f"{weight:.2f}", ha="center", fontsize=6.5)
