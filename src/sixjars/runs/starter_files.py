"""The image, video and feature files that a user's data names: those that cannot be used, and what is cut away."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, final

from sixjars.data.field import Field
from sixjars.data.media.files import MediaFiles
from sixjars.data.media.images import IMAGE_ENDINGS, need_pillow, read_image, size_of
from sixjars.errors import DataError, MissingExtra, SixJarsError
from sixjars.progress import number_of

LOOKED_AT: Final = 100
"""Images that are decoded, from all over the data."""
NAMED: Final = 3
"""Files that cannot be used, each with a sentence of its own."""
KEPT: Final = 0.8
"""Where a square in the middle has a smaller share of an image, that is worth a note."""
_MOST_PIXELS: Final = 50_000_000
_SMALL: Final = 8
"""Pixels of a side: whether an image can be decoded shows at any size."""


@final
@dataclass(frozen=True)
class LookedThrough:
    """What was found out about the files of a field."""

    field: str
    files: tuple[str, ...]
    """All that the rows name."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Of the images that were looked at."""
    faults: tuple[str, ...] = ()
    """A sentence for each file that is not there or cannot be decoded."""

    def notes(self, on_bad_row: str) -> Iterator[str]:
        """What a person should know, a sentence each; `on_bad_row` is what the recipe says."""
        if self.faults:
            named = " ".join([*self.faults[:NAMED], *(["..."] if len(self.faults) > NAMED else [])])
            files = number_of(len(self.files), "file")
            yield (
                f"{len(self.faults)} of {files} cannot be used, so the recipe says `on_bad_row: {on_bad_row}` "
                f"(error stops there, skip leaves them out). {named}"
            )
        if self.sizes and median(min(size) / max(size) for size in self.sizes) < KEPT:
            width, height = self.sizes[0]
            share = min(width, height) / max(width, height)
            yield (
                f"images such as {self.files[0]} are {width} x {height}; their middle square, {share:.0%} of them, is "
                f"all that the network gets. Write `fit: pad` under {self.field} to keep the whole."
            )


def look_through(field: Field, names: Sequence[str]) -> LookedThrough:
    """Whether all files are where the field looks, and whether images can be decoded; of many images, some of all."""
    files = tuple(dict.fromkeys(names))
    try:
        media: MediaFiles = field.files  # type: ignore[attr-defined]  # of a field whose values name files
        need_pillow()
    except (DataError, MissingExtra):  # of which training will tell
        return LookedThrough(field.name, files)
    faults = [_fault(media, name) for name in files if not media.has(name)]
    images = [name for name in files if name.lower().endswith(tuple(IMAGE_ENDINGS)) and media.has(name)]
    sizes = []
    for name in images[:: max(1, -(-len(images) // LOOKED_AT))]:
        try:
            with media.open(name) as file:
                sizes.append(size_of(file, name, max_pixels=_MOST_PIXELS))
                read_image(file, name, size=_SMALL, fit="stretch", max_pixels=_MOST_PIXELS)
        except SixJarsError as error:
            faults.append(str(error))
    return LookedThrough(field.name, files, tuple(sizes), tuple(faults))


def _fault(media: MediaFiles, name: str) -> str:
    """Why there is no such file."""
    try:
        media.open(name).close()
    except DataError as error:
        return str(error)
    return ""
