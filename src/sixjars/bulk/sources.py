"""The files that `predict --input` names, and how many rows each has."""

import glob
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sixjars.bulk.remote import RemoteStorage, is_remote
from sixjars.data.tables import FORMATS, table_file
from sixjars.data.tables.table_file import TableFile
from sixjars.data.text.files import ending_of, is_empty
from sixjars.progress import number_of, tell
from sixjars.runs.prediction.inputs import is_many, raw_lines
from sixjars.runs.prediction.predictor import Predictor
from sixjars_runtime.errors import DataError

_NOTHING: Final = f"folder {{}} has no file to read: none ends in {', '.join(FORMATS)}."


@final
@dataclass(frozen=True)
class InputFiles:
    """The files that are read."""

    root: str
    """The folder that all of them are in, or its URI."""
    sizes: Mapping[str, int]
    """The bytes of each, by its name there."""


def inputs_of(given: str, output: Path) -> InputFiles:
    """One file, the files of a folder, or those that fit a glob; local, or remote by a URI."""
    if not is_remote(given):
        files = found_files(Path(given), output)
        root = Path(os.path.commonpath([path.resolve().parent for path in files]))
        sizes = {path.resolve().relative_to(root).as_posix(): path.stat().st_size for path in files}
        return InputFiles(str(root), sizes)
    storage = RemoteStorage(given)
    listed = storage.listed()
    nothing = f"no file fits --input {given}."
    if storage.is_folder:
        start = len(storage.name)
        there = [name for name in listed if not _is_of_programs(name[start:].strip("/").split("/"))]
        listed = {name: listed[name] for name in there if ending_of(Path(name)) in FORMATS}
        if listed:
            _tell_left_out(len(there) - len(listed), given)
        nothing = _NOTHING.format(given)
    if not listed:
        raise DataError(nothing)
    common = posixpath.commonpath([posixpath.dirname(name) for name in listed])
    sizes = {name[len(common) :].lstrip("/"): size for name, size in listed.items()}
    return InputFiles(f"{storage.start}{common}".rstrip("/"), sizes)


def _tell_left_out(count: int, folder: object) -> None:
    if count:
        tell(f"left out because of the ending: {number_of(count, 'file')} in {folder}")


def found_files(given: Path, output: Path) -> list[Path]:
    """One file, the files below a folder, or those that fit a glob; sorted, without the output."""
    inside = output.resolve()
    if given.is_dir():
        below = [path for path in given.rglob("*") if path.is_file()]
        there = [path for path in below if not _is_of_programs(path.relative_to(given).parts)]
        files = [path for path in there if ending_of(path) in FORMATS]
        others = [path for path in there if ending_of(path) not in FORMATS]
        if files:
            _tell_left_out(sum(inside not in path.resolve().parents for path in others), given)
        nothing = _NOTHING.format(given)
    elif is_many(given):
        files = [Path(name) for name in glob.glob(str(given), recursive=True)]
        nothing = f"no file fits --input {given}."
    else:
        files, nothing = [given], f"input file {given} does not exist."
    files = [path for path in files if path.is_file()]
    kept = sorted(path for path in files if inside not in path.resolve().parents)
    if files and not kept:
        raise DataError(f"--output {output} is where the inputs are; choose another folder.")
    if not kept:
        raise DataError(nothing)
    return kept


def _is_of_programs(names: Sequence[str]) -> bool:
    """Whether a name begins with a dot or an underscore, as those of programs, like `_SUCCESS`."""
    return any(name.startswith((".", "_")) for name in names)


def table_in(path: Path, predictor: Predictor) -> TableFile | None:
    """The table of a file with columns; None where it has one input a line, or is empty."""
    if is_empty(path):
        return None
    return table_file(path, predictor.columns, predictor.recipe.data)


def rows_in(path: Path, table: TableFile | None) -> int:
    """How many rows a file has, by reading it unless it says so; its columns are checked too."""
    if table is None:
        return sum(1 for _ in raw_lines(path))
    rows = table.rows()
    if table.is_blank() or next(rows, None) is None:
        return 0
    count = table.count if table.count is not None else 1 + sum(1 for _ in rows)
    for sentence in table.notes():
        tell(sentence)
    return count
