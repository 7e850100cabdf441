"""What all settings of a recipe share: strict about their keys, every fault a sentence."""

import re
from collections.abc import Collection, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Final, final, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from sixjars_runtime.errors import hint, shown, unknown

Misfit = tuple[tuple[str, ...], str]
"""Keys that do not fit each other, and the sentence that says why."""
PLAINLY: Final = {
    "dict_type": "should be a section of keys",
    "model_type": "should be a section of keys",
    "tuple_type": "should be a list",
    "finite_number": "should be a finite number",
}
"""Pydantic's words, where they speak of Python."""
_BRANCHES: Final = "bool str int float nullable constrained-str constrained-int LinkFiles".split()


@final
class Misfits(ValueError):
    """Keys of one section that do not fit each other."""

    def __init__(self, misfits: tuple[Misfit, ...]) -> None:
        self.misfits = misfits
        super().__init__(" ".join(sentence for _, sentence in misfits))


class Settings(BaseModel):
    """A section of a recipe: frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    filled_in: ClassVar[Collection[str]] = ()
    """Keys that are not for a recipe to choose: the toolkit fills them in."""


def faults_of(
    error: ValidationError, schema: type[BaseModel], section: dict[str, Any], where: str
) -> list[str]:
    """Every fault that was found in a section, as a sentence."""
    faults = _worth_telling(error)
    sentences = [sentence for fault in faults for sentence in _sentences(fault, schema, where)]
    return list(dict.fromkeys([*sentences, *_hidden(schema, section, faults, where)]))


def _hidden(
    schema: type[BaseModel], section: dict[str, Any], faults: list[ErrorDetails], where: str
) -> Iterator[str]:
    """Misfits of several keys, which show only when each key alone is right."""
    rest = deepcopy(section)
    wrong = {str(fault["loc"][-1]) for fault in faults if fault["loc"]}
    for fault in faults:
        inside: Any = rest
        for key in fault["loc"][:-1]:
            inside = inside.get(key) if isinstance(inside, dict) else None
        if fault["loc"] and isinstance(inside, dict):
            inside.pop(fault["loc"][-1], None)
    try:
        schema.model_validate(rest)
    except ValidationError as error:
        for fault in _worth_telling(error):
            place = ".".join([where, *map(str, fault["loc"])])
            for keys, sentence in _misfits(fault):
                if not wrong.intersection(keys):  # the right value of a removed key is unknown
                    yield f"{place}: {sentence}"


def _worth_telling(error: ValidationError) -> list[ErrorDetails]:
    """One fault for each key: of a union's only the first, or the one that looked inside."""
    seen: dict[tuple[int | str, ...], ErrorDetails] = {}
    for fault in error.errors():
        steps = (step for step in fault["loc"] if "[" not in str(step))
        place = tuple(step for step in steps if str(step) not in _BRANCHES)
        if place not in seen or _misfits(fault):
            seen[place] = {**fault, "loc": place}
    above = {place[:end] for place in seen for end in range(len(place))}
    return [fault for place, fault in seen.items() if place not in above]


def _misfits(fault: ErrorDetails) -> tuple[Misfit, ...]:
    error = fault.get("ctx", {}).get("error")
    return error.misfits if isinstance(error, Misfits) else ()


def _sentences(fault: ErrorDetails, schema: type[BaseModel], where: str) -> list[str]:
    """The sentences of a fault; a misfit of several keys may have several."""
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
    is_word = fault["type"] == "literal_error" and isinstance(fault["input"], str)
    nearest = hint(fault["input"], re.findall(r"'([^']*)'", fault["msg"])) if is_word else ""
    return [f"{full}: {message}, but is {shown(fault['input'])}.{nearest}"]


def _unexpected(place: str, key: str, schema: type[BaseModel] | None) -> str:
    if schema is not None and issubclass(schema, Settings) and key in schema.filled_in:
        return f"{place}: key {key!r} is filled in by the toolkit; remove it."
    return unknown(f"{place}: key", key, [] if schema is None else list(schema.model_fields))


def _inside(schema: type[BaseModel], path: Collection[str]) -> type[BaseModel] | None:
    """The settings of a section, or of one nested in it."""
    for name in path:
        field = schema.model_fields.get(name)
        options = [] if field is None else [field.annotation, *get_args(field.annotation)]
        options += [inside for option in options for inside in get_args(option)]  # of Annotated
        inner = [kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return None
        schema = inner[0]
    return schema
