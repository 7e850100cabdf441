"""From a recipe's text to a checked recipe: the faults of all sections are collected and reported at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from pydantic import RootModel

from sixjars.data.annotations import ANNOTATIONS, Annotation
from sixjars.data.dataset import Fields
from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.evaluation.metrics import ONE_LABEL, Metric, metric_named
from sixjars.flow.contracts import ModelPlan
from sixjars.flow.limits import Number
from sixjars.model.build import Nested, class_of, nested, resolved
from sixjars.recipe.data import FieldSettings, LinkFiles
from sixjars.recipe.files import RecipeLike, checked, overridden, values_from
from sixjars.recipe.outside import NOTHING, Outside
from sixjars.recipe.sections import PLAIN_SECTIONS, DataSettings, ModelSettings, Recipe
from sixjars.samples import sample_named
from sixjars.tasks import TASK_NAMED, TASKS, Task
from sixjars_runtime.errors import DataError, RecipeError, hint, shown, unknown

Named = list[tuple[str, Metric]]
"""Metrics, each after the place where it is named."""


def read_recipe(
    name: RecipeLike, overrides: Sequence[str] = (), outside: Outside = NOTHING
) -> Recipe:
    """A recipe by file or by name, or as a dict, with `KEY=VALUE` overrides, checked whole.

    >>> import sixjars
    >>> sixjars.read_recipe("dialog/sample_attention", ["model.encoder.layers=2"]).model.encoder["layers"]
    2
    """
    values, where = values_from(name)
    return recipe_of(overridden(values, overrides), where, outside)


def recipe_of(
    values: Mapping[str, Any], where: str, outside: Outside = NOTHING, *, kept: bool = False
) -> Recipe:
    """A recipe of plain values, every default filled in; one that a run has `kept` may have metrics that do not fit."""
    task = TASK_NAMED.get(_word(values.get("task")))
    faults = [
        unknown("key", key, list(Recipe.model_fields))
        for key in values
        if key not in Recipe.model_fields
    ]
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
    metrics, wrong = _metrics_of(values, outside)
    expected, more = checked(RootModel[dict[str, Number]], values.get("expect", {}), "expect")
    faults += wrong + more
    if task is not None and sections["data"] is not None:
        faults += _sample_faults(sections["data"], task)
    if (
        task is not None
        and sections["model"] is not None
        and len(fields) == len(task.slots)
        and sections["data"]
    ):
        right = {name: section for name, section in sections.items() if section is not None}
        recipe = Recipe(task=task.name, expect=expected.root if expected else {}, **right)
        faults += misfits(
            recipe, [one for one in metrics if not kept or one[1].name not in ONE_LABEL], outside
        )
    if faults:
        raise RecipeError(list(dict.fromkeys(faults)), where)
    return recipe if recipe.learning.metric is not None else _with_metric(recipe, where, outside)


def _with_metric(recipe: Recipe, where: str, outside: Outside) -> Recipe:
    """What the best checkpoint is chosen by where the recipe does not say: the first metric, of one output each."""
    first = next(
        (metric.name for metric in metrics_of(recipe, outside) if metric.nbest == 1), "loss"
    )
    made = recipe.model_copy(
        update={"learning": recipe.learning.model_copy(update={"metric": first})}
    )
    if faults := misfits(made, _metrics_of({"learning": {"metric": first}}, outside)[0], outside):
        raise RecipeError(faults, where)
    return made


def _word(value: object) -> str:
    """A value where a word should be."""
    return value if isinstance(value, str) else shown(value)


def _nearest(name: object) -> Task:
    """For an unknown task, so that the faults of the other sections can be reported with that one."""
    similar = hint(_word(name), list(TASKS))
    return next(
        (task for task in TASKS.values() if f"{task.name!r}" in similar), TASKS["translation"]
    )


def _fields_of(
    section: object, task: Task, outside: Outside
) -> tuple[dict[str, FieldSettings], list[str]]:
    """The settings of every field that the task has, and the faults in them."""
    if not isinstance(section, Mapping):
        return {}, []
    found, faults = {}, []
    for slot in task.slots:
        given = section.get(slot.name)
        if given is None and slot is not task.output:
            faults.append(f"data: key {slot.name!r} is missing; {task.name} needs it.")
            continue
        given = {} if given is None else given
        kind = given.get("kind", slot.kind) if isinstance(given, Mapping) else slot.kind
        try:
            settings, wrong = checked(
                field_class(_word(kind), outside).settings_class, given, f"data.{slot.name}"
            )
        except RecipeError as error:
            faults += [f"data.{slot.name}: {fault}" for fault in error.faults]
            continue
        faults += wrong
        if settings is not None:
            found[slot.name] = settings.model_copy(update={"kind": kind})
    return found, faults


def field_class(kind: str, outside: Outside) -> type[Field]:
    """The class of a kind of field: one of ours, or one from outside that was allowed."""
    if kind in FIELDS:
        return FIELDS[kind]
    if "." in kind or outside.hands(kind):
        found: type[Field] = outside.component(kind, Field, "kind")
        return found
    raise RecipeError([unknown("kind", kind, list(FIELDS)) + outside.listed])


def _data_of(
    section: object, task: Task, fields: Mapping[str, FieldSettings]
) -> tuple[Any, list[str]]:
    """The data section without its fields, which are put in as they were found."""
    if not isinstance(section, Mapping):
        return checked(DataSettings, section, "data")
    own, elsewhere = (
        {slot.name for slot in task.slots},
        {slot.name for t in TASKS.values() for slot in t.slots},
    )
    extra = [key for key in section if key in elsewhere - own and section[key] is not None]
    extra += [
        key
        for key, truth in ANNOTATIONS.items()
        if section.get(key) is not None and truth.reads not in own
    ]
    faults = [f"data: key {name!r} has no place here; {task.role()}." for name in extra]
    known = [*(key for key in DataSettings.model_fields if key != "fields"), *own]
    faults += [
        unknown("data: key", key, known)
        for key in section
        if key not in {*known, *elsewhere, *ANNOTATIONS}
    ]
    rest = {
        key: value
        for key, value in section.items()
        if key in DataSettings.model_fields and key != "fields"
    }
    data, wrong = checked(DataSettings, rest | {"fields": dict(fields)}, "data")
    return (None if faults else data), faults + wrong


def _sample_faults(data: DataSettings, task: Task) -> list[str]:
    """A synthetic corpus that there is not."""
    try:
        sample_named(task.name, data.sample.kind if data.sample is not None else None)
    except DataError as error:
        return [f"data.sample.kind: {error}"]
    return []


def _model_of(
    section: object, task: Task, fields: Mapping[str, FieldSettings], outside: Outside
) -> tuple[ModelSettings | None, list[str]]:
    if not isinstance(section, Mapping):
        return None, [f"model: must be a section of keys, but is {shown(section)}."]
    roles = list(ModelSettings.model_fields)
    faults = [unknown("model: key", key, roles) for key in section if key not in roles]
    kinds = {
        slot.name: fields[slot.name].kind if slot.name in fields else slot.kind
        for slot in task.slots
    }
    facts_of = {name: field_class(kind, outside).fact_names for name, kind in kinds.items()}
    read = {fact for slot in task.inputs for fact in facts_of[slot.name]}
    facts = {"encoder": read, "bridge": set(), "decoder": set(facts_of[task.output.name])}
    found: dict[str, dict[str, Any]] = {}
    for role in roles:
        given = section.get(role, {})
        if not isinstance(given, Mapping):
            faults.append(f"model.{role}: must be a section of keys, but is {shown(given)}.")
            continue
        whole = {"kind": getattr(task, role), **given}
        if not isinstance(whole["kind"], str):
            faults.append(f"model.{role}.kind: must be a word, but is {shown(given['kind'])}.")
            continue
        unfit = _unfit(role, whole, task, fields, outside)
        found[role], wrong = ({}, unfit) if unfit else resolved(role, whole, facts[role], outside)
        faults += wrong
    return (None if faults else ModelSettings(**found)), faults


def _unfit(
    role: str,
    section: Mapping[str, Any],
    task: Task,
    fields: Mapping[str, FieldSettings],
    outside: Outside,
) -> list[str]:
    """A component that reads or produces something else than the task has."""
    try:
        component: Any = class_of(role, section, outside)
    except RecipeError:
        return []  # whoever resolves the section will say so
    if role == "encoder" and component.inputs() != tuple(slot.name for slot in task.inputs):
        return [
            f"model.encoder: kind {section['kind']!r} does not fit; {task.role()}. Use {task.encoder}."
        ]
    output = fields.get(task.output.name)
    if (
        role == "decoder"
        and output is not None
        and component.produces != field_class(output.kind, outside).holds
    ):
        wrong = "model.decoder", section["kind"], task.decoder
        if section["kind"] == task.decoder:
            wrong = f"data.{task.output.name}", output.kind, task.output.kind
        return ["{}: kind {!r} does not fit {}. Use {}.".format(*wrong[:2], task.name, wrong[2])]
    return []


def make_fields(recipe: Recipe, outside: Outside = NOTHING) -> Fields:
    """The fields of a recipe, before anything is learned."""
    task, settings = TASKS[recipe.task], recipe.data.fields
    made = {name: field_class(one.kind, outside)(name, one) for name, one in settings.items()}
    options = class_of("decoder", recipe.model.decoder, outside).target_options(
        recipe.model.decoder
    )  # type: ignore[attr-defined]
    output = made[task.output.name].equipped(Equipment(target_options=options))
    return Fields({slot.name: made[slot.name] for slot in task.inputs}, output)


def model_plan(recipe: Recipe, fields: Fields, outside: Outside = NOTHING) -> ModelPlan:
    """The model of a recipe before it is built."""
    sections: dict[str, Any] = recipe.model.model_dump()
    classes: dict[str, Any] = {
        role: class_of(role, section, outside) for role, section in sections.items()
    }
    smoothing = recipe.loss.smoothing
    return ModelPlan(
        **classes,
        settings=sections,
        inputs=fields.inputs,
        output=fields.output,
        smoothing=smoothing,
    )


def misfits(recipe: Recipe, metrics: Named, outside: Outside = NOTHING) -> list[str]:
    """What sections say against each other and against the task: every component and field checks its neighbours."""
    fields = make_fields(recipe, outside)
    plan, faults = model_plan(recipe, fields, outside), list[str]()
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
    """What a module inside a component needs of its field and does not get, or else has against it."""
    needs = {
        name for name, one in signature(inner.kind).parameters.items() if one.default is one.empty
    }
    lacks = [
        name
        for name in getattr(inner.kind, "given", ())
        if name in needs and name not in field.fact_names
    ]
    if lacks:
        return [
            f"{inner.where}: needs {lacks[0]} of data.{field.name}, but a field of kind {field.kind} has none."
        ]
    hooked = hasattr(inner.kind, "section_misfits")
    return inner.kind.section_misfits(inner.section, inner.where, field) if hooked else []


def attention_faults(recipe: Recipe, plan: ModelPlan, metrics: Named) -> Iterator[str]:
    """Whatever needs attention or the truth about it, where there is no such thing."""
    loss, search = recipe.loss, recipe.evaluation.search
    every_step = {
        "loss.coverage": loss.coverage,
        "evaluation.search.coverage_penalty": search.coverage_penalty,
    }
    for place, wanted in (
        every_step | {"evaluation.search.unknown": search.unknown == "replace"}
    ).items():
        if wanted and not plan.bridge.follows_state:
            yield f"{place}: needs a bridge of kind attention, location or two_level, but it is {plan.kind('bridge')}."
    needs = [("loss.guide:", ANNOTATIONS["alignment"])] if loss.guide else []
    for truth in ANNOTATIONS.values():
        needs += [
            (f"{place}: {metric.name}", truth)
            for place, metric in metrics
            if truth.need in metric.needs
        ]
    for place, truth in needs:
        yield from (f"{place} {lack}" for lack in _lacks(place, truth, recipe, plan))


def _lacks(place: str, truth: Annotation, recipe: Recipe, plan: ModelPlan) -> Iterator[str]:
    """Why true and predicted attention cannot be compared, if they cannot."""
    data, source, other = (
        recipe.data,
        recipe.data.fields.get("source"),
        ("pooling", "location")[plan.decoder.searches],
    )
    if truth.key == "alignment" and not plan.decoder.searches:
        yield f"needs an output of words, each with its own attention, but {recipe.task} outputs a label; remove it."
    elif isinstance(named := getattr(data, truth.key), LinkFiles) and (
        data.sample is None or place == "loss.guide:"
    ):
        yield from named.lacks(place, data)
    elif data.sample is None and named is None:
        learn = (
            "; name one, or say data.alignment: learn, which aligns the words"
            if place == "loss.guide:"
            else ""
        )
        yield f"needs {truth.called}, but data.{truth.key} names no column{learn}."
    elif (
        data.sample is not None
        and getattr(sample_named(recipe.task, data.sample.kind), truth.key) is None
    ):
        yield f"needs {truth.called}, but the synthetic corpus of {recipe.task} has none."
    elif truth.key == "rationale" and getattr(source, "segments", "none") in ("none", "turns"):
        yield "needs sentences; say data.source.segments: sentences or lines."
    if not plan.bridge.has_attention:
        yield f"needs a bridge of kind attention, {other} or two_level, but it is {plan.kind('bridge')}."


def _metrics_of(values: Mapping[str, Any], outside: Outside) -> tuple[Named, list[str]]:
    """Every metric that is named, after the place where it stands; and names that no metric has."""
    evaluation, learning, expect = (
        values.get(name) or {} for name in ("evaluation", "learning", "expect")
    )
    named: list[tuple[str, object]] = []
    if isinstance(evaluation, Mapping) and isinstance(evaluation.get("metrics"), list | tuple):
        named += [("evaluation.metrics", name) for name in evaluation["metrics"]]
    if isinstance(learning, Mapping) and learning.get("metric") != "loss":
        named.append(("learning.metric", learning.get("metric")))
    if isinstance(expect, Mapping):
        named += [("expect", name) for name in expect]
    return named_metrics([(place, name) for place, name in named if isinstance(name, str)], outside)


def named_metrics(named: Iterable[tuple[str, str]], outside: Outside) -> tuple[Named, list[str]]:
    """The metrics of some names, and the faults of the others."""
    found, faults = Named(), list[str]()
    for place, name in named:
        try:
            found.append((place, metric_named(name, outside)))
        except RecipeError as error:
            faults += [f"{place}: {fault}" for fault in error.faults]
    return found, faults


def metrics_of(recipe: Recipe, outside: Outside = NOTHING) -> list[Metric]:
    """The metrics that a run reports: the recipe's, or those of its output or task, and all that it expects."""
    usual = make_fields(recipe, outside).output.default_metrics or TASKS[recipe.task].metrics
    names = *(recipe.evaluation.metrics or usual), *recipe.expect
    return [metric_named(name, outside) for name in dict.fromkeys(names)]
