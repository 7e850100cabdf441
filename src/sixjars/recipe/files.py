"""Where recipes are found, and how their text becomes settings; no code in them is run."""

import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from sixjars.recipe.schema import faults_of
from sixjars.tasks import own_name
from sixjars_runtime.errors import DataError, RecipeError, file_hint, hint, shown

M = TypeVar("M", bound=BaseModel)
LARGEST: Final = 1 << 16  # bytes of a recipe file; one that people write has a few thousand
DEEPEST: Final = 20  # sections inside sections; a recipe has four
RecipeLike = str | os.PathLike[str] | Mapping[str, Any]
"""A recipe as people give it: a file, the name of a packaged one, or plain values."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
# YAML 1.1 takes 5e-4 for a word.
_NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_WORDS = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"], True),
    **dict.fromkeys(["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"], False),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf")),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf")),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
}


def packaged() -> dict[str, Path]:
    """The recipes that come with the package, by name: `translation/sample_attention`."""
    with as_file(files("sixjars") / "recipes") as folder:
        return {f"{path.parent.name}/{path.stem}": path for path in sorted(folder.glob("*/*.yaml"))}


def find(name: str) -> Path:
    """The file of a recipe, given its path or the name of one that comes with the package."""
    path = Path(name)
    shipped = packaged()
    if os.path.isfile(name):  # an impossible name is none, where `Path.is_file` may raise
        return path
    if (known := name if name in shipped else own_name(name)) in shipped:
        return shipped[known]
    if name and os.path.isdir(name):
        raise DataError(f"{name} is a folder, not a recipe file.")
    if path.suffix in {".yaml", ".yml"}:
        files_there = path.parent.glob("*.y*ml") if os.path.isdir(path.parent) else ()
        beside = [str(file) for file in sorted(files_there)]
        raise DataError(f"recipe file {shown(name)[1:-1]} does not exist.{file_hint(name, beside)}")
    message = f"recipe {shown(name)} is unknown.{hint(name, list(shipped))}"
    raise DataError(f"{message} A recipe is a .yaml file or a name that `sixjars tasks` lists.")


def values_from(recipe: RecipeLike) -> tuple[dict[str, Any], str]:
    """The values of a recipe, given as a dict, a file or a name; and what messages call it."""
    if isinstance(recipe, Mapping):
        faults: list[str] = []
        values = {str(key): _as_read(value, str(key), faults) for key, value in recipe.items()}
        if faults:
            raise RecipeError(faults, "recipe")
        return values, "recipe"
    if not isinstance(recipe, str | os.PathLike):
        raise RecipeError([f"must be a file, a name or a dict, but is {shown(recipe)}."], "recipe")
    path = find(str(recipe))
    return values_of(read_text(path), str(path)), str(recipe)


def _as_read(value: Any, where: str, faults: list[str], depth: int = 0) -> Any:
    """The value as if it were read from a file; a fault where it could not be."""
    if depth > DEEPEST:
        faults.append(f"{where[:80]}: sections are nested more than {DEEPEST} deep.")
    elif isinstance(value, Mapping):
        items = value.items()
        return {str(k): _as_read(v, f"{where}.{k}", faults, depth + 1) for k, v in items}
    elif isinstance(value, list | tuple):
        return [_as_read(inner, where, faults, depth + 1) for inner in value]
    elif isinstance(value, os.PathLike):
        return os.fspath(value)
    elif isinstance(value, type):
        name = f"write its name, {value.__name__!r}, and hand it over in components=[…]."
        faults.append(f"{where}: is a class; {name}")
    elif value is not None and not isinstance(value, str | bool | int | float):
        kinds = "a text, a number, a list or a section"
        faults.append(f"{where}: must be {kinds}, but is {shown(value)}.")
    return value


def read_text(path: Path) -> str:
    """The text of a recipe file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise RecipeError([f"is larger than {LARGEST:,} bytes, so it is no recipe."], str(path))
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError([f"byte {error.start} is not UTF-8 text."], str(path)) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {os.strerror(error.errno or 0)}.") from None


def values_of(text: str, where: str) -> dict[str, Any]:
    """The plain values of a recipe's text."""
    try:
        values = loaded(text)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RecipeError([f"{line} not YAML: {shown(problem)[1:-1]}.".strip()], where) from None
    if not isinstance(values, dict):
        raise RecipeError(["a recipe is a set of keys (task, data, model, …)."], where)
    return values


