"""The shapes of a user's images, and what of them a network gets."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from sixjars.data.media.files import MediaFiles
from sixjars.data.media.images import IMAGE_ENDINGS, size_of
from sixjars.errors import SixJarsError

LOOKED_AT: Final = 20
KEPT: Final = 0.8
"""Where a square in the middle has a smaller share of an image, that is worth a note."""
_MOST_PIXELS: Final = 50_000_000


def cropped(field: str, places: Sequence[Path], files: Sequence[str]) -> list[str]:
    """A sentence where `fit: crop` would cut away much of most images."""
    sizes: list[tuple[int, int]] = []
    with suppress(SixJarsError):
        media = MediaFiles(places, memory=places[0])
        for name in [name for name in files if name.lower().endswith(tuple(IMAGE_ENDINGS))][:LOOKED_AT]:
            with suppress(SixJarsError), media.open(name) as file:
                sizes.append(size_of(file, name, max_pixels=_MOST_PIXELS))
    if not sizes or median(min(size) / max(size) for size in sizes) >= KEPT:
        return []
    width, height = sizes[0]
    share = min(width, height) / max(width, height)
    return [
        f"images such as {files[0]} are {width} x {height}; their middle square, {share:.0%} of them, is all that the "
        f"network gets. Write `fit: pad` under {field} to keep the whole."
    ]
