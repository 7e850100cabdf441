"""Rows of a data file, read as a recipe asks for them."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from sixjars.data.tables import Examples, read
from sixjars.errors import DataError
from sixjars.recipe.data import Column, Files
from sixjars.recipe.sections import DataSettings

BOTH: dict[str, Column] = {"source": "en", "target": "de"}


def reading(
    folder: Path,
    files: Files,
    columns: Mapping[str, Column] = BOTH,
    many: Collection[str] = (),
    as_text: Mapping[str, Callable[[object], str]] | None = None,
    **more: Any,
) -> Examples:
    settings = DataSettings.model_validate({"folder": str(folder), "train": "unused", **more})
    return read(files, columns, settings=settings, many=many, as_text=as_text)


def message(folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        reading(folder, files, columns, **more)
    return str(caught.value)


def readers(
    columns: Mapping[str, Column], **usual: Any
) -> tuple[Callable[..., Examples], Callable[..., str]]:
    """`reading` and `message` with the usual columns and settings of some tests."""

    def of_file(
        folder: Path, files: Files = "a.jsonl", columns: Mapping[str, Column] = columns, **more: Any
    ) -> Examples:
        return reading(folder, files, columns, **{**usual, **more})

    def refused(
        folder: Path, files: Files = "a.jsonl", columns: Mapping[str, Column] = columns, **more: Any
    ) -> str:
        return message(folder, files, columns, **{**usual, **more})

    return of_file, refused


def rows_of(examples: Examples) -> list[tuple[str, ...]]:
    names = [name for name in examples.table.column_names if name != "line"]
    return list(zip(*(examples.table.column(name).to_pylist() for name in names), strict=True))


def with_lines(examples: Examples) -> list[tuple[str, ...]]:
    """The texts of each row, and its line in words."""
    columns = [map(str, column.to_pylist()) for column in examples.table.columns]
    return list(zip(*columns, strict=True))


def line_numbers(examples: Examples) -> list[int]:
    found: list[int] = examples.table.column("line").to_pylist()
    return found
