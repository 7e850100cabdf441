"""The tables of a report: scores, classes, the confusion matrix, lists of facts. All text is escaped."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from sixjars.drawing.html_parts import deep, shade
from sixjars.drawing.page import shortened
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.bootstrap import RESAMPLES
from sixjars.evaluation.by_length import FEW
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.reports.values import ByLength, History

MOST_LABELS = 25
"""Rows and columns of a confusion matrix, and rows of the table of classes."""


def shown_number(value: float) -> str:
    """A score as it is read; one may be infinite, as a perplexity.

    >>> shown_number(0.71828), shown_number(34.1234), shown_number(12.0), shown_number(1234567.0)
    ('0.718', '34.12', '12', '1,234,567')
    """
    if not math.isfinite(value) or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:,.2f}"


def cut(text: str, most: int) -> str:
    """A text on one line, with at most so many characters.

    >>> cut("a  long text", 8)
    'a long …'
    """
    return shortened(" ".join(text.split()), most)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table with a caption; the first cell of a row is its name. Cells are text."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        f"{''.join(f'<td{_kind(name)}>{escape(cell)}</td>' for name, cell in zip(head[1:], others, strict=True))}</tr>"
        for first, *others in rows
    )
    return (
        f'<div class="scroll"><table class="data"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _kind(name: str) -> str:
    """The class of the cells of a column that is set in small letters."""
    return ' class="signature"' if name == "signature" else ""


def facts(values: Mapping[str, str]) -> str:
    """Names and what they have."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in values.items()
    )
    return f'<dl class="facts">{rows}</dl>'


def between(interval: Interval | None) -> str:
    """An interval as text."""
    return (
        "none"
        if interval is None
        else f"{shown_number(interval.low)} to {shown_number(interval.high)}"
    )


def scores_table(scores: Sequence[tuple[Score, Interval | None]]) -> str:
    """A row for each metric."""
    rows = [
        (
            one.name,
            shown_number(one.value),
            between(interval),
            one.better,
            f"{one.count:,}",
            one.signature,
        )
        for one, interval in scores
    ]
    how = (
        f"95 % intervals: as many examples drawn with replacement, {RESAMPLES:,} times (bootstrap)"
    )
    how += (
        "; none where a metric has no value for a part of them."
        if any(one is None for _, one in scores)
        else "."
    )
    how += " A signature names what a score depends on; scores compare where it is the same."
    return table(
        ["metric", "value", "95 % interval", "better", "examples", "signature"],
        rows,
        f"Scores. {how}",
    )


def baselines_table(
    baselines: Sequence[Baseline], scores: Sequence[tuple[Score, Interval | None]]
) -> str:
    """A row for the model, and one for each baseline."""
    metrics = [
        score.name
        for score, _ in scores
        if any(one.value(score.name) is not None for one in baselines)
    ]
    own = {score.name: score.value for score, _ in scores}
    rows = [["this model", *(shown_number(own[name]) for name in metrics), ""]]
    for one in baselines:
        values = map(one.value, metrics)
        cells = ("–" if value is None else shown_number(value) for value in values)
        rows.append([one.name, *cells, f"{one.seconds:.1f}"])
    what = "Without a network: what costs nothing, learned from the training set, on the same examples."
    return table(["", *metrics, "seconds"], rows, what)


def length_table(found: ByLength) -> str:
    """The numbers of the bars."""
    rows = [
        (
            one.name,
            f"{one.count:,}" + (" (few)" if 0 < one.count < FEW else ""),
            "–" if one.value is None else shown_number(one.value),
            between(one.interval),
        )
        for one in found.buckets
    ]
    few = f" A score of fewer than {FEW} examples says little; its bar is hollow."
    return table(
        [found.unit, "examples", found.metric, "95 % interval"],
        rows,
        f"{found.metric} by length.{few}",
    )


def history_table(history: History, records: Sequence[Mapping[str, float]]) -> str:
    """The numbers of the curves."""
    names = list(dict.fromkeys(name for record in records for name in record if name != "step"))
    rows = (
        (
            f"{record['step']:,.0f}" + (" (kept)" if record["step"] == history.best else ""),
            *(f"{record[name]:.4g}" if name in record else "" for name in names),
        )
        for record in records
    )
    return table(["step", *(name.replace("_", " ") for name in names)], rows, "Validations.")


def class_table(classes: Sequence[ClassRow]) -> str:
    """Precision and recall of the most frequent classes."""
    rows = [
        (
            cut(row.label, 60),
            f"{row.count:,}",
            f"{row.precision:.3f}",
            f"{row.recall:.3f}",
            f"{row.f1:.3f}",
        )
        for row in classes[:MOST_LABELS]
    ]
    more = (
        f" The {MOST_LABELS} most frequent of {len(classes)}." if len(classes) > MOST_LABELS else ""
    )
    return table(["class", "examples", "precision", "recall", "F1"], rows, f"Classes.{more}")


def confusion_table(found: Confusion) -> str:
    """Counts in cells as dark as their share of the row."""
    count = min(len(found.labels), MOST_LABELS)
    names = [cut(label, 40) for label in found.labels[:count]]
    head = "".join(
        f'<th scope="col"><span class="word">{escape(name)}</span></th>' for name in names
    )
    rows = []
    for name, label, counts in zip(names, found.labels, found.counts, strict=False):
        every = sum(counts) or 1
        cells = "".join(
            f'<td class="{deep(own / every).strip()}" {shade(own / every)} '
            f'title="{escape(f"{own} of {every} {label} predicted as {other}")}">{own or ""}</td>'
            for other, own in zip(found.labels[:count], counts, strict=False)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    more = (
        f" The {count} most frequent of {len(found.labels)} classes."
        if count < len(found.labels)
        else ""
    )
    caption = f"Confusion matrix: a row for each true class, a column for each predicted one.{more}"
    return (
        f'<div class="scroll"><table class="heat confusion"><caption>{caption}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
