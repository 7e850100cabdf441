"""The tables of a report, as texts: scores, classes, the confusion matrix, parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sixjars.drawing.view import cut
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.bootstrap import RESAMPLES
from sixjars.evaluation.by_length import FEW
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.reports.values import ByLength, History, SummaryScatter
from sixjars.runs.explanation.explain import ExplainedWeight

LONGEST = 160
"""Characters of a text of the map."""
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


@final
@dataclass(frozen=True)
class TextTable:
    """A table of texts with a caption; the first cell of a row is its name."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str


def between(interval: Interval | None) -> str:
    """An interval as text."""
    if interval is None:
        return "none"
    return f"{shown_number(interval.low)} to {shown_number(interval.high)}"


def scores_table(scores: Sequence[tuple[Score, Interval | None]]) -> TextTable:
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
    return TextTable(head, rows, caption)


def baselines_table(baselines: Sequence[Baseline], scores: Sequence[Score]) -> TextTable:
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
    return TextTable(["", *metrics, "seconds"], rows, f"{caption}, on the same examples.")


def length_table(scores: ByLength) -> TextTable:
    """The numbers of the bars."""
    rows = []
    for bucket in scores.buckets:
        count = f"{bucket.count:,}" + (" (few)" if 0 < bucket.count < FEW else "")
        value = "–" if bucket.value is None else shown_number(bucket.value)
        rows.append((bucket.name, count, value, between(bucket.interval)))
    few = f" A score of fewer than {FEW} examples says little; its bar is hollow."
    head = [scores.unit, "examples", scores.metric, "95 % interval"]
    return TextTable(head, rows, f"{scores.metric} by length.{few}")


def history_table(history: History, records: Sequence[Mapping[str, float]]) -> TextTable:
    """The numbers of the curves."""
    names = list(dict.fromkeys(name for record in records for name in record if name != "step"))
    rows = []
    for record in records:
        step = f"{record['step']:,.0f}" + (" (kept)" if record["step"] == history.best else "")
        rows.append([step, *(f"{record[name]:.4g}" if name in record else "" for name in names)])
    head = ["step", *(name.replace("_", " ") for name in names)]
    return TextTable(head, rows, "Validations.")


def class_table(classes: Sequence[ClassRow]) -> TextTable:
    """Precision and recall of the most frequent classes."""
    rows = []
    for row in classes[:MOST_LABELS]:
        shares = [f"{share:.3f}" for share in (row.precision, row.recall, row.f1)]
        rows.append([cut(row.label, 60), f"{row.count:,}", *shares])
    more = f" The {MOST_LABELS} most frequent of {len(classes)}."
    more = more if len(classes) > MOST_LABELS else ""
    return TextTable(["class", "examples", "precision", "recall", "F1"], rows, f"Classes.{more}")


def confusion_matrix(matrix: Confusion) -> dict[str, Any]:
    """The counts of the most frequent classes, each with its share of the row."""
    labels = matrix.labels[:MOST_LABELS]
    names = [cut(label, 40) for label in labels]
    rows = []
    for name, label, counts in zip(names, matrix.labels, matrix.counts, strict=False):
        every = sum(counts) or 1
        cells = []
        for other, count in zip(labels, counts, strict=False):
            title = f"{count} of {every} {label} predicted as {other}"
            cells.append({"count": count, "share": count / every, "title": title})
        rows.append((name, cells))
    caption = "Confusion matrix: a row for each true class, a column for each predicted one."
    if len(labels) < len(matrix.labels):
        caption += f" The {len(labels)} most frequent of {len(matrix.labels)} classes."
    return {"caption": caption, "names": names, "rows": rows}


def map_table(summary: SummaryScatter, ranked_by: str) -> TextTable:
    """A row for each point of the map, which the script reads too."""
    rows = []
    pairs = zip(summary.examples, summary.neighbours, strict=True)
    for at, (example, neighbours) in enumerate(pairs, start=1):
        score = "" if example.score is None else shown_number(example.score)
        near = ", ".join(f"{other + 1} ({alike:.2f})" for other, alike in neighbours)
        texts = (example.given, example.output or "", " | ".join(example.references))
        row = [str(at), *(cut(text, LONGEST) for text in texts), score, str(example.length), near]
        rows.append(row)
    nearest = "nearest, with cosine similarity"
    head = ["", "input", "output", "reference", ranked_by, "length", nearest]
    return TextTable(head, rows, f"Texts are cut after {LONGEST} characters.")


def parameter_table(weights: Sequence[ExplainedWeight]) -> TextTable:
    """The letter, the shape and the size of each parameter."""
    rows = []
    for weight in weights:
        fixed = "" if weight.trainable else " (not trained)"
        shape = " × ".join(map(str, weight.shape))
        rows.append([weight.name, weight.letter, shape, f"{weight.count:,}{fixed}"])
    return TextTable(["parameter", "letter", "shape", "count"], rows, "Parameters.")


def unknown_table(words: Sequence[tuple[str, int]]) -> TextTable:
    """How often the words that are not known come."""
    rows = [(word, f"{count:,}") for word, count in words]
    return TextTable(["word", "times"], rows, "The most frequent words with an unknown token.")
