"""The map of summary vectors: their places in two dimensions, their neighbours, and the HTML.

Dims: N examples, D features of a vector.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from sixjars.reports.tables import cut, shown_number
from sixjars.reports.values import Example, SummaryMap

NEAREST = 5
"""Neighbours of each example."""
LONGEST = 160
"""Characters of a text of the map."""
COLORS = 8
"""Colours of classes; further classes share one."""
SIZE, MARGIN = 600, 14


def projected(
    vectors_ND: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[float, float]] | None:
    """Principal components: the place of each vector in two dimensions, and the variance of both.

    None where all vectors are the same, as without an input, or where one is not finite.

    >>> spots, shares = projected(np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]]))
    >>> spots.round(6).tolist(), shares
    ([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]], (1.0, 0.0))
    """
    if len(vectors_ND) < 2 or not np.isfinite(vectors_ND).all():
        return None
    centred_ND = vectors_ND - vectors_ND.mean(0)
    if np.abs(centred_ND).max() < 1e-9:
        return None
    _, sizes, axes_DD = np.linalg.svd(centred_ND, full_matrices=False)
    two = axes_DD[:2]
    # The largest number of each axis is positive: its sign would be a matter of chance.
    signs = np.sign(two[np.arange(len(two)), np.abs(two).argmax(1)])
    spots = centred_ND @ (two * signs[:, None]).T
    variances = sizes**2 / (sizes**2).sum()
    if spots.shape[1] < 2:  # vectors of one number
        spots, variances = np.column_stack([spots, np.zeros(len(spots))]), np.append(variances, 0.0)
    return spots, (float(variances[0]), float(variances[1]))


def neighbours_of(vectors_ND: NDArray[np.float64]) -> list[list[tuple[int, float]]]:
    """The nearest other vectors of each by cosine similarity, the nearest first.

    >>> neighbours_of(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))[0][0][0]
    1
    """
    lengths = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit_ND = vectors_ND / np.where(lengths > 0, lengths, 1.0)
    neighbours = []
    for at, row in enumerate(unit_ND):
        alike = unit_ND @ row
        alike[at] = -np.inf
        best = np.argsort(-alike, kind="stable")[: min(NEAREST, len(alike) - 1)]
        neighbours.append([(int(other), float(alike[other])) for other in best])
    return neighbours


def map_html(summary: SummaryMap, *, of: int, ranked_by: str) -> str:
    """The map, a place for the example that is pointed at, and a table, which the script reads."""
    ways = _colourings(summary, ranked_by)
    options = [f'<option value="{name}">{escape(text)}</option>' for name, text in ways.items()]
    count = len(summary.examples)
    shown = "" if of == count else f" {count:,} different inputs of {of:,} examples are shown."
    spots = len(np.unique(np.round(summary.spots / np.ptp(summary.spots), 4), axis=0))
    shown += f" The points have {spots:,} places: some lie on each other." if spots < count else ""
    across, upwards = (f"{share:.0%}" for share in summary.shares)
    return (
        "<p>Each point is the summary vector of one input: what the encoder gives the decoder. "
        "Points that lie close have similar vectors. Principal components: "
        f"across {across} of the variance, upwards {upwards}.{shown}</p>"
        f'<div class="map" data-by="{next(iter(ways), "none")}"><p class="tools"><label>Colour '
        f'<select class="by">{"".join(options)}</select></label> <label>Find '
        '<input type="search" class="find" placeholder="a word of the text"></label></p>'
        f"{_legends(summary, ways)}"
        f'<div class="plot">{_dots(summary)}<div class="tip" hidden></div></div>'
        '<div class="picked" aria-live="polite"><p class="note">Point at an example to read it; '
        "click it, or press Enter, to see its nearest neighbours. Arrow keys go from point to "
        "point.</p></div><details><summary>All examples of the map as a table</summary>"
        f"{_table(summary, ranked_by)}</details></div>"
    )


def _colourings(summary: SummaryMap, ranked_by: str) -> dict[str, str]:
    """The values that points may be coloured by, where they differ."""
    examples = summary.examples
    scores = {example.score for example in examples} - {None}
    possible = {
        "class": ("class", len(set(summary.labels))),
        "length": ("length of the input", len({example.length for example in examples})),
        "score": (ranked_by, len(scores)),
    }
    return {name: text for name, (text, count) in possible.items() if count > 1}


def _scaled(values: Sequence[float | None]) -> list[float]:
    """Values from 0 to 1; an unknown value is 0."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return [0.0 if value is None else (value - low) / ((high - low) or 1.0) for value in values]


