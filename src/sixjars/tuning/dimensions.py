"""The values that one key may have in a parameter search: a range of numbers, or choices."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DIGITS: Final = 4
"""Significant digits of a number that is tried, so that recipes stay readable."""


class Dimension(ABC):
    """The values that one key may have."""

    @abstractmethod
    def distribution(self) -> "BaseDistribution":
        """The dimension as Optuna's distribution."""

    @abstractmethod
    def value(self, drawn: Any) -> Any:
        """The value for the recipe, from a draw of Optuna."""

    @abstractmethod
    def corners(self) -> tuple[Any, ...]:
        """Values that show whether a recipe takes all."""

    @property
    @abstractmethod
    def count(self) -> int | None:
        """How many values there are; None where they cannot be counted."""

    @abstractmethod
    def draw(self, at: int) -> Any:
        """The draw of Optuna for a value by its place from 0, where values can be counted."""

    @property
    def axis(self) -> str:
        """The axis of a drawing: `linear`, `log`, or `names`."""
        return "names"


@final
@dataclass(frozen=True)
class Range(Dimension):
    """A number between two ends, both possible.

    >>> str(Range(1e-4, 1e-2, log=True)), Range(0.0, 0.5).value(0.123456)
    ('log(0.0001,0.01)', 0.1235)
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        whole = "int" if self.whole else "uniform"
        return f"{'log' if self.log else whole}({self.low!r},{self.high!r})"

    def distribution(self) -> "BaseDistribution":
        """A distribution of numbers or of whole numbers."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def value(self, drawn: Any) -> Any:
        """The number, rounded but not beyond an end."""
        if self.whole:
            return int(drawn)
        return min(max(float(f"{drawn:.{DIGITS}g}"), self.low), self.high)

    def corners(self) -> tuple[Any, ...]:
        """Both ends."""
        return self.low, self.high

    @property
    def count(self) -> int | None:
        """How many whole numbers there are; None for others."""
        return int(self.high) - int(self.low) + 1 if self.whole else None

    def draw(self, at: int) -> Any:
        """A whole number."""
        return int(self.low) + at

    @property
    def axis(self) -> str:
        """Logarithmic where the values are."""
        return "log" if self.log else "linear"


@final
@dataclass(frozen=True)
class Choices(Dimension):
    """One of several values.

    >>> print(Choices((128, "auto", None)))
    [128, "auto", null]
    """

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return json.dumps(self.values)

    def distribution(self) -> "BaseDistribution":
        """Values as texts: `1`, `1.0` and `true` are three, and a list can be one."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution([json.dumps(value) for value in self.values])

    def value(self, drawn: Any) -> Any:
        """The value of a text."""
        return json.loads(drawn)

    def corners(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    @property
    def count(self) -> int | None:
        """How many values there are."""
        return len(self.values)

    def draw(self, at: int) -> Any:
        """The text of a value."""
        return json.dumps(self.values[at])
