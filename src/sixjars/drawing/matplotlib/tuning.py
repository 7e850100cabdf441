"""An image of a parameter search: the score of each trial, and against each searched value."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sixjars.drawing.matplotlib.figure import COLORS, GREY, SMALL, figure_of, quiet_grid, save
from sixjars.drawing.view import shortened

Row = Mapping[str, Any]
RED, BLUE = COLORS[0], COLORS[2]
COLUMNS = 3
"""Panels beside each other."""
LONGEST = 14
"""Letters of the name of a choice."""


def draw_tuning(
    path: str | Path,
    trials: Sequence[Row],
    axes: Mapping[str, str],
    *,
    metric: str,
    better: Literal["higher", "lower"],
    title: str,
) -> None:
    """Draw a panel for the trials in order, and one for each key on the axis that its space has."""
    count = 1 + len(axes)
    columns = min(count, COLUMNS) if count != 4 else 2
    figure = figure_of(3.9 * columns + 0.4, 3.3 * ceil(count / columns) + 0.5, "constrained")
    panels = [figure.add_subplot(ceil(count / columns), columns, at) for at in range(1, count + 1)]
    complete = [row for row in trials if row["state"] == "complete"]
    choose = max if better == "higher" else min
    best = choose(complete, key=lambda row: row["score"], default=None)
    _draw_order(panels[0], trials, complete, higher=better == "higher")
    for axis, (key, scale) in zip(panels[1:], axes.items(), strict=True):
        _draw_key(axis, trials, key, scale)
    for axis, name in zip(panels, ["number", *axes], strict=True):
        if best is not None:
            place = best[name]
            if axes.get(name) == "names":
                place = _places(trials, name)[json.dumps(place)]
            star: dict[str, Any] = {"s": 110, "marker": "*", "color": RED, "zorder": 5}
            axis.scatter([place], [best["score"]], label="best", **star)
        quiet_grid(axis)
        axis.set_axisbelow(True)
    for axis in panels[::columns]:
        axis.set_ylabel(f"{metric.replace('_', ' ')} ({better} is better)")
    names = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": SMALL + 1}
    figure.legend(names.values(), names.keys(), loc="outside lower center", **look)
    save(figure, path, title)


def _draw_order(
    axis: Axes, trials: Sequence[Row], complete: Sequence[Row], *, higher: bool
) -> None:
    """Scores by number; the best so far is a line, and a trial that failed is a mark below."""
    _scatter(axis, trials, lambda row: row["number"])
    failed = [row["number"] for row in trials if row["state"] == "failed"]
    if failed:
        cross: dict[str, Any] = {"marker": "x", "s": 26, "color": GREY, "label": "failed"}
        edge = axis.get_xaxis_transform()
        axis.scatter(failed, [0.02] * len(failed), transform=edge, **cross)
    if complete:
        numbers = [*(row["number"] for row in complete), trials[-1]["number"]]
        best = [*accumulate((row["score"] for row in complete), max if higher else min)]
        line: dict[str, Any] = {"color": RED, "linewidth": 1.4, "zorder": 1}
        axis.step(numbers, [*best, best[-1]], where="post", label="best so far", **line)
    axis.set_xlim(0.4, trials[-1]["number"] + 0.6)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("trial")


def _draw_key(axis: Axes, trials: Sequence[Row], key: str, scale: str) -> None:
    """Scores by the value of one key; choices stand side by side."""
    axis.set_xlabel(key)
    if scale != "names":
        _scatter(axis, trials, lambda row: row[key])
        if scale == "log":
            _make_logarithmic(axis, [row[key] for row in trials])
        return
    places = _places(trials, key)
    _scatter(axis, trials, lambda row: places[json.dumps(row[key])])
    axis.set_xticks(list(places.values()), [shortened(text.strip('"'), LONGEST) for text in places])
    axis.set_xlim(-0.6, len(places) - 0.4)


def _make_logarithmic(axis: Axes, values: Sequence[float]) -> None:
    """Make an axis logarithmic, with numbers as in a recipe, and closer ticks for fewer decades."""
    axis.set_xscale("log")
    spread = max(values) / min(values)
    subs = (1.0, 2.0, 5.0) if spread <= 100 else (1.0,)
    axis.xaxis.set_major_locator(LogLocator(subs=subs) if spread >= 5 else MaxNLocator(4))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _places(trials: Sequence[Row], key: str) -> dict[str, int]:
    """The place of each choice: numbers in their order, then texts in theirs."""
    values = {json.dumps(row[key]): row[key] for row in trials}
    numbers = [text for text, value in values.items() if isinstance(value, int | float)]
    ordered = sorted(numbers, key=lambda text: values[text]) + sorted(set(values) - set(numbers))
    return {text: at for at, text in enumerate(ordered)}


def _scatter(axis: Axes, trials: Sequence[Row], place: Any) -> None:
    """Draw a dot for each complete trial, a hollow one for a pruned one at its best score."""
    filled = {"color": BLUE, "alpha": 0.8, "edgecolors": "white", "linewidths": 0.6, "s": 40}
    hollow = {"facecolors": "white", "edgecolors": GREY, "s": 26}
    looks: dict[str, dict[str, Any]] = {"complete": filled, "pruned": hollow}
    for state, look in looks.items():
        rows = [row for row in trials if row["state"] == state and row["score"] is not None]
        if rows:
            x, y = [place(row) for row in rows], [row["score"] for row in rows]
            axis.scatter(x, y, label=state, zorder=3, **look)
