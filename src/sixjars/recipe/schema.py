"""The signature is the schema: what a recipe may say of a component is what its constructor takes.

A keyword-only, typed, defaulted parameter of a constructor is a key of the recipe; its default is written once,
there. Parameters that the toolkit fills in itself (sizes of vocabularies, components built earlier) are `given` and
may not stand in a recipe. A parameter that is itself a module becomes a nested section.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from inspect import Parameter, signature
from typing import Any, ClassVar, Final, Self, TypeVar, final, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails

from sixjars.errors import RecipeError, hint, shown, unknown

M = TypeVar("M", bound=BaseModel)
Misfit = tuple[tuple[str, ...], str]
"""Keys that do not fit each other, and the sentence that says why."""
PLAINLY: Final = {
    "dict_type": "should be a section of keys",
    "model_type": "should be a section of keys",
    "tuple_type": "should be a list",
    "finite_number": "should be a finite number",
}
"""Pydantic's words, where they speak of Python."""
_BRANCHES: Final = {"bool", "str", "int", "float", "nullable", "constrained-str", "constrained-int"}


@final
class Misfits(ValueError):
    """Keys of one section that do not fit each other."""

    def __init__(self, found: tuple[Misfit, ...]) -> None:
        self.found = found
        super().__init__(" ".join(sentence for _, sentence in found))


class Settings(BaseModel):
    """A section of a recipe: frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    def misfits(self) -> Iterable[Misfit]:
        """Keys that do not fit each other, a sentence each."""
        return ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if found := tuple(self.misfits()):
            raise Misfits(found)
        return self


class ComponentSettings(BaseModel):
    """What a recipe may say of a component; `schema_of` adds the keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False, allow_inf_nan=False)
    filled_in: ClassVar[Collection[str]] = ()
    """Parameters of the component that are not for a recipe to choose."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, section: Any) -> Any:
        """A word alone is the name, where there is such a key: `backbone: efficientnet_lite0`."""
        return {"name": section} if isinstance(section, str) and "name" in cls.model_fields else section


def schema_of(component: type, given: Collection[str], is_section: Callable[[Any], bool]) -> type[ComponentSettings]:
    """The settings of a component, read off its signature.

    A module inside it is a section of its own; its `given` names the parameters that the toolkit fills in there.
    """
    return _schema(component, frozenset(given), is_section)


@cache  # to make a class is slow, and every recipe that is read asks for several
def _schema(component: type, given: frozenset[str], is_section: Callable[[Any], bool]) -> type[ComponentSettings]:
    hints = get_type_hints(component.__init__, include_extras=True)  # type: ignore[misc]
    keys: dict[str, Any] = {}
    for name, parameter in signature(component).parameters.items():
        if name in given:
            continue
        if name not in hints:
            raise RecipeError(
                [f"{component.__name__}: parameter {name!r} needs a type, for it is a key of the recipe."]
            )
        if is_section(hints[name]):
            inner = schema_of(hints[name], {*given, *getattr(hints[name], "given", ())}, is_section)
            keys[name] = (inner, inner())
        else:
            keys[name] = (hints[name], ... if parameter.default is Parameter.empty else parameter.default)
    schema = create_model(component.__name__, __base__=ComponentSettings, **keys)
    schema.filled_in = tuple(given)
    return schema


def checked(schema: type[M], section: object, where: str) -> tuple[M | None, list[str]]:
    """The section as settings, or every fault in it as a sentence."""
    if not isinstance(section, Mapping):
        return None, [f"{where}: must be a section of keys, but is {shown(section)}."]
    try:
        return schema.model_validate(dict(section)), []
    except ValidationError as error:
        found = _worth_telling(error)
        sentences = [sentence for fault in found for sentence in _sentences(fault, schema, where)]
        return None, list(dict.fromkeys([*sentences, *_hidden(schema, dict(section), found, where)]))


def _hidden(schema: type[M], section: dict[str, Any], found: list[ErrorDetails], where: str) -> Iterator[str]:
    """Misfits of several keys, which show only when each key alone is right: look without the wrong ones."""
    rest, wrong = deepcopy(section), {str(fault["loc"][-1]) for fault in found if fault["loc"]}
    for fault in found:
        _take_out(rest, fault["loc"])
    try:
        schema.model_validate(rest)
    except ValidationError as error:
        for fault in _worth_telling(error):
            for keys, sentence in _misfits(fault):
                if not wrong.intersection(keys):  # what a key that was taken out would have said, nobody knows
                    yield f"{'.'.join([where, *map(str, fault['loc'])])}: {sentence}"


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
        place = tuple(step for step in fault["loc"] if "[" not in str(step) and str(step) not in _BRANCHES)
        seen.setdefault(place, {**fault, "loc": place})
    above = {place[:end] for place in seen for end in range(len(place))}
    return [fault for place, fault in seen.items() if place not in above]


def _misfits(fault: ErrorDetails) -> tuple[Misfit, ...]:
    error = fault.get("ctx", {}).get("error")
    return error.found if isinstance(error, Misfits) else ()


def _sentences(fault: ErrorDetails, schema: type[BaseModel], where: str) -> list[str]:
    """A fault in words; one of several keys together may be several."""
    *above, last = [str(step) for step in fault["loc"]] or [""]
    place = ".".join(filter(None, [where, *above]))
    full = ".".join(filter(None, [place, last]))
    if misfits := _misfits(fault):
        return [f"{full}: {sentence}" for _, sentence in misfits]
    if fault["type"] == "extra_forbidden":
        return [_unexpected(place, last, _inside(schema, above))]
    if fault["type"] == "missing":
        return [f"{place}: key {last!r} is missing."]
    message = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    message = PLAINLY.get(fault["type"], re.sub(r", unable to .*", "", message))
    return [f"{full}: {message}, but is {shown(fault['input'])}.{_nearest(fault)}"]


def _nearest(fault: ErrorDetails) -> str:
    """The right word that a wrong one may stand for."""
    if fault["type"] != "literal_error" or not isinstance(fault["input"], str):
        return ""
    return hint(fault["input"], re.findall(r"'([^']*)'", fault["msg"]))


def _unexpected(place: str, key: str, schema: type[BaseModel] | None) -> str:
    if schema is not None and issubclass(schema, ComponentSettings) and key in schema.filled_in:
        return f"{place}: key {key!r} is filled in by the toolkit; remove it."
    return unknown(f"{place}: key", key, [] if schema is None else list(schema.model_fields))


def _inside(schema: type[BaseModel], path: Collection[str]) -> type[BaseModel] | None:
    """The settings of a section, or of one nested in it."""
    for name in path:
        field = schema.model_fields.get(name)
        options = [] if field is None else [field.annotation, *get_args(field.annotation)]
        options += [inside for option in options for inside in get_args(option)]  # of what is annotated
        inner = [kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return None
        schema = inner[0]
    return schema
