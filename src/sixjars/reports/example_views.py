"""The examples of a report: the best, some of the middle and the worst, with live attention."""

from collections.abc import Hashable, Sequence
from html import escape

from sixjars.drawing.choice import usual, views_of
from sixjars.drawing.html.images import photo_uri
from sixjars.drawing.html.views import fragment
from sixjars.drawing.view import View
from sixjars.reports.tables import cut, shown_number
from sixjars.reports.values import Example, Group, Shown

EACH = 3
"""Examples of each group."""
LARGEST = 280_000
"""Bytes of the HTML of one example: a mail attachment must not grow with its longest text."""
LONGEST = 1_200
"""Characters of a text."""
WIDEST = 24
"""Positions of a heat map; of a longer text the words are shaded."""
HEADINGS = {"best": "Best", "median": "Median", "worst": "Worst"}


def chosen_rows(
    scores: Sequence[tuple[float, ...]], inputs: Sequence[Hashable]
) -> dict[Group, list[int]]:
    """The best, median and worst examples by scores of which higher is better; each input once.

    >>> scores = [(score,) for score in (0.1, 0.9, 0.5, 0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.0)]
    >>> chosen_rows(scores, range(10))
    {'best': [1, 4, 6], 'median': [7, 2, 8], 'worst': [9, 0, 3]}
    >>> chosen_rows(scores, "abcdbfghij")
    {'best': [1, 6, 7], 'median': [2, 8, 5], 'worst': [9, 0, 3]}
    >>> chosen_rows([(0.5,), (0.9,)], "ab")
    {'best': [1], 'median': [], 'worst': [0]}
    """
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    each = min(EACH, len(set(inputs)) // 2)
    best = _first(order, inputs)[:each]
    taken = {inputs[at] for at in best}
    worst = _first([at for at in reversed(order) if inputs[at] not in taken], inputs)[:each]
    taken |= {inputs[at] for at in worst}
    rest = _first([at for at in order if inputs[at] not in taken], inputs)
    begin = max((len(rest) - EACH) // 2, 0)
    return {"best": best, "median": rest[begin : begin + EACH], "worst": worst}


def _first(order: Sequence[int], inputs: Sequence[Hashable]) -> list[int]:
    """The first example with each input."""
    places: dict[Hashable, int] = {}
    for at in order:
        places.setdefault(inputs[at], at)
    return list(places.values())


def examples_html(shown: Sequence[Shown], *, ranked_by: str) -> str:
    """Each group under its own heading."""
    html = ""
    for group, heading in HEADINGS.items():
        examples = [example for example in shown if example.group == group]
        if examples:
            html += f"<h3>{heading}</h3>"
        for at, example in enumerate(examples, start=1):
            html += _example(example, ranked_by, f"{group}-{at}")
    return html


def _example(shown: Shown, ranked_by: str, key: str) -> str:
    """Input, output and references; and a view of the attention, if it is not too large."""
    example = shown.example
    known = [] if example.score is None else [f"{escape(ranked_by)}: {shown_number(example.score)}"]
    if shown.times > 1:
        what = "input" if example.given else "text"
        known.append(f"{shown.times:,} examples have this {what}")
    score = f'<p class="score">{"; ".join(known)}</p>' if known else ""
    view, note = _view(shown, key)
    images = ""
    for image in [] if view else shown.images:
        images += f'<img class="given" src="{photo_uri(image, 240)}" alt="what was given">'
    texts = _texts(example, alone=not view)
    inside = f"{score}{texts}{images}{note}{view}"
    return f'<article class="example" id="{key}">{inside}</article>'


def _texts(example: Example, *, alone: bool) -> str:
    """The references; without a view, which shows them, also input and output."""
    references = "".join(f"<dd>{escape(cut(text, LONGEST))}</dd>" for text in example.references)
    source = (
        f"<dt>input</dt><dd>{escape(cut(example.given, LONGEST))}</dd>" if example.given else ""
    )
    name = "references" if len(example.references) > 1 else "reference"
    output = ""
    if example.output is not None:
        text = escape(cut(example.output, LONGEST)) or '<i class="note">nothing</i>'
        output = f'<dt>output</dt><dd class="found">{text}</dd>'
    both_sides = f"{source}{output}" if alone else ""
    return f'<dl class="texts">{both_sides}<dt>{name}</dt>{references}</dl>'


def _view(shown: Shown, key: str) -> tuple[str, str]:
    """A view of all outputs, of the best one, or of none, by its size; with a note on the rest."""
    if shown.view is None:
        return "", ""
    name = _name(shown.view)
    html = fragment(shown.view, name, key=f"{key}-view")
    if len(html.encode()) <= LARGEST:
        return html, ""
    html = fragment(shown.view.alone(0), name, key=f"{key}-view")
    if len(html.encode()) <= LARGEST:
        note = "The other outputs of the beam are left out, to keep the file small."
        return html, f'<p class="note">{note}</p>'
    steps, positions = len(shown.view.outputs[0].weights), len(shown.view.names)
    return "", (
        f'<p class="note">{steps} × {positions} attention weights are too many for this file; '
        "<code>sixjars inspect</code> shows them.</p>"
    )


def _name(view: View) -> str:
    """The usual view, unless that is a heat map wider than the page, of which one sees a part."""
    name = usual(view)
    is_wide = name == "heatmap" and len(view.names) > WIDEST
    return "document" if is_wide and "document" in views_of(view) else name
