"""A report of a run as one HTML file, which loads nothing and can be sent to somebody else."""

from collections.abc import Callable, Mapping
from html import escape

from sixjars.drawing.html import page
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


def report_page(found: Report) -> str:
    """The whole document."""
    links = "".join(
        f'<li><a href="#{key}">{escape(name)}</a></li>' for key, (name, _) in SECTIONS.items()
    )
    parts = [
        f'<p class="lead">{_lead(found)}</p>',
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
    ]
    for key, (name, made) in SECTIONS.items():
        parts.append(
            f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{name}</h2>{made(found)}</section>'
        )
    return page(parts, title=found.title, live=("report",))


def _lead(found: Report) -> str:
    """The first score in one sentence."""
    bad = f" ({found.skipped:,} bad rows skipped)" if found.skipped else ""
    score, interval = found.scores[0]
    around = "" if interval is None else f" (95 % interval {between(interval)})"
    return (
        f"{escape(found.explanation.title)}: <b>{escape(score.name)} {shown_number(score.value)}</b>{around} on "
        f"{found.count:,} examples of {escape(found.where)}{bad}; {found.explanation.count:,} trained parameters."
    )


def _jars(found: Report) -> str:
    """The six sections of the recipe; the model has three parts."""
    grouped: dict[str, list[Section]] = {}
    for section in found.explanation.sections:
        grouped.setdefault(section.name.partition(":")[0], []).append(section)
    cards = "".join(
        f'<div class="jar{" wide" if len(parts) > 1 else ""}"><h3>{escape(name)}</h3>{"".join(map(_part, parts))}</div>'
        for name, parts in grouped.items()
    )
    return f'<div class="jars">{cards}</div>'


def _part(section: Section) -> str:
    """Its lines; parameters are listed where somebody opens the list."""
    own = section.name.partition(": ")[2]
    heading = f"<h4>{escape(own)}</h4>" if own else ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in section.lines)
    count = sum(weight.count for weight in section.weights)
    weights = (
        f"<details><summary>{count:,} parameters</summary>"
        f"{table(['parameter', 'letter', 'shape', 'count'], map(_weight, section.weights), 'Parameters.')}</details>"
        if section.weights
        else ""
    )
    return f"{heading}<ul>{lines}</ul>{weights}"


def _weight(weight: Weight) -> tuple[str, ...]:
    fixed = "" if weight.trainable else " (not trained)"
    return (
        weight.name,
        weight.letter,
        " × ".join(map(str, weight.shape)),
        f"{weight.count:,}{fixed}",
    )


def _learning(found: Report) -> str:
    if found.history is None:
        return "<p>This run has no log of validations.</p>"
    history = found.history
    records = thinned(history.records)
    told = (
        f"Kept: the weights of step {history.best:,.0f}, the best by {escape(history.chosen_by)}."
    )
    drawn = (
        learning_curves(history)
        if len(records) > 1
        else "<p>There was one validation, which makes no curve.</p>"
    )
    numbers = f"<details><summary>The numbers as a table</summary>{history_table(history, records)}</details>"
    return f"<p>{told}</p>{drawn}{numbers}"


def _scores(found: Report) -> str:
    made = f"<p>{escape(' '.join(found.notes))}</p>" if found.notes else ""
    made += scores_table(found.scores)
    if found.baselines:
        made += baselines_table(found.baselines, found.scores)
    made += f"<p>{escape(found.beside)}</p>" if found.beside else ""
    if found.left_out:
        made += f'<p class="note">Left out, for this data has no annotations: {escape(", ".join(found.left_out))}.</p>'
    if found.classes:
        made += class_table(found.classes)
    return made + (confusion_table(found.confusion) if found.confusion is not None else "")


def _lengths(found: Report) -> str:
    if found.by_length is None:
        return "<p>All inputs have the same length, or there is no input, so there is nothing to compare.</p>"
    return length_bars(found.by_length) + length_table(found.by_length)


def _map(found: Report) -> str:
    if found.summary_map is None:
        return "<p>All examples have the same summary vector, so there is no map.</p>"
    return map_html(found.summary_map, of=found.count, ranked_by=found.ranked_by)


def _examples(found: Report) -> str:
    how = (
        f"{len(found.shown):,} of {found.count:,} examples, ranked by {escape(found.ranked_by)}; of equal ones, that "
        "whose reference is more probable comes first."
    )
    attention = (
        ""
        if found.has_attention
        else " This model has no attention, so there are no weights to show."
    )
    return f"<p>{how}{attention}</p>{examples_html(found.shown, ranked_by=found.ranked_by)}"


def _unknown(found: Report) -> str:
    if found.unknown is None:
        return "<p>The inputs have no words.</p>"
    told = f"<p>{100 * found.unknown:.3g} % of the tokens of the inputs are not in the vocabulary (&lt;unk&gt;).</p>"
    if not found.unknown_words:
        return told
    rows = [(word, f"{count:,}") for word, count in found.unknown_words]
    return told + table(["word", "times"], rows, "The most frequent words with an unknown token.")


def _cost(found: Report) -> str:
    return facts(found.cost)


def _repeat(found: Report) -> str:
    return (
        "<p>Save the recipe below as <code>recipe.yaml</code>, and have its data where it says.</p>"
        "<pre><code>sixjars train recipe.yaml --out runs/again\n"
        f"{escape(found.command)}</code></pre>{facts(found.versions)}"
        "<p>The checksums tell whether your data is the same: they change with any row. They are of the rows as they "
        "are read, not of the files; <code>sixjars train --resume</code> and <code>sixjars evaluate</code> compare "
        "them too.</p>"
        f"<details><summary>The recipe</summary><pre><code>{escape(found.recipe)}</code></pre></details>"
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
"""By the id in the page, in this order."""
