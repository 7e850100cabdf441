"""What a predictor is asked: inputs that were checked, the search settings of one call, and what search found."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from sixjars.data import containers
from sixjars.data.dataset import Dataset
from sixjars.data.field import Field
from sixjars.errors import DataError, RecipeError, shown
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Layout, Padded
from sixjars.recipe.files import checked
from sixjars.recipe.sections import SearchSettings

ESCAPED = 0xDC00
"""What Python adds to a byte that is not UTF-8, to keep it in a text (`surrogateescape`)."""
FILES_AT_ONCE = 32
"""Images or videos that are decoded together."""
Value = str | list[Any] | os.PathLike[str]
"""One input: a text, or the path of a file; or a list of sentences, turns or points where a model reads those."""


@final
@dataclass(frozen=True)
class Unreadable:
    """In the place of an input that could not be read: why."""

    sentence: str


Input = Value | Mapping[str, Value] | Unreadable
"""What a model is given: its one input, or each input by name."""
One = str | os.PathLike[str] | Mapping[str, Value]
"""One input alone, which a list would not be."""
Check = Callable[[], None]
"""Called before each batch and each file or frame of one, and on a CPU after each step of search too (on a GPU it would
stand in the way of CUDA graphs); raises where the rest is no longer wanted."""
SearchLike = SearchSettings | str | None
"""How outputs are chosen: settings, the kind of search alone, or nothing for the run's own."""


@final
@dataclass(frozen=True)
class Request:
    """One input that was checked: its texts by field, or what is wrong with it."""

    texts: Mapping[str, str]
    number: int
    """Its place among all inputs, from 0: what is sampled depends on this and the settings, and on no other input."""
    error: str | None = None


@final
@dataclass(frozen=True)
class EncodedRequests:
    """Some requests, encoded as training data is."""

    requests: tuple[Request, ...]
    dataset: Dataset
    prefix: Padded | None
    """What each output must begin with, where a model has no input."""


Encoding = tuple[EncodedRequests | None, dict[int, str]]
"""Those requests that can be used, encoded; and a sentence for each other, by its row."""


@final
@dataclass(frozen=True)
class Found:
    """What search found for one request."""

    hypotheses: list[Hypothesis]
    length: int
    """Positions of its source."""
    layout: Layout


def not_utf8(text: str, name: str) -> str:
    r"""What is wrong with a text that has half characters, or nothing; `name` is what the text is called.

    >>> not_utf8(b"sch\xf6n".decode(errors="surrogateescape"), "the source")
    'byte 4 of the source (0xf6) is not UTF-8; give it in UTF-8.'
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - ESCAPED
        if 0x80 <= byte <= 0xFF:
            place = len(text[: error.start].encode()) + 1
            return f"byte {place} of {name} (0x{byte:02x}) is not UTF-8; give it in UTF-8."
        return f"{name} is not UTF-8 text (it holds half a character)."
    return ""


def unfit(dataset: Dataset) -> dict[int, str]:
    """Rows that are too long, or have no token at all, with a sentence each; counted as they were given."""
    found: dict[int, str] = {}
    for name, own in dataset.fields.inputs.items():
        usable, lengths = own.usable(dataset.table), dataset.lengths(name)
        for row in range(len(dataset)):
            if not usable[row]:
                found[dataset.table.line(row) - 1] = (
                    f"the {name} is longer than data.{name}.max_length."
                )
            elif not lengths[row]:
                found[dataset.table.line(row) - 1] = f"the {name} is empty: it has no token."
    return found


def most_together(examples: int, fields: Iterable[Field]) -> int:
    """Most inputs with these fields that are encoded and searched as one batch, where the settings say `examples`."""
    return min(examples, FILES_AT_ONCE) if any(own.is_media for own in fields) else examples


def by_name(one: object, columns: Mapping[str, str | int]) -> Mapping[str, Value]:
    """One input with a value for each field; ValueError with the end of a sentence."""
    if isinstance(one, Unreadable):
        raise ValueError(one.sentence)
    return containers.by_name(one, columns)


@final
@dataclass(frozen=True)
class Ability:
    """What a run can do, which limits how it may be asked."""

    searches: bool
    """Whether outputs are found step by step, or labels chosen."""
    has_attention: bool
    multi_label: bool

    def check(self, search: SearchLike, given: Mapping[str, Any]) -> None:
        """Refuse what a run cannot do."""
        if not self.searches and (isinstance(search, str) or set(given) - {"nbest"}):
            raise DataError(
                "this run chooses a label; there is nothing to search. With nbest it gives the most probable."
            )
        if self.multi_label and "nbest" in given:
            raise DataError(
                "this run chooses all labels that apply to an input, so nbest does not apply."
            )
        if given.get("unknown") == "replace" and not self.has_attention:
            raise DataError(
                "unknown=replace needs attention, but this run has none; its bridge is of another kind."
            )


def search_of(
    own: SearchSettings,
    search: SearchLike,
    given: Mapping[str, Any],
    able: Ability,
    where: str = "predict",
) -> SearchSettings:
    """The settings of one call: those given on top of the run's own; several outputs need a beam or sampling.

    `where` is who gave them, for messages.
    """
    if search is not None and not isinstance(search, SearchSettings | str):
        raise DataError(
            f"search must be 'greedy', 'beam' or 'sample', or SearchSettings, but is {shown(search)}."
        )
    base = search if isinstance(search, SearchSettings) else own
    if not given and not isinstance(search, str):
        return base
    able.check(search, given)
    values = base.model_dump() | ({"kind": search} if isinstance(search, str) else {}) | dict(given)
    nbest = given.get("nbest", 1)
    if able.searches and isinstance(nbest, int) and nbest > 1:
        if values["kind"] == "greedy":
            if search is not None:
                raise DataError(
                    f"greedy search finds one output, but nbest is {nbest}; search with beam or sample."
                )
            values["kind"] = "beam"
        values["width"] = given.get("width", max(base.width, nbest))
    settings, faults = checked(SearchSettings, values, "search")
    if settings is None:
        raise RecipeError(faults, where)
    return settings
