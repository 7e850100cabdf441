"""A drawing of the attention weights of a prediction; its kind depends on what the source positions are.

Dims: H and W pixels, C channels.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import category

from sixjars.errors import DataError
from sixjars.inspection.document import draw_document
from sixjars.inspection.frames import draw_frames
from sixjars.inspection.heatmap import heat_map
from sixjars.inspection.overlay import draw_overlay
from sixjars.inspection.page import percent
from sixjars.inspection.tour import draw_tour, tour_title

WIDEST = 60
"""Words of a text in segments that a heat map has room for; a longer text is drawn with its words shaded."""
WORDS_OF_NAME, LONGEST_NAME = 3, 60
"""Words of an input in the name of its picture, and bytes of them."""


def draw(path: str | Path, predictor: Any, prediction: Any) -> None:
    """One picture file for one prediction: a heat map, an image overlay, video frames, a shaded document, or a tour.

    >>> import sixjars
    >>> sixjars.draw("attention.png", None, sixjars.Prediction(text="yes"))
    Traceback (most recent call last):
        ...
    sixjars.errors.DataError: this prediction has no attention weights to draw; its bridge has no attention.
    """
    if prediction.error is not None:
        raise DataError(f"there is no output to draw. {prediction.error}")
    if not prediction.weights:
        raise DataError("this prediction has no attention weights to draw; its bridge has no attention.")
    given = [Path(text).name if predictor.inputs[name].is_media else text for name, text in prediction.inputs.items()]
    title = f"{' · '.join(given)} → {prediction.text}"
    name, text = next(iter(prediction.inputs.items()))
    kind = "segments" if prediction.segments else prediction.layout.kind
    VIEWS[kind](Path(path), prediction, predictor.inputs[name].backdrop(text), title)


def picture_name(number: int, predictor: Any, prediction: Any, *, rank: int | None = None) -> str:
    """The name of the picture of a prediction: its number, then the name of its file or the first words of its text.

    `rank` counts the outputs for one input, where there are several.
    """
    name, text = next(iter(prediction.inputs.items()), ("", ""))
    media = name in predictor.inputs and predictor.inputs[name].is_media
    words = [Path(text).stem] if media else text.split()[:WORDS_OF_NAME]
    # Letters, their marks (which Indic scripts write vowels with) and digits.
    plain = ("".join(one if category(one)[0] in "LMN" else "-" for one in word.lower()) for word in words)
    slug = "-".join(part for word in plain for part in word.split("-") if part)
    short = slug.encode()[:LONGEST_NAME].decode(errors="ignore").strip("-")
    return "-".join([str(number), *([short] if short else []), *([] if rank is None else [str(rank)])]) + ".png"


def _words(path: Path, prediction: Any, backdrop: None, title: str) -> None:
    heat_map(path, prediction.weights, source=prediction.source, target=prediction.tokens, title=title)


def _segments(path: Path, prediction: Any, backdrop: None, title: str) -> None:
    """The text with its attention weights, averaged over the output tokens; a heat map where that has room."""
    steps = len(prediction.weights)
    if steps > 1 and len(prediction.source) <= WIDEST:
        _words(path, prediction, backdrop, title)
        return
    weights = [sum(row[at] for row in prediction.weights) / steps for at in range(len(prediction.source))]
    title = f"{prediction.text} ({_probability(prediction)}) ← {' · '.join(prediction.inputs.values())}"
    draw_document(path, words=prediction.source, segments=prediction.segments, weights=weights, title=title)


def _probability(prediction: Any) -> str:
    """As a share; a whole text is so improbable that its logarithm says more."""
    known = prediction.probability
    return f"probability {percent(known)}" if known >= 0.001 else f"log probability {prediction.log_probability:.1f}"


def _grid(path: Path, prediction: Any, backdrop: Any, title: str) -> None:
    image_HWC, box = backdrop
    grid = prediction.layout.shape
    draw_overlay(path, image_HWC, prediction.weights, grid=grid, tokens=prediction.tokens, box=box, title=title)


def _frames(path: Path, prediction: Any, backdrop: Any, title: str) -> None:
    if backdrop is None:  # features were given, and there are no frames to show
        _words(path, prediction, backdrop, title)
        return
    draw_frames(path, backdrop, prediction.weights, tokens=prediction.tokens, title=title)


def _points(path: Path, prediction: Any, backdrop: Any, title: str) -> None:
    order = [int(place) for place in prediction.text.split()]
    draw_tour(path, points=backdrop, order=order, title=tour_title(backdrop, order), weights=prediction.weights)


VIEWS: Mapping[str, Callable[[Path, Any, Any, str], None]] = {
    "words": _words,
    "segments": _segments,
    "grid": _grid,
    "regions": _words,
    "frames": _frames,
    "points": _points,
}
"""By what the positions are."""
