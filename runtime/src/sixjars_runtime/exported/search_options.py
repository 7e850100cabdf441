"""How the outputs of an exported model are chosen, and the tokens that mean something to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, final, get_type_hints

from sixjars_runtime import search_requests
from sixjars_runtime.errors import DataError, unknown
from sixjars_runtime.exported.schema import ANY, Check, anything, choice, number, section, whole
from sixjars_runtime.search_requests import Ability
from sixjars_runtime.special_tokens import SpecialTokens

_COUNT: Final = whole(0, ANY)
_ROWS: Final = whole(1, search_requests.MOST_ROWS)


@final
@dataclass(frozen=True)
class SearchOptions:
    """The settings of search in a recipe, all without a default: an export writes each of them."""

    kind: Annotated[str, choice("greedy", "sample", "beam")]
    width: Annotated[int, _ROWS]
    nbest: Annotated[int, _ROWS]
    max_length: Annotated[int, whole(1, search_requests.MOST_TOKENS)]
    min_length: Annotated[int, _COUNT]
    length_penalty: Annotated[float, number(0, search_requests.MOST_LENGTH_PENALTY)]
    coverage_penalty: Annotated[float, number(0, search_requests.MOST_COVERAGE_PENALTY)]
    no_repeat_ngram: Annotated[int, _COUNT]
    unknown: Annotated[str, choice("ban", "allow", "replace")]
    temperature: Annotated[
        float, number(search_requests.LEAST_TEMPERATURE, search_requests.MOST_TEMPERATURE)
    ]
    top_k: Annotated[int, _COUNT]
    top_p: Annotated[float, number(search_requests.LEAST_TOP_P, 1)]
    seed: Annotated[int, _COUNT]

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "SearchOptions":
        """Read the settings of a file; ValueError where some are missing, unknown or wrong."""
        section(dict.fromkeys(CHECKS, anything), others=())(values, "search")
        return cls(**values)

    def __post_init__(self) -> None:
        try:
            for name, check in CHECKS.items():
                check(getattr(self, name), name if name in ("kind", "unknown") else repr(name))
        except ValueError as error:
            raise DataError(f"{error}.") from None
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

    def changed(self, kind: str | None, given: Mapping[str, Any], able: Ability) -> "SearchOptions":
        """Return them with those of one call."""
        if wrong := [key for key in given if key not in CHECKS]:
            raise DataError(unknown("search setting", wrong[0], list(CHECKS)))
        named = {} if kind is None else {"kind": kind}
        return SearchOptions(**able.changed(vars(self) | named, given, is_named=kind is not None))


CHECKS: Final[Mapping[str, Check]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(SearchOptions, include_extras=True).items()
}
"""What each of the options may be."""


def special_tokens_of(values: Mapping[str, Any], size: int) -> SpecialTokens:
    """The special tokens that a file names, of a vocabulary of this size."""
    numbers = [values["go"], values["stop"], *values["banned"], values["unknown"] or 0]
    if wrong := [number for number in numbers if number >= size]:
        raise DataError(f"special names the token {wrong[0]}, but there are {size:,}.")
    return SpecialTokens(values["go"], values["stop"], tuple(values["banned"]), values["unknown"])
