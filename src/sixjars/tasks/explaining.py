"""The six jars of a recipe or a run, in words, equations and numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sixjars.errors import DataError, RecipeError
from sixjars.inspection.explain import Explanation, explanation_of
from sixjars.recipe import Recipe
from sixjars.recipe.fields import LabelSettings, OrderSettings, TextSettings
from sixjars.tasks.corpus import facts_of, learned, seeing_of
from sixjars.tasks.fields import written_fields
from sixjars.tasks.parts import Facts, network_of
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.runs import open_run
from sixjars.tasks.table import TASKS

LETTERS = {
    "source": "x",
    "image": "I",
    "video": "I_1..I_T",
    "question": "q",
    "points": "p",
    "target": "y",
    "label": "y",
    "order": "y",
}
"""What the lecture calls each field."""
UNKNOWN_CLASSES = 2
"""Labels assumed where neither data nor recipe say how many there are."""


def explained(what: str, overrides: Sequence[str] = ()) -> Explanation:
    """A run's folder, or a recipe by file or name with `KEY=VALUE` overrides. Data that is not there is not needed."""
    if Path(what).is_dir():
        if overrides:
            raise RecipeError(["a run is explained as it is; only a recipe takes KEY=VALUE."], "the command line")
        run = open_run(Path(what))
        recipe, note = run.recipe, ""
        facts: Facts = facts_of(recipe, run.tokens())
    else:
        recipe = read_recipe(what, overrides)
        facts, note = _facts(recipe)
    task = TASKS[recipe.task]
    network = network_of(recipe.model, facts)
    title = f"{task.number} {task.name}: {task.title}"
    return explanation_of(recipe, network, title=title, data=_data(recipe, facts, note))


def _facts(recipe: Recipe) -> tuple[Facts, str]:
    """From the data; where it is not there, the largest that the recipe allows. Of orders alone it tells nothing."""
    written, told = written_fields(recipe), ""
    if not all(isinstance(settings, OrderSettings) for settings in written.values()):
        try:
            return facts_of(recipe, learned(recipe)), ""
        except DataError as error:
            told = f"the data is not here ({error}), so each vocabulary is taken as large as the recipe allows"
    facts = {name: _largest(settings) for name, settings in written.items()}
    return facts | facts_of(recipe, {}), told


def _largest(settings: TextSettings | LabelSettings | OrderSettings) -> dict[str, Any]:
    """What the data would say of a field if it had as much as the recipe allows."""
    if isinstance(settings, TextSettings):
        return {"vocabulary": settings.size, "vectors": None}
    if isinstance(settings, LabelSettings):
        return {"classes": settings.size or UNKNOWN_CLASSES, "several": settings.several}
    return {}


def _data(recipe: Recipe, facts: Facts, note: str) -> list[str]:
    sample = recipe.data.sample
    lines = [
        f"made up: {sample.size} to train, {sample.valid} to validate, {sample.test} to test"
        if sample
        else f"train: {recipe.data.train}"
    ]
    for name, settings in written_fields(recipe).items():
        letter = LETTERS[name]
        if isinstance(settings, LabelSettings):
            count = "any" if settings.several else "one"
            lines.append(f"{letter}, the {name}: {count} of {facts[name]['classes']}")
        elif isinstance(settings, OrderSettings):
            lines.append(f"{letter}, the {name}: positions of points, each at most once")
        else:
            made = f"{settings.tokens} in {settings.parts}" if settings.parts != "none" else settings.tokens
            lines.append(f"{letter}, the {name}: {made}, a vocabulary of {facts[name]['vocabulary']}")
    if recipe.data.points is not None:
        lines.append(f"{LETTERS['points']}, the points: {recipe.data.points.numbers} numbers each")
    for name, seeing in seeing_of(recipe).items():
        lines.append(f"{LETTERS[name]}, the {name}: {seeing.pixels}×{seeing.pixels} pixels")
    return [*lines, note] if note else lines
