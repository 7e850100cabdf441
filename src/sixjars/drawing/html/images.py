"""Small images inside of a page: a photograph, or the light on it where attention is large.

Dims: h rows and w columns of cells.
"""

import io
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.light import DARK, lightness

PIXELS = 6
"""Pixels of a cell along a side; a browser enlarges them."""


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
