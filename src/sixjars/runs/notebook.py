"""Runs, scores and attention as HTML, for notebooks; every text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from sixjars.evaluation.baselines.result import Baseline, grid_of
from sixjars.evaluation.metrics import Score

MOST = 200
"""Rows and columns of a heat map; a larger one would not be readable."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A plain table; numbers are rounded."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ("".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{caption}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def score_table(scores: Sequence[Score], title: str) -> str:
    """Name, value, direction and count of each score."""
    rows = [(score.name, score.value, score.better, score.count) for score in scores]
    return table(["metric", "value", "better", "examples"], rows, title)


def baseline_table(baselines: Sequence[Baseline], sentence: str) -> str:
    """Baselines, and a sentence about the best of them; nothing where there are none."""
    if not baselines:
        return ""
    text = f"<p>{escape(sentence)}</p>" if sentence else ""
    return table(*grid_of(baselines), "without a network, on the same examples") + text


def history_table(history: Sequence[Mapping[str, float]]) -> str:
    """A row for each validation."""
    names = list(dict.fromkeys(name for record in history for name in record))
    rows = [[record.get(name, "") for name in names] for record in history]
    return table(names, rows, "validation") if names else ""


def heat_map(
    source: Sequence[str], tokens: Sequence[str], weights: Sequence[Sequence[float]]
) -> str:
    """Attention as a table: a row for each output token, darker where the weight is larger."""
    if len(tokens) > MOST or len(source) > MOST:
        return f"<p>{len(tokens)} × {len(source)} weights; too many for a table, see weights.</p>"
    head = "".join(f"<th>{escape(token)}</th>" for token in source)
    rows = []
    for token, row in zip(tokens, weights, strict=True):
        cells = ""
        for weight in row:
            color = f"rgba(31,119,180,{min(max(weight, 0.0), 1.0):.3f})"
            cells += f'<td title="{weight:.3f}" style="background:{color}"></td>'
        rows.append(f"<tr><th>{escape(token)}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
