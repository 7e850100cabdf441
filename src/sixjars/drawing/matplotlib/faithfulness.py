"""An image of how attention weights agree with erasing the input and with gradients."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sixjars.drawing.matplotlib.figure import (
    COLORS,
    GREY,
    SMALL,
    even_lines,
    figure_of,
    quiet_grid,
    save,
)
from sixjars.evaluation.agreement import AttentionAgreement

BLUE, PALE = COLORS[2], "#b8bec9"
BINS = [at / 10 for at in range(-10, 11)]
"""The edges of the bars of Kendall's τ."""


def draw_faithfulness(
    path: Path, measures: Sequence[AttentionAgreement], *, title: str, caption: str
) -> None:
    """Draw a panel for each importance: τ over the examples, beside τ of random weights."""
    figure = figure_of(5.2 * len(measures) + 0.3, 4.4, "constrained")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0].tolist()
    for axis, measured in zip(panels, measures, strict=True):
        _draw(axis, measured)
    panels[0].set_ylabel("share of the examples")
    handles, labels = panels[0].get_legend_handles_labels()
    notes = "\n".join(even_lines(caption, int(figure.get_figwidth() * 15)))
    look: dict[str, Any] = {"ncols": 4, "frameon": False, "loc": "outside lower center"}
    sizes: dict[str, Any] = {"fontsize": SMALL + 1, "title_fontsize": SMALL}
    key = figure.legend(handles, labels, title=notes, **look, **sizes)
    key.get_title().set(color=GREY, multialignment="center")
    save(figure, path, title)


def _draw(axis: Axes, measured: AttentionAgreement) -> None:
    """Both distributions, the mean with its interval, and uniform weights at 0."""
    taus = [example.tau for example in measured.examples]
    shuffled = [example.random for example in measured.examples]
    share = np.full(len(taus), 1 / len(taus))
    axis.hist(shuffled, BINS, weights=share, color=PALE, label="the same weights in a random order")
    axis.hist(taus, BINS, weights=share, color=BLUE, alpha=0.7, label="attention weights")
    uniform = "uniform weights: no order, 0"
    axis.axvline(0.0, color="black", linestyle=":", linewidth=1.2, label=uniform)
    tau = measured.tau
    axis.axvspan(tau.low, tau.high, color=COLORS[0], alpha=0.25, linewidth=0)
    axis.axvline(tau.mean, color=COLORS[0], linewidth=1.6, label="mean, with its 95% interval")
    top = f"{tau.mean:z.2f} ({tau.low:z.2f} to {tau.high:z.2f})"
    axis.set_title(f"agreement with {measured.name}: {top}", fontsize=9.5)
    often = f"{measured.first.mean:.0%} of the steps (uniform: {measured.chance:.0%})"
    below = f"largest weight on the most important position: {often}"
    axis.set_xlabel(f"Kendall's τ of an example\n{below}", fontsize=8.5)
    axis.set_xlim(-1.02, 1.02)
    axis.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    quiet_grid(axis)
    axis.set_axisbelow(True)
