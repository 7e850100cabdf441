"""Where recipes are found, how their text becomes plain values, and those settings. No code in a recipe is ever run."""

import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from sixjars.recipe.schema import faults_of
from sixjars.tasks import own_name
from sixjars_runtime.errors import DataError, RecipeError, file_hint, hint, shown

M = TypeVar("M", bound=BaseModel)
LARGEST: Final = 1 << 16
"""Bytes of a recipe file; one that people write has a few thousand."""
DEEPEST: Final = 20
"""Sections inside sections; a recipe has four."""
RecipeLike = str | os.PathLike[str] | Mapping[str, Any]
"""A recipe as people give it: a file, the name of one that comes with the package, or plain values."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
_NUMBER = re.compile(
    r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?"
)  # YAML 1.1 takes 5e-4 for a word
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_WORDS = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"], True),
    **dict.fromkeys(["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"], False),
    **{
        sign + word: float(sign + word[1:])
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
}


def packaged() -> dict[str, Path]:
    """The recipes that come with the package, by name: `translation/sample_attention`."""
    with as_file(files("sixjars") / "recipes") as folder:
        return {f"{path.parent.name}/{path.stem}": path for path in sorted(folder.glob("*/*.yaml"))}


def find(name: str) -> Path:
    """The file of a recipe, given its path or the name of one that comes with the package."""
    path, shipped = Path(name), packaged()
    if _is(path, "file"):
        return path
    if (own := name if name in shipped else own_name(name)) in shipped:
        return shipped[own]
    if name and _is(path, "dir"):
        raise DataError(f"{name} is a folder, not a recipe file.")
    if path.suffix in {".yaml", ".yml"}:
        beside = (
            [str(file) for file in sorted(path.parent.glob("*.y*ml"))]
            if _is(path.parent, "dir")
            else []
        )
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
    """A value as if it stood in a file; whatever could not is a fault."""
    if depth > DEEPEST:
        faults.append(f"{where[:80]}: sections are nested more than {DEEPEST} deep.")
    elif isinstance(value, Mapping):
        return {
            str(key): _as_read(inner, f"{where}.{key}", faults, depth + 1)
            for key, inner in value.items()
        }
    elif isinstance(value, list | tuple):
        return [_as_read(inner, where, faults, depth + 1) for inner in value]
    elif isinstance(value, os.PathLike):
        return os.fspath(value)
    elif isinstance(value, type):
        faults.append(
            f"{where}: is a class; write its name, {value.__name__!r}, and hand it over in components=[…]."
        )
    elif value is not None and not isinstance(value, str | bool | int | float):
        faults.append(
            f"{where}: must be a text, a number, a list or a section, but is {shown(value)}."
        )
    return value


def _is(path: Path, what: str) -> bool:
    """Whether there is such a file or folder; a name that no system can have is none."""
    try:
        return path.is_file() if what == "file" else path.is_dir()
    except (OSError, ValueError):
        return False


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

    What has no place in a recipe is refused: tags (`!!int`), anchors and aliases (a few lines of them fill a memory),
    a key that stands twice, several documents, and sections nested too deep.

    >>> loaded("{rate: 5e-4, sizes: [1, 2.5], name: no.1, on: yes}")
    {'rate': 0.0005, 'sizes': [1, 2.5], 'name': 'no.1', 'on': True}
    """
    events = iter(yaml.parse(text, Loader=_LOADER))
    inside = (
        event
        for event in events
        if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent)
    )
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
    """Events up to the one that ends a list or a section."""
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
    """Overrides as a list; one text is none, though its letters could be taken for several."""
    if isinstance(overrides, str | Mapping):
        raise RecipeError(
            [f'must be a list such as ["learning.epochs=2"], but is {shown(overrides)}.'],
            "overrides",
        )
    return [*overrides]


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values with `model.encoder.layers=2` and the like put in; the values given stay as they are.

    >>> overridden({"learning": {"rate": 0.1}}, ["learning.rate=5e-4", "loss.smoothing=0.1"])
    {'learning': {'rate': 0.0005}, 'loss': {'smoothing': 0.1}}
    """
    result: dict[str, Any] = {
        key: dict(value) if isinstance(value, dict) else value for key, value in values.items()
    }
    faults = []
    for override in listed_overrides(overrides):
        key, equals, text = override.partition("=")
        if not equals or not key:
            faults.append(
                f"override {shown(override)} must look like KEY=VALUE, for example learning.rate=5e-4."
            )
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
    """Nested keys with dots between them.

    >>> flat({"learning": {"rate": 0.1}, "task": "dialog"})
    {'learning.rate': 0.1, 'task': 'dialog'}
    """
    pairs = ((f"{above}{key}", value) for key, value in values.items())
    found = (
        flat(value, f"{name}.").items() if isinstance(value, Mapping) and value else [(name, value)]
        for name, value in pairs
    )
    return dict(chain.from_iterable(found))


def inline(value: object) -> str:
    """A value as YAML on one line, names in quotes only where they would be read as something else without them.

    >>> inline({"column": "en", "size": 2}), inline({"no": "no"}), inline(("a: b", True))
    ('{column: en, size: 2}', '{"no": "no"}', '["a: b", true]')
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{inline(key)}: {inline(inner)}' for key, inner in value.items())}}}"
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
    return str(
        yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))
    ).rstrip("\n")
