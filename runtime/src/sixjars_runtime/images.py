"""Image files become squares of bytes: upright, in colour, all of one size.

What cannot be read whole is refused: an image is never half grey because its file was cut off.

Dims: C the colours red, green and blue, H rows, W columns.
"""

import math
import re
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import DataError, SixJarsError, need

if TYPE_CHECKING:
    from PIL.Image import Image

Fit = Literal["crop", "pad", "stretch"]
"""How another shape becomes a square: its middle, bars at the sides, or stretched."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of an image, in pixels."""
IMAGE_ENDINGS: Final = frozenset(
    ".avif .bmp .gif .jfif .jp2 .jpe .jpeg .jpg .pgm .png .pnm .ppm .tif .tiff .webp".split()
)
"""How the names of images end, lowercased."""
LONGEST: Final = 65_535
"""Pixels of a side, as in JPEG: a thread of millions of pixels would be decoded for nothing."""
SCANS: Final = 100
"""Of a JPEG: a progressive one has about ten, and each takes as long as the whole image."""
_MARKER: Final = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")
"""Of a JPEG: what has a length behind it, or is the end; the others stand alone, or are data."""
LARGE: Final = 16_000_000
"""Pixels of an image that takes hundreds of megabytes while it is decoded."""
_FEW: Final = BoundedSemaphore(2)
"""How many of those are decoded at a time, in all threads."""
_FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
"""What is read; Pillow knows more, but some of it starts other programs."""
_GREY: Final = 128
"""The bars at the sides."""
_SPARE: Final = 2
"""A large JPEG is decoded at 1/2, 1/4 or 1/8 of its size, but no smaller than this many times what
is needed."""
_GAP: Final = 3
"""A larger image becomes smaller by averages of blocks first, but no smaller than this many times
what is needed."""
_REACH: Final = 1.5
"""How far a pixel lies beyond a part of an image that cubic interpolation still reads for it, in
new pixels."""
_ORIENTATION: Final = 0x0112
"""The EXIF tag that tells how the camera was held."""
_TURNED: Final = (
    "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90"
)
_TURNS: Final = dict(enumerate(_TURNED.split(), start=2))
"""What makes an image upright, by that tag."""
need_pillow: Final = partial(need, "PIL.Image", "vision", "pillow")
"""Refuses to go on without Pillow."""


def read_image(
    file: BinaryIO, name: str, *, size: int, fit: Fit, max_pixels: int
) -> NDArray[np.uint8]:
    """Read an image for a network, (3, size, size); `name` begins what is said of a bad one."""
    with _refusing(name):
        image = _opened(file, name, max_pixels)
        side = max(image.size) if fit == "pad" else min(image.size)
        with decoding(*image.size):
            return framed(_unpacked(image, name, size / side), size=size, fit=fit)


def size_of(file: BinaryIO, name: str, *, max_pixels: int) -> tuple[int, int]:
    """Return width and height of an image, as they are written in its file."""
    with _refusing(name):
        width, height = _opened(file, name, max_pixels).size
        return width, height


def upright(file: BinaryIO, name: str, *, max_pixels: int, longest: int = 640) -> NDArray[np.uint8]:
    """Return the whole image as a person sees it, (H, W, 3), its longer side at most `longest`."""
    with _refusing(name):
        image = _opened(file, name, max_pixels)
        image = _unpacked(image, name, longest / max(image.size))
        image.thumbnail((longest, longest), reducing_gap=3.0)
        return np.array(image, dtype=np.uint8)


def placed(height: int, width: int, fit: Fit) -> tuple[float, float, float, float]:
    """Return what the square covers of an upright image: left, top, right and bottom.

    They are shares of its width and height.

    With bars at the sides it is more than the image, so the shares lie outside 0 to 1.

    >>> placed(100, 200, "crop")
    (0.25, 0.0, 0.75, 1.0)
    >>> placed(100, 200, "pad")
    (0.0, -0.5, 1.0, 1.5)
    """
    if fit == "stretch":
        return 0.0, 0.0, 1.0, 1.0
    side = min(height, width) if fit == "crop" else max(height, width)
    left, top = (1 - side / width) / 2, (1 - side / height) / 2
    return left, top, 1 - left, 1 - top


