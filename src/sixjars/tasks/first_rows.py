"""How a file of the user's begins: its first values, by the names of their columns."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

from sixjars.data.films import FILM_ENDINGS
from sixjars.data.pictures import PICTURE_ENDINGS
from sixjars.errors import DataError
from sixjars.recipe.fields import Column
from sixjars.tasks.table import Task

ENDINGS = {"image": tuple(PICTURE_ENDINGS), "video": tuple(FILM_ENDINGS)}
"""What the names of pictures and films end in."""


def ending_of(data: Path) -> str:
    """What the name of a file ends in, packed or not."""
    return data.with_suffix("").suffix if data.suffix == ".gz" else data.suffix


def first_row(task: Task, data: Path) -> dict[Column, Any]:
    """The first values, by the names of their columns, or by their numbers where the file has no names."""
    if ending_of(data) == ".parquet":
        return _first_parquet_row(data)
    lines = first_lines(data)
    try:
        if ending_of(data) in (".jsonl", ".json"):
            return dict(json.loads(lines[0]))
        cells, below, *_ = (
            [*csv.reader(lines), []] if ending_of(data) == ".csv" else [line.split("\t") for line in lines]
        )
    except (ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    endings = tuple(ending for name in task.media for ending in ENDINGS[name])
    files = [any(cell.lower().endswith(endings) for cell in line) for line in (cells, below)]
    if set(task.columns) <= set(cells) or files == [False, True]:
        return dict(zip(cells, [*below, *cells[len(below) :]], strict=False))
    return dict(enumerate(cells, start=1))


def first_lines(data: Path) -> list[str]:
    """Two lines, the second empty where there is none."""
    try:
        with (
            gzip.open(data, "rt", encoding="utf-8-sig")
            if data.suffix == ".gz"
            else data.open(encoding="utf-8-sig") as lines
        ):
            found = [next(lines, "") for _ in range(2)]
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    if not found[0]:
        raise DataError(f"{data} has no rows.")
    return [line.rstrip("\r\n") for line in found]


def _first_parquet_row(data: Path) -> dict[Column, Any]:
    """That row alone: the file may be large."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(data) as file:
            batch = next(file.iter_batches(batch_size=1), None)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{data} is not a Parquet file or is damaged: {reason}.") from error
    if not batch:
        raise DataError(f"{data} has no rows.")
    return dict(batch.to_pylist()[0])
