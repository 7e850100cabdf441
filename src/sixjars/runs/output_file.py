"""A file that is written at the end of long work: checks before, and then all of it or nothing."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from sixjars.data.text.files import stem_and_ending
from sixjars_runtime.errors import DataError


def check_writable(path: Path, name: str = "") -> None:
    """Refuse a file that cannot be written, called `name`; its folder may still have to be made.

    It is tried: permissions alone do not tell, for whoever may do everything, or of a file system
    that takes no files.
    """
    name = name or str(path)
    try:
        if path.is_dir():
            raise DataError(f"{name} is a folder; name a file in it.")
        place = next(folder for folder in path.absolute().parents if folder.exists())
        if not place.is_dir():
            raise DataError(f"{name} cannot be written: {place} is not a folder.")
        if path.is_file():
            with path.open("ab"):
                pass
        elif not path.exists():  # a device or a pipe is not tried
            check_folder(place)
    except OSError as error:
        raise DataError(f"{name} cannot be written: {error.strerror or error}.") from None


def check_folder(place: Path) -> None:
    """Raise OSError where no file can be made in a folder."""
    with TemporaryFile(dir=place):
        pass


def check_new(path: Path, name: str = "") -> None:
    """Refuse to write over a file that holds something; an empty one or a device is allowed."""
    if path.is_file() and path.stat().st_size:
        raise DataError(f"{name or path} exists already; choose another name.")


def check_not_read(path: Path, data: Any) -> None:
    """Refuse to write over the file with the data."""
    names = data if isinstance(data, list | tuple) else [data]
    files = [Path(name) for name in names if isinstance(name, str | os.PathLike)]
    if path.exists() and any(file.exists() and path.samefile(file) for file in files):
        raise DataError(f"{path} is the data that is read; choose another name.")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file to write that becomes `path` in the end; a kill leaves the old one or the new one.

    What is no file, as a device or a pipe, is written to as it is.
    """
    target = path.resolve()  # a link stays one
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    _, ending = stem_and_ending(target.name)  # by which it may be written
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}{ending}")
    try:
        yield beside
        os.replace(beside, target)
    except OSError as error:
        if error.filename == str(beside):  # a name that nobody gave
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)
