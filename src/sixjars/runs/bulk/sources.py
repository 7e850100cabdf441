"""The files that `predict --input` means, and how many rows each has."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sixjars.data.text.files import is_empty
from sixjars.errors import DataError
from sixjars.progress import number_of, tell
from sixjars.runs.files import DELIMITERS, InputFile, input_file
from sixjars.runs.given import is_many, raw_lines
from sixjars.runs.predict import Predictor

ENDINGS: Final = (*DELIMITERS, ".json", ".jsonl", ".parquet", ".txt", ".xlsx")
"""What is read of a folder; each may be followed by .gz."""


def found_files(given: Path, output: Path) -> list[Path]:
    """A file, the files of a folder and its folders, or those that fit a glob; sorted, without what is written."""
    inside = output.resolve()
    if given.is_dir():
        there = [path for path in _below(given) if path.is_file()]
        found = [path for path in there if ending_of(path) in ENDINGS]
        other = sum(ending_of(path) not in ENDINGS and inside not in path.resolve().parents for path in there)
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
    """Names that begin with a dot or an underscore are those of programs, as `_SUCCESS`."""
    for path in folder.rglob("*"):
        if not any(name.startswith((".", "_")) for name in path.relative_to(folder).parts):
            yield path


def ending_of(path: Path) -> str:
    """What its name says about its kind."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def root_of(files: list[Path]) -> Path:
    """The folder that all of them are in."""
    return Path(os.path.commonpath([path.resolve().parent for path in files]))


def table_in(path: Path, predictor: Predictor) -> InputFile | None:
    """A file with columns; nothing where it has one input a line, or is empty."""
    if is_empty(path):
        return None
    data = predictor.recipe.data
    return input_file(path, predictor.columns, header=data.header, sheet=data.sheet)


def rows_in(path: Path, table: InputFile | None) -> int:
    """How many rows it has; it is read to its end for that, unless it tells. Its columns are checked too."""
    if table is None:
        return sum(1 for _ in raw_lines(path))
    rows = table.rows()
    if table.blank or next(rows, None) is None:
        return 0
    return table.count if table.count is not None else 1 + sum(1 for _ in rows)
