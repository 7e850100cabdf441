"""P6: score against the length of the input, one curve for each model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sixjars.evaluation.by_length import Bucket


def draw_by_length(path: Path, curves: Mapping[str, Sequence[Bucket]], *, metric: str) -> None:
    """One line for each model, a dot for each range of lengths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    colors = ["#c0392b", "#e08e0b", "#1f6fb2", "#27824a", "#7d3c98", "#444444"]
    for number, (name, buckets) in enumerate(curves.items()):
        dots = [((b.shortest + b.longest) / 2, b.value) for b in buckets if b.value is not None]
        axes.plot(
            [x for x, _ in dots],
            [y for _, y in dots],
            marker="o",
            color=colors[number % len(colors)],
            linewidth=2,
            label=name,
        )
    axes.set_xlabel("length of the input (words)")
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