def _classes(summary: SummaryMap) -> dict[str, int]:
    """The number of the colour of each frequent class."""
    return {label: at for at, (label, _) in enumerate(Counter(summary.labels).most_common(COLORS))}


def _dots(summary: SummaryMap) -> str:
    low, high = summary.spots.min(0), summary.spots.max(0)
    spread = np.where(high > low, high - low, 1.0)
    places = MARGIN + (SIZE - 2 * MARGIN) * (summary.spots - low) / spread
    lengths = _scaled([example.length for example in summary.examples])
    scores = _scaled([example.score for example in summary.examples])
    scores = [1.0 - score for score in scores] if summary.lower else scores
    colours = _classes(summary)
    dots = ""
    for at, (x, y) in enumerate(places.tolist()):
        style = f"--l:{lengths[at]:.2f};--s:{scores[at]:.2f}"
        if summary.labels:
            style += f";--k:var(--k{colours.get(summary.labels[at], COLORS)})"
        dots += (
            f'<circle class="dot" cx="{x:.1f}" cy="{0.75 * (SIZE - y):.1f}" r="5" role="button" '
            f'data-at="{at}" tabindex="{-1 if at else 0}" style="{style}"/>'
        )
    box = f'viewBox="0 0 {SIZE} {0.75 * SIZE:.0f}" role="group" aria-label="Map of examples"'
    return f'<svg {box}>{dots}<g class="rings"></g></svg>'


def _legends(summary: SummaryMap, ways: dict[str, str]) -> str:
    """The meaning of the colours; the style shows the legend that is used."""
    html = ""
    if "class" in ways:
        names = [(at, escape(label)) for label, at in _classes(summary).items()]
        names += [(COLORS, "others")] if len(set(summary.labels)) > COLORS else []
        items = [f'<li><span style="--k:var(--k{at})"></span>{name}</li>' for at, name in names]
        html += f'<ul class="legend class">{"".join(items)}</ul>'
    values: dict[str, list[float | None]] = {
        "length": [example.length for example in summary.examples],
        "score": [example.score for example in summary.examples],
    }
    for name in ("length", "score"):
        if name in ways:
            known = [value for value in values[name] if value is not None]
            edges = [shown_number(float(edge)) for edge in (min(known), max(known))]
            left, right = edges[::-1] if name == "score" and summary.lower else edges
            ramp = f'{left} <span class="ramp"></span> {right} ({escape(ways[name])})'
            html += f'<p class="legend {name}">{ramp}</p>'
    return html


def _table(summary: SummaryMap, ranked_by: str) -> str:
    pairs = zip(summary.examples, summary.neighbours, strict=True)
    rows = "".join(_row(at, example, near) for at, (example, near) in enumerate(pairs))
    nearest = "nearest, with cosine similarity"
    names = ("", "input", "output", "reference", ranked_by, "length", nearest)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return (
        '<div class="scroll"><table class="data points"><caption>Texts are cut after '
        f"{LONGEST} characters.</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(at: int, example: Example, near: Sequence[tuple[int, float]]) -> str:
    score = "" if example.score is None else shown_number(example.score)
    close = ", ".join(f"{other + 1} ({alike:.2f})" for other, alike in near)
    texts = (example.given, example.output or "", " | ".join(example.references))
    cells = [*(escape(cut(text, LONGEST)) for text in texts), score, str(example.length), close]
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{at + 1}</th>{row}</tr>'
