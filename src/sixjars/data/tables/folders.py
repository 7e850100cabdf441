"""A folder (or a .zip) with one folder for each label, and images or videos in them."""

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final, NoReturn

from sixjars.data.media.files import is_hidden
from sixjars.data.storage.cache import Examples
from sixjars.data.tables.rows import ReadSettings, Record, RowFault, check_columns, kept
from sixjars.data.text.files import check_file
from sixjars_runtime.errors import DataError
from sixjars_runtime.images import IMAGE_ENDINGS
from sixjars_runtime.videos import VIDEO_ENDINGS

LABEL: Final = "label"  # the column with the name of the folder
ENDINGS: Final = {"image": IMAGE_ENDINGS, "video": VIDEO_ENDINGS}
"""The columns that name the file, and the files that count as such."""


def read_folders(place: Path, wanted: ReadSettings) -> Examples:
    """Make a row of each file, in the order of names: its path, and the folder it is in.

    If `image` is wanted for, the files are those that end like images; if `video`, like videos.
    Hidden files and all others are not looked at. Folders below those of the labels belong to their
    label. `line` is the number of the file.
    """
    check_columns(wanted, (*ENDINGS, LABEL), place)
    kinds = [kind for kind in ENDINGS if kind in wanted.keys] or list(ENDINGS)
    endings = tuple(sorted({ending for kind in kinds for ending in ENDINGS[kind]}))
    files = {name for name in map(PurePosixPath, _listed(place)) if _counts(name, endings)}
    names = sorted(files, key=lambda name: name.parts)
    if not names:
        raise DataError(
            f"{place} has no {' or '.join(f'{kind}s' for kind in kinds)} ({' '.join(endings)}); "
            "put the files of each label into a folder with its name."
        )
    _check_depth(names, place)
    return replace(kept(_records(names), wanted, name=str(place), unit="file"), unit="")


def _listed(path: Path) -> Iterable[str]:
    """The names of all files in a folder or a .zip, relative to it."""
    if path.is_dir():
        return _walked(path)
    check_file(path)
    if path.suffix.lower() != ".zip":
        raise DataError(
            f"{path} is a file; format folders needs a folder or a .zip with one folder for each "
            "label."
        )
    try:
        with zipfile.ZipFile(path) as packed:
            return [entry.filename for entry in packed.infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DataError(
            f"{path} is not a .zip file or is damaged: {str(error).rstrip('.')}."
        ) from error
    except OSError as error:
        _refuse(path, error)


def _walked(path: Path) -> Iterator[str]:
    """The files below a folder; folders of labels may be links, those below are not followed."""

    def refuse(error: OSError) -> None:
        _refuse(Path(error.filename), error)

    try:
        entries = list(path.iterdir())
    except OSError as error:
        _refuse(path, error)
    for entry in entries:
        if not entry.is_dir():
            yield entry.name
            continue
        for folder, _, files in os.walk(entry, onerror=refuse):
            inside = Path(folder).relative_to(path)
            yield from ((inside / file).as_posix() for file in files)


def _refuse(path: Path, error: OSError) -> NoReturn:
    raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def _counts(name: PurePosixPath, endings: tuple[str, ...]) -> bool:
    return name.suffix.lower() in endings and not is_hidden(name)


def _check_depth(names: list[PurePosixPath], path: Path) -> None:
    """Refuse files in no folder, and one folder around the folders of all labels."""
    tops = {name.parts[0] for name in names}
    if all(len(name.parts) == 1 for name in names):
        raise DataError(
            f"{path} has no folders, so its files have no labels; put the files of each label into "
            "a folder with its name, or give a table that names each file and its label."
        )
    if len(tops) == 1 and all(len(name.parts) > 2 for name in names):
        top = names[0].parts[0]
        raise DataError(
            f"{path} has one folder, {top!r}, and all files are in folders below it; "
            "the folders of the labels must be at the top."
        )


def _records(names: list[PurePosixPath]) -> Iterator[Record]:
    for number, name in enumerate(names, 1):
        try:
            str(name).encode()
        except UnicodeEncodeError:
            yield number, RowFault(number, f"the name {str(name)!a} is not UTF-8; rename the file.")
            continue
        if len(name.parts) == 1:
            yield number, RowFault(number, f"{str(name)!r} lies in no folder, so it has no label.")
        else:
            yield number, {**dict.fromkeys(ENDINGS, str(name)), LABEL: name.parts[0]}
