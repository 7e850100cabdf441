"""How outputs are chosen, and the tokens that mean something to it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final

from sixjars_runtime import search_ranges
from sixjars_runtime.errors import DataError, shown, unknown
from sixjars_runtime.special_tokens import SpecialTokens

KINDS = ("greedy", "sample", "beam")
"""Of search."""
UNKNOWN = ("ban", "allow", "replace")
"""What becomes of `<unk>`."""
ANY = (1 << 63) - 1
RANGES: Mapping[str, tuple[float, float]] = {
    "width": (1, search_ranges.MOST_ROWS),
    "nbest": (1, search_ranges.MOST_ROWS),
    "max_length": (1, search_ranges.MOST_TOKENS),
    "min_length": (0, ANY),
    "length_penalty": (0, search_ranges.MOST_LENGTH_PENALTY),
    "coverage_penalty": (0, search_ranges.MOST_COVERAGE_PENALTY),
    "no_repeat_ngram": (0, ANY),
    "temperature": (search_ranges.LEAST_TEMPERATURE, search_ranges.MOST_TEMPERATURE),
    "top_k": (0, ANY),
    "top_p": (search_ranges.LEAST_TOP_P, 1),
    "seed": (0, ANY),
}
"""The least and the most of each number."""


@final
@dataclass(frozen=True)
class SearchSettings:
    """The settings of search in a recipe, all without a default: an export writes each of them."""

    kind: str
    width: int
    nbest: int
    max_length: int
    min_length: int
    length_penalty: float
    coverage_penalty: float
    no_repeat_ngram: int
    unknown: str
    temperature: float
    top_k: int
    top_p: float
    seed: int

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "SearchSettings":
        """Read the settings of a file; DataError where some are missing, unknown or wrong."""
        names = [setting.name for setting in fields(cls)]
        if missing := [name for name in names if name not in values]:
            raise DataError(f"search.{missing[0]} is missing.")
        if wrong := [key for key in values if key not in names]:
            raise DataError(unknown("search: key", wrong[0], names))
        return cls(**values)

    def __post_init__(self) -> None:
        for name, known in (("kind", KINDS), ("unknown", UNKNOWN)):
            if getattr(self, name) not in known:
                raise DataError(unknown(name, getattr(self, name), known))
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.type in (int, float):
                _check(setting.name, value, whole=setting.type is int)
        if self.kind == "beam" and self.nbest > self.width:
            raise DataError(
                f"'nbest' is {self.nbest}, but a beam of width {self.width} holds fewer."
            )
        if self.min_length >= self.max_length:
            raise DataError(
                f"'min_length' is {self.min_length}, but 'max_length' is {self.max_length}."
            )

    @property
    def rows(self) -> int:
        """The rows of each source that search needs, side by side."""
        return {"greedy": 1, "sample": self.nbest, "beam": self.width}[self.kind]

    def changed(self, search: str | None, settings: Mapping[str, Any]) -> "SearchSettings":
        """Return them with those of one call; several outputs need a beam or sampling."""
        if wrong := [key for key in settings if key not in self.__dataclass_fields__]:
            raise DataError(unknown("search setting", wrong[0], list(self.__dataclass_fields__)))
        values = {**vars(self), **({} if search is None else {"kind": search}), **settings}
        nbest = settings.get("nbest", 1)
        if isinstance(nbest, int) and nbest > 1:
            if values["kind"] == "greedy":
                if search is not None:
                    raise DataError(
                        f"greedy search finds one output, but nbest is {nbest}; search with beam "
                        "or sample."
                    )
                values["kind"] = "beam"
            values["width"] = settings.get("width", max(self.width, nbest))
        return SearchSettings(**values)


def _check(name: str, value: Any, *, whole: bool) -> None:
    least, most = RANGES[name]
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not right or not least <= value <= most:
        expected = f"{'a whole number' if whole else 'a number'} from {least:,} to {most:,}"
        raise DataError(f"{name!r} must be {expected}, but is {shown(value)}.")


def special_tokens_of(values: Mapping[str, Any], size: int) -> SpecialTokens:
    """The special tokens that a file names, of a vocabulary of this size."""
    numbers = [values["go"], values["stop"], *values["banned"], values["unknown"] or 0]
    if wrong := [number for number in numbers if number >= size]:
        raise DataError(f"special names the token {wrong[0]}, but there are {size:,}.")
    return SpecialTokens(values["go"], values["stop"], tuple(values["banned"]), values["unknown"])
