"""The image, video and feature files that a user's data names: those that cannot be used, and what is cut away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, final

from sixjars.data.field import Field
from sixjars.data.media.files import MediaFiles
from sixjars.data.media.images import IMAGE_ENDINGS, need_pillow, read_image, size_of
from sixjars.errors import DataError, MissingExtra, SixJarsError
from sixjars.progress import number_of

OPENED: Final = 10_000
"""Images of which the beginning is read, which tells their size; of more, some from all over the data."""
DECODED: Final = 100
"""Images of which all is read, from all over the data."""
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
    sizes: Mapping[str, tuple[int, int]]
    """Of the images that were looked at, by name."""
    faults: tuple[str, ...] = ()
    """A sentence for each file that is not there or cannot be decoded."""
    sampled: str = ""
    """How many images were looked at, where it was not all to their ends."""

    def notes(self, on_bad_row: str) -> Iterator[str]:
        """What a person should know, a sentence each; `on_bad_row` is what the recipe says."""
        if self.faults:
            named = " ".join([*self.faults[:NAMED], *(["..."] if len(self.faults) > NAMED else [])])
            files = number_of(len(self.files), "file")
            yield (
                f"{len(self.faults)} of {files} cannot be used{self.sampled}, so the recipe says "
                f"`on_bad_row: {on_bad_row}` (error stops there, skip leaves them out). {named}"
            )
        shares = {name: min(size) / max(size) for name, size in self.sizes.items()}
        if shares and median(shares.values()) < KEPT:
            name, share = next((name, share) for name, share in shares.items() if share < KEPT)
            width, height = self.sizes[name]
            yield (
                f"images such as {name} are {width} x {height}; their middle square, {share:.0%} of them, is "
                f"all that the network gets. Write `fit: pad` under {self.field} to keep the whole."
            )


def look_through(field: Field, names: Sequence[str]) -> LookedThrough:
    """Whether all files are where the field looks, and whether images can be decoded."""
    files = tuple(dict.fromkeys(names))
    try:
        media: MediaFiles = field.files  # type: ignore[attr-defined]  # of a field whose values name files
        need_pillow()
    except (DataError, MissingExtra):  # of which training will tell
        return LookedThrough(field.name, files, {})
    faults = [_fault(media, name) for name in files if not media.has(name)]
    images = [name for name in files if name.lower().endswith(tuple(IMAGE_ENDINGS)) and media.has(name)]
    opened, decoded = _some(images, OPENED), {*_some(images, DECODED)}
    sizes = {}
    for name in opened:
        try:
            with media.open(name) as file:
                size = size_of(file, name, max_pixels=_MOST_PIXELS)
                if name in decoded:
                    read_image(file, name, size=_SMALL, fit="stretch", max_pixels=_MOST_PIXELS)
                sizes[name] = size
        except SixJarsError as error:
            faults.append(str(error))
    every = "all" if len(opened) == len(images) else f"{len(opened):,} of {len(images):,}"
    part = f" ({every} images were opened, and {len(decoded)} of them read to the end)"
    return LookedThrough(field.name, files, sizes, tuple(faults), part if len(decoded) < len(images) else "")


def _some(names: Sequence[str], count: int) -> list[str]:
    """So many of the names, at equal distances; the smaller of two counts chooses from what the larger one does.

    >>> _some("abcdef", 3), _some("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    count = min(count, len(names))
    return [names[at * len(names) // count] for at in range(count)]


def _fault(media: MediaFiles, name: str) -> str:
    """Why there is no such file."""
    try:
        media.open(name).close()
    except DataError as error:
        return str(error)
    return ""
