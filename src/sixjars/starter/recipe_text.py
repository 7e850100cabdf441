"""Changes of values in the text of a recipe that `new` wrote, so that its comments stay."""

from collections.abc import Mapping
from typing import Any

import yaml

from sixjars.recipe.files import inline, loaded, overridden
from sixjars.tuning.search_space import overrides_of


def with_values(text: str, changes: Mapping[str, Any]) -> str:
    r"""The text of a recipe with other values of some keys, such as `model.encoder.size`.

    Where the text is laid out otherwise than `new` does, comments are lost; the values never are.

    >>> text = "task: dialog\nmodel:\n  # small\n  encoder: {size: 4, layers: 1}"
    >>> print(with_values(text, {"model.encoder.size": 8}))
    task: dialog
    model:
      # small
      encoder: {size: 8, layers: 1}
    """
    values = loaded(text)
    expected = overridden(values, overrides_of(changes))
    lines = text.splitlines()
    for section in dict.fromkeys(key.partition(".")[0] for key in changes):
        before, now = values.get(section, {}), expected[section]
        keys = [key for key in now if before.get(key) != now[key]]
        lines = _with_section(lines, section, now, keys)
    changed = "\n".join(lines) + ("\n" if text.endswith("\n") else "")
    try:
        if loaded(changed) == expected:
            return changed
    except (yaml.YAMLError, ValueError):
        pass
    return yaml.safe_dump(expected, sort_keys=False, allow_unicode=True, width=100)


def _with_section(
    lines: list[str], section: str, values: Mapping[str, Any], keys: list[str]
) -> list[str]:
    """The lines with one section changed: all of it where it is one line, else only some keys."""
    begin = next((at for at, line in enumerate(lines) if line.startswith(f"{section}:")), None)
    if begin is None:
        return [*lines, f"{section}: {inline(values)}"]
    if lines[begin].partition(":")[2].strip():
        return [*lines[:begin], f"{section}: {inline(values)}", *lines[begin + 1 :]]
    end = _end(lines, begin, "  ")
    inside = lines[begin + 1 : end]
    for key in keys:
        places = (at for at, line in enumerate(inside) if line.startswith(f"  {key}:"))
        at = next(places, len(inside))
        inside[at : _end(inside, at, "    ")] = [f"  {key}: {inline(values[key])}"]
    return [*lines[: begin + 1], *inside, *lines[end:]]


def _end(lines: list[str], begin: int, indent: str) -> int:
    """The first line after those that are indented under one line."""
    following = range(begin + 1, len(lines))
    return next((at for at in following if not lines[at].startswith(indent)), len(lines))
