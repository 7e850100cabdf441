"""A report of a run as one HTML file, which loads nothing and can be sent to somebody else.

The words of a report are in `templates/report.html`; here are the values that it shows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sixjars.drawing.html.assets import static
from sixjars.drawing.html.pages import page, render
from sixjars.drawing.html.views import fragment, photo_uri
from sixjars.drawing.view import View, cut
from sixjars.drawing.view_names import fitting_views, usual_view
from sixjars.reports import charts, tables
from sixjars.reports.summary_map import map_values
from sixjars.reports.tables import between, shown_number
from sixjars.reports.values import Report, ShownExample
from sixjars.runs.explanation.explain import ExplainedSection

SECTIONS: Mapping[str, str] = {
    "jars": "The six jars",
    "learning": "Learning curves",
    "scores": "Scores",
    "lengths": "Score by length",
    "map": "Map of summary vectors",
    "examples": "Examples",
    "unknown": "Unknown words",
    "cost": "Training cost",
    "repeat": "Repeat it",
}
"""The heading of each section by its id in the page, in this order."""
HEADINGS = {"best": "Best", "median": "Median", "worst": "Worst"}
"""The heading of each group of examples."""
LARGEST = 280_000
"""Bytes of the HTML of one example: a mail attachment must not grow with its longest text."""
LONGEST = 1_200
"""Characters of a text."""
WIDEST = 24
"""Positions of a heat map; of a longer text the words are shaded."""


def report_page(report: Report) -> str:
    """The whole document."""
    first, interval = report.own_scores[0], report.scores[0][1]
    known = "" if interval is None else between(interval)
    values: dict[str, Any] = {
        "report": report,
        "sections": SECTIONS,
        "first": {"name": first.name, "value": shown_number(first.value), "interval": known},
        "jars": _jars(report.explanation.sections),
        "examples": _examples(report.shown, report.ranked_by),
        "map": None,
        "scores": tables.scores_table(report.scores),
        "baselines": tables.baselines_table(report.baselines, report.own_scores),
        "classes": tables.class_table(report.classes),
        "unknown_words": tables.unknown_table(report.unknown_words),
    }
    if report.confusion is not None:
        values["confusion"] = tables.confusion_matrix(report.confusion)
    if report.history is not None:
        records = charts.thinned(report.history.records)
        table = tables.history_table(report.history, records)
        values["learning"] = {"records": records, "table": table}
        if len(records) > 1:
            values["learning"]["charts"] = charts.learning_curves(report.history)
    if report.by_length is not None:
        chart, table = charts.length_bars(report.by_length), tables.length_table(report.by_length)
        values["lengths"] = {"chart": chart, "table": table}
    if report.summary_map is not None:
        values["map"] = map_values(report.summary_map, report.ranked_by)
    body = render("report.html", values, package="sixjars.reports")
    style, script = static("reports", "report.css"), static("reports", "report.js")
    return page([body], title=report.title, style=style, script=script)


def _jars(sections: Sequence[ExplainedSection]) -> dict[str, list[dict[str, Any]]]:
    """The six sections of the recipe; the model has three parts."""
    jars: dict[str, list[dict[str, Any]]] = {}
    for section in sections:
        jar, _, name = section.name.partition(": ")
        count = sum(weight.count for weight in section.weights)
        parameters = tables.parameter_table(section.weights)
        part = {"name": name, "lines": section.lines, "count": count, "parameters": parameters}
        jars.setdefault(jar, []).append(part)
    return jars


def _examples(shown: Sequence[ShownExample], ranked_by: str) -> dict[str, list[dict[str, Any]]]:
    """The examples of each group that has some, by its heading."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for group, heading in HEADINGS.items():
        for example in shown:
            if example.group == group:
                examples = groups.setdefault(heading, [])
                examples.append(_example(example, ranked_by, f"{group}-{len(examples) + 1}"))
    return groups


def _example(shown: ShownExample, ranked_by: str, key: str) -> dict[str, Any]:
    """The texts of an example, and the HTML of its attention, if that is not too large."""
    example = shown.example
    facts = [] if example.score is None else [f"{ranked_by}: {shown_number(example.score)}"]
    if shown.times > 1:
        what = "input" if example.given else "text"
        facts.append(f"{shown.times:,} examples have this {what}")
    values = {
        "key": key,
        "facts": facts,
        "given": cut(example.given, LONGEST),
        "output": None if example.output is None else cut(example.output, LONGEST),
        "references": [cut(text, LONGEST) for text in example.references],
        "images": [photo_uri(image, 240) for image in shown.images],
    }
    return values | _attention(shown.view, f"{key}-view")


def _attention(view: View | None, key: str) -> dict[str, Any]:
    """The HTML of all outputs, of the best one, or of none, by its size."""
    if view is None:
        return {"view": "", "has_best_alone": False, "too_large": None}
    name = usual_view(view)
    # of a heat map wider than the page one sees a part
    is_wide = name == "heatmap" and len(view.names) > WIDEST
    name = "document" if is_wide and "document" in fitting_views(view) else name
    for part in (view, view.alone(0)):
        html = fragment(part, name, key=key)
        if len(html.encode()) <= LARGEST:
            return {"view": html, "has_best_alone": part is not view, "too_large": None}
    size = len(view.outputs[0].weights), len(view.names)
    return {"view": "", "has_best_alone": False, "too_large": size}
