"""The files that `predict --input` means, and how many rows each has."""

import glob
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sixjars.bulk.remote import Storage, is_remote
from sixjars.data.text.files import ending_of, is_empty
from sixjars.errors import DataError
from sixjars.progress import number_of, tell
from sixjars.runs.files import DELIMITERS, input_file
from sixjars.runs.given import is_many, raw_lines
from sixjars.runs.input_file import InputFile
from sixjars.runs.predict import Predictor

ENDINGS: Final = (*DELIMITERS, ".json", ".jsonl", ".parquet", ".txt", ".xlsx")
"""What is read of a folder; each may be followed by .gz."""


@final
@dataclass(frozen=True)
class Inputs:
    """The files that are read."""

    root: str
    """The folder that all of them are in, or its URI."""
    sizes: Mapping[str, int]
    """The bytes of each, by its name there."""


def inputs_of(given: str, output: Path) -> Inputs:
    """A file, the files of a folder, or those that fit a glob; of this machine or, by a URI, of remote storage."""
    if not is_remote(given):
        files = found_files(Path(given), output)
        root = root_of(files)
        sizes = {path.resolve().relative_to(root).as_posix(): path.stat().st_size for path in files}
        return Inputs(str(root), sizes)
    storage = Storage(given)
    listed = storage.listed()
    what = f"no file fits --input {given}."
    if storage.is_folder:
        start = len(storage.name)
        there = [
            name for name in listed if not _is_of_programs(name[start:].lstrip("/").split("/"))
        ]
        listed = {name: listed[name] for name in there if ending_of(Path(name)) in ENDINGS}
        if len(there) > len(listed) > 0:
            tell(
                f"left out because of the ending: {number_of(len(there) - len(listed), 'file')} in {given}"
            )
        what = f"folder {given} has no file to read: none ends in {', '.join(ENDINGS)}."
    if not listed:
        raise DataError(what)
    common = posixpath.commonpath([posixpath.dirname(name) for name in listed])
    return Inputs(
        f"{storage.start}{common}".rstrip("/"),
        {name[len(common) :].lstrip("/"): size for name, size in listed.items()},
    )


def found_files(given: Path, output: Path) -> list[Path]:
    """A file, the files of a folder and its folders, or those that fit a glob; sorted, without what is written."""
    inside = output.resolve()
    if given.is_dir():
        there = [path for path in _below(given) if path.is_file()]
        found = [path for path in there if ending_of(path) in ENDINGS]
        other = sum(
            ending_of(path) not in ENDINGS and inside not in path.resolve().parents
            for path in there
        )
        if found and other:
            tell(f"left out because of the ending: {number_of(other, 'file')} in {given}")
        what = f"folder {given} has no file to read: none ends in {', '.join(ENDINGS)}."
    elif is_many(given):
        found = [Path(name) for name in glob.glob(str(given), recursive=True)]
        what = f"no file fits --input {given}."
    else:
        found, what = [given], f"input file {given} does not exist."
    kept = sorted(path for path in found if path.is_file() and inside not in path.resolve().parents)
    if not kept and any(path.is_file() for path in found):
        raise DataError(f"--output {output} is where the inputs are; choose another folder.")
    if not kept:
        raise DataError(what)
    return kept


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if not _is_of_programs(path.relative_to(folder).parts):
            yield path


def _is_of_programs(names: Sequence[str]) -> bool:
    """Names that begin with a dot or an underscore are those of programs, as `_SUCCESS`."""
    return any(name.startswith((".", "_")) for name in names)


def root_of(files: list[Path]) -> Path:
    """The folder that all of them are in."""
    return Path(os.path.commonpath([path.resolve().parent for path in files]))


def table_in(path: Path, predictor: Predictor) -> InputFile | None:
    """A file with columns; nothing where it has one input a line, or is empty."""
    if is_empty(path):
        return None
    return input_file(path, predictor.columns, predictor.recipe.data)


def rows_in(path: Path, table: InputFile | None) -> int:
    """How many rows it has; it is read to its end for that, unless it tells. Its columns are checked too."""
    if table is None:
        return sum(1 for _ in raw_lines(path))
    rows = table.rows()
    if table.blank or next(rows, None) is None:
        return 0
    count = table.count if table.count is not None else 1 + sum(1 for _ in rows)
    for sentence in table.notes():
        tell(sentence)
    return count
