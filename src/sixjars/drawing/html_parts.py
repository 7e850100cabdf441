"""The parts of the HTML of every view: words to point at, shaded by weights, and small images.

Whatever has `data-t` is a step of the output, whatever has `data-s` a position of the input. An
image is a photograph, or the light on it where attention weights are large.

Dims: h rows and w columns of cells.
"""

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.overlay import DARK, lightness
from sixjars.drawing.page import Weights

DEEP, DEEPEST = 0.58, 0.78
"""The shades from which letters change colour, in dark and light mode; as in the script."""
PIXELS = 6
"""Pixels of a cell along a side; a browser enlarges them."""


@final
@dataclass(frozen=True)
class Body:
    """The HTML of one output, and the weights that it shows, for the table below."""

    html: str
    names: Sequence[str]
    """The name of each position."""
    weights: Weights
    """A row for each token of the output."""


def shade(share: float) -> str:
    """The attribute of something that is as dark as its share of the largest."""
    return f'style="--w:{share:.3f}"'


def deep(share: float) -> str:
    """The classes of letters on a strong shade."""
    if share > DEEPEST:
        return " deep deepest"
    return " deep" if share > DEEP else ""


def word(
    text: str,
    side: Literal["s", "t"],
    at: int,
    *,
    share: float = 0.0,
    more: str = "",
    kind: str = "",
) -> str:
    """One word; the first of an output can be reached with the key Tab, all others with arrows."""
    index = "0" if side == "t" and at == 0 else "-1"
    shaded = f" {shade(share)}" if share else ""
    return (
        f'<span class="word{deep(share)}{kind}" role="button" tabindex="{index}" '
        f'data-{side}="{at}"{shaded}{more}>{escape(text)}</span>'
    )


def words(label: str, texts: Sequence[str], side: Literal["s", "t"]) -> str:
    """A line of words with a label."""
    return words_of(label, [word(text, side, at) for at, text in enumerate(texts)])


def words_of(label: str, spans: Sequence[str]) -> str:
    """A line of the HTML of words with a label, from right to left where the script is."""
    flow = f'<span class="flow" dir="auto">{" ".join(spans)}</span>'
    label = f'aria-label="{label}"><b class="label">{label}</b>'
    return f'<div class="words" role="group" {label}{flow}</div>'


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
