"""The six jars of a recipe or a run, in words, equations and numbers."""

from collections.abc import Sequence
from pathlib import Path

from sixjars.errors import DataError, RecipeError
from sixjars.inspection.explain import Explanation, explanation_of
from sixjars.recipe import Recipe
from sixjars.tasks.corpus import corpus_of, text_fields
from sixjars.tasks.parts import network_of
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.runs import open_run
from sixjars.tasks.table import TASKS


def explained(what: str, overrides: Sequence[str] = ()) -> Explanation:
    """A run's folder, or a recipe by file or name with `KEY=VALUE` overrides. Data that is not there is not needed."""
    if Path(what).is_dir():
        if overrides:
            raise RecipeError(["a run is explained as it is; only a recipe takes KEY=VALUE."], "the command line")
        run = open_run(Path(what))
        recipe, sizes = run.recipe, {name: tokens.size for name, tokens in run.tokens().items()}
        note = ""
    else:
        recipe = read_recipe(what, overrides)
        sizes, note = _vocabularies(recipe)
    task = TASKS[recipe.task]
    network = network_of(recipe.model, sizes)
    title = f"{task.number} {task.name}: {task.title}"
    return explanation_of(recipe, network, title=title, data=_data(recipe, sizes, note))


def _vocabularies(recipe: Recipe) -> tuple[dict[str, int], str]:
    """From the data; where it is not there, the largest that the recipe allows."""
    try:
        tokens = corpus_of(recipe, seed=recipe.learning.seed).tokens
    except DataError as error:
        largest = {name: settings.size for name, settings in text_fields(recipe).items()}
        return (
            largest,
            f"the data is not here ({error}), so each vocabulary is taken as large as the recipe allows",
        )
    return {name: kept.size for name, kept in tokens.items()}, ""


def _data(recipe: Recipe, sizes: dict[str, int], note: str) -> list[str]:
    sample = recipe.data.sample
    lines = [
        f"made up: {sample.size} to train, {sample.valid} to validate, {sample.test} to test"
        if sample
        else f"train: {recipe.data.train}"
    ]
    letters = {"source": "x", "target": "y"}
    for name, settings in text_fields(recipe).items():
        lines.append(f"{letters[name]}, the {name}: {settings.tokens}, a vocabulary of {sizes[name]}")
    return [*lines, note] if note else lines
