"""The tables of a report: scores, classes, the confusion matrix, facts. All text is escaped."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from sixjars.drawing.page import shortened
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.bootstrap import RESAMPLES
from sixjars.evaluation.by_length import FEW
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.reports.values import ByLength, History

MOST_LABELS = 25
"""Rows and columns of a confusion matrix, and rows of the table of classes."""


def shown_number(value: float) -> str:
    """A score as a person reads it; one may be infinite, as a perplexity.

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


def shade(share: float) -> str:
    """The attribute of something that is as dark as its share of the largest."""
    return f'style="--w:{share:.3f}"'


def deep(share: float) -> str:
    """The classes of letters on a strong shade."""
    if share > 0.78:
        return " deep deepest"
    return " deep" if share > 0.58 else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table with a caption; the first cell of a row is its name. Cells are text."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = ""
    for first, *others in rows:
        body += f'<tr><th scope="row">{escape(first)}</th>'
        for name, cell in zip(head[1:], others, strict=True):
            body += f"<td{_kind(name)}>{escape(cell)}</td>"
        body += "</tr>"
    return (
        f'<div class="scroll"><table class="data"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _kind(name: str) -> str:
    """The class of the cells of a column that is set in small letters."""
    return ' class="signature"' if name == "signature" else ""


def facts(values: Mapping[str, str]) -> str:
    """A list of names with their values."""
    pairs = values.items()
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def between(interval: Interval | None) -> str:
    """An interval as text."""
    if interval is None:
        return "none"
    return f"{shown_number(interval.low)} to {shown_number(interval.high)}"


def scores_table(scores: Sequence[tuple[Score, Interval | None]]) -> str:
    """A row for each metric."""
    rows = []
    for score, interval in scores:
        value, count = shown_number(score.value), f"{score.count:,}"
        row = score.name, value, between(interval), score.better, count, score.signature
        rows.append(row)
    has_all = all(interval is not None for _, interval in scores)
    caption = (
        f"Scores. 95 % intervals: as many examples drawn with replacement, {RESAMPLES:,} times "
        f"(bootstrap){'' if has_all else '; none where a metric has no value for a part of them'}. "
        "A signature names what a score depends on; scores compare where it is the same."
    )
    head = ["metric", "value", "95 % interval", "better", "examples", "signature"]
    return table(head, rows, caption)


def baselines_table(baselines: Sequence[Baseline], scores: Sequence[Score]) -> str:
    """A row for the model, and one for each baseline."""
    metrics, values = [], []
    for score in scores:
        if any(baseline.value(score.name) is not None for baseline in baselines):
            metrics.append(score.name)
            values.append(shown_number(score.value))
    rows = [["this model", *values, ""]]
    for baseline in baselines:
        found = map(baseline.value, metrics)
        cells = ("–" if value is None else shown_number(value) for value in found)
        rows.append([baseline.name, *cells, f"{baseline.seconds:.1f}"])
    caption = "Without a network: what costs nothing, learned from the training set"
    return table(["", *metrics, "seconds"], rows, f"{caption}, on the same examples.")


def length_table(scores: ByLength) -> str:
    """The numbers of the bars."""
    rows = []
    for bucket in scores.buckets:
        count = f"{bucket.count:,}" + (" (few)" if 0 < bucket.count < FEW else "")
        value = "–" if bucket.value is None else shown_number(bucket.value)
        rows.append((bucket.name, count, value, between(bucket.interval)))
    few = f" A score of fewer than {FEW} examples says little; its bar is hollow."
    head = [scores.unit, "examples", scores.metric, "95 % interval"]
    return table(head, rows, f"{scores.metric} by length.{few}")


def history_table(history: History, records: Sequence[Mapping[str, float]]) -> str:
    """The numbers of the curves."""
    names = list(dict.fromkeys(name for record in records for name in record if name != "step"))
    rows = []
    for record in records:
        step = f"{record['step']:,.0f}" + (" (kept)" if record["step"] == history.best else "")
        rows.append([step, *(f"{record[name]:.4g}" if name in record else "" for name in names)])
    head = ["step", *(name.replace("_", " ") for name in names)]
    return table(head, rows, "Validations.")


def class_table(classes: Sequence[ClassRow]) -> str:
    """Precision and recall of the most frequent classes."""
    rows = []
    for row in classes[:MOST_LABELS]:
        shares = [f"{share:.3f}" for share in (row.precision, row.recall, row.f1)]
        rows.append([cut(row.label, 60), f"{row.count:,}", *shares])
    more = f" The {MOST_LABELS} most frequent of {len(classes)}."
    more = more if len(classes) > MOST_LABELS else ""
    return table(["class", "examples", "precision", "recall", "F1"], rows, f"Classes.{more}")


def confusion_table(matrix: Confusion) -> str:
    """Counts in cells as dark as their share of the row."""
    labels = matrix.labels[:MOST_LABELS]
    names = [escape(cut(label, 40)) for label in labels]
    head = "".join(f'<th scope="col"><span class="word">{name}</span></th>' for name in names)
    rows = []
    for name, label, counts in zip(names, matrix.labels, matrix.counts, strict=False):
        every = sum(counts) or 1
        cells = ""
        for other, count in zip(labels, counts, strict=False):
            share = count / every
            title = escape(f"{count} of {every} {label} predicted as {other}")
            kind = f'class="{deep(share).strip()}" {shade(share)}'
            cells += f'<td {kind} title="{title}">{count or ""}</td>'
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    caption = "Confusion matrix: a row for each true class, a column for each predicted one."
    if len(labels) < len(matrix.labels):
        caption += f" The {len(labels)} most frequent of {len(matrix.labels)} classes."
    return (
        f'<div class="scroll"><table class="heat confusion"><caption>{caption}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
