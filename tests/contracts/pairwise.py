"""Few cases instead of all combinations: every pair of values of two settings is in one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Case = dict[str, Any]


def pairs_of(case: Mapping[str, Any]) -> set[tuple[tuple[str, Any], tuple[str, Any]]]:
    """The pairs of values that occur in a case."""
    return set(combinations(sorted(case.items()), 2))


def pairwise(**settings: Sequence[Any]) -> list[Case]:
    """Greedily the case with the most new pairs, the first of equals, until no pair is missing."""
    every = [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]
    missing = {pair for case in every for pair in pairs_of(case)}
    chosen = []
    while missing:
        best = max(every, key=lambda case: len(pairs_of(case) & missing))
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


def named(
    make: Callable[..., Any], prefix: str, **settings: Sequence[Any]
) -> tuple[dict[str, Any], set[str]]:
    """All combinations by name; and the names of those that are not in the selection."""
    every = [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]
    chosen = pairwise(**settings)
    names = ["-".join([prefix, *map(str, case.values())]) for case in every]
    made = {name: make(**case) for name, case in zip(names, every, strict=True)}
    return made, {name for name, case in zip(names, every, strict=True) if case not in chosen}


def params(names: Iterable[str], rare: set[str]) -> list[Any]:
    """Names as parameters of a test; the rare ones run in `make test-all` only."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in rare else []) for name in names]
