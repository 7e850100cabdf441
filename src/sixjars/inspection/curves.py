"""Score against the length of the input, one curve for each model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sixjars.evaluation.by_length import Bucket
from sixjars.inspection.page import figure_of, save

COLORS = ("#c0392b", "#e08e0b", "#1f6fb2", "#27824a", "#7d3c98", "#444444")


def draw_by_length(path: str | Path, curves: Mapping[str, Sequence[Bucket]], *, metric: str) -> None:
    """One line for each model, a dot for each range of lengths."""
    figure = figure_of(7.0, 4.2, "constrained")
    axes = figure.add_subplot()
    for number, (name, buckets) in enumerate(curves.items()):
        dots = [((b.shortest + b.longest) / 2, b.value) for b in buckets if b.value is not None]
        x, y = [dot[0] for dot in dots], [dot[1] for dot in dots]
        axes.plot(x, y, marker="o", color=COLORS[number % len(COLORS)], linewidth=2, label=name)
    axes.set_xlabel("length of the input (words)")
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    save(figure, path)
