"""The arrays of an HDF5 file, each as if it were a .npy file.

Links to other files are never followed: a stranger's file reads nothing else of the machine.
"""

import io
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy as np

from sixjars_runtime.errors import DataError, MissingExtra

HDF5_ENDINGS: Final = frozenset({".h5", ".hdf5"})  # lowercased
Stamp = tuple[str, str, int, int]
"""Absolute path of the file or archive, name in the archive, size, last change in nanoseconds."""


def too_large(name: str, size: int, largest: int) -> DataError:
    """The sentence about a file in an archive that would fill the memory."""
    return DataError(
        f"{name} unpacks to {size:,} bytes, but {largest:,} are the most; make it smaller."
    )


@final
class Hdf5File:
    """An HDF5 file: names are read once, arrays when they are asked for; groups are folders."""

    def __init__(self, path: Path, largest: int | None) -> None:
        self.path = path
        self._largest = largest
        state = path.stat()
        self._state = state.st_size, state.st_mtime_ns
        self._names: set[str] = set()
        with self._opened() as file:
            import h5py

            def note(name: str, item: object) -> None:
                if isinstance(item, h5py.Dataset):  # a named type has a dtype too
                    self._names.add(name)

            file.visititems(note)

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._names

    def has_folder(self, name: str) -> bool:
        """Whether there is such a group."""
        return bool(name) and any(key.startswith(name.rstrip("/") + "/") for key in self._names)

    def ending(self, name: str) -> list[str]:
        """Nothing: names in HDF5 files must be whole."""
        return []

    def stamp(self, name: str) -> Stamp:
        """The path, name, size and time by which a hash is remembered."""
        return str(self.path.absolute()), name, *self._state

    def open(self, name: str) -> BinaryIO:
        """The array as a .npy file in memory."""
        called = f"{name} in {self.path}"
        with self._opened() as file:
            data = file[name]
            if data.is_virtual or data.external:
                raise DataError(
                    f"{called} has its numbers in another file, which is not opened; copy them "
                    "here."
                )
            if data.size is None:
                raise DataError(
                    f"{called} is an empty dataset (of no shape); write an array of numbers."
                )
            if self._largest is not None and data.size * data.dtype.itemsize > self._largest:
                raise too_large(called, data.size * data.dtype.itemsize, self._largest)
            try:
                array = np.asarray(data[()])
            except (OSError, ValueError) as error:
                raise DataError(
                    f"{called} is damaged or packed in a way that h5py cannot read: {error}."
                ) from error
        if array.dtype.hasobject:
            raise DataError(f"{called} holds texts or objects, but features are numbers.")
        packed = io.BytesIO()
        np.lib.format.write_array(packed, array, allow_pickle=False)
        packed.seek(0)
        return packed

    def _opened(self) -> Any:
        """Open the file anew, so that threads and processes share nothing."""
        try:
            import h5py
        except ImportError:
            raise MissingExtra("h5py", "hdf5") from None
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            raise DataError(
                f"{self.path} is not an HDF5 file, or is damaged or cut off."
            ) from error
