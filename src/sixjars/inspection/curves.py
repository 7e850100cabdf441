"""Curves: a score against the length of the input, one for each model; and loss and score while a model learns."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sixjars.evaluation.by_length import FEW, Bucket
from sixjars.inspection.page import GREY, SMALL, figure_of, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#c0392b", "#e08e0b", "#1f6fb2", "#27824a", "#7d3c98", "#444444")


def draw_by_length(path: str | Path, curves: Mapping[str, Sequence[Bucket]], *, metric: str, title: str = "") -> None:
    """One line for each model, a dot for each range of lengths; a hollow dot is a score of few examples."""
    figure = figure_of(7.0, 4.4, "constrained")
    axes = figure.add_subplot()
    for number, (name, buckets) in enumerate(curves.items()):
        dots = [((b.shortest + b.longest) / 2, b.value, b.count) for b in buckets if b.value is not None]
        color = COLORS[number % len(COLORS)]
        axes.plot([x for x, _, _ in dots], [y for _, y, _ in dots], marker="o", color=color, linewidth=2, label=name)
        few = [(x, y) for x, y, count in dots if count < FEW]
        axes.scatter([x for x, _ in few], [y for _, y in few], s=12, color="white", zorder=3)
    if any(bucket.value is not None and bucket.count < FEW for some in curves.values() for bucket in some):
        axes.scatter([], [], s=36, edgecolors=GREY, facecolors="white", label=f"fewer than {FEW} examples")
    axes.set_xlabel("length of the input (words)")
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_ylim(bottom=0.0)
    _plain(axes)
    save(figure, path, title)


def draw_learning(
    path: str | Path, records: Sequence[Mapping[str, float]], *, metric: str | None, best: float, title: str
) -> None:
    """Training and validation loss against the step, the metric beside them; a line at the best step."""
    steps = [record["step"] for record in records]
    figure = figure_of(7.0 if metric is None else 11.0, 4.2, "constrained")
    panels = figure.subplots(1, 1 if metric is None else 2, squeeze=False)[0].tolist()
    losses = panels[0]
    losses.plot(steps, [record["train_loss"] for record in records], color=GREY, linewidth=2, label="training set")
    losses.plot(steps, [r["loss"] for r in records], "o-", markersize=4, color=COLORS[2], label="validation set")
    losses.set_ylabel("loss of a token")
    if metric is not None:
        panels[1].plot(steps, [r[metric] for r in records], "o-", markersize=4, color=COLORS[3], label="validation set")
        panels[1].set_ylabel(metric.replace("_", " "))
        if min(record[metric] for record in records) >= 0:
            panels[1].set_ylim(bottom=0.0)
    for axes in panels:
        axes.axvline(best, color=COLORS[0], linestyle="--", linewidth=1.2, label="best")
        axes.set_xlabel("step")
        _plain(axes)
    save(figure, path, title)


def _plain(axes: "Axes") -> None:
    """Whole numbers below, a quiet grid, and the names of the lines."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=SMALL + 1)
