"""The signature is the schema: what a recipe may say of a part is what its constructor takes.

A keyword-only, typed, defaulted parameter of a constructor is a key of the recipe; its default is written once,
there. Parameters that the toolkit fills in itself (sizes of vocabularies, parts built earlier) are `given` and
may not stand in a recipe. A parameter that is itself a part becomes a nested section.
"""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from difflib import get_close_matches
from inspect import Parameter, signature
from reprlib import Repr
from typing import Any, ClassVar, Final, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails

from sixjars.errors import unknown

M = TypeVar("M", bound=BaseModel)
SHORT: Final = Repr()
"""How a wrong value is quoted: its beginning will do."""
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 80
PLAINLY: Final = {
    "dict_type": "should be a section of keys",
    "model_type": "should be a section of keys",
    "tuple_type": "should be a list",
}
"""Pydantic's words, where they speak of Python."""
Nested = Mapping[type, Collection[str]]
"""Parts that stand inside other parts, each with the parameters that the toolkit fills in."""


class PartSettings(BaseModel):
    """What a recipe may say of a part; `schema_of` adds the keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False, allow_inf_nan=False)
    filled_in: ClassVar[Collection[str]] = ()
    """Parameters of the part that are not for a recipe to choose."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, section: Any) -> Any:
        """A word alone is the part's name, where it has one: `backbone: efficientnet_lite0`."""
        return {"name": section} if isinstance(section, str) and "name" in cls.model_fields else section


def schema_of(part: type, given: Collection[str], nested: Nested) -> type[PartSettings]:
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
    schema = create_model(part.__name__, __base__=PartSettings, **keys)
    schema.filled_in = tuple(given)
    return schema


def checked(schema: type[M], section: object, where: str) -> tuple[M | None, list[str]]:
    """The section as settings, or every fault in it as a sentence."""
    if not isinstance(section, Mapping):
        return None, [f"{where}: must be a section of keys, but is {SHORT.repr(section)}."]
    try:
        return schema.model_validate(dict(section)), []
    except ValidationError as error:
        found = _worth_telling(error)
        told = [sentence for fault in found for sentence in _sentences(fault, schema, where)]
        return None, list(dict.fromkeys(told + _hidden(schema, dict(section), found, where)))


def _hidden(schema: type[M], section: dict[str, Any], found: list[ErrorDetails], where: str) -> list[str]:
    """Faults of several keys together, which show only when each key alone is right: look without the wrong ones."""
    rest, wrong = deepcopy(section), {str(fault["loc"][-1]) for fault in found if fault["loc"]}
    for fault in found:
        _take_out(rest, fault["loc"])
    try:
        schema.model_validate(rest)
    except ValidationError as error:
        faults = [fault for fault in _worth_telling(error) if fault["type"] == "value_error"]
        told = [sentence for fault in faults for sentence in _sentences(fault, schema, where)]
        return [sentence for sentence in told if not any(key in sentence for key in wrong)]
    return []


def _take_out(section: Any, place: tuple[int | str, ...]) -> None:
    """Remove what stands at a place, if there is something."""
    for key in place[:-1]:
        section = section.get(key) if isinstance(section, dict) else None
    if place and isinstance(section, dict):
        section.pop(place[-1], None)


def _worth_telling(error: ValidationError) -> list[ErrorDetails]:
    """One fault for each key: of a union's complaints only the first, or the one that looked inside."""
    seen: dict[tuple[int | str, ...], ErrorDetails] = {}
    for fault in error.errors():
        place = tuple(part for part in fault["loc"] if not _is_tag(part))
        seen.setdefault(place, {**fault, "loc": place})
    above = {place[:end] for place in seen for end in range(len(place))}
    return [fault for place, fault in seen.items() if place not in above]


def _is_tag(part: int | str) -> bool:
    """Whether pydantic put this into a location to name a branch of a union."""
    text = str(part)
    return "[" in text or text in {"bool", "str", "int", "float", "nullable", "constrained-str", "constrained-int"}


def _sentences(fault: ErrorDetails, schema: type[BaseModel], where: str) -> list[str]:
    """A fault in words; one of several keys together may be several."""
    return [_sentence({**fault, "msg": line}, schema, where) for line in fault["msg"].splitlines()]


def _sentence(fault: ErrorDetails, schema: type[BaseModel], where: str) -> str:
    *above, last = [str(part) for part in fault["loc"]] or [""]
    place = ".".join(filter(None, [where, *above]))
    full = ".".join(filter(None, [place, last]))
    if fault["type"] == "extra_forbidden":
        return _unexpected(place, last, _inside(schema, above))
    if fault["type"] == "missing":
        return f"{place}: key {last!r} is missing."
    told = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    told = PLAINLY.get(fault["type"], re.sub(r", unable to .*", "", told))
    if fault["type"] == "value_error" and isinstance(fault["input"], Mapping):  # of a whole section, and says it all
        return f"{full}: {told}."
    return f"{full}: {told}, but is {SHORT.repr(fault['input'])}.{_nearest(fault)}"


def _nearest(fault: ErrorDetails) -> str:
    """The right word that a wrong one may stand for."""
    if fault["type"] != "literal_error" or not isinstance(fault["input"], str):
        return ""
    near = get_close_matches(fault["input"], re.findall(r"'([^']*)'", fault["msg"]), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _unexpected(place: str, key: str, schema: type[BaseModel] | None) -> str:
    if schema is not None and issubclass(schema, PartSettings) and key in schema.filled_in:
        return f"{place}: key {key!r} is filled in by the toolkit; remove it."
    return unknown(f"{place}: key", key, [] if schema is None else list(schema.model_fields))


def _inside(schema: type[BaseModel], path: Collection[str]) -> type[BaseModel] | None:
    """The settings of a section, or of one nested in it."""
    for name in path:
        field = schema.model_fields.get(name)
        options = [] if field is None else [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return None
        schema = inner[0]
    return schema
