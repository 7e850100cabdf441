"""From a recipe's text to a checked recipe: all faults of all jars are told at once."""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from sixjars.data.samples import sample_named
from sixjars.errors import RecipeError, unknown
from sixjars.evaluation.metrics import metric_named
from sixjars.recipe import ModelSettings, Recipe
from sixjars.recipe.jars import DataSettings, EvaluationSettings, LearningSettings, LossSettings
from sixjars.recipe.reading import find, overridden, read_text, values_of
from sixjars.recipe.schema import SHORT, checked
from sixjars.tasks.misfits import misfits
from sixjars.tasks.table import FOLLOWING, LOOKING, TASKS, Task

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
    task = TASKS.get(_word(values.get("task")))
    faults = [unknown("key", key, list(Recipe.model_fields)) for key in values if key not in Recipe.model_fields]
    if "task" not in values:
        faults.append(f"key 'task' is missing. Known: {', '.join(sorted(TASKS))}.")
    elif task is None:
        faults.append(unknown("task", _word(values["task"]), list(TASKS)))
    jars: dict[str, Any] = {}
    for name, schema in JARS.items():
        if name in values or name == "data":
            section = values.get(name, {})
            jars[name], wrong = checked(schema, _with_target(section, task) if name == "data" else section, name)
            faults += wrong
    jars["model"], wrong = _model_of(values.get("model", {}), task or _nearest(values.get("task")))
    named = _metrics_in(values)
    faults += wrong + metric_faults(named) + _expect_faults(values.get("expect") or {})
    if task is not None:
        faults += misfits(jars, task) + _link_faults(jars, task, named) + set_faults(jars.get("data"), named)
    if faults:
        raise RecipeError(list(dict.fromkeys(faults)), where)
    return Recipe(task=str(values["task"]), expect=values.get("expect") or {}, **jars)


def _with_target(section: object, task: Task | None) -> object:
    """A writer's target may be left out of a recipe; then it is plain text in the column `text`."""
    if task is None or task.output != "target" or not isinstance(section, Mapping):
        return section
    return section if section.get("target") is not None else {**section, "target": {}}


def _word(value: object) -> str:
    """A value where a word should be."""
    return value if isinstance(value, str) else SHORT.repr(value)


def _nearest(name: object) -> Task:
    """A stand-in for a task that nobody knows, so that the faults of the model can be told with that one."""
    near = get_close_matches(_word(name), TASKS, n=1)
    return TASKS[near[0] if near else "translation"]


def _model_of(section: object, task: Task) -> tuple[ModelSettings | None, list[str]]:
    from sixjars.tasks.parts import resolved  # its tables are the parts themselves, and they need torch

    if not isinstance(section, Mapping):
        return None, [f"model: must be a section of keys, but is {SHORT.repr(section)}."]
    faults = [
        unknown("model: key", key, list(ModelSettings.model_fields))
        for key in section
        if key not in ModelSettings.model_fields
    ]
    parts: dict[str, dict[str, Any]] = {}
    for role in ModelSettings.model_fields:
        given = section.get(role, {})
        if not isinstance(given, Mapping):
            faults.append(f"model.{role}: must be a section of keys, but is {SHORT.repr(given)}.")
            continue
        words = [
            f"model.{role}.{key}: must be a word, but is {SHORT.repr(given[key])}."
            for key in ("kind", "score")
            if _odd(given, key)
        ]
        if words:
            faults += words
            continue
        parts[role], wrong = resolved(role, given, task)
        faults += wrong
    return (None if faults else ModelSettings(**parts)), faults


def _odd(section: Mapping[str, Any], key: str) -> bool:
    return key in section and not isinstance(section[key], str)


def _link_faults(jars: Mapping[str, Any], task: Task, named: Sequence[tuple[str, str]]) -> list[str]:
    """Who compares true with predicted attention, where there is no such thing."""
    model, loss = jars.get("model"), jars.get("loss")
    places = [("loss.guide", "links")] if getattr(loss, "guide", 0.0) else []
    places += [(f"{place}: {name}", need) for place, name, need in comparing_attention(named)]
    faults = []
    for place, need in places:
        lacks = lacking_for(need, task, jars.get("data"), model)
        faults += [f"{place} {lack}" if " " in place else f"{place}: {lack}" for lack in lacks]
    if getattr(loss, "coverage", 0.0) and model is not None and model.bridge["kind"] not in FOLLOWING:
        faults.append(f"loss.coverage: needs a bridge of kind attention, but it is {model.bridge['kind']}.")
    return faults


def comparing_attention(named: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Those of the metrics (each after its place) that compare true with predicted attention, and what they need."""
    known = [pair for pair in named if not metric_faults([pair])]
    return [(place, name, need) for place, name in known for need in TRUTHS if need in metric_named(name).needs]


TRUTHS = {
    "links": ("alignment", "true alignments"),
    "focus": ("boxes", "true boxes"),
    "key": ("keys", "true keys"),
}
"""What a metric may need -> the key of the data jar, and its name."""


def lacking_for(need: str, task: Task, data: DataSettings | None, model: ModelSettings | None) -> list[str]:
    """Why true and predicted attention cannot be compared, if they cannot."""
    key, what = TRUTHS[need]
    lacks = []
    if data is not None and data.sample is None and getattr(data, key) is None:
        lacks.append(f"needs {what}, but data.{key} names no column.")
    if data is not None and data.sample is not None and getattr(sample_named(task.name, data.sample.kind), key) is None:
        lacks.append(f"needs {what}, but the made-up corpus of {task.name} has none.")
    parts = data.source.parts if data is not None and data.source is not None else ""
    if need == "key" and not lacks and parts in ("none", "turns"):
        lacks.append("needs sentences; say data.source.parts: sentences or lines.")
    if model is not None and model.bridge["kind"] not in LOOKING:
        lacks.append(f"needs a bridge of kind attention, but it is {model.bridge['kind']}.")
    return lacks


def set_faults(data: DataSettings | None, named: Sequence[tuple[str, str]]) -> list[str]:
    """Metrics of one truth where an example may have several labels."""
    if data is None or data.label is None or not data.label.several:
        return []
    told = "tells how surprising one label is, but an example may have several; use labels_micro_f1."
    return [f"{place}: {name} {told}" for place, name in named if name == "perplexity"]


def metric_faults(named: Sequence[tuple[str, str]]) -> list[str]:
    """Names that no metric has."""
    faults = []
    for place, name in named:
        try:
            metric_named(name)
        except RecipeError as error:
            faults += [f"{place}: {fault}" for fault in error.faults]
    return faults


def _metrics_in(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every name of a metric, after the place where it stands."""
    evaluation, learning, expect = (values.get(name) or {} for name in ("evaluation", "learning", "expect"))
    named: list[tuple[str, object]] = []
    if isinstance(evaluation, Mapping) and isinstance(evaluation.get("metrics"), list | tuple):
        named += [("evaluation.metrics", name) for name in evaluation["metrics"]]
    if isinstance(learning, Mapping) and learning.get("metric", "loss") != "loss":
        named.append(("learning.metric", learning["metric"]))
    if isinstance(expect, Mapping):
        named += [("expect", name) for name in expect]
    return [(place, name) for place, name in named if isinstance(name, str)]


def _expect_faults(expect: object) -> list[str]:
    if not isinstance(expect, Mapping):
        return [f"expect: must be a section of metrics and numbers, but is {SHORT.repr(expect)}."]
    return [
        f"expect.{name}: must be a number, but is {SHORT.repr(value)}."
        for name, value in expect.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    ] + [f"expect: must name metrics, but names {name!r}." for name in expect if not isinstance(name, str)]
