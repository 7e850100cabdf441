"""Reading and checking recipes: the faults of all sections are collected and reported at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Literal, final

import torch
from pydantic import RootModel

from sixjars.data.annotations import ANNOTATIONS, Annotation
from sixjars.data.dataset import Fields
from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.evaluation.metrics import ONE_LABEL, Metric, metric_named
from sixjars.flow.contracts import ModelPlan
from sixjars.flow.limits import Number
from sixjars.model.build import Nested, class_of, nested, resolved
from sixjars.progress import Reporter
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.data import FieldSettings, LinkFiles
from sixjars.recipe.files import RecipeLike, checked, overridden, values_from
from sixjars.recipe.sections import PLAIN_SECTIONS, DataSettings, ModelSettings, Recipe
from sixjars.tasks import TASK_NAMED, TASKS, Task
from sixjars_runtime.errors import DataError, RecipeError, hint, shown, unknown

Named = list[tuple[str, Metric]]
"""Metrics, each after the place where it is named."""


def read_recipe(
    name: RecipeLike, overrides: Sequence[str] = (), outside: AllowedCode = NOTHING
) -> Recipe:
    """A recipe by file or by name, or as a dict, with `KEY=VALUE` overrides, checked whole.

    >>> import sixjars
    >>> recipe = sixjars.read_recipe("dialog/sample_attention", ["model.encoder.layers=2"])
    >>> recipe.model.encoder["layers"]
    2
    """
    values, where = values_from(name)
    return recipe_of(overridden(values, overrides), where, outside)


def recipe_of(
    values: Mapping[str, Any], where: str, outside: AllowedCode = NOTHING, *, kept: bool = False
) -> Recipe:
    """A recipe of plain values, every default filled in.

    One that a run has `kept` was checked whole when it was begun, and has every default: its keys
    are checked again, for a stranger may have changed them, but not what they need of each other.
    """
    task = TASK_NAMED.get(_word(values.get("task")))
    known = list(Recipe.model_fields)
    faults = [unknown("key", key, known) for key in values if key not in known]
    if "task" not in values:
        faults.append(f"key 'task' is missing. Known: {', '.join(sorted(TASKS))}.")
    elif task is None:
        faults.append(unknown("task", _word(values["task"]), list(TASKS)))
    guessed = task or _nearest(values.get("task"))
    sections: dict[str, Any] = {}
    fields, wrong = _fields_of(values.get("data", {}), guessed, outside)
    sections["data"], more = _data_of(values.get("data", {}), guessed, fields)
    faults += (wrong + more) if task is not None or "data" in values else []
    sections["model"], wrong = _model_of(values.get("model", {}), guessed, fields, outside)
    faults += wrong
    for name, schema in PLAIN_SECTIONS.items():
        sections[name], wrong = checked(schema, values.get(name, {}), name)
        faults += wrong
    metrics, wrong = ([], []) if kept else _metrics_of(values, outside)
    expected, more = checked(RootModel[dict[str, Number]], values.get("expect", {}), "expect")
    faults += wrong + more
    if task is not None and sections["data"] is not None:
        faults += [] if kept else _sample_faults(sections["data"], task)
        if sections["model"] is not None and len(fields) == len(task.slots):
            right = {name: section for name, section in sections.items() if section is not None}
            recipe = Recipe(task=task.name, expect=expected.root if expected else {}, **right)
            faults += [] if kept else misfits(recipe, metrics, outside)
    if faults:
        raise RecipeError(list(dict.fromkeys(faults)), where)
    is_whole = kept or recipe.learning.metric is not None
    return recipe if is_whole else _with_metric(recipe, where, outside)


def _with_metric(recipe: Recipe, where: str, outside: AllowedCode) -> Recipe:
    """The recipe, its best checkpoint chosen by the first metric that needs one output, or loss."""
    names = [metric.name for metric in metrics_of(recipe, outside) if metric.nbest == 1]
    metric = names[0] if names else "loss"
    learning = recipe.learning.model_copy(update={"metric": metric})
    chosen = recipe.model_copy(update={"learning": learning})
    named, _ = _metrics_of({"learning": {"metric": metric}}, outside)
    if faults := misfits(chosen, named, outside):
        raise RecipeError(faults, where)
    return chosen


def _word(value: object) -> str:
    """A value where a word should be, as a message shows it."""
    return value if isinstance(value, str) else shown(value)


def _nearest(name: object) -> Task:
    """The task most like an unknown one, so that the faults of other sections are found too."""
    similar = hint(_word(name), list(TASKS))
    for task in TASKS.values():
        if f"{task.name!r}" in similar:
            return task
    return TASKS["translation"]


def _fields_of(
    section: object, task: Task, outside: AllowedCode
) -> tuple[dict[str, FieldSettings], list[str]]:
    """The settings of every field that the task has, and the faults in them."""
    if not isinstance(section, Mapping):
        return {}, []
    settings, faults = {}, []
    for slot in task.slots:
        values = section.get(slot.name)
        if values is None and slot is not task.output:
            faults.append(f"data: key {slot.name!r} is missing; {task.name} needs it.")
            continue
        values = {} if values is None else values
        kind = values.get("kind", slot.kind) if isinstance(values, Mapping) else slot.kind
        try:
            schema = field_class(_word(kind), outside).settings_class
            field, wrong = checked(schema, values, f"data.{slot.name}")
        except RecipeError as error:
            faults += [f"data.{slot.name}: {fault}" for fault in error.faults]
            continue
        faults += wrong
        if field is not None:
            settings[slot.name] = field.model_copy(update={"kind": kind})
    return settings, faults


def field_class(kind: str, outside: AllowedCode) -> type[Field]:
    """The class of a kind of field: one of ours, or one from outside that was allowed."""
    if kind in FIELDS:
        return FIELDS[kind]
    if "." in kind or outside.hands(kind):
        component: type[Field] = outside.component(kind, Field, "kind")
        return component
    raise RecipeError([unknown("kind", kind, list(FIELDS)) + outside.listed])


def _data_of(
    section: object, task: Task, fields: Mapping[str, FieldSettings]
) -> tuple[Any, list[str]]:
    """The data section, with its fields put in as they were read."""
    if not isinstance(section, Mapping):
        return checked(DataSettings, section, "data")
    slots = {slot.name for slot in task.slots}
    of_any_task = {slot.name for each in TASKS.values() for slot in each.slots}
    foreign = [key for key in section if key in of_any_task - slots and section[key] is not None]
    for key, truth in ANNOTATIONS.items():
        if section.get(key) is not None and truth.reads not in slots:
            foreign.append(key)
    faults = [f"data: key {name!r} has no place here; {task.role()}." for name in foreign]
    keys = [key for key in DataSettings.model_fields if key != "fields"]
    for key in section:
        if key not in {*keys, *of_any_task, *ANNOTATIONS}:
            faults.append(unknown("data: key", key, [*keys, *slots]))
    values = {key: value for key, value in section.items() if key in keys}
    data, wrong = checked(DataSettings, values | {"fields": dict(fields)}, "data")
    return (None if faults else data), faults + wrong


def _sample_faults(data: DataSettings, task: Task) -> list[str]:
    """The fault of naming a synthetic corpus that does not exist."""
    from sixjars.samples import sample_named

    try:
        sample_named(task.name, data.sample.kind if data.sample is not None else None)
    except DataError as error:
        return [f"data.sample.kind: {error}"]
    return []


def _model_of(
    section: object, task: Task, fields: Mapping[str, FieldSettings], outside: AllowedCode
) -> tuple[ModelSettings | None, list[str]]:
    if not isinstance(section, Mapping):
        return None, [f"model: must be a section of keys, but is {shown(section)}."]
    roles = list(ModelSettings.model_fields)
    faults = [unknown("model: key", key, roles) for key in section if key not in roles]
    facts_of = {}
    for slot in task.slots:
        kind = fields[slot.name].kind if slot.name in fields else slot.kind
        facts_of[slot.name] = field_class(kind, outside).fact_names
    read = {fact for slot in task.inputs for fact in facts_of[slot.name]}
    facts = {"encoder": read, "bridge": set(), "decoder": set(facts_of[task.output.name])}
    sections: dict[str, dict[str, Any]] = {}
    for role in roles:
        values = section.get(role, {})
        if not isinstance(values, Mapping):
            faults.append(f"model.{role}: must be a section of keys, but is {shown(values)}.")
            continue
        whole = {"kind": getattr(task, role), **values}
        if not isinstance(whole["kind"], str):
            faults.append(f"model.{role}.kind: must be a word, but is {shown(values['kind'])}.")
            continue
        unfit = _unfit(role, whole, task, fields, outside)
        sections[role], wrong = (
            ({}, unfit) if unfit else resolved(role, whole, facts[role], outside)
        )
        faults += wrong
    return (None if faults else ModelSettings(**sections)), faults


def _unfit(
    role: str,
    section: Mapping[str, Any],
    task: Task,
    fields: Mapping[str, FieldSettings],
    outside: AllowedCode,
) -> list[str]:
    """The fault of a component that reads or produces something else than the task has."""
    try:
        component: Any = class_of(role, section, outside)
    except RecipeError:
        return []  # whoever resolves the section will say so
    kind = section["kind"]
    if role == "encoder" and component.inputs() != tuple(slot.name for slot in task.inputs):
        fault = f"model.encoder: kind {kind!r} does not fit; {task.role()}. Use {task.encoder}."
        return [fault]
    output = fields.get(task.output.name)
    if role != "decoder" or output is None:
        return []
    if component.produces == field_class(output.kind, outside).holds:
        return []
    place, usual = "model.decoder", task.decoder
    if kind == task.decoder:  # then the field is what does not fit
        place, kind, usual = f"data.{task.output.name}", output.kind, task.output.kind
    return [f"{place}: kind {kind!r} does not fit {task.name}. Use {usual}."]


def make_fields(recipe: Recipe, outside: AllowedCode = NOTHING) -> Fields:
    """The fields of a recipe, before anything is learned."""
    task = TASKS[recipe.task]
    settings = recipe.data.fields
    fields = {name: field_class(each.kind, outside)(name, each) for name, each in settings.items()}
    decoder: Any = class_of("decoder", recipe.model.decoder, outside)
    equipment = Equipment(target_options=decoder.target_options(recipe.model.decoder))
    output = fields[task.output.name].equipped(equipment)
    return Fields({slot.name: fields[slot.name] for slot in task.inputs}, output)


def model_plan(recipe: Recipe, fields: Fields, outside: AllowedCode = NOTHING) -> ModelPlan:
    """The model of a recipe before it is built."""
    sections: dict[str, Any] = recipe.model.model_dump()
    classes: dict[str, Any] = {
        role: class_of(role, section, outside) for role, section in sections.items()
    }
    return ModelPlan(
        **classes,
        settings=sections,
        inputs=fields.inputs,
        output=fields.output,
        smoothing=recipe.loss.smoothing,
    )


def misfits(recipe: Recipe, metrics: Named, outside: AllowedCode = NOTHING) -> list[str]:
    """Faults between sections: every component and field checks its neighbours."""
    fields = make_fields(recipe, outside)
    plan = model_plan(recipe, fields, outside)
    faults = list[str]()
    for at, field in enumerate(fields.all.values()):
        faults += field.misfits(is_output=field is fields.output, is_first=at == 0)
    for component in (plan.encoder, plan.bridge, plan.decoder):
        faults += component.misfits(plan)
    if fields.output.multi_label:
        unfit = [(place, metric.name) for place, metric in metrics if metric.name in ONE_LABEL]
        faults += [f"{place}: {name} {ONE_LABEL[name]}" for place, name in unfit]
    if recipe.loss.class_weights is not None and not fields.output.single_label:
        faults.append("loss.class_weights: needs exactly one label for each example; remove it.")
    for inner in nested(plan):
        faults += _inner_faults(inner, fields.all[inner.field]) if inner.field in fields.all else []
    return [*faults, *attention_faults(recipe, plan, metrics)]


def _inner_faults(inner: Nested, field: Field) -> list[str]:
    """The facts that a module inside a component lacks from its field, or else its misfits."""
    parameters = signature(inner.kind).parameters.items()
    needs = {name for name, parameter in parameters if parameter.default is parameter.empty}
    needs -= {*field.fact_names}
    lacks = [name for name in getattr(inner.kind, "given", ()) if name in needs]
    if lacks:
        fact = f"needs {lacks[0]} of data.{field.name}"
        return [f"{inner.where}: {fact}, but a field of kind {field.kind} has none."]
    hooked = hasattr(inner.kind, "section_misfits")
    return inner.kind.section_misfits(inner.section, inner.where, field) if hooked else []


def attention_faults(recipe: Recipe, plan: ModelPlan, metrics: Named) -> Iterator[str]:
    """Faults of settings that need attention, or the truth about it, where there is none."""
    loss, search = recipe.loss, recipe.evaluation.search
    every_step = {
        "loss.coverage": loss.coverage > 0,
        "evaluation.search.coverage_penalty": search.coverage_penalty > 0,
        "evaluation.search.unknown": search.unknown == "replace",
    }
    kind = plan.kind("bridge")
    for place, is_set in every_step.items():
        if is_set and not plan.bridge.follows_state:
            kinds = "attention, location or two_level"
            yield f"{place}: needs a bridge of kind {kinds}, but it is {kind}."
    needs = [("loss.guide:", ANNOTATIONS["alignment"])] if loss.guide else []
    for truth in ANNOTATIONS.values():
        for place, metric in metrics:
            if truth.need in metric.needs:
                needs.append((f"{place}: {metric.name}", truth))
    for place, truth in needs:
        yield from (f"{place} {lack}" for lack in _lacks(place, truth, recipe, plan))


def _lacks(place: str, truth: Annotation, recipe: Recipe, plan: ModelPlan) -> Iterator[str]:
    """Why true and predicted attention cannot be compared, if they cannot."""
    from sixjars.samples import sample_named

    data = recipe.data
    source = recipe.data.fields.get("source")
    named = getattr(data, truth.key)
    is_guide = place == "loss.guide:"
    if truth.key == "alignment" and not plan.decoder.searches:
        reason = f"each with its own attention, but {recipe.task} outputs a label; remove it."
        yield f"needs an output of words, {reason}"
    elif isinstance(named, LinkFiles) and (data.sample is None or is_guide):
        yield from named.lacks(place, data)
    elif data.sample is None and named is None:
        learn = "; name one, or say data.alignment: learn, which aligns the words"
        lack = f"but data.{truth.key} names no column{learn if is_guide else ''}."
        yield f"needs {truth.called}, {lack}"
    elif data.sample and truth.key not in sample_named(recipe.task, data.sample.kind).truths:
        yield f"needs {truth.called}, but the synthetic corpus of {recipe.task} has none."
    elif truth.key == "rationale" and getattr(source, "segments", "none") in ("none", "turns"):
        yield "needs sentences; say data.source.segments: sentences or lines."
    if not plan.bridge.has_attention:
        kinds = f"attention, {'location' if plan.decoder.searches else 'pooling'} or two_level"
        yield f"needs a bridge of kind {kinds}, but it is {plan.kind('bridge')}."


def _metrics_of(values: Mapping[str, Any], outside: AllowedCode) -> tuple[Named, list[str]]:
    """Every metric that is named, after the place where it stands; and names that no metric has."""
    sections = [values.get(name) or {} for name in ("evaluation", "learning", "expect")]
    evaluation, learning, expect = sections
    named: list[tuple[str, object]] = []
    if isinstance(evaluation, Mapping) and isinstance(evaluation.get("metrics"), list | tuple):
        named += [("evaluation.metrics", name) for name in evaluation["metrics"]]
    if isinstance(learning, Mapping) and learning.get("metric") != "loss":
        named.append(("learning.metric", learning.get("metric")))
    if isinstance(expect, Mapping):
        named += [("expect", name) for name in expect]
    return named_metrics([(place, name) for place, name in named if isinstance(name, str)], outside)


def named_metrics(
    named: Iterable[tuple[str, str]], outside: AllowedCode
) -> tuple[Named, list[str]]:
    """The metrics of some names, and the faults of the others."""
    metrics, faults = Named(), list[str]()
    for place, name in named:
        try:
            metrics.append((place, metric_named(name, outside)))
        except RecipeError as error:
            faults += [f"{place}: {fault}" for fault in error.faults]
    return metrics, faults


def chosen_by(
    recipe: Recipe, outside: AllowedCode = NOTHING
) -> tuple[str, Literal["higher", "lower"]]:
    """The metric that chooses the best checkpoint, or the loss; and which values are better."""
    name = recipe.learning.metric or "loss"
    return name, "lower" if name == "loss" else metric_named(name, outside).better


def metrics_of(recipe: Recipe, outside: AllowedCode = NOTHING) -> list[Metric]:
    """The metrics that a run reports: the recipe's, or the usual ones, and all that it expects."""
    usual = make_fields(recipe, outside).output.default_metrics or TASKS[recipe.task].metrics
    names = *(recipe.evaluation.metrics or usual), *recipe.expect
    return [metric_named(name, outside) for name in dict.fromkeys(names)]


