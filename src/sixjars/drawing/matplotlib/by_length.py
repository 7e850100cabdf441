"""An image of scores by the length of the input."""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sixjars.drawing.matplotlib.figure import COLORS, GREY, SMALL, figure_of, quiet_grid, save
from sixjars.evaluation.by_length import FEW, Bucket

WHOLE: Final[Mapping[str, Any]] = {"clip_on": False}
"""For dots on the lowest line, which would be cut in half."""
NUMBER_WIDE = 0.09
"""The share of an image that the number of examples of a range is wide, at most."""


def draw_by_length(
    path: str | Path,
    curves: Mapping[str, Sequence[Bucket]],
    *,
    metric: str,
    title: str = "",
    by: str = "length of the input (words)",
) -> None:
    """One line for each model, with a dot for each range of lengths, at its median.

    A dot of few examples is hollow, intervals are shaded, and counts of examples stand above.
    """
    figure = figure_of(7.0, 4.4, "constrained")
    axes = figure.add_subplot()
    for number, (name, buckets) in enumerate(curves.items()):
        _draw_curve(axes, number, name, buckets)
    every = [bucket for buckets in curves.values() for bucket in buckets]
    if any(bucket.value is not None and bucket.count < FEW for bucket in every):
        label = f"fewer than {FEW} examples"
        axes.scatter([], [], s=36, edgecolors=GREY, facecolors="white", label=label)
    if any(bucket.interval is not None for bucket in every):
        axes.fill_between([], [], [], color=GREY, alpha=0.3, linewidth=0, label="95 % interval")
    _count(axes, next(iter(curves.values()), ()))
    axes.set_xlabel(by)
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=SMALL + 1)
    save(figure, path, title)


def _draw_curve(axes: Axes, number: int, name: str, buckets: Sequence[Bucket]) -> None:
    """The line of one model with its intervals, in the style of its number."""
    dots = [(b.place, b.value, b.count) for b in buckets if b.value is not None]
    color = COLORS[number % len(COLORS)]
    style: dict[str, Any] = {"linewidth": 2, "markersize": max(4.0, 8.0 - 1.5 * number), **WHOLE}
    if number:  # smaller dots and wider gaps show an equal line that was drawn before
        style["dashes"] = 3, 3 * number
    x, y, _ = zip(*dots, strict=True) if dots else ((), (), ())
    axes.plot(x, y, marker="o", color=color, label=name, **style)
    sure = [(b.place, b.interval.low, b.interval.high) for b in buckets if b.interval is not None]
    x, low, high = zip(*sure, strict=True) if sure else ((), (), ())
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    few = [(x, y) for x, y, count in dots if count < FEW]
    x, y = zip(*few, strict=True) if few else ((), ())
    axes.scatter(x, y, s=12, color="white", zorder=3, **WHOLE)


def _count(axes: Axes, buckets: Sequence[Bucket]) -> None:
    """The number of examples above each range; higher where there is no room beside the last."""
    low, high = axes.get_xlim()
    room = NUMBER_WIDE * (high - low)
    taken = [-inf] * len(buckets)  # where the last number at each height ends
    for bucket in sorted(buckets, key=lambda bucket: bucket.place):
        height = next(at for at, end in enumerate(taken) if end <= bucket.place)
        taken[height] = bucket.place + room
        where = (bucket.place, 1.01 + 0.04 * height)
        text = axes.text(*where, f"n = {bucket.count:,}", transform=axes.get_xaxis_transform())
        text.set(ha="center", va="bottom", fontsize=SMALL, color=GREY)
