"""From a recipe's text to a checked recipe: all faults of all jars are told at once."""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from sixjars.data.samples import sample_named
from sixjars.errors import DataError, RecipeError, unknown
from sixjars.evaluation.metrics import metric_named
from sixjars.recipe import ModelSettings, Recipe
from sixjars.recipe.jars import DataSettings, EvaluationSettings, LearningSettings, LossSettings
from sixjars.recipe.reading import find, overridden, read_text, values_of
from sixjars.recipe.schema import SHORT, checked
from sixjars.tasks.table import LOOKING, TASKS, Task

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
        faults += _misfits(jars, task) + _link_faults(jars, task, named)
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


def _misfits(jars: Mapping[str, Any], task: Task) -> list[str]:
    """What no jar can see alone."""
    data, model = jars.get("data"), jars.get("model")
    faults = [] if data is None else _field_misfits(data, task) + _sample_misfits(data, task)
    if model is None:
        return faults
    encoder, bridge = model.encoder["kind"], model.bridge["kind"]
    if bridge in LOOKING and encoder == "none":
        faults.append(f"model.bridge: {bridge} has nothing to look at, because model.encoder is none. Use initial.")
    evaluation = jars.get("evaluation")
    if evaluation is not None and evaluation.search.coverage_penalty and bridge not in LOOKING:
        faults.append(f"evaluation.search.coverage_penalty: needs a bridge of kind attention, but it is {bridge}.")
    faults += _frozen_misfits(data, model) + _level_misfits(data, model) + _question_misfits(model, task)
    if model.decoder.get("copying"):
        faults += _copy_misfits(data, model)
    if _reads(encoder) != task.inputs:
        reads = " and ".join(task.inputs) or "no input"
        faults.append(f"model.encoder: kind {encoder!r} does not fit; {task.name} reads {reads}. Use {task.encoder}.")
    if model.decoder["kind"] != task.decoder:
        kind = model.decoder["kind"]
        faults.append(f"model.decoder: kind {kind!r} does not fit {task.name}. Use {task.decoder}.")
    return faults


def _question_misfits(model: ModelSettings, task: Task) -> list[str]:
    """A question that nobody would hear."""
    faults, bridge = [], model.bridge["kind"]
    if bridge == "pooling" and "question" in task.inputs:
        faults.append("model.bridge: pooling never hears the question; use attention, with summary: question.")
    if model.encoder.get("summary") == "question" and bridge != "attention":
        faults.append(f"model.encoder.summary: question needs a bridge of kind attention, but it is {bridge}.")
    return faults


def _reads(encoder: str) -> tuple[str, ...]:
    """What a kind of encoder reads of an example; one without positions reads nothing."""
    from sixjars.model.encoders import ENCODERS  # they need torch
    from sixjars.tasks.parts import inputs_of

    return inputs_of(encoder) if ENCODERS[encoder].attendable else ()


def _field_misfits(data: DataSettings, task: Task) -> list[str]:
    """Keys of the data jar that the task needs, or has no use for."""
    named = data.fields()
    missing = [name for name in task.fields if name not in named and name != "target"]
    extra = [name for name in named if name not in task.fields]
    truths = {"alignment": "source", "boxes": "image", "keys": "source"}
    extra += [key for key, read in truths.items() if getattr(data, key) is not None and read not in task.inputs]
    reads = " and ".join(task.inputs) or "no input"
    return [f"data: key {name!r} is missing; {task.name} needs it." for name in missing] + [
        f"data: key {name!r} has no place here; {task.name} reads {reads} and says a {task.output}." for name in extra
    ]


def _sample_misfits(data: DataSettings, task: Task) -> list[str]:
    """A made-up corpus that there is not."""
    try:
        sample_named(task.name, data.sample.kind if data.sample is not None else None)
    except DataError as error:
        return [f"data.sample.kind: {error}"]
    return []


def _frozen_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Words that should keep vectors that nobody gives them."""
    faults = []
    for field in ("source", "question", "target"):
        text = getattr(data, field, None)
        inside, embedding = embedding_of(model, field)
        if text is not None and text.vectors is None and not embedding.get("tuned", True):
            faults.append(
                f"model.{inside}.embedding.tuned: false keeps vectors as they are, but data.{field}.vectors names none."
            )
    return faults


def embedding_of(model: ModelSettings, field: str) -> tuple[str, Mapping[str, Any]]:
    """Which section of the model jar embeds the words of a field, and how.

    The decoder those of the target; else the encoder, or a part inside it that is called as the field, or `words`.
    """
    role = "decoder" if field == "target" else "encoder"
    section = getattr(model, role)
    inside = next((name for name in (field, "words") if name in section), None)
    found = section if inside is None else section[inside]
    return (role if inside is None else f"{role}.{inside}"), found.get("embedding") or {}


def _level_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Two levels where the text has one, or a bridge to two where the encoder has one."""
    faults = []
    encoder, bridge = model.encoder["kind"], model.bridge["kind"]
    if data is not None and data.source is not None and encoder == "hierarchy" and data.source.parts == "none":
        faults.append("data.source.parts: a hierarchy reads parts of a text; say sentences, lines or turns.")
    for field in ("question", "target"):
        text = getattr(data, field, None)
        if text is not None and text.parts != "none":
            faults.append(f"data.{field}.parts: only a source has parts; leave it out.")
    if bridge == "two_level" and encoder != "hierarchy":
        faults.append(f"model.bridge: two_level needs an encoder of kind hierarchy, but it is {encoder}.")
    return faults


COPIED = ("tokens", "split", "lowercase")
"""What both sides of a decoder that copies must have in common, so that their words are the same."""


def _copy_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Why words of the source cannot be copied, if they cannot."""
    faults = []
    if model.bridge["kind"] not in LOOKING:
        faults.append(f"model.decoder.copying: needs a bridge of kind attention, but it is {model.bridge['kind']}.")
    if data is None or data.target is None:
        return faults
    if data.source is None:
        return [*faults, "model.decoder.copying: there is no source to copy from."]
    if data.target.tokens not in ("words", "characters"):
        faults.append(
            f"model.decoder.copying: copies words or characters, but data.target.tokens is {data.target.tokens}."
        )
    differ = [key for key in COPIED if getattr(data.source, key) != getattr(data.target, key)]
    if differ:
        faults.append(f"model.decoder.copying: data.source and data.target must have the same {' and '.join(differ)}.")
    return faults


def _link_faults(jars: Mapping[str, Any], task: Task, named: Sequence[tuple[str, str]]) -> list[str]:
    """Who compares true with predicted attention, where there is no such thing."""
    model, loss = jars.get("model"), jars.get("loss")
    places = [("loss.guide", "links")] if getattr(loss, "guide", 0.0) else []
    places += [(f"{place}: {name}", need) for place, name, need in comparing_attention(named)]
    faults = []
    for place, need in places:
        lacks = lacking_for(need, task, jars.get("data"), model)
        faults += [f"{place} {lack}" if " " in place else f"{place}: {lack}" for lack in lacks]
    if getattr(loss, "coverage", 0.0) and model is not None and model.bridge["kind"] not in LOOKING:
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
    if model is not None and model.bridge["kind"] not in LOOKING:
        lacks.append(f"needs a bridge of kind attention, but it is {model.bridge['kind']}.")
    return lacks


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