def loaded(text: str) -> Any:
    """Plain values of YAML: sections, lists, texts, numbers, true, false and null.

    What has no place in a recipe is refused: tags (`!!int`), anchors and aliases (a few lines of
    them fill a memory), a key that stands twice, several documents, and sections nested too deep.

    >>> loaded("{rate: 5e-4, sizes: [1, 2.5], name: no.1, on: yes}")
    {'rate': 0.0005, 'sizes': [1, 2.5], 'name': 'no.1', 'on': True}
    """
    events = iter(yaml.parse(text, Loader=_LOADER))
    starts = yaml.StreamStartEvent | yaml.DocumentStartEvent
    inside = (event for event in events if not isinstance(event, starts))
    first = next(inside)
    value = None if isinstance(first, yaml.StreamEndEvent) else _value(first, inside, 0)
    for event in inside:
        if not isinstance(event, yaml.DocumentEndEvent | yaml.StreamEndEvent):
            raise _refused("a recipe is one document", event)
    return value


def _value(event: Any, events: Any, depth: int) -> Any:
    _check(event, depth)
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        return [_value(inner, events, depth + 1) for inner in _until(events, yaml.SequenceEndEvent)]
    values: dict[str, Any] = {}
    for key in _until(events, yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent):
            raise _refused("a key must be a word", key)
        if key.value in values:
            raise _refused(f"key {shown(key.value)} stands twice", key)
        values[key.value] = _value(next(events), events, depth + 1)
    return values


def _check(event: Any, depth: int) -> None:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise _refused("an anchor (&name) or alias (*name) has no place in a recipe", event)
    if event.tag is not None:
        raise _refused(f"the tag {shown(event.tag)} has no place in a recipe", event)
    if depth > DEEPEST:
        raise _refused(f"sections are nested more than {DEEPEST} deep", event)


def _until(events: Any, end: type) -> Any:
    """The events before the one that ends a list or a section."""
    while not isinstance(event := next(events), end):
        yield event


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # it stands in quotes
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 25:
            raise _refused("a number has more than 25 digits", event)
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _refused(problem: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def listed_overrides(overrides: Sequence[str]) -> list[str]:
    """Overrides as a list; a single text is refused."""
    if isinstance(overrides, str | Mapping):
        fault = f'must be a list such as ["learning.epochs=2"], but is {shown(overrides)}.'
        raise RecipeError([fault], "overrides")
    return [*overrides]


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values of a recipe with overrides like `model.encoder.layers=2`.

    >>> overridden({"learning": {"rate": 0.1}}, ["learning.rate=5e-4", "loss.smoothing=0.1"])
    {'learning': {'rate': 0.0005}, 'loss': {'smoothing': 0.1}}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        result[key] = dict(value) if isinstance(value, dict) else value
    faults = []
    for override in listed_overrides(overrides):
        key, equals, text = override.partition("=")
        if not equals or not key:
            form = "must look like KEY=VALUE, for example learning.rate=5e-4."
            faults.append(f"override {shown(override)} {form}")
            continue
        *above, last = key.split(".")
        section = result
        for name in above:
            inner = section.get(name)
            section[name] = dict(inner) if isinstance(inner, dict) else {}
            section = section[name]
        try:
            section[last] = loaded(text)
        except (yaml.YAMLError, ValueError):
            faults.append(f"override {shown(override)} has a value that is not YAML.")
    if faults:
        raise RecipeError(faults, "the command line")
    return result


def checked(schema: type[M], section: object, where: str) -> tuple[M | None, list[str]]:
    """The section as settings, or every fault in it as a sentence."""
    if not isinstance(section, Mapping):
        return None, [f"{where}: must be a section of keys, but is {shown(section)}."]
    try:
        return schema.model_validate(dict(section)), []
    except ValidationError as error:
        return None, faults_of(error, schema, dict(section), where)


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Join nested keys with dots.

    >>> flat({"learning": {"rate": 0.1}, "task": "dialog"})
    {'learning.rate': 0.1, 'task': 'dialog'}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        nested = isinstance(value, Mapping) and value
        result |= flat(value, f"{above}{key}.") if nested else {f"{above}{key}": value}
    return result


def inline(value: object) -> str:
    """Write a value as YAML on one line, quoted only where it would be misread.

    >>> inline({"column": "en", "size": 2}), inline({"no": "no"}), inline(("a: b", True))
    ('{column: en, size: 2}', '{"no": "no"}', '["a: b", true]')
    """
    if isinstance(value, Mapping):
        pairs = (f"{inline(key)}: {inline(inner)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(inline, value))}]"
    if value is None:
        return "null"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        inside = loaded(f"{{one: {plain}, two: 2}}") == {"one": value, "two": 2}
        if inside and loaded(f"one: {plain}") == {"one": value} and plain.isprintable():
            return plain
    except (yaml.YAMLError, ValueError):
        pass
    quoted = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))
    return str(quoted).rstrip("\n")
