"""What `sixjars new` makes of a file: the recipe that it writes, and what it tells."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sixjars.recipe.sections import Recipe
from sixjars.runs.recipes import read_recipe
from sixjars.starter.write import started

LABELS = "document_classification"
Rows = Sequence[Mapping[str, Any]] | Sequence[Sequence[object]]


@dataclass(frozen=True)
class Starter:
    """A starter recipe."""

    path: Path
    notes: tuple[str, ...]
    stops: bool = False

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def recipe(self) -> Recipe:
        return read_recipe(str(self.path))

    @property
    def columns(self) -> list[str | int]:
        return [settings.column for settings in self.recipe.data.fields.values()]

    def setting(self, field: str, key: str) -> Any:
        return self.recipe.data.fields[field].model_dump()[key]


def put(path: Path, rows: str | bytes | Rows) -> Path:
    """A file with this text; or of JSON lines, or of columns between tabs."""
    if not isinstance(rows, str | bytes):
        lines = [
            json.dumps(row) if isinstance(row, Mapping) else "\t".join(map(str, row))
            for row in rows
        ]
        rows = "".join(f"{line}\n" for line in lines)
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    return path


Start = Callable[..., Starter]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Write a starter recipe for a file, or for rows that are put into one: JSON lines, or columns between tabs."""
    numbers = count()

    def run(
        task: str, data: Path | str | Rows, name: str = "", columns: Mapping[str, Any] | None = None
    ) -> Starter:
        if not isinstance(data, Path):
            is_json = not isinstance(data, str) and isinstance(data[0], Mapping)
            data = put(tmp_path / (name or ("rows.jsonl" if is_json else "rows.tsv")), data)
        recipe = started(
            tmp_path / f"new{next(numbers)}.yaml", task=task, data=data, columns=columns
        )
        return Starter(recipe.path, recipe.notes, recipe.stops)

    return run
