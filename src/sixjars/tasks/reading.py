"""From a recipe's text to a checked recipe: all faults of all jars are told at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sixjars.errors import RecipeError, unknown
from sixjars.evaluation.metrics import metric_named
from sixjars.recipe import ModelSettings, Recipe
from sixjars.recipe.jars import DataSettings, EvaluationSettings, LearningSettings, LossSettings
from sixjars.recipe.reading import find, overridden, read_text, values_of
from sixjars.recipe.schema import checked
from sixjars.tasks.table import TASKS, Task

JARS: dict[str, type[BaseModel]] = {
    "data": DataSettings,
    "loss": LossSettings,
    "learning": LearningSettings,
    "evaluation": EvaluationSettings,
}


def read_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe by file or by name, with `KEY=VALUE` overrides, checked whole."""
    path = find(name)
    return recipe_of(overridden(values_of(read_text(path), str(path)), overrides), name)


def recipe_of(values: Mapping[str, Any], where: str) -> Recipe:
    """A recipe of plain values, every default filled in."""
    task = TASKS.get(str(values.get("task")))
    faults = [unknown("key", key, list(Recipe.model_fields)) for key in values if key not in Recipe.model_fields]
    if "task" not in values:
        faults.append(f"key 'task' is missing. Known: {', '.join(sorted(TASKS))}.")
    elif task is None:
        faults.append(unknown("task", values["task"], list(TASKS)))
    jars: dict[str, Any] = {}
    for name, schema in JARS.items():
        if name in values or name == "data":
            jars[name], wrong = checked(schema, values.get(name, {}), name)
            faults += wrong
    if task is not None:
        jars["model"], wrong = _model_of(values.get("model", {}), task)
        faults += wrong + _misfits(jars, task)
    faults += _unknown_metrics(values)
    if faults:
        raise RecipeError(list(dict.fromkeys(faults)), where)
    return Recipe(task=str(values["task"]), expect=values.get("expect") or {}, **jars)


def _model_of(section: object, task: Task) -> tuple[ModelSettings | None, list[str]]:
    from sixjars.tasks.parts import resolved  # its tables are the parts themselves, and they need torch

    if not isinstance(section, Mapping):
        return None, [f"model: must be a section of keys, but is {section!r}."]
    faults = [
        unknown("model: key", key, list(ModelSettings.model_fields))
        for key in section
        if key not in ModelSettings.model_fields
    ]
    parts: dict[str, dict[str, Any]] = {}
    for role in ModelSettings.model_fields:
        given = section.get(role, {})
        if not isinstance(given, Mapping):
            faults.append(f"model.{role}: must be a section of keys, but is {given!r}.")
            continue
        parts[role], wrong = resolved(role, given, task)
        faults += wrong
    return (None if faults else ModelSettings(**parts)), faults


def _misfits(jars: Mapping[str, Any], task: Task) -> list[str]:
    """What no jar can see alone."""
    data, model, guide = jars.get("data"), jars.get("model"), getattr(jars.get("loss"), "guide", 0.0)
    faults = [] if data is None or data.sample else _data_misfits(data, task, guide)
    if model is None:
        return faults
    encoder, bridge = model.encoder["kind"], model.bridge["kind"]
    if bridge == "attention" and encoder == "none":
        faults.append("model.bridge: attention has nothing to look at, because model.encoder is none. Use initial.")
    if guide and bridge != "attention":
        faults.append(f"loss.guide: needs a bridge of kind attention, but it is {bridge}.")
    if (encoder == "none") == task.reads:
        reads = "reads an input" if task.reads else "reads none"
        faults.append(f"model.encoder: kind {encoder!r} does not fit; {task.name} {reads}.")
    return faults


def _data_misfits(data: DataSettings, task: Task, guide: float) -> list[str]:
    faults = []
    if task.reads and data.source is None:
        faults.append(f"data: key 'source' is missing; {task.name} reads an input.")
    if not task.reads and data.source is not None:
        faults.append(f"data: key 'source' has no place here; {task.name} reads no input.")
    if guide and data.alignment is None:
        faults.append("loss.guide: needs true alignments, but data.alignment names no column.")
    return faults


def _unknown_metrics(values: Mapping[str, Any]) -> list[str]:
    """Every name of a metric, wherever it stands."""
    evaluation, learning = values.get("evaluation") or {}, values.get("learning") or {}
    named: list[tuple[str, object]] = []
    if isinstance(evaluation, Mapping) and isinstance(evaluation.get("metrics", []), list | tuple):
        named += [("evaluation.metrics", name) for name in evaluation.get("metrics", [])]
    if isinstance(learning, Mapping) and learning.get("metric", "loss") != "loss":
        named.append(("learning.metric", learning["metric"]))
    expect = values.get("expect") or {}
    if not isinstance(expect, Mapping):
        return [f"expect: must be a section of metrics and numbers, but is {expect!r}."]
    named += [("expect", name) for name in expect]
    faults = []
    for where, name in named:
        try:
            metric_named(str(name))
        except RecipeError as error:
            faults += [f"{where}: {fault}" for fault in error.faults]
    return faults + [
        f"expect.{name}: must be a number, but is {value!r}."
        for name, value in expect.items()
        if isinstance(value, bool) or not isinstance(value, int | float)
    ]
