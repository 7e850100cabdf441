"""Datasets of the hub, as the library `datasets` would load them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
import pytest

from sixjars.errors import MissingExtra
from sixjars.recipe.data import Column

from .rows import line_numbers, message, reading, rows_of


class FakeDataset:
    """As much of `datasets.Dataset` as is used."""

    def with_format(self, kind: str) -> "FakeDataset":
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[Any]:
        assert batch_size > 0
        for pairs in ([("a", "b"), ("c", "d")], [("e", ""), ("g", "h")]):
            translation = pyarrow.array([{"en": one, "de": two} for one, two in pairs])
            yield pyarrow.table({"translation": translation})


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None, str]]:
    calls: list[tuple[str, str | None, str]] = []

    def load_dataset(path: str, name: str | None = None, *, split: str) -> FakeDataset:
        calls.append((path, name, split))
        if path == "lost":
            raise FileNotFoundError("Dataset 'lost' is not on the hub.\nTraceback")
        return FakeDataset()

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


HUB: dict[str, Column] = {"source": "translation.en", "target": "translation.de"}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hf:wmt", ("wmt", None, "train")),
        ("hf:org/wmt:test", ("org/wmt", None, "test")),
        ("hf:org/wmt@de-en:train[:10%]", ("org/wmt", "de-en", "train[:10%]")),
        ("hf:wmt@de-en", ("wmt", "de-en", "train")),
    ],
)
def test_hub_names(
    name: str, call: tuple[str, str | None, str], loaded: list[Any], tmp_path: Path
) -> None:
    found = reading(tmp_path, name, HUB, on_bad_row="skip")
    assert loaded == [call]
    assert rows_of(found) == [("a", "b"), ("c", "d"), ("g", "h")]
    assert (found.skipped, line_numbers(found), found.where) == (1, [1, 2, 4], name)


def test_hub_takes_a_folder_beside_the_recipe(loaded: list[Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    reading(tmp_path, "hf:mine:test", HUB, on_bad_row="skip")
    assert loaded == [(str(tmp_path / "mine"), None, "test")]


@pytest.mark.usefixtures("loaded")
def test_hub_errors(tmp_path: Path) -> None:
    assert message(tmp_path, "hf:wmt", HUB) == "hf:wmt, row 3: column 'translation.de' is empty."
    sentence = message(tmp_path, "hf:lost", HUB)
    assert sentence == "hf:lost cannot be loaded: Dataset 'lost' is not on the hub."
    told = "'hf:@x' is no name of a dataset; write hf:NAME, hf:NAME:SPLIT or hf:NAME@CONFIG:SPLIT."
    assert message(tmp_path, "hf:@x", HUB) == told
    assert "column 'translation.fr' is unknown" in message(
        tmp_path, "hf:wmt", {"target": "translation.fr"}
    )


def test_hub_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra) as caught:
        reading(tmp_path, "hf:wmt", HUB)
    assert str(caught.value) == "datasets is not installed. Run: pip install 'sixjars[hub]'"
