"""The learning curves of a run, as an image."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sixjars.runs.folder.run_folder import RunFolder, best_of, first_score
from sixjars.runs.recipes import chosen_by


def draw_curves(run: RunFolder) -> None:
    """Draw the log of a run into its folder, unless it has one validation or lacks values."""
    records = run.history()
    metric, better = chosen_by(run.recipe, run.outside)
    if len(records) < 2 or not all({"train_loss", metric} <= record.keys() for record in records):
        return
    shown = metric if metric != "loss" else first_score(records)
    best = best_of(records, metric, better=better)
    average = run.recipe.learning.average
    kept = "the weights of"
    if average > 1:
        kept = f"the mean of the weights of the {average} best, first of all"
    place = f"{kept} step {best['step']:,.0f}, epoch {best['epoch']:.3g}"
    title = f"Kept: {place}; {metric.replace('_', ' ')} on the validation set: {best[metric]:.4g}"
    draw_learning(run.folder / "curves.png", records, metric=shown, best=best["step"], title=title)


def draw_learning(
    path: Path,
    records: Sequence[Mapping[str, float]],
    *,
    metric: str | None,
    best: float,
    title: str,
) -> None:
    """Training and validation loss by step, the metric beside them, a line at the best step."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    steps = [record["step"] for record in records]
    figure = Figure(figsize=(7.0 if metric is None else 11.0, 4.2), dpi=150, layout="constrained")
    panels = figure.subplots(1, 1 if metric is None else 2, squeeze=False)[0].tolist()
    losses = [record["train_loss"] for record in records]
    panels[0].plot(steps, losses, color="#6b7280", linewidth=2, label="training set")
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