def framed(image: "Image", *, size: int, fit: Fit) -> NDArray[np.uint8]:
    """Return an image in colour as a square, (3, size, size)."""
    width, height = image.size
    if fit == "pad":
        # As many pixels at both ends, and never all of them.
        scale = size / max(width, height)
        bars = [(size - side * scale) / 2 for side in (height, width)]
        top, left = (min(round(bar), (size - 1) // 2) for bar in bars)
        inner = _resized(image, (size - 2 * left, size - 2 * top))
        square_HWC = np.full((size, size, 3), _GREY, dtype=np.uint8)
        square_HWC[top : top + inner.height, left : left + inner.width] = np.asarray(inner)
    else:
        left_share, top_share, right_share, bottom_share = placed(height, width, fit)
        box = (left_share * width, top_share * height, right_share * width, bottom_share * height)
        square_HWC = np.asarray(_resized(image, (size, size), box))
    return np.ascontiguousarray(square_HWC.transpose(2, 0, 1))


def in_colour(image: "Image", name: str) -> "Image":
    """Return an image in red, green and blue: on white if transparent, 16 bits become 8."""
    import PIL.Image

    if image.mode == "F" or image.mode.startswith("I"):
        grey_HW = np.asarray(image)
        if image.mode == "F" or grey_HW.min() < 0 or grey_HW.max() > 0xFFFF:
            raise DataError(
                f"{name} has 32 bits for each pixel, which tells no colour; save it with 8 or 16."
            )
        image = PIL.Image.fromarray((grey_HW.astype(np.uint32) // 257).astype(np.uint8))
    if image.mode in {"RGBA", "RGBa", "LA", "La", "PA"} or "transparency" in image.info:
        clear = image.convert("RGBA")
        image = PIL.Image.alpha_composite(PIL.Image.new("RGBA", clear.size, "white"), clear)
    return image if image.mode == "RGB" else image.convert("RGB")


def decoding(width: int, height: int) -> AbstractContextManager[object]:
    """Wait for others before something very large is decoded, or memory would run out."""
    return _FEW if width * height > LARGE else nullcontext()


def check_size(name: str, width: int, height: int, max_pixels: int) -> None:
    """Refuse what would take too much memory or time, before it does."""
    if max(width, height) > LONGEST:
        raise DataError(
            f"{name} has {width} x {height} pixels, but a side may have {LONGEST:,}; cut it."
        )
    if width * height > max_pixels:
        raise DataError(
            f"{name} has {width} x {height} pixels, but 'max_pixels' is {max_pixels}; make it "
            "smaller or raise that."
        )


def _opened(file: BinaryIO, name: str, max_pixels: int) -> "Image":
    """Open an image, and check by its header that it can be decoded."""
    file.seek(0)
    if not file.read(1):
        raise DataError(f"{name} is empty.")
    image = _identified(file)
    check_size(name, *image.size, max_pixels)
    # To count the frames would take minutes, where there are very many.
    several = getattr(image, "is_animated", False)
    fault = ""
    if several and image.format == "TIFF":
        fault = "has several pages; save the one that is meant as a file of its own"
    elif several and image.format != "MPO":  # a photo with previews of itself
        fault = (
            "moves: it has several frames. Videos belong to the video systems; an image is still"
        )
    elif image.format in {"JPEG", "MPO"} and _scans(file) > SCANS:
        fault = f"has more than {SCANS} scans, which would take very long to decode; save it again"
    if fault:
        raise DataError(f"{name} {fault}.")
    return image


def _scans(file: BinaryIO) -> int:
    """Count how often a JPEG goes over its image, up to one more than may be.

    Segments are skipped by their lengths, for they may hold anything, and so is what follows the
    image's end.
    """
    place, count, start, at, block = file.tell(), 0, 0, 0, b""
    while count <= SCANS:
        marker = _MARKER.search(block, at)
        if marker is None or marker.end() + 2 > len(block):
            start += max(at, len(block) - 1, 0) if marker is None else marker.start()
            file.seek(start)
            block, at = file.read(1 << 20), 0
            if len(block) < 4:
                break
        elif marker.group() == b"\xff\xd9":
            break
        else:
            count += marker.group() == b"\xff\xda"
            at = marker.end() + int.from_bytes(block[marker.end() : marker.end() + 2])
    file.seek(place)
    return count


def _identified(file: BinaryIO) -> "Image":
    """Return what `PIL.Image.open` does, without its warning, which comes before any check."""
    import PIL.Image

    PIL.Image.init()
    file.seek(0)
    beginning = file.read(16)
    for kind in _FORMATS:
        factory, accepts = PIL.Image.OPEN.get(kind, (None, None))
        accepted = accepts is None or accepts(beginning)  # a text would say why not
        if factory is not None and accepted and not isinstance(accepted, str):
            # As Pillow does: whatever raises one of these is not of this kind.
            with suppress(SyntaxError, IndexError, TypeError, struct.error):
                file.seek(0)
                image: Image = factory(file, "")
                most = 2 * (PIL.Image.MAX_IMAGE_PIXELS or math.inf)
                if image.width * image.height > most:
                    raise PIL.Image.DecompressionBombError
                return image
    raise PIL.UnidentifiedImageError


def _unpacked(image: "Image", name: str, scale: float) -> "Image":
    """Decode an image, upright and in colour, to be used at this scale."""
    from PIL.Image import Transpose

    width, height = (max(1, round(side * scale * _SPARE)) for side in image.size)
    image.draft(None, (width, height))
    image.load()
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    image = in_colour(image, name)
    return image if turn is None else image.transpose(Transpose[turn])


def _resized(image: "Image", size: tuple[int, int], box: Box | None = None) -> "Image":
    """Resize a part of an image by cubic interpolation, of each row, then of each column.

    Pillow would do both at once, but which of them first depends on its version: from 13 on columns
    come first where an image is tall. What lies between is rounded to bytes, so that the pixels
    would be others. Of an image that is much larger than needed, blocks are averaged first.
    """
    from PIL.Image import Resampling

    sides = list(box or (0, 0, *image.size))
    scales = [(sides[axis + 2] - sides[axis]) / size[axis] for axis in (0, 1)]
    blocks = [int(scale / _GAP) or 1 for scale in scales]
    if blocks != [1, 1]:
        begin = [max(0, int(sides[axis] - _REACH * scales[axis])) for axis in (0, 1)]
        end = [math.ceil(sides[axis + 2] + _REACH * scales[axis]) for axis in (0, 1)]
        sides = [(side - begin[at % 2]) / blocks[at % 2] for at, side in enumerate(sides)]
        inside = (begin[0], begin[1], min(image.width, end[0]), min(image.height, end[1]))
        image = image.reduce((blocks[0], blocks[1]), inside)
    left, top, right, bottom = sides
    rows = image.resize((size[0], image.height), Resampling.BICUBIC, (left, 0, right, image.height))
    return rows.resize(size, Resampling.BICUBIC, (0, top, size[0], bottom))


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Turn every way in which a file can be no image into one sentence."""
    need_pillow()
    import PIL.Image

    try:
        yield
    except (SixJarsError, MemoryError):
        raise
    except Exception as error:
        reason = f"is broken or cut off: {str(error).strip().rstrip('.') or type(error).__name__}"
        if isinstance(error, PIL.UnidentifiedImageError):
            kinds = ", ".join(_FORMATS)
            reason = f"is not an image, or damaged from its first bytes; {kinds} can be read"
        elif isinstance(error, PIL.Image.DecompressionBombError):
            reason = "has too many pixels to be decoded safely; make it smaller"
        raise DataError(f"{name} {reason}.") from error