@final
@dataclass(frozen=True)
class Blueprint:
    """A recipe with its fields and the plan of its model: what data and network are made from."""

    recipe: Recipe
    fields: Fields
    plan: ModelPlan

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        outside: AllowedCode = NOTHING,
        *,
        device: torch.device | str = "cpu",
        places: Sequence[Path] | None = None,
        reporter: Reporter | None = None,
    ) -> "Blueprint":
        """Make it of a recipe; features are stored unless `places` are given, as to predict."""
        fields = make_fields(recipe, outside)
        plan = model_plan(recipe, fields, outside)
        extractors = _extractors(plan, fields, torch.device(device))

        def equipped(field: Field) -> Field:
            searched = media_places(recipe, field) if places is None else [*places]
            searched += [] if places is None else _archives(recipe, field)
            kit = Equipment(
                places=tuple(searched),
                extractor=extractors.get(field.name),
                stored=places is None,
                target_options=field.equipment.target_options,
                learned_from=plan.encoder.learned_from(field.name),
                reporter=reporter or Reporter(),
            )
            return field.equipped(kit)

        return cls(recipe, fields.mapped(equipped), plan)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for the weights of each frozen backbone, by the field whose files it reads."""
        kits = {name: field.equipment.extractor for name, field in self.fields.all.items()}
        fingerprints = {name: kit.fingerprint for name, kit in kits.items() if kit is not None}
        return {name: number for name, number in fingerprints.items() if number is not None}


def _extractors(plan: ModelPlan, fields: Fields, device: torch.device) -> dict[str, Any]:
    """A feature extractor for each field that a visual input of the encoder reads."""
    cells = plan.encoder.needs_cells(plan.settings["encoder"], attended=plan.bridge.has_attention)
    return {
        inner.field: inner.kind.extractor(
            inner.section, pixels=fields.all[inner.field].settings.size, cells=cells, device=device
        )
        for inner in nested(plan)
        if hasattr(inner.kind, "extractor") and "cells" in fields.all[inner.field].fact_names
    }


def media_places(recipe: Recipe, field: Field) -> list[Path]:
    """The folders or archives of the files of a field."""
    data = recipe.data
    if not field.is_media:
        return [data.path(".")]
    if data.sample is not None:
        from sixjars.samples import sample_folder

        return [sample_folder(recipe.task)]
    if data.format == "folders":
        return [data.path(part.file) for part in data.training_files if isinstance(part.file, str)]
    media = field.settings.media
    return [data.path(place) for place in ([media] if isinstance(media, str) else media)]


def _archives(recipe: Recipe, field: Field) -> list[Path]:
    """Archives of the training data, whose files a prediction may name."""
    places, endings = media_places(recipe, field), field.archive_endings
    return [place for place in places if place.suffix.lower() in endings and place.exists()]
