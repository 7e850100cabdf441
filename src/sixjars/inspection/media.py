"""Small images inside of a page: photographs, and light on them where attention weights are large.

Dims: h rows and w columns of cells.
"""

import io
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from sixjars.inspection.overlay import DARK, lightness

PIXELS = 6
"""Of a cell along a side; a browser makes more of them."""


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
