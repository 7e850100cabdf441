"""A report of a run as one HTML file, which loads nothing and can be sent to somebody else."""

from collections.abc import Callable, Mapping
from html import escape

from sixjars.drawing.html.assets import live
from sixjars.drawing.html.pages import page
from sixjars.reports.charts import learning_curves, length_bars, thinned
from sixjars.reports.example_views import examples_html
from sixjars.reports.summary_map import map_html
from sixjars.reports.tables import (
    baselines_table,
    between,
    class_table,
    confusion_table,
    facts,
    history_table,
    length_table,
    scores_table,
    shown_number,
    table,
)
from sixjars.reports.values import Report
from sixjars.runs.explanation import Section, Weight


def report_page(report: Report) -> str:
    """The whole document."""
    links = ""
    sections = []
    for key, (name, html_of) in SECTIONS.items():
        links += f'<li><a href="#{key}">{escape(name)}</a></li>'
        heading = f'<h2 id="{key}-h">{name}</h2>'
        section = f'<section id="{key}" aria-labelledby="{key}-h">'
        sections.append(f"{section}{heading}{html_of(report)}</section>")
    lead = f'<p class="lead">{_lead(report)}</p>'
    contents = f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    style, script = live("reports", "report.css"), live("reports", "report.js")
    return page([lead, contents, *sections], title=report.title, style=style, script=script)


def _lead(report: Report) -> str:
    """The first score in one sentence; after a cross-validation that of the rows held out."""
    bad = f" ({report.skipped:,} bad rows skipped)" if report.skipped else ""
    score, interval = report.scores[0]
    around = "" if interval is None else f" (95 % interval {between(interval)})"
    where = f" on {report.count:,} examples of {escape(report.where)}{bad}"
    if report.held_out:
        score, around = report.held_out[0], " in cross-validation"
        where += ", each held out by one model; the scores below are of the model that learned them"
    return (
        f"{escape(report.explanation.title)}: <b>{escape(score.name)} {shown_number(score.value)}"
        f"</b>{around}{where}; {report.explanation.count:,} trained parameters."
    )


def _jars(report: Report) -> str:
    """The six sections of the recipe; the model has three parts."""
    grouped: dict[str, list[Section]] = {}
    for section in report.explanation.sections:
        grouped.setdefault(section.name.partition(":")[0], []).append(section)
    cards = ""
    for name, parts in grouped.items():
        wide = " wide" if len(parts) > 1 else ""
        inside = f"<h3>{escape(name)}</h3>{''.join(map(_part, parts))}"
        cards += f'<div class="jar{wide}">{inside}</div>'
    return f'<div class="jars">{cards}</div>'


def _part(section: Section) -> str:
    """The lines of a section; its parameters are listed where somebody opens the list."""
    name = section.name.partition(": ")[2]
    heading = f"<h4>{escape(name)}</h4>" if name else ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in section.lines)
    weights = ""
    if section.weights:
        count = sum(weight.count for weight in section.weights)
        head = ["parameter", "letter", "shape", "count"]
        rows = table(head, map(_weight, section.weights), "Parameters.")
        weights = f"<details><summary>{count:,} parameters</summary>{rows}</details>"
    return f"{heading}<ul>{lines}</ul>{weights}"


def _weight(weight: Weight) -> tuple[str, ...]:
    fixed = "" if weight.trainable else " (not trained)"
    shape = " × ".join(map(str, weight.shape))
    return weight.name, weight.letter, shape, f"{weight.count:,}{fixed}"


def _learning(report: Report) -> str:
    if report.history is None:
        return "<p>This run has no log of validations.</p>"
    history = report.history
    records = thinned(history.records)
    step, metric = f"{history.best:,.0f}", escape(history.chosen_by)
    drawn = "<p>There was one validation, which makes no curve.</p>"
    if len(records) > 1:
        drawn = learning_curves(history)
    rows = history_table(history, records)
    numbers = f"<details><summary>The numbers as a table</summary>{rows}</details>"
    return f"<p>Kept: the weights of step {step}, the best by {metric}.</p>{drawn}{numbers}"


def _scores(report: Report) -> str:
    html = f"<p>{escape(' '.join(report.notes))}</p>" if report.notes else ""
    html += scores_table(report.scores)
    if report.baselines:
        scores = report.held_out or [score for score, _ in report.scores]
        html += baselines_table(report.baselines, scores)
    html += f"<p>{escape(report.beside)}</p>" if report.beside else ""
    if report.left_out:
        names = escape(", ".join(report.left_out))
        html += f'<p class="note">Left out, for this data has no annotations: {names}.</p>'
    if report.classes:
        html += class_table(report.classes)
    return html + (confusion_table(report.confusion) if report.confusion is not None else "")


def _lengths(report: Report) -> str:
    if report.by_length is None:
        reason = "All inputs have the same length, or there is no input"
        return f"<p>{reason}, so there is nothing to compare.</p>"
    return length_bars(report.by_length) + length_table(report.by_length)


def _map(report: Report) -> str:
    if report.summary_map is None:
        return "<p>All examples have the same summary vector, so there is no map.</p>"
    return map_html(report.summary_map, of=report.count, ranked_by=report.ranked_by)


def _examples(report: Report) -> str:
    text = (
        f"{len(report.shown):,} of {report.count:,} examples, ranked by "
        f"{escape(report.ranked_by)}; of equal ones, that whose reference is more probable comes "
        "first."
    )
    if not report.has_attention:
        text += " This model has no attention, so there are no weights to show."
    return f"<p>{text}</p>{examples_html(report.shown, ranked_by=report.ranked_by)}"


def _unknown(report: Report) -> str:
    if report.unknown is None:
        return "<p>The inputs have no words.</p>"
    share = f"{100 * report.unknown:.3g} % of the tokens of the inputs"
    text = f"<p>{share} are not in the vocabulary (&lt;unk&gt;).</p>"
    if not report.unknown_words:
        return text
    rows = [(word, f"{count:,}") for word, count in report.unknown_words]
    return text + table(["word", "times"], rows, "The most frequent words with an unknown token.")


def _cost(report: Report) -> str:
    return facts(report.cost)


def _repeat(report: Report) -> str:
    recipe = f"<pre><code>{escape(report.recipe)}</code></pre>"
    return (
        "<p>Save the recipe below as <code>recipe.yaml</code>, and have its data where it says.</p>"
        "<pre><code>sixjars train recipe.yaml --out runs/again\n"
        f"{escape(report.command)}</code></pre>{facts(report.versions)}"
        "<p>The checksums tell whether your data is the same: they change with any row. They are "
        "of the rows as they are read, not of the files; <code>sixjars train --resume</code> and "
        "<code>sixjars evaluate</code> compare them too.</p>"
        f"<details><summary>The recipe</summary>{recipe}</details>"
    )


SECTIONS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "jars": ("The six jars", _jars),
    "learning": ("Learning curves", _learning),
    "scores": ("Scores", _scores),
    "lengths": ("Score by length", _lengths),
    "map": ("Map of summary vectors", _map),
    "examples": ("Examples", _examples),
    "unknown": ("Unknown words", _unknown),
    "cost": ("Training cost", _cost),
    "repeat": ("Repeat it", _repeat),
}
"""Each section by its id in the page, in this order."""
