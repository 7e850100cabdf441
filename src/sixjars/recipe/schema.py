"""The signature is the schema: what a recipe may say of a part is what its constructor takes.

A keyword-only, typed, defaulted parameter of a constructor is a key of the recipe; its default is written once,
there. Parameters that the toolkit fills in itself (sizes of vocabularies, parts built earlier) are `given` and
may not stand in a recipe. A parameter that is itself a part becomes a nested section.
"""

from collections.abc import Collection, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import ErrorDetails

from sixjars.errors import unknown

M = TypeVar("M", bound=BaseModel)
Nested = Mapping[type, Collection[str]]
"""Parts that stand inside other parts, each with the parameters that the toolkit fills in."""


def schema_of(part: type, given: Collection[str], nested: Nested) -> type[BaseModel]:
    """The settings of a part, read off its signature."""
    hints = get_type_hints(vars(part)["__init__"], include_extras=True)
    keys: dict[str, Any] = {}
    for name, parameter in signature(part).parameters.items():
        if name in given:
            continue
        if hints[name] in nested:
            inner = schema_of(hints[name], nested[hints[name]], nested)
            keys[name] = (inner, inner())
        else:
            keys[name] = (hints[name], ... if parameter.default is Parameter.empty else parameter.default)
    config = ConfigDict(extra="forbid", frozen=True, validate_default=False, allow_inf_nan=False)
    return create_model(part.__name__, __config__=config, **keys)


def checked(schema: type[M], section: object, where: str) -> tuple[M | None, list[str]]:
    """The section as settings, or every fault in it as a sentence."""
    if not isinstance(section, Mapping):
        return None, [f"{where}: must be a section of keys, but is {section!r}."]
    try:
        return schema.model_validate(dict(section)), []
    except ValidationError as error:
        return None, [_sentence(fault, schema, where) for fault in _worth_telling(error)]


def _worth_telling(error: ValidationError) -> list[ErrorDetails]:
    """One fault for each key: of a union's complaints only the first."""
    seen: dict[tuple[int | str, ...], ErrorDetails] = {}
    for fault in error.errors():
        place = tuple(part for part in fault["loc"] if not _is_tag(part))
        seen.setdefault(place, {**fault, "loc": place})
    return list(seen.values())


def _is_tag(part: int | str) -> bool:
    """Whether pydantic put this into a location to name a branch of a union."""
    text = str(part)
    return "[" in text or text in {"str", "int", "float", "nullable", "constrained-str", "constrained-int"}


def _sentence(fault: ErrorDetails, schema: type[BaseModel], where: str) -> str:
    *above, last = [str(part) for part in fault["loc"]] or [""]
    place = ".".join(filter(None, [where, *above]))
    if fault["type"] == "extra_forbidden":
        return unknown(f"{place}: key", last, keys_of(schema, above))
    if fault["type"] == "missing":
        return f"{place}: key {last!r} is missing."
    told = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    full = ".".join(filter(None, [place, last]))
    if fault["type"] == "value_error" and not last:
        return f"{full}: {told}."
    return f"{full}: {told}, but is {fault['input']!r}."


def keys_of(schema: type[BaseModel], path: Collection[str] = ()) -> list[str]:
    """The keys of a section, or of one nested in it."""
    for name in path:
        field = schema.model_fields.get(name)
        options = [] if field is None else [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return []
        schema = inner[0]
    return list(schema.model_fields)
