"""A file that is written at the end of long work: whether it can be, asked before."""

import os
from pathlib import Path
from typing import Any

from sixjars.errors import DataError


def check_writable(path: Path, name: str = "") -> None:
    """Refuse a file that cannot be written; its folder may still have to be made. `name` is what a message calls it."""
    name = name or str(path)
    if path.is_dir():
        raise DataError(f"{name} is a folder; name a file in it.")
    place = next(folder for folder in path.absolute().parents if folder.exists())
    if not place.is_dir():
        raise DataError(f"{name} cannot be written: {place} is not a folder.")
    if not os.access(path if path.exists() else place, os.W_OK):
        raise DataError(f"{name} cannot be written: you may not write there.")


def check_not_read(path: Path, data: Any) -> None:
    """Refuse to write over the file with the data."""
    if isinstance(data, str | os.PathLike) and path.exists() and Path(data).exists() and path.samefile(data):
        raise DataError(f"{path} is the data that is read; choose another name.")
