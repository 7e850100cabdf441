"""The charts of a report, as places on a drawing; the templates make SVG of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np
from matplotlib.ticker import MaxNLocator

from sixjars.evaluation.by_length import FEW
from sixjars.reports.values import ByLength, History

MOST = 400
"""Points of a curve; of more, some are left out."""
Points = Sequence[tuple[float, float]]


@final
@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, and the places of both ends on a drawing."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """The place of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + (self.end - self.start) * share


@final
@dataclass(frozen=True)
class Bar:
    """The place of a bar, and of its interval, if it has one."""

    left: float
    top: float
    width: float
    height: float
    few: bool
    """Whether it is of few examples, and hollow."""
    interval: tuple[float, float] | None

    @property
    def middle(self) -> float:
        """Where the interval is drawn."""
        return self.left + self.width / 2


@final
@dataclass(frozen=True)
class Chart:
    """Curves or bars in a frame, with numbers beside it and the names of both axes."""

    width: ClassVar = 520
    height: ClassVar = 280
    left: ClassVar = 56
    right: ClassVar = 504
    top: ClassVar = 14
    bottom: ClassVar = 236

    label: str
    """For readers who do not see the chart."""
    x_name: str
    y_name: str
    rules: Sequence[tuple[float, str]]
    """The height of each line across the frame, and the number beside it."""
    marks: Sequence[tuple[float, str]]
    """What is written below."""
    curves: Mapping[str, Points] = field(default_factory=dict)
    best: float | None = None
    """The place of a broken line."""
    bars: Sequence[Bar] = ()


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many.

    >>> ticks(0.0, 1.0), ticks(3, 17)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0])
    """
    if not high > low:
        return [low]
    locator = MaxNLocator(count, steps=[1, 2, 5, 10], min_n_ticks=1)
    rounding = 1e-9 * (high - low)  # a number at an end may lie a little outside
    least, most = low - rounding, high + rounding
    values = np.asarray(locator.tick_values(low, high)).tolist()
    return [round(value, 12) for value in values if least <= value <= most]


def number(value: float) -> str:
    """A number beside an axis.

    >>> number(0.2), number(12000), number(1500000)
    ('0.2', '12,000', '1.5e+06')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 and value == round(value) else f"{value:g}"


def _rules(axis: Axis) -> list[tuple[float, str]]:
    return [(axis.place(value), number(value)) for value in ticks(axis.low, axis.high)]


def curves(
    series: Mapping[str, Points], *, y: str, best: float | None = None, zero: bool = False
) -> Chart:
    """A line for each name against the step, with a broken one at the best; `zero` on the axis."""
    steps = [step for points in series.values() for step, _ in points]
    values = [value for points in series.values() for _, value in points]
    lowest, highest = min(values), max(values)
    low = 0.0 if zero and lowest >= 0 else lowest
    across = Axis(min(steps), max(steps), Chart.left, Chart.right)
    up = Axis(low, highest if highest > low else low + 1, Chart.bottom, Chart.top)
    places = {}
    for name, points in series.items():
        places[name] = [(across.place(step), up.place(value)) for step, value in points]
    return Chart(
        label=f"{y} against the step: {', '.join(series)}",
        x_name="step",
        y_name=y,
        rules=_rules(up),
        marks=_rules(across),
        curves=places,
        best=None if best is None else across.place(best),
    )


def thinned(records: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """At most about `MOST` records, the last one included."""
    step = -(-len(records) // MOST)
    return [*records[:-1:step], records[-1]]


def learning_curves(history: History) -> list[Chart]:
    """The loss of the training and the validation set, and the metric beside them."""
    records = thinned(history.records)

    def points(name: str) -> Points:
        return [(r["step"], r[name]) for r in records if name in r and math.isfinite(r[name])]

    losses = {"training set": points("train_loss"), "validation set": points("loss")}
    series = {"loss": {name: curve for name, curve in losses.items() if curve}}
    if history.metric is not None:
        series[history.metric] = {"validation set": points(history.metric)}
    charts = []
    for at, (name, lines) in enumerate(series.items()):
        if any(lines.values()):
            y = name.replace("_", " ")
            charts.append(curves(lines, y=y, best=history.best, zero=at > 0))
    return charts


def length_bars(scores: ByLength) -> Chart:
    """A bar for each range of lengths, with its interval; one of few examples is hollow."""
    known = []
    for at, bucket in enumerate(scores.buckets):
        if bucket.value is not None and math.isfinite(bucket.value):
            known.append((at, bucket, bucket.value))
    between = [bucket.interval for _, bucket, _ in known]
    values = [value for _, _, value in known]
    highest = max(*values, *(each.high if each else 0.0 for each in between))
    lowest = min(0.0, *values, *(each.low if each else 0.0 for each in between))
    across = Axis(0.0, len(scores.buckets), Chart.left, Chart.right)
    up = Axis(lowest, highest if highest > lowest else lowest + 1.0, Chart.bottom, Chart.top)
    bars = []
    for at, bucket, value in known:
        left, right = across.place(at + 0.18), across.place(at + 0.82)
        top, ground = sorted((up.place(value), up.place(0.0)))
        interval = bucket.interval and (
            up.place(bucket.interval.low),
            up.place(bucket.interval.high),
        )
        few = bucket.count < FEW
        bars.append(Bar(left, top, right - left, max(ground - top, 0.5), few, interval))
    return Chart(
        label=f"{scores.metric} by {scores.unit}; the table below has the numbers",
        x_name=scores.unit,
        y_name=scores.metric,
        rules=_rules(up),
        marks=[(across.place(at + 0.5), each.name) for at, each in enumerate(scores.buckets)],
        bars=bars,
    )
