"""Values are changed in the text of a recipe; its comments stay."""

from pathlib import Path
from typing import Any

import pytest

from sixjars.recipe.files import loaded, overridden
from sixjars.starter.recipe_text import with_values
from sixjars.starter.write import new
from sixjars.tasks import TASKS
from sixjars.tuning.search_space import overrides_of

CHANGES: list[dict[str, Any]] = [
    {"model.encoder.size": 64, "model.decoder.embedding.size": 32},
    {"model.bridge": {"kind": "initial"}},
    {"learning.rate": 1e-05, "learning.patience": None},
    {"model.encoder.new.deep": "a: b", "loss.smoothing": 0.0, "expect.bleu": 3.5},
    {"data.target.tokens": "bpe"},
    {},
]


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("task", TASKS)
def test_values_change_and_comments_stay(
    task: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    new(tmp_path / "a.yaml", task=task)
    text = (tmp_path / "a.yaml").read_text(encoding="utf-8")
    changed = with_values(text, changes)
    assert loaded(changed) == overridden(loaded(text), overrides_of(changes))
    comments = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert [line for line in changed.splitlines() if line.strip().startswith("#")] == comments


def test_another_layout_loses_comments_alone() -> None:
    text = "task: dialog\nmodel: {encoder: {size: 4},\n  decoder: {size: 4}} # wide\n"
    changed = with_values(text, {"model.encoder.size": 8})
    expected = {"task": "dialog", "model": {"encoder": {"size": 8}, "decoder": {"size": 4}}}
    assert loaded(changed) == expected
