"""The results as one table in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import final

from .cases import Case
from .floor import least_bytes

OURS, FLOOR = "ours", "floor"


@final
@dataclass
class Row:
    """The milliseconds of every contestant in one case, round by round."""

    case: Case
    times: dict[str, list[float]] = field(default_factory=dict)

    def ratios(self, name: str, to: str = OURS) -> list[float]:
        """How many times as long as another one it took, in each round: what else the machine did slows both."""
        return [one / other for one, other in zip(self.times[name], self.times[to], strict=True)]


def number(value: float) -> str:
    """Three digits that count.

    >>> [number(value) for value in (0.1234, 12.34, 1234.5)]
    ['0.123', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """The median, and the range.

    >>> spread([3.0, 1.0, 2.0])
    '2 (1 to 3)'
    """
    return f"{number(median(values))} ({number(min(values))} to {number(max(values))})"


def lines(table: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, its first row the names of the columns."""
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in table
    ]
    return [rows[0], "| " + " | ".join("-" * width for width in widths) + " |", *rows[1:]]


def table(rows: Sequence[Row], others: Sequence[str], bandwidth: float) -> list[str]:
    """A line for each case: ours, each other one and how many times as long it takes, and the floor."""
    head = ["measurement", "size", "batch×length", "precision", "ours, ms", "tokens/s"]
    for name in others:
        head += [f"{name}, ms", f"{name} / ours"]
    head += ["products, ms", "ours / products", "copy, ms"]
    found = [head]
    for row in rows:
        case, own = row.case, row.times[OURS]
        shape = f"{case.batch}×{case.length}" + (
            "" if case.measurement == "training" else f" to {case.tokens}"
        )
        cells = [
            named(case),
            case.size,
            shape,
            case.precision,
            spread(own),
            number(case.outputs / median(own) * 1000),
        ]
        for name in others:
            there = name in row.times
            cells += (
                [spread(row.times[name]), f"**{spread(row.ratios(name))}**"] if there else ["", ""]
            )
        if FLOOR in row.times:
            against = [1 / ratio for ratio in row.ratios(FLOOR)]
            copied = number(least_bytes(case) / bandwidth * 1000)
            cells += [spread(row.times[FLOOR]), number(median(against)), copied]
        else:
            cells += ["", "", ""]
        found.append(cells)
    return lines(found)


def named(case: Case) -> str:
    """The measurement, and the bridge where it is not the usual one."""
    return case.measurement + ("" if case.bridge == "additive" else f", {case.bridge}")


def best(rows: Sequence[Row], others: Sequence[str]) -> list[str]:
    """For each measurement, ours at its best precision against each other one at its best."""
    found = [
        ["measurement", "size", "batch×length", "ours", *(f"{name}, ratio" for name in others)]
    ]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.case.bridge == "additive":
            shape = f"{row.case.batch}×{row.case.length}"
            groups.setdefault((row.case.measurement, row.case.size, shape), []).append(row)
    for group, few in groups.items():
        medians = {name: fastest(few, name) for name in (OURS, *others)}
        own, precision = medians[OURS]
        against = [
            f"{value / own:.2f} ({value:.1f} ms, {how})" if how else ""
            for value, how in _of(medians, others)
        ]
        found.append([*group, f"{own:.1f} ms, {precision}", *against])
    return lines(found)


def _of(medians: Mapping[str, tuple[float, str]], names: Sequence[str]) -> list[tuple[float, str]]:
    return [medians[name] for name in names]


def fastest(rows: Sequence[Row], name: str) -> tuple[float, str]:
    """The least median of a contestant, and its precision; an empty one where it was not measured."""
    known = [(median(row.times[name]), row.case.precision) for row in rows if name in row.times]
    return min(known, default=(float("inf"), ""))
