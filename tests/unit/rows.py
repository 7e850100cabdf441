"""Rows of a data file, read as a recipe asks for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sixjars.data.tables import Examples, read
from sixjars.errors import DataError
from sixjars.recipe.data import Column, Files
from sixjars.recipe.sections import DataSettings

BOTH: dict[str, Column] = {"source": "en", "target": "de"}


def reading(
    folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any
) -> Examples:
    return read(files, columns, settings=DataSettings(folder=str(folder), train="unused", **more))


def rows_of(examples: Examples) -> list[tuple[str, ...]]:
    names = [name for name in examples.table.column_names if name != "line"]
    return list(zip(*(examples.table.column(name).to_pylist() for name in names), strict=True))


def line_numbers(examples: Examples) -> list[int]:
    found: list[int] = examples.table.column("line").to_pylist()
    return found


def message(folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        reading(folder, files, columns, **more)
    return str(caught.value)
