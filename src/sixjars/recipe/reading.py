"""Where recipes are found, and how their text becomes plain values. No code in a recipe is ever run."""

import os
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, final

import yaml

from sixjars.errors import DataError, RecipeError, unknown


def packaged() -> dict[str, Path]:
    """The recipes that come with the package, by name: `translation/sample_attention`."""
    with as_file(files("sixjars") / "recipes") as folder:
        return {f"{path.parent.name}/{path.stem}": path for path in sorted(folder.glob("*/*.yaml"))}


def find(name: str) -> Path:
    """The file of a recipe, given its path or the name of one that comes with the package."""
    path, shipped = Path(name), packaged()
    if path.is_file():
        return path
    if name in shipped:
        return shipped[name]
    if name and path.is_dir():
        raise DataError(f"{name} is a folder, not a recipe file.")
    if path.suffix in {".yaml", ".yml"}:
        beside = [str(file) for file in sorted(path.parent.glob("*.y*ml"))] if path.parent.is_dir() else []
        raise DataError(f"recipe file {name} does not exist." + _did_you_mean(name, beside))
    told = unknown("recipe", name, list(shipped)).split(" Known:")[0]
    raise DataError(f"{told} A recipe is a .yaml file or a name that `sixjars tasks` lists.")


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    told = unknown("", name, known)
    return told[told.index(" Did") : told.index(" Known")] if "Did" in told else ""


def values_of(text: str, where: str) -> dict[str, Any]:
    """The plain values of a recipe's text."""
    try:
        values = yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RecipeError([f"{line} not YAML: {problem}.".strip()], where) from None
    if not isinstance(values, dict):
        raise RecipeError(["a recipe is a set of keys (task, data, model, …)."], where)
    return values


def read_text(path: Path) -> str:
    """The text of a recipe file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecipeError([f"byte {error.start} is not UTF-8 text."], str(path)) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {os.strerror(error.errno or 0)}.") from None


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values with `model.encoder.layers=2` and the like put in; the values given stay as they are.

    >>> overridden({"learning": {"rate": 0.1}}, ["learning.rate=5e-4", "loss.smoothing=0.1"])
    {'learning': {'rate': '5e-4'}, 'loss': {'smoothing': 0.1}}
    """
    result: dict[str, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in values.items()}
    faults = []
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            faults.append(f"override {override!r} must look like KEY=VALUE, for example learning.rate=5e-4.")
            continue
        *above, last = key.split(".")
        section = result
        for name in above:
            inner = section.get(name)
            section[name] = dict(inner) if isinstance(inner, dict) else {}
            section = section[name]
        try:
            section[last] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            faults.append(f"override {override!r} has a value that is not YAML.")
    if faults:
        raise RecipeError(faults, "the command line")
    return result


@final
class _StrictLoader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that stands twice, and aliases (a few lines of them fill a memory)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As the safe loader, but for aliases."""
        if self.check_event(yaml.AliasEvent):
            problem = "an alias (*name) has no place in a recipe"
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """As the safe loader, but told of the second one."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
            if key.value in seen:
                problem = f"key {key.value!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))
