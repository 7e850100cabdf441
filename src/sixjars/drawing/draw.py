"""A picture file of attention weights; which kind of drawing it is depends on what the source positions are."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import category

from sixjars.drawing.choice import chosen
from sixjars.drawing.document import TURNS, draw_document
from sixjars.drawing.frames import draw_frames
from sixjars.drawing.heatmap import heat_map
from sixjars.drawing.lines import draw_lines
from sixjars.drawing.overlay import draw_overlay
from sixjars.drawing.page import percent
from sixjars.drawing.tour import draw_tour, tour_title
from sixjars.drawing.view import BY_PROBABILITY, View, view_of

WORDS_OF_NAME, LONGEST_NAME = 3, 60
"""Words of an input in the name of its picture, and bytes of them."""
LEAST = 0.001
"""The probability of the best output from which those of all are told as shares, and not as logarithms."""


def draw(path: str | Path, predictor: Any, prediction: Any) -> None:
    """One picture file for one prediction: a heat map, an image overlay, video frames, a shaded document, or a tour.

    >>> import sixjars
    >>> sixjars.draw("attention.png", None, sixjars.Prediction(text="yes"))
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: this prediction has no attention weights to draw; its bridge has no attention.
    """
    draw_view(path, view_of(predictor, [prediction]))


def draw_view(path: str | Path, view: View, name: str | None = None) -> None:
    """The best output of a view as a picture file (.png, .svg, .pdf): the named drawing, or the one that fits."""
    PICTURES[chosen(view, name)](
        Path(path), view, f"{view.short} → {view.outputs[0].text}{view.over}"
    )


def picture_name(number: int, predictor: Any, prediction: Any, *, rank: int | None = None) -> str:
    """The name of the picture of a prediction: its number, then the name of its file or the first words of its text.

    `rank` counts the outputs for one input, where there are several.
    """
    name, text = next(iter(prediction.inputs.items()), ("", ""))
    media = name in predictor.inputs and predictor.inputs[name].is_media
    words = [Path(text).stem] if media else text.split()[:WORDS_OF_NAME]
    # Letters, their marks (which Indic scripts write vowels with) and digits.
    plain = (
        "".join(one if category(one)[0] in "LMN" else "-" for one in word.lower()) for word in words
    )
    slug = "-".join(part for word in plain for part in word.split("-") if part)
    short = slug.encode()[:LONGEST_NAME].decode(errors="ignore").strip("-")
    return (
        "-".join([str(number), *([short] if short else []), *([] if rank is None else [str(rank)])])
        + ".png"
    )


def _heat_map(path: Path, view: View, title: str) -> None:
    output = view.outputs[0]
    note = TURNS if view.has_turns else ""
    names, parts = view.names, view.segments
    heat_map(
        path,
        output.weights,
        source=names,
        target=output.tokens,
        title=title,
        note=note,
        segments=parts,
    )


def _lines(path: Path, view: View, title: str) -> None:
    output = view.outputs[0]
    draw_lines(path, output.weights, source=view.names, target=output.tokens, title=title)


def _copying(path: Path, view: View, title: str) -> None:
    output = view.outputs[0]
    draw_lines(
        path,
        output.weights,
        source=view.names,
        target=output.tokens,
        copied=output.copied,
        title=title,
    )


def _document(path: Path, view: View, title: str) -> None:
    """The text with its attention weights, averaged over the output tokens."""
    output, segments = view.outputs[0], view.segments or (0,) * len(view.source)
    title = f"{output.text} ({probability_of(view.alone(0))}) ← {view.short}{view.over}"
    draw_document(path, words=view.source, segments=segments, weights=output.mean, title=title)


def probability_of(view: View, rank: int = 0) -> str:
    """Of an output, as a share; a whole text is so improbable that its logarithm says more. All have the same unit.

    Several that are in the order of their scores have those in its place.
    """
    output, best = view.outputs[rank], view.outputs[0].probability
    if len(view.outputs) > 1 and view.order:
        return f"score {output.score:z.3f}"
    if best < LEAST:
        return f"log probability {output.log_probability:.2f}"
    return (
        f"probability {percent(output.probability)}"
        if output.probability >= LEAST
        else "probability below 0.1%"
    )


def order_of(view: View) -> str:
    """A sentence about the order of several outputs; nothing where there is one."""
    return "" if len(view.outputs) < 2 else view.order or BY_PROBABILITY


def _image(path: Path, view: View, title: str) -> None:
    (image, box), output = view.backdrop, view.outputs[0]
    height, width = view.layout.shape
    draw_overlay(
        path,
        image,
        output.weights,
        grid=(height, width),
        tokens=output.tokens,
        box=box,
        title=title,
    )


def _frames(path: Path, view: View, title: str) -> None:
    draw_frames(
        path, view.backdrop, view.outputs[0].weights, tokens=view.outputs[0].tokens, title=title
    )


def _tour(path: Path, view: View, title: str) -> None:
    points, output = view.backdrop, view.outputs[0]
    order = [int(place) for place in output.text.split()]
    draw_tour(
        path, points=points, order=order, title=tour_title(points, order), weights=output.weights
    )


PICTURES: Mapping[str, Callable[[Path, View, str], None]] = {
    "heatmap": _heat_map,
    "lines": _lines,
    "document": _document,
    "image": _image,
    "frames": _frames,
    "tour": _tour,
    "copying": _copying,
}
"""By the name of the view."""
