"""Tables of faults, as a person meets them: what is asked for, and below it what is wrong with it.

An entry is a line, such as a task and overrides of its recipe, and indented lines with the
sentence, which may end in `…`.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from sixjars.errors import RecipeError
from sixjars.recipe.files import overridden
from sixjars.runs.recipes import recipe_of


def entries(table: str) -> list[tuple[str, str]]:
    """What stands at the beginning of each entry, and the sentence below it."""
    found: list[tuple[str, str]] = []
    for line in table.strip("\n").splitlines():
        if line.startswith(" "):
            what, sentence = found.pop()
            found.append((what, f"{sentence} {line.strip()}".strip()))
        elif line:
            found.append((line, ""))
    return found


def faults_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The faults of a recipe."""
    with pytest.raises(RecipeError) as caught:
        recipe_of(values, "test")
    return caught.value.faults


def check_fault(values: Mapping[str, Any], overrides: str, sentence: str) -> None:
    """With these overrides (two spaces between them) a recipe has this fault and no other."""
    [fault] = faults_of(overridden(dict(values), overrides.split("  ") if overrides else []))
    assert fault.endswith((".", "?"))
    if sentence.endswith("…"):
        assert fault.startswith(sentence.removesuffix("…"))
    else:
        assert fault == sentence
