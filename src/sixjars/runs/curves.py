"""The learning curves of a run, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw_learning(
    path: Path, records: Sequence[Mapping[str, float]], *, metric: str | None, best: float, title: str
) -> None:
    """Training and validation loss against the step, the metric beside them; a line at the best step."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    steps = [record["step"] for record in records]
    figure = Figure(figsize=(7.0 if metric is None else 11.0, 4.2), dpi=150, layout="constrained")
    panels = figure.subplots(1, 1 if metric is None else 2, squeeze=False)[0].tolist()
    panels[0].plot(
        steps, [record["train_loss"] for record in records], color="#6b7280", linewidth=2, label="training set"
    )
    for axes, name, color in zip(panels, ("loss", metric), ("#1f6fb2", "#27824a"), strict=False):
        values = [record[str(name)] for record in records]
        axes.plot(steps, values, "o-", markersize=4, color=color, label="validation set")
        axes.axvline(best, color="#c0392b", linestyle="--", linewidth=1.2, label="best")
        axes.set_xlabel("step")
        axes.set_ylabel(str(name).replace("_", " "), parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8.5)
        if name != "loss" and min(values) >= 0:
            axes.set_ylim(bottom=0.0)
    figure.suptitle(title, fontsize=11, wrap=True, parse_math=False)
    figure.savefig(path)
