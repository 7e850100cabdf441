"""Charts as SVG inside of a page: curves and bars in its colours, so that they are light or dark with it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import final

from sixjars.evaluation.by_length import FEW
from sixjars.reports.values import ByLength, History

WIDTH, HEIGHT = 520, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
"""Margins, for numbers and names of the axes."""
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
    """Where values lie on the drawing."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def across(self, value: float) -> float:
        low, high = self.x
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / ((high - low) or 1.0)

    def down(self, value: float) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1.0)

    def grid(self, x_name: str, y_name: str, marks: Mapping[float, str]) -> str:
        """Lines for the values, and names of both axes; `marks` are written below."""
        made = []
        for value in ticks(*self.y):
            y = self.down(value)
            made.append(
                f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            made.append(
                f'<text class="value" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(number(value))}</text>'
            )
        for value, text in marks.items():
            made.append(
                f'<text x="{self.across(value):.1f}" y="{HEIGHT - BOTTOM + 18}">{escape(text)}</text>'
            )
        middle = (TOP + HEIGHT - BOTTOM) / 2
        made.append(
            f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}">{escape(x_name)}</text>'
        )
        made.append(
            f'<text class="axis" transform="translate(12 {middle}) rotate(-90)">{escape(y_name)}</text>'
        )
        return "".join(made)


def _svg(inside: str, label: str) -> str:
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{inside}</svg>'


def curves(
    series: Mapping[str, Points], *, y: str, best: float | None = None, zero: bool = False
) -> str:
    """One line for each name against the step; a broken line at the best one. With `zero` the axis begins there."""
    every = [point for points in series.values() for point in points]
    lowest, highest = min(y for _, y in every), max(y for _, y in every)
    low = 0.0 if zero and lowest >= 0 else lowest
    frame = _Frame(
        (min(x for x, _ in every), max(x for x, _ in every)),
        (low, highest if highest > low else low + 1),
    )
    inside = frame.grid("step", y, {value: number(value) for value in ticks(*frame.x)})
    if best is not None:
        x = frame.across(best)
        inside += (
            f'<line class="best" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
    for at, points in enumerate(series.values()):
        way = " ".join(f"{frame.across(x):.1f},{frame.down(y):.1f}" for x, y in points)
        inside += f'<polyline class="curve k{at}" points="{way}"/>'
        if len(points) <= 60:
            dots = (
                f'<circle class="k{at}" cx="{frame.across(x):.1f}" cy="{frame.down(y):.1f}" r="3"/>'
                for x, y in points
            )
            inside += "".join(dots)
    keys = "".join(
        f'<li><span class="key k{at}"></span>{escape(name)}</li>' for at, name in enumerate(series)
    )
    keys += '<li><span class="key best"></span>kept</li>' if best is not None else ""
    label = f"{y} against the step: {', '.join(series)}"
    return f'{_svg(inside, label)}<ul class="keys">{keys}</ul>'


def thinned(records: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Not too many for a drawing; the last one is kept."""
    step = -(-len(records) // MOST)
    return [*records[:-1:step], records[-1]]


def learning_curves(history: History) -> str:
    """The loss of the training and the validation set, and the metric beside them."""
    records = thinned(history.records)

    def points(name: str) -> Points:
        return [(r["step"], r[name]) for r in records if name in r and math.isfinite(r[name])]

    losses = {"training set": points("train_loss"), "validation set": points("loss")}
    charts = [("loss", {name: some for name, some in losses.items() if some}, False)]
    if history.metric is not None:
        charts.append((history.metric, {"validation set": points(history.metric)}, True))
    made = "".join(
        f"<figure>{curves(series, y=name.replace('_', ' '), best=history.best, zero=zero)}</figure>"
        for name, series, zero in charts
        if any(series.values())
    )
    return f'<div class="charts">{made}</div>'


def length_bars(found: ByLength) -> str:
    """A bar for each range of lengths, with its interval; one of few examples is hollow."""
    known = [
        (b, b.interval) for b in found.buckets if b.value is not None and math.isfinite(b.value)
    ]
    highest = max(max(b.value or 0.0, i.high if i else 0.0) for b, i in known)
    lowest = min(0.0, *(min(b.value or 0.0, i.low if i else 0.0) for b, i in known))
    frame = _Frame(
        (0.0, len(found.buckets)), (lowest, highest if highest > lowest else lowest + 1.0)
    )
    names = {at + 0.5: b.name for at, b in enumerate(found.buckets)}
    inside = frame.grid(found.unit, found.metric, names)
    for at, bucket in enumerate(found.buckets):
        if bucket.value is None or not math.isfinite(bucket.value):
            continue
        left, right, middle = (
            frame.across(at + 0.18),
            frame.across(at + 0.82),
            frame.across(at + 0.5),
        )
        top, ground = sorted((frame.down(bucket.value), frame.down(0.0)))
        few = " few" if bucket.count < FEW else ""
        inside += (
            f'<rect class="bar{few}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{max(ground - top, 0.5):.1f}"/>'
        )
        if bucket.interval is not None:
            low, high = frame.down(bucket.interval.low), frame.down(bucket.interval.high)
            ends = "".join(f"M{middle - 5:.1f},{y:.1f}h10" for y in (low, high))
            inside += f'<path class="whisker" d="M{middle:.1f},{low:.1f}V{high:.1f}{ends}"/>'
    return f"<figure>{_svg(inside, f'{found.metric} by {found.unit}; the table below has the numbers')}</figure>"
