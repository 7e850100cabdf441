"""Search spaces: the values that a parameter search may try for a recipe's keys, given as text.

learning.rate=log(1e-4,1e-2)          a number, its logarithm uniform (whole if both ends are)
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
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import yaml

from sixjars.recipe.files import loaded
from sixjars.recipe.sections import DataSettings
from sixjars_runtime.errors import MissingExtra, RecipeError, hint, shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SpaceLike = Sequence[str] | Mapping[str, Any]
"""A space as people give it: `KEY=SPACE` texts, or a dict of them, in which a list is choices."""
TRIALS: Final = 30
"""Trials of a search, unless it says how many."""
DIGITS: Final = 4
"""Significant digits of a number that is tried, so that recipes stay readable."""
RANGES: Final = ("log", "uniform", "int")
WHERE: Final = "the search space"
SCORING: Final = ("task", "evaluation", "expect", "learning.metric", "learning.folds")
"""Keys that decide what is scored; so do those of `data`, but for the settings of a field."""
_CALL: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\((?P<ends>.*)\)", re.DOTALL)
_CHOOSERS: Final = {"choice", "choices", "categorical", "choose", "one_of"}
_OTHER_NAMES: Final = {
    **dict.fromkeys(["loguniform", "log_uniform", "lograndint", "log_int", "logspace"], "log"),
    **dict.fromkeys(["between", "interval", "float", "real", "linear"], "uniform"),
    **dict.fromkeys(["range", "randint", "integer", "quniform", "int_uniform"], "int"),
}
"""The names of other libraries for these ranges."""


@final
@dataclass(frozen=True)
class SearchSpace:
    """The values that a search tries, and those that are the same in every trial."""

    distributions: Mapping[str, Any]
    """Optuna's distribution of each key. The choices of one are texts of JSON: `1`, `1.0` and
    `true` are three, and a list can be one."""
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """Each distribution as a person would write it."""
        return {key: _text(each) for key, each in self.distributions.items()}

    def axes(self) -> dict[str, str]:
        """The axis of each key in a drawing: `linear`, `log`, or `names`."""
        return {key: _axis(each) for key, each in self.distributions.items()}

    def corners(self) -> dict[str, tuple[Any, ...]]:
        """Values of each key that show whether a recipe takes all: both ends, or all choices."""
        items = self.distributions.items()
        return {key: _choices_of(each) or (each.low, each.high) for key, each in items}

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The values for a recipe, from a draw of Optuna."""
        return {key: _value(each, drawn[key]) for key, each in self.distributions.items()}

    @property
    def count(self) -> int | None:
        """How many combinations of values there are; None where they cannot be counted."""
        counts = [_count(each) for each in self.distributions.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def draw(self, at: int) -> dict[str, Any]:
        """The draw of Optuna for a combination by its place from 0, where they can be counted."""
        drawn: dict[str, Any] = {}
        for key, each in self.distributions.items():
            at, place = divmod(at, _count(each) or 1)
            drawn[key] = each.choices[place] if _choices_of(each) else each.low + place
        return drawn


def _choices_of(distribution: Any) -> tuple[Any, ...]:
    """The values of choices; none of a range."""
    return tuple(json.loads(text) for text in getattr(distribution, "choices", ()))


def _text(distribution: Any) -> str:
    if choices := _choices_of(distribution):
        return json.dumps(choices)
    name = "int" if isinstance(distribution.low, int) else "uniform"
    name = "log" if distribution.log else name
    return f"{name}({distribution.low!r},{distribution.high!r})"


def _axis(distribution: Any) -> str:
    if _choices_of(distribution):
        return "names"
    return "log" if distribution.log else "linear"


def _count(distribution: Any) -> int | None:
    """How many values there are; None between two numbers that are not whole."""
    if choices := _choices_of(distribution):
        return len(choices)
    low, high = distribution.low, distribution.high
    return high - low + 1 if isinstance(low, int) else None


def _value(distribution: Any, drawn: Any) -> Any:
    """The value of a draw; a number is rounded, but not beyond an end."""
    if _choices_of(distribution):
        return json.loads(drawn)
    if isinstance(distribution.low, int):
        return int(drawn)
    return min(max(float(f"{drawn:.{DIGITS}g}"), distribution.low), distribution.high)


def overrides_of(values: Mapping[str, Any]) -> list[str]:
    """Values as overrides of a recipe.

    >>> overrides_of({"learning.rate": 1e-05, "model.encoder.cell": "gru"})
    ['learning.rate=1e-05', 'model.encoder.cell="gru"']
    """
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def space_of(space: SpaceLike) -> SearchSpace:
    """A space, strictly read; all its faults are reported at once.

    >>> space = space_of(["learning.rate=log(1e-4,1e-2)", "learning.epochs=5"])
    >>> space.texts(), space.fixed
    ({'learning.rate': 'log(0.0001,0.01)'}, {'learning.epochs': 5})
    """
    check_installed()
    from optuna.distributions import BaseDistribution

    distributions: dict[str, BaseDistribution] = {}
    fixed: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in _pairs(space, faults):
        if key in distributions or key in fixed:
            faults.append(f"{key} stands twice; give it one space.")
            continue
        try:
            values = _read(key, value)
        except RecipeError as error:
            faults += error.faults
            values = None
        if not isinstance(values, BaseDistribution):
            fixed[key] = values
            continue
        distributions[key] = values
        if _decides(key):
            decides = "decides what is scored, so trials could not be compared"
            faults.append(f"{key} {decides}; give it one value.")
    if not distributions and not faults:
        faults.append(_nothing(fixed))
    if faults:
        raise RecipeError(faults, WHERE)
    return SearchSpace(distributions, fixed)


def check_installed() -> None:
    """Refuse to begin without Optuna, with a sentence on how to install it."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra("optuna", "tune") from None


def _decides(key: str) -> bool:
    """Whether a key, or one below it, decides which rows are scored, or by what."""
    section, *below = key.split(".")
    if section == "data":
        return len(below) < 2 or below[0] in DataSettings.model_fields or below[1] == "column"
    return any(f"{key}.".startswith(f"{each}.") or each.startswith(f"{key}.") for each in SCORING)


def _nothing(fixed: Mapping[str, Any]) -> str:
    begins = "there is nothing to search"
    if not fixed:
        return f"{begins}; write KEY=SPACE, for example 'learning.rate=log(1e-4,1e-2)'."
    key, value = next(iter(fixed.items()))
    text = json.dumps(value)
    several = f"{value}" if isinstance(value, str) and "," in value else f"{text},…"
    remedy = f"write '{key}=[{several}]', or a range: {_example(key)}."
    return f"{begins}: {key}={text} is one value; {remedy}"


def _example(key: str, name: str = "log") -> str:
    """A range of a key as a person would write it."""
    ends = {"log": "1e-4,1e-2", "uniform": "0,0.5", "int": "64,512"}
    return f"'{key}={name}({ends[name]})'"


def _pairs(space: SpaceLike, faults: list[str]) -> Iterable[tuple[str, Any]]:
    """Each key with the value or space that is given for it."""
    if isinstance(space, Mapping):
        yield from ((str(key), value) for key, value in space.items())
        return
    if isinstance(space, str):
        space = [space]
    for text in space:
        key, equals, value = str(text).partition("=")
        if equals and key.strip():
            yield key.strip(), value
        else:
            example = _example("learning.rate")
            faults.append(f"{shown(text)} must look like KEY=SPACE, for example {example}.")


def _read(key: str, space: Any) -> Any:
    """The values of a key: a distribution, or one value."""
    if isinstance(space, list | tuple):
        return _choices(key, [_plain(value) for value in space])
    if not isinstance(space, str):
        return _single(key, _plain(space))
    text = space.strip()
    call = _CALL.fullmatch(text)
    if call is not None:
        return _range(key, call["name"], call["ends"])
    if text in RANGES:
        raise _fault(f"{key}={text} has no ends; write {_example(key, text)}.")
    try:
        value = loaded(text)
    except (yaml.YAMLError, ValueError):
        reason = "is neither a value nor a space: brackets or quotes are open."
        raise _fault(f"{key}={shown(text)[1:-1]} {reason}") from None
    return _choices(key, value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A NumPy number as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _single(key: str, value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        kinds = "a text such as 'log(1e-4,1e-2)', a list of choices, or a plain value"
        raise _fault(f"{key}: give {kinds}; it is {shown(value)}.") from None
    return value


def _choices(key: str, values: list[Any]) -> Any:
    """Choices; a list of one is that value, so that a list can be a value too: `[[encoder]]`."""
    if not values:
        example = f"'{key}=[128,256,512]'"
        raise _fault(f"{key}=[] is empty; write the values to try, for example {example}.")
    try:
        texts = [json.dumps(value, allow_nan=False) for value in values]
    except (TypeError, ValueError):
        fault = f"choices must be plain values, but they are {shown(values)}."
        raise _fault(f"{key}: {fault}") from None
    twice = next((text for at, text in enumerate(texts) if text in texts[:at]), None)
    if twice is not None:
        raise _fault(f"{key}: {twice} stands twice in its list.")
    if len(values) == 1:
        return values[0]
    from optuna.distributions import CategoricalDistribution

    return CategoricalDistribution(texts)


def _range(key: str, name: str, inside: str) -> "BaseDistribution":
    if name in _CHOOSERS:
        raise _fault(f"{key}: write choices as a list: '{key}=[{inside.strip()}]'.")
    if name not in RANGES:
        meant = _OTHER_NAMES.get(name.lower())
        similar = f" Did you mean {meant!r}?" if meant else hint(name, RANGES)
        known = ", ".join(sorted(RANGES))
        raise _fault(f"{key}: range {name!r} is unknown.{similar} Known: {known}.")
    try:
        ends = [loaded(part) for part in inside.split(",")]
    except (yaml.YAMLError, ValueError):
        ends = []
    return _range_between(key, name, inside, ends)


def _range_between(key: str, name: str, inside: str, ends: list[Any]) -> "BaseDistribution":
    from optuna.distributions import FloatDistribution, IntDistribution

    begins = f"{key}={name}({inside})"
    if len(ends) != 2 or not all(_is_number(end) for end in ends):
        example = _example(key, name)
        raise _fault(f"{begins} must have two numbers, the lower and the upper, such as {example}.")
    low, high = ends
    whole = all(isinstance(end, int) for end in ends) and name != "uniform"
    if low >= high:
        raise _fault(f"{begins}: the lower end {low} must be below the upper end {high}.")
    if name == "log" and low <= 0:
        remedy = "begin above 0, or use uniform."
        raise _fault(f"{begins}: 0 and less have no logarithm; {remedy}")
    if name == "int" and not whole:
        raise _fault(f"{begins}: both ends must be whole numbers; use uniform or log for others.")
    if whole:
        return IntDistribution(low, high, log=name == "log")
    return FloatDistribution(low, high, log=name == "log")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fault(sentence: str) -> RecipeError:
    return RecipeError([sentence], WHERE)
