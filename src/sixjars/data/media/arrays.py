"""Arrays of numbers from .npy files: checked before they are read, and never unpickled."""

import math
import tokenize
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.media.hdf5 import HDF5_ENDINGS
from sixjars_runtime.errors import DataError

ARRAY_ENDINGS: Final = frozenset({".npy"})  # endings of such files, lowercased
ARRAY_ARCHIVES: Final = frozenset({".npz", *HDF5_ENDINGS})
"""Endings of files with many arrays, lowercased."""
# Numpy parses a header as if it were Python.
_DAMAGED: Final = (
    *(ValueError, KeyError, EOFError, SyntaxError, TypeError, AttributeError, IndexError),
    *(OverflowError, tokenize.TokenError, MemoryError, RecursionError),
)
_WANTED: Final = (
    "features are (C), (N, C) or (H, W, C): one vector, one for each region or frame, or a grid "
    "of them"
)


def read_array(file: BinaryIO, name: str, *, max_numbers: int) -> NDArray[np.float32]:
    """The array as 32-bit numbers, all finite; `name` begins the sentence about a bad file."""
    shape_of(file, name, max_numbers=max_numbers)
    file.seek(0)
    try:
        array = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{name} is cut off or damaged; write it again.") from error
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(numbers).all():
        place = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise DataError(
            f"{name} has {array[tuple(place)]} at {place}, which is no finite 32-bit number."
        )
    return numbers


def shape_of(file: BinaryIO, name: str, *, max_numbers: int) -> tuple[int, ...]:
    """The shape in the header, of an array that features can be in; no numbers are read."""
    shape, dtype = _header(file, name)
    if dtype.hasobject:
        raise DataError(
            f"{name} holds pickled Python objects, which are never loaded; save an array of "
            "numbers."
        )
    if dtype.kind not in "fiub":
        raise DataError(f"{name} holds {dtype}, but features are real numbers.")
    if not 1 <= len(shape) <= 3:
        raise DataError(f"{name} has the shape {shape}, but {_WANTED}.")
    if min(shape) < 1:
        raise DataError(f"{name} is empty: its shape is {shape}.")
    if math.prod(shape) > max_numbers:
        raise DataError(
            f"{name} has {math.prod(shape):,} numbers, but 'max_numbers' is {max_numbers:,}; raise "
            "that."
        )
    return shape


def _header(file: BinaryIO, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    file.seek(0)
    if file.read(4) == b"PK\x03\x04":
        raise DataError(
            f"{name} is an archive of arrays; name it in 'media', and its arrays in the column."
        )
    file.seek(0)
    form = np.lib.format
    try:
        version = np.lib.format.read_magic(file)
        form = np.lib.format
        readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
        shape, _, dtype = readers[version](file)
        if any(isinstance(size, bool) or size >= 1 << 63 for size in shape):
            raise ValueError("no such array can be")
    except _DAMAGED as error:
        raise DataError(
            f"{name} is not a .npy file of numbers, or is damaged from its first bytes."
        ) from error
    return shape, dtype
