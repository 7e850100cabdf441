"""The six sections of a recipe or a run, in words, equations and numbers."""

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeGuard

from sixjars.data.dataset import Fields
from sixjars.learning.parameters import freeze_named
from sixjars.model.build import build, freeze_unused
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.data import are_learned
from sixjars.recipe.files import RecipeLike, find, packaged
from sixjars.recipe.sections import DataSettings, Recipe
from sixjars.runs.data.splits import raw_examples
from sixjars.runs.explanation.sections import Explanation, explanation_of
from sixjars.runs.folder.archive import is_packed
from sixjars.runs.folder.run_folder import has_run, open_run
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training.network import blank_batch
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RecipeError, hint, shown


def explain(
    what: RecipeLike,
    overrides: Sequence[str] = (),
    *,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Explanation:
    """The six sections of a recipe (file, name or dict), with overrides, or of a run's folder.

    Missing data is not needed.

    >>> import sixjars
    >>> print(sixjars.explain("translation/sample_initial").sections[3].lines[0])
    s_0 = tanh(W_0 h_T + b_0)
    """
    outside = AllowedCode(tuple(allow), tuple(components))
    if is_run(what):
        if overrides:
            fault = "a run is explained as it is; only a recipe takes KEY=VALUE."
            raise RecipeError([fault], "the command line")
        run = open_run(Path(os.fspath(what)), outside)
        blueprint = Blueprint.of(run.recipe, outside)
        note = ""
        fields = run.restored(blueprint.fields)
        run.check_sizes(blueprint, fields)
    else:
        blueprint = Blueprint.of(recipe_or_run(what, overrides, outside), outside)
        fields, note = _learned(blueprint)
    recipe, task = blueprint.recipe, TASKS[blueprint.recipe.task]
    network = build(blueprint.plan, fields.facts(), fresh=False)
    freeze_unused(network, blank_batch(fields))
    freeze_named(network, recipe.learning.freeze)
    letters = ", ".join(slot.letter for slot in task.inputs)
    title = f"{task.number} {task.name}: {task.title}"
    data = _data(recipe, fields, note)
    return explanation_of(recipe, network, title=title, data=data, letters=letters)


def is_run(what: RecipeLike) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this names a run, by its folder or the one file of a packed run; else a recipe."""
    return isinstance(what, str | os.PathLike) and (Path(what).is_dir() or is_packed(Path(what)))


def recipe_or_run(what: RecipeLike, overrides: Sequence[str], outside: AllowedCode) -> Recipe:
    """A recipe, where a run might be named too; for a name that is neither, the nearest one."""
    if isinstance(what, str | os.PathLike) and what and Path(what).suffix not in {".yaml", ".yml"}:
        name = os.fspath(what)
        try:
            find(name)
        except DataError:
            near = _near(Path(name)) or hint(name, list(packaged()))
            near = near or " `sixjars tasks` lists the recipes."
            raise DataError(f"there is neither a run nor a recipe {shown(name)}.{near}") from None
    return read_recipe(what, overrides, outside)


def _near(wrong: Path) -> str:
    """A sentence with the run that a wrong name probably means, among those in its folder."""
    places = sorted(wrong.parent.glob("*"))
    beside = {path.name: path for path in places if has_run(path) or is_packed(path)}
    near = get_close_matches(wrong.name, beside, n=1, cutoff=0.7)
    return f" Did you mean {str(beside[near[0]])!r}?" if near else ""


def _learned(blueprint: Blueprint) -> tuple[Fields, str]:
    """The fields with what the data teaches; without data, with as much as the recipe allows."""
    fields = blueprint.fields
    if not any(field.learns for field in fields.all.values()):
        return fields, ""
    try:
        return fields.learned(raw_examples(blueprint.recipe, fields)["train"]), ""
    except DataError as error:
        sizes = "each vocabulary is as large as the recipe allows, labels are as many as it says"
        note = f"the data is not here ({error}), so sizes are assumed: {sizes}, or 2"
        return fields.mapped(lambda field: field.assumed()), note


def _data(recipe: Recipe, fields: Fields, note: str) -> list[str]:
    sample = recipe.data.sample
    task = TASKS[recipe.task]
    if sample:
        counts = f"{sample.size} training, {sample.valid} validation and {sample.test} test"
        lines = [f"synthetic: {counts} examples"]
    else:
        lines = [f"train: {_named(recipe.data)}"]
    for slot in task.slots:
        lines.append(f"{slot.letter}, the {slot.name}: {fields.all[slot.name].describe()}")
    if are_learned(recipe.data.alignment):
        links = "links between words that are learned from the training set; they may be wrong"
        lines.append(f"alignment: {links}")
    return [*lines, note] if note else lines


def _named(data: DataSettings) -> str:
    """The training files, with weights other than 1; of parallel files also their columns."""
    named = []
    for part in data.training_files:
        columns = part.file if isinstance(part.file, Mapping) else {}
        apart = " and ".join(f"{name} ({column})" for column, name in columns.items())
        weight = "" if part.weight == 1 else f" × {part.weight:g}"
        named.append((apart or str(part.file)) + weight)
    return ", ".join(named)
