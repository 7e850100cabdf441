"""Interactive views of attention as HTML.

A view has a template of its name, `templates/heatmap.html`, and here the values that it needs beside
the words and the weights.

Dims: T output tokens, G groups of neighbouring frames, h rows and w columns of cells.
"""

import io
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.html.pages import render
from sixjars.drawing.tours import MOST_NAMED, MOVED, Points, apart, tour_title
from sixjars.drawing.view import TURNS, View, order_of, probability_of
from sixjars.drawing.view_names import WIDEST, chosen_view
from sixjars.drawing.weights import (
    DARK,
    LEAST,
    copied_links,
    frame_groups,
    group_name,
    grouped,
    lightness,
)

WIDE = 24
"""Columns from which cells are narrow and have no numbers, so that all of them are seen at once."""
LINE = 108
"""Characters of a line of words, with the space between them."""
PIXELS = 6
"""Pixels of a cell along a side; a browser enlarges them."""

Values = dict[str, Any]
Spot = tuple[float, float]


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
    panels = []
    for alone in map(view.alone, ranks):
        output = alone.outputs[0]
        panel = {"name": name, "view": alone, "output": output, "weights": output.weights}
        panel |= {"names": view.names, "turns": TURNS, **VALUES[name](alone)}
        panels.append(render("panel.html", panel))
    probabilities = [probability_of(view, rank) for rank in ranks]
    values = {"view": view, "name": name, "key": key, "panels": panels}
    values |= {"probabilities": probabilities, "order": order_of(view)}
    return render("view.html", values)


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
    """Bars for numbers, else spots and arrows from one to the next."""
    points, order = view.backdrop, view.outputs[0].order
    names = [f"point {at}" for at in range(len(points))]
    drawn = _bars(points, order) if len(points[0]) == 1 else _spots(points, order)
    return {"names": names, "order": order, "title": tour_title(points, order), "bars": [], **drawn}


def _spots(points: Points, order: Sequence[int]) -> Values:
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    spread = float(max(high - low)) or 1.0
    offsets = [(440 * (x - low[0]) / spread, 440 * (y - low[1]) / spread) for x, y in points]
    places = [(30 + right, 470 - up) for right, up in offsets]
    spots = [(float(x), float(y)) for x, y in apart(places, 28.0)]
    left, top = np.min(spots, axis=0)
    right, bottom = np.max(spots, axis=0)
    width = max(right - left + 32, 500.0)  # points that were moved apart may lie outside
    box = (left + right - width) / 2, top - 16, width, bottom - top + 32
    return {
        "spots": spots,
        "arrows": [_arrow(spots[a], spots[b]) for a, b in pairwise([*order, *order[:1]])],
        "box": " ".join(f"{side:.0f}" for side in box),
        "moved": MOVED if spots != places else "",
    }


def _arrow(here: Spot, there: Spot) -> tuple[Spot, Spot, list[Spot]]:
    """The ends of a line between two circles, from edge to edge, and the corners of its head."""
    (x, y), (u, v) = here, there
    far = max(float(np.hypot(u - x, v - y)), 1e-6)
    along_x, along_y = (u - x) / far, (v - y) / far
    edge = min(14.0, far / 2)
    tip_x, tip_y = u - edge * along_x, v - edge * along_y
    back_x, back_y = tip_x - 12 * along_x, tip_y - 12 * along_y
    left = back_x - 4 * along_y, back_y + 4 * along_x
    right = back_x + 4 * along_y, back_y - 4 * along_x
    return (x + edge * along_x, y + edge * along_y), (back_x, back_y), [(tip_x, tip_y), left, right]


def _bars(points: Points, order: Sequence[int]) -> Values:
    """Numbers in the order of the output; the others follow. Of many, none has its number."""
    shown = [*order, *(at for at in range(len(points)) if at not in order)]
    numbers = [point[0] for point in points]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    unit, wide = 230 / ((high - low) or 1.0), 480 / len(shown)
    ground = 250 + unit * low
    bars = []
    for place, at in enumerate(shown):
        left = 10 + place * wide
        bar = {"at": at, "number": numbers[at], "x": left + wide / 10, "middle": left + wide / 2}
        height = unit * numbers[at]
        size = {"top": ground - max(height, 0), "width": 0.8 * wide, "height": abs(height)}
        bars.append(bar | size)
    return {"bars": bars, "letters": min(13.0, wide / 2.5) if len(shown) <= MOST_NAMED else 0.0}


def photo_uri(image: NDArray[np.uint8], most: int) -> str:
    """An image as a JPEG data URI, with at most so many pixels along its longer side."""
    from PIL import Image

    photo = Image.fromarray(np.ascontiguousarray(image))
    if max(photo.size) < most // 2:  # or the browser would blur the few pixels that it has
        times = most // 2 // max(photo.size)
        photo = photo.resize((photo.width * times, photo.height * times), Image.Resampling.NEAREST)
    photo.thumbnail((most, most))
    return _uri(photo, "jpeg", quality=82)


def light_uri(weights_hw: NDArray[np.float64]) -> str:
    """The layer over an image as a PNG data URI: black, and clear where weights are large."""
    from PIL import Image

    rows, columns = weights_hw.shape
    light = lightness(weights_hw, PIXELS * rows, PIXELS * columns)
    pixels = np.zeros((*light.shape, 2), dtype=np.uint8)
    pixels[:, :, 1] = np.round(255 * (1 - DARK) * (1 - light))
    return _uri(Image.fromarray(pixels, "LA"), "png", optimize=True)


def _uri(image: object, kind: str, **options: object) -> str:
    stream = io.BytesIO()
    image.save(stream, kind, **options)  # type: ignore[attr-defined]
    return f"data:image/{kind};base64,{b64encode(stream.getvalue()).decode()}"


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
