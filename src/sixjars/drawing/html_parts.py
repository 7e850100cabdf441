"""What the HTML of every view is made of: words that can be pointed at, shaded by weights, and small images.

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
"""The shades from which letters have another colour, in the dark and in the light; the script has
the same."""
PIXELS = 6
"""Of a cell along a side; a browser makes more of them."""


@final
@dataclass(frozen=True)
class Body:
    """What is drawn of one output, and the weights that are drawn, which the table below has too."""

    html: str
    names: Sequence[str]
    """Of each position."""
    weights: Weights
    """A row for each token of the output."""


def shade(share: float) -> str:
    """The attribute of something that is as dark as its share of the largest."""
    return f'style="--w:{share:.3f}"'


def deep(share: float) -> str:
    """The classes of letters on a strong shade."""
    return " deep deepest" if share > DEEPEST else " deep" if share > DEEP else ""


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
    index, shaded = "0" if side == "t" and at == 0 else "-1", f" {shade(share)}" if share else ""
    return (
        f'<span class="word{deep(share)}{kind}" role="button" tabindex="{index}" data-{side}="{at}"{shaded}{more}>'
        f"{escape(text)}</span>"
    )


def words(label: str, texts: Sequence[str], side: Literal["s", "t"]) -> str:
    """A line of words with a label."""
    return words_of(label, [word(text, side, at) for at, text in enumerate(texts)])


def words_of(label: str, made: Sequence[str]) -> str:
    """The same of words that are made already; those of scripts that are written from right to left begin there."""
    flow = f'<span class="flow" dir="auto">{" ".join(made)}</span>'
    return f'<div class="words" role="group" aria-label="{label}"><b class="label">{label}</b>{flow}</div>'


def photo_uri(image: NDArray[np.uint8], most: int) -> str:
    """An image as a JPEG data URI, with at most so many pixels along its longer side."""
    from PIL import Image

    made = Image.fromarray(np.ascontiguousarray(image))
    if max(made.size) < most // 2:  # or the browser would blur the few pixels that it has
        times = most // 2 // max(made.size)
        made = made.resize((made.width * times, made.height * times), Image.Resampling.NEAREST)
    made.thumbnail((most, most))
    return _uri(made, "jpeg", quality=82)


def light_uri(weights_hw: NDArray[np.float64]) -> str:
    """What lies on an image, (h, w) weights: black, and clear where they are large; as a PNG data URI."""
    from PIL import Image

    high, wide = weights_hw.shape
    light = lightness(weights_hw, PIXELS * high, PIXELS * wide)
    pixels = np.zeros((*light.shape, 2), dtype=np.uint8)
    pixels[:, :, 1] = np.round(255 * (1 - DARK) * (1 - light))
    return _uri(Image.fromarray(pixels, "LA"), "png", optimize=True)


def _uri(image: object, kind: str, **how: object) -> str:
    stream = io.BytesIO()
    image.save(stream, kind, **how)  # type: ignore[attr-defined]
    return f"data:image/{kind};base64,{b64encode(stream.getvalue()).decode()}"
