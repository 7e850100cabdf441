"""An image file of attention weights, of the kind that fits the source positions."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import category

from sixjars.drawing.matplotlib.document import draw_document
from sixjars.drawing.matplotlib.frames import draw_frames
from sixjars.drawing.matplotlib.heatmap import heat_map
from sixjars.drawing.matplotlib.image import draw_overlay
from sixjars.drawing.matplotlib.lines import draw_lines
from sixjars.drawing.matplotlib.tour import draw_tour
from sixjars.drawing.view import TURNS, View, view_of
from sixjars.drawing.view_names import chosen_view

WORDS_OF_NAME, LONGEST_NAME = 3, 60
"""Words of an input in the name of its image, and bytes of them."""


def draw(path: str | Path, predictor: Any, prediction: Any) -> None:
    """Draw a prediction: a heat map, an overlaid image, frames, a shaded document or a tour.

    >>> import sixjars
    >>> sixjars.draw("attention.png", None, sixjars.Prediction("yes"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: this prediction has no attention weights to draw; ...
    """
    draw_view(path, view_of(predictor, [prediction]))


def draw_view(path: str | Path, view: View, name: str | None = None) -> None:
    """Draw the best output of a view to a file (.png, .svg, .pdf), as named or as it fits."""
    IMAGES[chosen_view(view, name)](Path(path), view)


def image_name(number: int, predictor: Any, prediction: Any, *, rank: int | None = None) -> str:
    """The name of a prediction's image file: its number, then its file or its first words.

    `rank` counts the outputs for one input, where there are several.
    """
    name, text = next(iter(prediction.inputs.items()), ("", ""))
    media = name in predictor.inputs and predictor.inputs[name].is_media
    words = [Path(text).stem] if media else text.split()[:WORDS_OF_NAME]
    # Letters, their marks (which Indic scripts write vowels with) and digits.
    letters = "-".join(words).lower()
    plain = "".join(letter if category(letter)[0] in "LMN" else "-" for letter in letters)
    slug = "-".join(part for part in plain.split("-") if part)
    short = slug.encode()[:LONGEST_NAME].decode(errors="ignore").strip("-")
    parts = [str(number), short, "" if rank is None else str(rank)]
    return "-".join(part for part in parts if part) + ".png"


def _heat_map(path: Path, view: View) -> None:
    output = view.outputs[0]
    note = TURNS if view.has_turns else ""
    tokens: dict[str, Sequence[str]] = {"source": view.names, "target": output.tokens}
    heat_map(path, output.weights, title=view.title, note=note, segments=view.segments, **tokens)


IMAGES: Mapping[str, Callable[[Path, View], None]] = {
    "heatmap": _heat_map,
    "lines": draw_lines,
    "document": draw_document,
    "image": draw_overlay,
    "frames": draw_frames,
    "tour": draw_tour,
    "copying": partial(draw_lines, copying=True),
}
"""The functions by the name of the view."""
