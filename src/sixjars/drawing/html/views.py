"""Interactive views of attention as HTML.

A view has a template of its name, `templates/heatmap.html`, and here the values that it needs beside
the words and the weights.

Dims: T output tokens, G groups of neighbouring frames, h rows and w columns of cells.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sixjars.drawing.html.images import light_uri, photo_uri
from sixjars.drawing.html.pages import render
from sixjars.drawing.html.tours import tour_values
from sixjars.drawing.view import TURNS, View, order_of, probability_of
from sixjars.drawing.view_names import WIDEST, chosen_view
from sixjars.drawing.weights import LEAST, copied_links, frame_groups, group_name, grouped

WIDE = 24
"""Columns from which cells are narrow and have no numbers, so that all of them are seen at once."""
LINE = 108
"""Characters of a line of words, with the space between them."""

Values = dict[str, Any]


def fragment(view: View, name: str | None = None, *, key: str = "view-1") -> str:
    """The HTML of a view, as named or as it fits; `key` is its id, unique on a page.

    >>> from sixjars.drawing.view import Output
    >>> output = Output("ja", ("ja",), ((1.0,),))
    >>> shown = fragment(View({"source": "<b>"}, (output,), source=("<b>",)))
    >>> "&lt;b&gt;" in shown, "<b>" in shown
    (True, False)
    """
    name = chosen_view(view, name)
    ranks = range(len(view.outputs))
    values = {
        "view": view,
        "name": name,
        "key": key,
        "panels": [_panel(view.alone(rank), name) for rank in ranks],
        "probabilities": [probability_of(view, rank) for rank in ranks],
        "order": order_of(view),
    }
    return render("view.html", values)


def _panel(view: View, name: str) -> str:
    """The HTML of one output, by the template of the view."""
    output = view.outputs[0]
    values = {
        "name": name,
        "view": view,
        "output": output,
        "names": view.names,
        "weights": output.weights,
        "turns": TURNS,
    }
    return render("panel.html", values | VALUES[name](view))


def _heat_map(view: View) -> Values:
    peak = max(map(max, view.outputs[0].weights)) or 1.0
    narrow = len(view.names) > WIDE
    return {"peak": peak, "least": LEAST, "narrow": narrow, "widest": WIDEST}


def _lines(view: View) -> Values:
    """Both sentences are side by side where one does not fit a line."""
    sentences = view.names, view.outputs[0].tokens
    room = max(sum(map(len, words)) + 2 * len(words) for words in sentences)
    return {"tall": room > LINE}


def _copying(view: View) -> Values:
    """Each word of the output, whether it is certainly a copy, and where the input has it."""
    output = view.outputs[0]
    copied = [at is not None for at in output.copied]
    places = copied_links(view.names, output.tokens, output.copied)
    linked = list(zip(output.tokens, copied, places, strict=True))
    return {**_lines(view), "linked": linked, "any_copied": any(copied)}


def _document(view: View) -> Values:
    """Sentences with their weights; a text of one is shaded by its words' own weights alone."""
    output = view.outputs[0]
    parts = view.sentences(output)
    depths = [part.depths for part in parts] if len(parts) > 1 else [output.mean]
    peak = max(part.weight for part in parts) or 1.0
    strongest = max(map(max, depths)) or 1.0
    sentences = []
    words = enumerate(view.names)
    for part, row in zip(parts, depths, strict=True):
        shaded = [(*next(words), depth / strongest) for depth in row]
        sentences.append({"weight": part.weight, "share": part.weight / peak, "words": shaded})
    return {"sentences": sentences, "strongest": strongest}


def _image(view: View) -> Values:
    """The photograph, and the layer of light over it for each word of the output."""
    image, box = view.backdrop
    left, top, right, bottom = (100 * side for side in box)
    rows, columns = view.layout.shape
    maps = [np.asarray(row).reshape(rows, columns) for row in view.outputs[0].weights]
    sides = {"left": left, "top": top, "width": right - left, "height": bottom - top}
    return {
        "photo": photo_uri(image, 480),
        "shape": f"aspect-ratio:{image.shape[1]}/{image.shape[0]}",
        "place": ";".join(f"{side}:{share:.2f}%" for side, share in sides.items()),
        "rows": rows,
        "columns": columns,
        "lights": [light_uri(weights_hw) for weights_hw in maps],
    }


def _frames(view: View) -> Values:
    """The frames, or of many some, with the weights of their neighbours added."""
    frames = view.backdrop
    groups = frame_groups(len(frames))
    weights_TG = grouped(np.asarray(view.outputs[0].weights), groups)
    numbers = [group_name(group) for group in groups]
    return {
        "names": [f"frame {number}" for number in numbers],
        "numbers": numbers,
        "weights": weights_TG.tolist(),
        "peak": float(weights_TG.max()) or 1.0,
        "photos": [photo_uri(frames[group[len(group) // 2]], 120) for group in groups],
        "frames": len(frames),
    }


def _tour(view: View) -> Values:
    order = view.outputs[0].order
    names = [f"point {at}" for at in range(len(view.backdrop))]
    return {"names": names, "order": order, **tour_values(view.backdrop, order)}


VALUES: Mapping[str, Callable[[View], Values]] = {
    "heatmap": _heat_map,
    "lines": _lines,
    "document": _document,
    "image": _image,
    "frames": _frames,
    "tour": _tour,
    "copying": _copying,
}
"""The values of the templates by the name of the view."""
