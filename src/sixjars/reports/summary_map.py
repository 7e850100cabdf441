"""The map of summary vectors: vectors in two dimensions, their nearest neighbours, and the HTML of both.

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
"""Of classes; further ones have one colour together."""
SIZE, MARGIN = 600, 14


def projected(
    vectors_ND: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[float, float]] | None:
    """Principal components: where each vector lies in two dimensions, and their shares of the variance.

    Nothing where all vectors are the same, as those of a model without an input, or where one is
    not finite.

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
    signs = np.sign(
        two[np.arange(len(two)), np.abs(two).argmax(1)]
    )  # or they would be a matter of chance
    spots = centred_ND @ (two * signs[:, None]).T
    variances = sizes**2 / (sizes**2).sum()
    if spots.shape[1] < 2:  # vectors of one number
        spots, variances = np.column_stack([spots, np.zeros(len(spots))]), np.append(variances, 0.0)
    return spots, (float(variances[0]), float(variances[1]))


def neighbours_of(vectors_ND: NDArray[np.float64]) -> list[list[tuple[int, float]]]:
    """Of each vector the nearest others by cosine similarity, the nearest first.

    >>> neighbours_of(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))[0][0][0]
    1
    """
    lengths = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit_ND = vectors_ND / np.where(lengths > 0, lengths, 1.0)
    found = []
    for at, row in enumerate(unit_ND):
        alike = unit_ND @ row
        alike[at] = -np.inf
        best = np.argsort(-alike, kind="stable")[: min(NEAREST, len(alike) - 1)]
        found.append([(int(other), float(alike[other])) for other in best])
    return found


def map_html(found: SummaryMap, *, of: int, ranked_by: str) -> str:
    """The map, what is said of the example that is pointed at, and a table of all, which the script reads."""
    ways = _colourings(found, ranked_by)
    options = "".join(
        f'<option value="{name}">{escape(text)}</option>' for name, text in ways.items()
    )
    first = next(iter(ways), "none")
    count = len(found.examples)
    some = "" if of == count else f" {count:,} different inputs of {of:,} examples are shown."
    spots = len(np.unique(np.round(found.spots / np.ptp(found.spots), 4), axis=0))
    some += f" The points have {spots:,} places: some lie on each other." if spots < count else ""
    one, two = (f"{share:.0%}" for share in found.shares)
    return (
        f"<p>Each point is the summary vector of one input: what the encoder gives the decoder. Points that lie close "
        f"have similar vectors. Principal components: across {one} of the variance, upwards {two}.{some}</p>"
        f'<div class="map" data-by="{first}"><p class="tools"><label>Colour <select class="by">{options}</select>'
        '</label> <label>Find <input type="search" class="find" placeholder="a word of the text"></label></p>'
        f"{_legends(found, ways)}"
        f'<div class="plot">{_dots(found)}<div class="tip" hidden></div></div>'
        '<div class="picked" aria-live="polite"><p class="note">Point at an example to read it; click it, or press '
        "Enter, to see its nearest neighbours. Arrow keys go from point to point.</p></div>"
        f"<details><summary>All examples of the map as a table</summary>{_table(found, ranked_by)}</details></div>"
    )


def _colourings(found: SummaryMap, ranked_by: str) -> dict[str, str]:
    """What points may be coloured by, where it differs."""
    lengths, scores = (
        {e.length for e in found.examples},
        {e.score for e in found.examples} - {None},
    )
    possible = {
        "class": ("class", len(set(found.labels)) > 1),
        "length": ("length of the input", len(lengths) > 1),
        "score": (ranked_by, len(scores) > 1),
    }
    return {name: text for name, (text, differs) in possible.items() if differs}


def _scaled(values: Sequence[float | None]) -> list[float]:
    """From 0 to 1; an unknown value is 0."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return [0.0 if value is None else (value - low) / ((high - low) or 1.0) for value in values]


def _classes(found: SummaryMap) -> dict[str, int]:
    """The number of the colour of each frequent class."""
    return {label: at for at, (label, _) in enumerate(Counter(found.labels).most_common(COLORS))}


def _dots(found: SummaryMap) -> str:
    low, high = found.spots.min(0), found.spots.max(0)
    spread = np.where(high > low, high - low, 1.0)
    places = MARGIN + (SIZE - 2 * MARGIN) * (found.spots - low) / spread
    lengths, scores = (
        _scaled(list(values))
        for values in zip(*((e.length, e.score) for e in found.examples), strict=True)
    )
    scores = [1.0 - score for score in scores] if found.lower else scores
    colours = _classes(found)
    made = []
    for at, (x, y) in enumerate(places.tolist()):
        colour = f";--k:var(--k{colours.get(found.labels[at], COLORS)})" if found.labels else ""
        made.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{0.75 * (SIZE - y):.1f}" r="5" role="button" data-at="{at}" '
            f'tabindex="{-1 if at else 0}" style="--l:{lengths[at]:.2f};--s:{scores[at]:.2f}{colour}"/>'
        )
    box = f'viewBox="0 0 {SIZE} {0.75 * SIZE:.0f}" role="group" aria-label="Map of examples"'
    return f'<svg {box}>{"".join(made)}<g class="rings"></g></svg>'


def _legends(found: SummaryMap, ways: dict[str, str]) -> str:
    """What the colours mean; the style shows the one that is used."""
    made = []
    if "class" in ways:
        items = [
            f'<li><span style="--k:var(--k{at})"></span>{escape(label)}</li>'
            for label, at in _classes(found).items()
        ]
        items += (
            [f'<li><span style="--k:var(--k{COLORS})"></span>others</li>']
            if len(set(found.labels)) > COLORS
            else []
        )
        made.append(f'<ul class="legend class">{"".join(items)}</ul>')
    values: dict[str, list[float | None]] = {
        "length": [e.length for e in found.examples],
        "score": [e.score for e in found.examples],
    }
    for name in ("length", "score"):
        if name in ways:
            known = [value for value in values[name] if value is not None]
            edges = [shown_number(float(edge)) for edge in (min(known), max(known))]
            left, right = edges[::-1] if name == "score" and found.lower else edges
            made.append(
                f'<p class="legend {name}">{left} <span class="ramp"></span> {right} ({escape(ways[name])})</p>'
            )
    return "".join(made)


def _table(found: SummaryMap, ranked_by: str) -> str:
    rows = "".join(
        _row(at, one, near)
        for at, (one, near) in enumerate(zip(found.examples, found.neighbours, strict=True))
    )
    names = (
        "",
        "input",
        "output",
        "reference",
        ranked_by,
        "length",
        "nearest, with cosine similarity",
    )
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return (
        f'<div class="scroll"><table class="data points"><caption>Texts are cut after {LONGEST} characters.'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(at: int, one: Example, near: Sequence[tuple[int, float]]) -> str:
    score = "" if one.score is None else shown_number(one.score)
    close = ", ".join(f"{other + 1} ({alike:.2f})" for other, alike in near)
    texts = "".join(
        f"<td>{escape(cut(text, LONGEST))}</td>"
        for text in (one.given, one.output or "", " | ".join(one.references))
    )
    return f'<tr><th scope="row">{at + 1}</th>{texts}<td>{score}</td><td>{one.length}</td><td>{close}</td></tr>'
