"""The arrays of an HDF5 file, each as if it were a .npy file.

A dataset may lie in another file, by a link or by where its numbers are stored; those are never followed, so a file
from a stranger reads nothing else of the machine.
"""

import io
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy as np

from sixjars_runtime.errors import DataError, MissingExtra

HDF5_ENDINGS: Final = frozenset({".h5", ".hdf5"})
"""How the names of HDF5 files end, lowercased."""
Stamp = tuple[str, str, int, int]
"""Absolute path of the file or archive, name in the archive, size, time of the last change in nanoseconds."""


def too_large(name: str, size: int, largest: int) -> DataError:
    """The sentence about a file in an archive that would fill the memory."""
    return DataError(
        f"{name} unpacks to {size:,} bytes, but {largest:,} are the most; make it smaller."
    )


@final
class Hdf5File:
    """An HDF5 file: its names are read once, its arrays when they are asked for; groups are as folders."""

    def __init__(self, path: Path, largest: int | None) -> None:
        self.path = path
        self._largest = largest
        state = path.stat()
        self._state = state.st_size, state.st_mtime_ns
        self._names: set[str] = set()
        with self._opened() as file:
            import h5py

            def note(name: str, one: object) -> None:
                if isinstance(one, h5py.Dataset):  # a named type has a dtype too
                    self._names.add(name)

            file.visititems(note)

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._names

    def has_folder(self, name: str) -> bool:
        """Whether there is such a group."""
        return bool(name) and any(one.startswith(name.rstrip("/") + "/") for one in self._names)

    def ending(self, name: str) -> list[str]:
        """Only whole names count."""
        return []

    def stamp(self, name: str) -> Stamp:
        """As the file is now."""
        return str(self.path.absolute()), name, *self._state

    def open(self, name: str) -> BinaryIO:
        """The array as a .npy file in memory."""
        whole = f"{name} in {self.path}"
        with self._opened() as file:
            data = file[name]
            if data.is_virtual or data.external:
                raise DataError(
                    f"{whole} has its numbers in another file, which is not opened; copy them here."
                )
            if data.size is None:
                raise DataError(
                    f"{whole} is an empty dataset (of no shape); write an array of numbers."
                )
            if self._largest is not None and data.size * data.dtype.itemsize > self._largest:
                raise too_large(whole, data.size * data.dtype.itemsize, self._largest)
            try:
                array = np.asarray(data[()])
            except (OSError, ValueError) as error:
                raise DataError(
                    f"{whole} is damaged or packed in a way that h5py cannot read: {error}."
                ) from error
        if array.dtype.hasobject:
            raise DataError(f"{whole} holds texts or objects, but features are numbers.")
        packed = io.BytesIO()
        np.lib.format.write_array(packed, array, allow_pickle=False)
        packed.seek(0)
        return packed

    def _opened(self) -> Any:
        """Anew each time, so that threads and processes do not meet."""
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
