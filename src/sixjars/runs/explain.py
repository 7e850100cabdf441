"""The six sections of a recipe or a run, in words, equations and numbers."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sixjars.data.dataset import Fields
from sixjars.errors import DataError, RecipeError
from sixjars.inspection.explanation import Explanation, explanation_of
from sixjars.model.build import build, freeze_unused
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint, raw_examples
from sixjars.runs.folder import open_run
from sixjars.runs.recipes import read_recipe
from sixjars.runs.train import blank_batch
from sixjars.tasks import TASKS


def explain(
    what: str | Path, overrides: Sequence[str] = (), *, allow: Iterable[str] = (), components: Iterable[Any] = ()
) -> Explanation:
    """A run's folder, or a recipe by file or name with `KEY=VALUE` overrides. Data that is not there is not needed.

    >>> import sixjars
    >>> print(sixjars.explain("translation/sample_initial").sections[3].lines[0])
    s_0 = tanh(W_0 h_T + b_0)
    """
    outside = Outside(tuple(allow), tuple(components))
    if Path(what).is_dir():
        if overrides:
            raise RecipeError(["a run is explained as it is; only a recipe takes KEY=VALUE."], "the command line")
        run = open_run(Path(what), outside)
        blueprint, note = Blueprint.of(run.recipe, outside), ""
        fields = run.restored(blueprint.fields)
        run.check_sizes(blueprint, fields)
    else:
        blueprint = Blueprint.of(read_recipe(str(what), overrides, outside), outside)
        fields, note = _learned(blueprint)
    recipe, task = blueprint.recipe, TASKS[blueprint.recipe.task]
    network = build(blueprint.plan, fields.facts(), fresh=False)
    freeze_unused(network, blank_batch(fields))
    letters = ", ".join(slot.letter for slot in task.inputs)
    title = f"{task.number} {task.name}: {task.title}"
    return explanation_of(recipe, network, title=title, data=_data(recipe, fields, note), given=letters)


def _learned(blueprint: Blueprint) -> tuple[Fields, str]:
    """With what the data teaches; where it is not there, with as much as the recipe allows."""
    fields = blueprint.fields
    if not any(field.learns for field in fields.all.values()):
        return fields, ""
    try:
        return fields.learned(raw_examples(blueprint.recipe, fields)["train"]), ""
    except DataError as error:
        note = f"the data is not here ({error}), so each vocabulary is taken as large as the recipe allows"
        return fields.mapped(lambda field: field.assumed()), note


def _data(recipe: Recipe, fields: Fields, note: str) -> list[str]:
    sample, task = recipe.data.sample, TASKS[recipe.task]
    lines = [
        f"synthetic: {sample.size} training, {sample.valid} validation and {sample.test} test examples"
        if sample
        else f"train: {recipe.data.train}"
    ]
    lines += [f"{slot.letter}, the {slot.name}: {fields.all[slot.name].describe()}" for slot in task.slots]
    return [*lines, note] if note else lines
