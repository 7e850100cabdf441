"""Checks of values that a file holds, declared as a small schema.

A check takes a value and its place, and raises ValueError with a sentence; a schema is checks
inside of checks.
"""

import re
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import Any, Final

from sixjars_runtime.errors import shown, unknown

Check = Callable[[Any, str], None]
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
"""Of an input or output: it is part of a file's name, so it is never a path."""


def _refuse(place: str, expected: str, value: object) -> None:
    raise ValueError(f"{place} must be {expected}, but is {shown(value)}")


def whole(least: int, most: int) -> Check:
    """Make a check for a whole number within bounds."""

    def check(value: Any, place: str) -> None:
        if type(value) is not int or not least <= value <= most:
            _refuse(place, f"a whole number from {least:,} to {most:,}", value)

    return check


def number(least: float, most: float) -> Check:
    """Make a check for a finite number within bounds."""

    def check(value: Any, place: str) -> None:
        if type(value) not in (int, float) or not isfinite(value) or not least <= value <= most:
            _refuse(place, f"a number from {least:g} to {most:g}", value)

    return check


def text(value: Any, place: str) -> None:
    """Check for a text."""
    if not isinstance(value, str):
        _refuse(place, "a text", value)


def yes_no(value: Any, place: str) -> None:
    """Check for true or false."""
    if not isinstance(value, bool):
        _refuse(place, "true or false", value)


def choice(*known: str) -> Check:
    """Make a check for one of some words."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or value not in known:
            raise ValueError(unknown(place, value, known).rstrip("."))

    return check


def optional(inner: Check) -> Check:
    """Make a check for nothing, or what another check takes."""

    def check(value: Any, place: str) -> None:
        if value is not None:
            inner(value, place)

    return check


def either(*checks: Check) -> Check:
    """Make a check for what at least one of the checks takes; the last one complains."""

    def check(value: Any, place: str) -> None:
        for first in checks[:-1]:
            try:
                return first(value, place)
            except ValueError:
                continue
        return checks[-1](value, place)

    return check


def items(inner: Check, *, least: int = 0, most: int = 1 << 30, different: bool = False) -> Check:
    """Make a check for a list, each item of which another check takes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            _refuse(
                place,
                f"a list of {least:,} to {most:,}" if least or most < 1 << 30 else "a list",
                value,
            )
        for at, item in enumerate(value):
            inner(item, f"{place}[{at}]")
        if different and len(set(value)) < len(value):
            raise ValueError(f"{place} has an item twice")

    return check


def section(expected: Mapping[str, Check], *, others: Collection[str] | None = None) -> Check:
    """Make a check for a section with these keys, and with `others` no keys but those."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            _refuse(place, "a section of keys", value)
        for key, inner in expected.items():
            if key not in value:
                raise ValueError(f"{_inside(place, key)} is missing")
            inner(value[key], _inside(place, key))
        known = None if others is None else {*expected, *others}
        if (
            known is not None
            and (wrong := next((key for key in value if key not in known), None)) is not None
        ):
            raise ValueError(unknown(f"{place}: key", wrong, known).rstrip("."))

    return check


def named(inner: Check, *, least: int, most: int) -> Check:
    """Make a check for a section whose keys are names, and whose values another check takes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict) or not least <= len(value) <= most:
            _refuse(place, f"a section of {least} to {most} keys", value)
        for key, item in value.items():
            if not NAME.fullmatch(key):
                raise ValueError(
                    f"{place} names {shown(key)}, which is no name of letters, digits and _"
                )
            inner(item, _inside(place, key))

    return check


def by_kind(kinds: Mapping[str, Check]) -> Check:
    """Make a check for a section whose `kind` says what else must be in it."""

    def check(value: Any, place: str) -> None:
        section({"kind": choice(*kinds)})(value, place)
        kinds[value["kind"]](value, place)

    return check


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
