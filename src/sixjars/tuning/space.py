"""Search spaces: which values of a recipe's keys a parameter search may try. They are text, and no code is run.

learning.rate=log(1e-4,1e-2)          a number, its logarithm uniform; whole numbers where both ends are integers
model.encoder.dropout=uniform(0,0.5)  a number
model.encoder.size=int(64,512)        a whole number
model.encoder.cell=[gru,lstm]         one of these
learning.epochs=5                     no search: the same in every trial
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import yaml

from sixjars.recipe.files import loaded
from sixjars.recipe.sections import DataSettings
from sixjars.tuning.dimensions import Choices, Dimension, Range
from sixjars_runtime.errors import RecipeError, hint, shown

SpaceLike = Sequence[str] | Mapping[str, Any]
"""A space as people give it: `KEY=SPACE` texts, or a dict of them, in which a list holds choices."""
TRIALS: Final = 30
"""Of a search, when nobody says how many."""
RANGES: Final = ("log", "uniform", "int")
WHERE: Final = "the search space"
SCORING: Final = ("task", "evaluation", "expect", "learning.metric", "learning.folds")
"""Keys that decide what is scored; so do those of `data`, but for what a field makes of its column."""
_CALL: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\((?P<ends>.*)\)", re.DOTALL)
_CHOOSERS: Final = {"choice", "choices", "categorical", "choose", "one_of"}
_OTHER_NAMES: Final = {
    **dict.fromkeys(["loguniform", "log_uniform", "lograndint", "log_int", "logspace"], "log"),
    **dict.fromkeys(["between", "interval", "float", "real", "linear"], "uniform"),
    **dict.fromkeys(["range", "randint", "integer", "quniform", "int_uniform"], "int"),
}
"""What other libraries call them."""


@final
@dataclass(frozen=True)
class Space:
    """What is searched, and what is the same in every trial."""

    dimensions: Mapping[str, Dimension]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """Each dimension as a person would write it."""
        return {key: str(one) for key, one in self.dimensions.items()}

    @property
    def count(self) -> int | None:
        """How many combinations of values there are; nothing where they cannot be counted."""
        counts = [one.count for one in self.dimensions.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def draw(self, at: int) -> dict[str, Any]:
        """What Optuna would draw for a combination, by its place from 0, where they can be counted."""
        drawn = {}
        for key, one in self.dimensions.items():
            at, place = divmod(at, one.count or 1)
            drawn[key] = one.draw(place)
        return drawn


def overrides_of(values: Mapping[str, Any]) -> list[str]:
    """Values as overrides of a recipe.

    >>> overrides_of({"learning.rate": 1e-05, "model.encoder.cell": "gru"})
    ['learning.rate=1e-05', 'model.encoder.cell="gru"']
    """
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def space_of(given: SpaceLike) -> Space:
    """A space, strictly read; all its faults are told at once.

    >>> space = space_of(["learning.rate=log(1e-4,1e-2)", "model.encoder.size=[128,256]", "learning.epochs=5"])
    >>> space.texts(), space.fixed
    ({'learning.rate': 'log(0.0001,0.01)', 'model.encoder.size': '[128, 256]'}, {'learning.epochs': 5})
    """
    dimensions: dict[str, Dimension] = {}
    fixed: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in _pairs(given, faults):
        if key in dimensions or key in fixed:
            faults.append(f"{key} stands twice; give it one space.")
            continue
        try:
            found = _read(key, value)
        except RecipeError as error:
            faults += error.faults
            found = None
        if isinstance(found, Dimension):
            dimensions[key] = found
            if _decides(key):
                faults.append(
                    f"{key} decides what is scored, so trials could not be compared; give it one value."
                )
        else:
            fixed[key] = found
    if not dimensions and not faults:
        faults.append(_nothing(fixed))
    if faults:
        raise RecipeError(faults, WHERE)
    return Space(dimensions, fixed)


def check_counts(**counts: int) -> None:
    """Numbers of things to do are 1 or more."""
    faults = [
        f"{name} must be 1 or more, but is {count}." for name, count in counts.items() if count < 1
    ]
    if faults:
        raise RecipeError(faults, WHERE)


def _decides(key: str) -> bool:
    """Whether a key, or one below it, decides what is scored, or on what: validation rows may be training rows too."""
    section, *below = key.split(".")
    if section == "data":
        return len(below) < 2 or below[0] in DataSettings.model_fields or below[1] == "column"
    return any(f"{key}.".startswith(f"{one}.") or one.startswith(f"{key}.") for one in SCORING)


def _nothing(fixed: Mapping[str, Any]) -> str:
    if not fixed:
        return "there is nothing to search; write KEY=SPACE, for example 'learning.rate=log(1e-4,1e-2)'."
    key, value = next(iter(fixed.items()))
    one = json.dumps(value)
    several = f"{value}" if isinstance(value, str) and "," in value else f"{one},…"
    return f"there is nothing to search: {key}={one} is one value; write '{key}=[{several}]', or a range: {_example(key)}."


def _example(key: str, name: str = "log") -> str:
    """How a range of this key could be written."""
    ends = {"log": "1e-4,1e-2", "uniform": "0,0.5", "int": "64,512"}
    return f"'{key}={name}({ends[name]})'"


def _pairs(given: SpaceLike, faults: list[str]) -> Iterable[tuple[str, Any]]:
    """Keys with what is said of each."""
    if isinstance(given, Mapping):
        yield from ((str(key), value) for key, value in given.items())
        return
    if isinstance(given, str):
        given = [given]
    for text in given:
        key, equals, value = str(text).partition("=")
        if equals and key.strip():
            yield key.strip(), value
        else:
            faults.append(
                f"{shown(text)} must look like KEY=SPACE, for example {_example('learning.rate')}."
            )


def _read(key: str, given: Any) -> Any:
    """What a key may be: a dimension, or one value."""
    if isinstance(given, list | tuple):
        return _choices(key, [_plain(value) for value in given])
    if not isinstance(given, str):
        return _single(key, _plain(given))
    text = given.strip()
    call = _CALL.fullmatch(text)
    if call is not None:
        return _range(key, call["name"], call["ends"])
    if text in RANGES:
        raise _fault(f"{key}={text} has no ends; write {_example(key, text)}.")
    try:
        value = loaded(text)
    except (yaml.YAMLError, ValueError):
        raise _fault(
            f"{key}={shown(text)[1:-1]} is neither a value nor a space: brackets or quotes are open."
        ) from None
    return _choices(key, value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """The number of a NumPy number."""
    return value.item() if isinstance(value, np.generic) else value


def _single(key: str, value: Any) -> Any:
    """One value, if a recipe can hold it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        raise _fault(
            f"{key}: give a text such as 'log(1e-4,1e-2)', a list of choices, or a plain value; it is {shown(value)}."
        ) from None
    return value


