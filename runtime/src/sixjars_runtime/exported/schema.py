"""Checks of values that a file holds, declared as a small schema.

A check takes a value and its place, and raises ValueError with a sentence; a schema is checks
inside of checks.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import NoneType
from typing import Any, Final

from sixjars_runtime.errors import shown, unknown

Check = Callable[[Any, str], None]
ANY: Final = (1 << 63) - 1
"""The most that a whole number without a limit may be."""
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
"""Of an input or output: it is part of a file's name, so it is never a path."""


def _only(expected: str, holds: Callable[[Any], bool]) -> Check:
    """Make a check for what a condition holds of; a sentence says what is expected."""

    def check(value: Any, place: str) -> None:
        if not holds(value):
            raise ValueError(f"{place} must be {expected}, but is {shown(value)}")

    return check


anything: Final = _only("anything", lambda value: True)
text: Final = _only("a text", lambda value: isinstance(value, str))
yes_no: Final = _only("true or false", lambda value: isinstance(value, bool))


def number(least: float, most: float, kind: Any = int | float, name: str = "a number") -> Check:
    """Make a check for a number within bounds, which none that is not finite is."""
    return _only(
        f"{name} from {least:,} to {most:,}",
        lambda value: (
            isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most
        ),
    )


def whole(least: int, most: int) -> Check:
    """Make a check for a whole number within bounds."""
    return number(least, most, int, "a whole number")


def choice(*known: str) -> Check:
    """Make a check for one of some words."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or value not in known:
            raise ValueError(unknown(place, value, known).rstrip("."))

    return check


def either(kind: type, inner: Check) -> Check:
    """Make a check for a value of a type, or what another check takes."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, kind):
            inner(value, place)

    return check


optional: Final = partial(either, NoneType)
text_or: Final = partial(either, str)


def items(inner: Check, *, least: int = 0, most: int = 1 << 30, different: bool = False) -> Check:
    """Make a check for a list, each item of which another check takes."""
    some = f"a list of {least:,} to {most:,}" if least or most < 1 << 30 else "a list"
    is_list = _only(some, lambda value: isinstance(value, list) and least <= len(value) <= most)

    def check(value: Any, place: str) -> None:
        is_list(value, place)
        for at, item in enumerate(value):
            inner(item, f"{place}[{at}]")
        if different and len(set(value)) < len(value):
            raise ValueError(f"{place} has an item twice")

    return check


def section(expected: Mapping[str, Check], *, others: Collection[str] | None = None) -> Check:
    """Make a check for a section with these keys, and with `others` no keys but those."""
    is_section = _only("a section of keys", lambda value: isinstance(value, dict))

    def check(value: Any, place: str) -> None:
        is_section(value, place)
        for key, inner in expected.items():
            if key not in value:
                raise ValueError(f"{_inside(place, key)} is missing")
            inner(value[key], _inside(place, key))
        known = {*value} if others is None else {*expected, *others}
        if wrong := [key for key in value if key not in known]:
            raise ValueError(unknown(f"{place}: key", wrong[0], known).rstrip("."))

    return check


def named(inner: Check, *, least: int, most: int) -> Check:
    """Make a check for a section whose keys are names, and whose values another check takes."""
    is_section = _only(
        f"a section of {least} to {most} keys",
        lambda value: isinstance(value, dict) and least <= len(value) <= most,
    )

    def check(value: Any, place: str) -> None:
        is_section(value, place)
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
