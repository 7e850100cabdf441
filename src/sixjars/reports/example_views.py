"""The examples of a report: the best, some of the middle and the worst, each with its live attention."""

from collections.abc import Hashable, Sequence
from html import escape

from sixjars.drawing.choice import usual, views_of
from sixjars.drawing.html import fragment
from sixjars.drawing.html_parts import photo_uri
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
    """Numbers of the best, median and worst examples by scores of which higher is better; each input is there once.

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
    found: dict[Hashable, int] = {}
    for at in order:
        found.setdefault(inputs[at], at)
    return list(found.values())


def examples_html(shown: Sequence[Shown], *, ranked_by: str) -> str:
    """Each group under its own heading."""
    made = []
    for group, heading in HEADINGS.items():
        own = [one for one in shown if one.group == group]
        if own:
            parts = "".join(
                _example(one, ranked_by, f"{group}-{at}") for at, one in enumerate(own, start=1)
            )
            made.append(f"<h3>{heading}</h3>{parts}")
    return "".join(made)


def _example(one: Shown, ranked_by: str, key: str) -> str:
    """What was given, output and wanted; and a view of the attention, if it is not too large."""
    example = one.example
    known = [] if example.score is None else [f"{escape(ranked_by)}: {shown_number(example.score)}"]
    known += (
        [f"{one.times:,} examples have this {'input' if example.given else 'text'}"]
        if one.times > 1
        else []
    )
    score = f'<p class="score">{"; ".join(known)}</p>' if known else ""
    view, note = _view(one, key)
    images = "".join(
        f'<img class="given" src="{photo_uri(image, 240)}" alt="what was given">'
        for image in ([] if view else one.images)
    )
    return f'<article class="example" id="{key}">{score}{_texts(example, alone=not view)}{images}{note}{view}</article>'


def _texts(example: Example, *, alone: bool) -> str:
    """What was wanted; without a view, which has both, also what was given and output."""
    references = "".join(f"<dd>{escape(cut(text, LONGEST))}</dd>" for text in example.references)
    given = f"<dt>input</dt><dd>{escape(cut(example.given, LONGEST))}</dd>" if example.given else ""
    name = "references" if len(example.references) > 1 else "reference"
    output = ""
    if example.output is not None:
        text = escape(cut(example.output, LONGEST)) or '<i class="note">nothing</i>'
        output = f'<dt>output</dt><dd class="found">{text}</dd>'
    own = f"{given}{output}" if alone else ""
    return f'<dl class="texts">{own}<dt>{name}</dt>{references}</dl>'


def _view(one: Shown, key: str) -> tuple[str, str]:
    """With all outputs, or the best one, or none: as many as there is room for; and what is said of those left out."""
    if one.view is None:
        return "", ""
    name = _name(one.view)
    made = fragment(one.view, name, key=f"{key}-view")
    if len(made.encode()) <= LARGEST:
        return made, ""
    made = fragment(one.view.alone(0), name, key=f"{key}-view")
    if len(made.encode()) <= LARGEST:
        return (
            made,
            '<p class="note">The other outputs of the beam are left out, to keep the file small.</p>',
        )
    steps, positions = len(one.view.outputs[0].weights), len(one.view.names)
    return "", (
        f'<p class="note">{steps} × {positions} attention weights are too many for this file; '
        "<code>sixjars inspect</code> shows them.</p>"
    )


def _name(view: View) -> str:
    """The usual view; but of a heat map that is wider than the page one would see only the beginning."""
    name = usual(view)
    return (
        "document"
        if name == "heatmap" and len(view.names) > WIDEST and "document" in views_of(view)
        else name
    )