def _choices(key: str, values: list[Any]) -> Any:
    """Choices; a list of one is that value, so that a list can be a value too: `[[encoder]]`."""
    if not values:
        raise _fault(
            f"{key}=[] is empty; write the values to try, for example '{key}=[128,256,512]'."
        )
    try:
        texts = [json.dumps(value, allow_nan=False) for value in values]
    except (TypeError, ValueError):
        raise _fault(
            f"{key}: choices must be plain values, but they are {shown(values)}."
        ) from None
    twice = next((text for at, text in enumerate(texts) if text in texts[:at]), None)
    if twice is not None:
        raise _fault(f"{key}: {twice} stands twice in its list.")
    return Choices(tuple(values)) if len(values) > 1 else values[0]


def _range(key: str, name: str, inside: str) -> Range:
    """A range, of the text between its parentheses."""
    if name in _CHOOSERS:
        raise _fault(f"{key}: write choices as a list: '{key}=[{inside.strip()}]'.")
    if name not in RANGES:
        meant = _OTHER_NAMES.get(name.lower())
        similar = f" Did you mean {meant!r}?" if meant else hint(name, RANGES)
        raise _fault(
            f"{key}: range {name!r} is unknown.{similar} Known: {', '.join(sorted(RANGES))}."
        )
    try:
        ends = [loaded(part) for part in inside.split(",")]
    except (yaml.YAMLError, ValueError):
        ends = []
    if len(ends) != 2 or not all(_is_number(end) for end in ends):
        such = _example(key, name)
        raise _fault(
            f"{key}={name}({inside}) must have two numbers, the lower and the upper, such as {such}."
        )
    low, high = ends
    whole = all(isinstance(end, int) for end in ends) and name != "uniform"
    if low >= high:
        raise _fault(
            f"{key}={name}({inside}): the lower end {low} must be below the upper end {high}."
        )
    if name == "log" and low <= 0:
        raise _fault(
            f"{key}={name}({inside}): 0 and less have no logarithm; begin above 0, or use uniform."
        )
    if name == "int" and not whole:
        raise _fault(
            f"{key}={name}({inside}): both ends must be whole numbers; use uniform or log for others."
        )
    return (
        Range(low, high, name == "log", whole)
        if whole
        else Range(float(low), float(high), name == "log")
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fault(sentence: str) -> RecipeError:
    return RecipeError([sentence], WHERE)
