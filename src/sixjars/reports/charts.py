"""Charts as SVG inside of a page: curves and bars in its colours, light or dark with it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import final

from sixjars.evaluation.by_length import FEW
from sixjars.reports.values import ByLength, History

WIDTH, HEIGHT = 520, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
"""Margins, for the numbers and the names of the axes."""
MOST = 400
"""Points of a curve; of more, some are left out."""
Points = Sequence[tuple[float, float]]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many.

    >>> ticks(0.0, 1.0), ticks(3, 17)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(at * step, 12) for at in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A number beside an axis.

    >>> number(0.2), number(12000), number(1500000)
    ('0.2', '12,000', '1.5e+06')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 and value == round(value) else f"{value:g}"


@final
class _Frame:
    """The place of values on a drawing."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x = x
        self.y = y

    def across(self, value: float) -> float:
        low, high = self.x
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / ((high - low) or 1.0)

    def down(self, value: float) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1.0)

    def grid(self, x_name: str, y_name: str, marks: Mapping[float, str]) -> str:
        """Lines for the values, and names of both axes; `marks` are written below."""
        parts = []
        for value in ticks(*self.y):
            y = self.down(value)
            text = escape(number(value))
            ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            parts.append(f'<line class="rule" {ends}/>')
            parts.append(f'<text class="value" x="{LEFT - 8}" y="{y + 4:.1f}">{text}</text>')
        for value, mark in marks.items():
            place = f'x="{self.across(value):.1f}" y="{HEIGHT - BOTTOM + 18}"'
            parts.append(f"<text {place}>{escape(mark)}</text>")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        below = f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}"'
        beside = f'transform="translate(12 {middle}) rotate(-90)"'
        parts.append(f'<text class="axis" {below}>{escape(x_name)}</text>')
        parts.append(f'<text class="axis" {beside}>{escape(y_name)}</text>')
        return "".join(parts)


def _svg(inside: str, label: str) -> str:
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    return f'{head} aria-label="{escape(label)}">{inside}</svg>'


def curves(
    series: Mapping[str, Points], *, y: str, best: float | None = None, zero: bool = False
) -> str:
    """A line for each name against the step, with a broken one at the best; `zero` on the axis."""
    every = [point for points in series.values() for point in points]
    lowest, highest = min(y for _, y in every), max(y for _, y in every)
    low = 0.0 if zero and lowest >= 0 else lowest
    across = min(x for x, _ in every), max(x for x, _ in every)
    frame = _Frame(across, (low, highest if highest > low else low + 1))
    inside = frame.grid("step", y, {value: number(value) for value in ticks(*frame.x)})
    if best is not None:
        x = frame.across(best)
        ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
        inside += f'<line class="best" {ends}/>'
    keys = ""
    for at, (name, points) in enumerate(series.items()):
        places = [(f"{frame.across(x):.1f}", f"{frame.down(y):.1f}") for x, y in points]
        way = " ".join(",".join(place) for place in places)
        inside += f'<polyline class="curve k{at}" points="{way}"/>'
        if len(points) <= 60:  # more dots would hide the line
            dots = (f'<circle class="k{at}" cx="{x}" cy="{y}" r="3"/>' for x, y in places)
            inside += "".join(dots)
        keys += f'<li><span class="key k{at}"></span>{escape(name)}</li>'
    keys += '<li><span class="key best"></span>kept</li>' if best is not None else ""
    label = f"{y} against the step: {', '.join(series)}"
    return f'{_svg(inside, label)}<ul class="keys">{keys}</ul>'


def thinned(records: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """At most about `MOST` records, the last one included."""
    step = -(-len(records) // MOST)
    return [*records[:-1:step], records[-1]]


def learning_curves(history: History) -> str:
    """The loss of the training and the validation set, and the metric beside them."""
    records = thinned(history.records)

    def points(name: str) -> Points:
        return [(r["step"], r[name]) for r in records if name in r and math.isfinite(r[name])]

    losses = {"training set": points("train_loss"), "validation set": points("loss")}
    charts = [("loss", {name: curve for name, curve in losses.items() if curve}, False)]
    if history.metric is not None:
        charts.append((history.metric, {"validation set": points(history.metric)}, True))
    figures = ""
    for name, series, zero in charts:
        if any(series.values()):
            curve = curves(series, y=name.replace("_", " "), best=history.best, zero=zero)
            figures += f"<figure>{curve}</figure>"
    return f'<div class="charts">{figures}</div>'


def length_bars(scores: ByLength) -> str:
    """A bar for each range of lengths, with its interval; one of few examples is hollow."""
    known = []
    for at, bucket in enumerate(scores.buckets):
        if bucket.value is not None and math.isfinite(bucket.value):
            known.append((at, bucket, bucket.value))
    between = [each.interval for _, each, _ in known]
    values = [value for _, _, value in known]
    highest = max(*values, *(each.high if each else 0.0 for each in between))
    lowest = min(0.0, *values, *(each.low if each else 0.0 for each in between))
    top = highest if highest > lowest else lowest + 1.0
    frame = _Frame((0.0, len(scores.buckets)), (lowest, top))
    names = {at + 0.5: bucket.name for at, bucket in enumerate(scores.buckets)}
    inside = frame.grid(scores.unit, scores.metric, names)
    for at, bucket, value in known:
        left, middle, right = (frame.across(at + share) for share in (0.18, 0.5, 0.82))
        y, ground = sorted((frame.down(value), frame.down(0.0)))
        few = " few" if bucket.count < FEW else ""
        size = f'width="{right - left:.1f}" height="{max(ground - y, 0.5):.1f}"'
        inside += f'<rect class="bar{few}" x="{left:.1f}" y="{y:.1f}" {size}/>'
        if bucket.interval is not None:
            low, high = frame.down(bucket.interval.low), frame.down(bucket.interval.high)
            ends = "".join(f"M{middle - 5:.1f},{y:.1f}h10" for y in (low, high))
            inside += f'<path class="whisker" d="M{middle:.1f},{low:.1f}V{high:.1f}{ends}"/>'
    label = f"{scores.metric} by {scores.unit}; the table below has the numbers"
    return f"<figure>{_svg(inside, label)}</figure>"
