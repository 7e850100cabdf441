"""Requests to a predictor: checked inputs, the search settings of a call, and what search found."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sixjars.data.dataset import Dataset
from sixjars.data.field import Field
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Batch, Layout, Padded
from sixjars.recipe.files import checked
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime import containers
from sixjars_runtime.errors import DataError, RecipeError, shown, the
from sixjars_runtime.search_requests import Ability

ESCAPED = 0xDC00
"""The offset that Python adds to a byte that is not UTF-8 (`surrogateescape`)."""
FILES_AT_ONCE = 32
"""Images or videos that are decoded together."""
Value = str | list[Any] | os.PathLike[str]
"""One input: a text, the path of a file, or a list of sentences, turns or points."""


@final
@dataclass(frozen=True)
class UnreadableInput:
    """An input that could not be read, with the reason."""

    sentence: str


Input = Value | Mapping[str, Value] | UnreadableInput
"""One input of a model, or each of its inputs by name."""
SingleInput = str | os.PathLike[str] | Mapping[str, Value]
"""One input alone, which a list would not be."""
Check = Callable[[], None]
"""Called before each batch and each file or frame of one, and on a CPU after each step of search
too (on a GPU it would stand in the way of CUDA graphs); raises where the rest is not wanted."""
SearchLike = SearchSettings | str | None
"""The search of outputs: settings, the kind of search alone, or None for the run's own."""


@final
@dataclass(frozen=True)
class Request:
    """One input that was checked: its texts by field, or what is wrong with it."""

    texts: Mapping[str, str]
    number: int
    """Its place among all inputs, from 0: samples depend on it and the settings alone."""
    error: str | None = None


@final
@dataclass(frozen=True)
class EncodedRequests:
    """Some requests, encoded as training data is."""

    requests: tuple[Request, ...]
    dataset: Dataset
    batch: Batch
    prefix: Padded | None
    """The beginning of each output, where a model has no input."""


Encoding = tuple[EncodedRequests | None, dict[int, str]]
"""The usable requests, encoded; and a sentence for each other one, by its row."""


def encoded_usable(
    encode: Callable[[Sequence[Request], Check | None], Encoding],
    requests: Sequence[Request],
    check: Check | None = None,
) -> tuple[EncodedRequests | None, list[int], dict[int, str]]:
    """The usable requests, encoded; their rows; and a sentence for each other row."""
    wrong = {at: request.error for at, request in enumerate(requests) if request.error}
    good = [at for at in range(len(requests)) if at not in wrong]
    encoded, bad = encode([requests[at] for at in good], check) if good else (None, {})
    wrong |= {good[at]: sentence for at, sentence in bad.items()}
    return encoded, [at for at in good if at not in wrong], wrong


@final
@dataclass(frozen=True)
class SearchResult:
    """The hypotheses for one request, and the positions of its source."""

    hypotheses: list[Hypothesis]
    length: int
    """Positions of its source."""
    layout: Layout


def not_utf8(text: str, field: str) -> str:
    r"""The fault of a field's text that holds half characters; nothing without one.

    >>> not_utf8(b"sch\xf6n".decode(errors="surrogateescape"), "source")
    'byte 4 of the source (0xf6) is not UTF-8; give it in UTF-8.'
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        name = the(field)
        byte = ord(text[error.start]) - ESCAPED
        if 0x80 <= byte <= 0xFF:
            place = len(text[: error.start].encode()) + 1
            return f"byte {place} of {name} (0x{byte:02x}) is not UTF-8; give it in UTF-8."
        return f"{name} is not UTF-8 text (it holds half a character)."
    return ""


def unfit(dataset: Dataset) -> dict[int, str]:
    """A sentence for each row that is too long, or has no token at all; rows as they were given."""
    faults: dict[int, str] = {}
    for name, field in dataset.fields.inputs.items():
        usable, lengths = field.usable(dataset.table), dataset.lengths(name)
        for row in range(len(dataset)):
            place = dataset.table.line(row) - 1
            if not usable[row]:
                faults[place] = f"the {name} is longer than data.{name}.max_length."
            elif not lengths[row]:
                faults[place] = f"the {name} is empty: it has no token."
    return faults


def most_together(examples: int, fields: Iterable[Field]) -> int:
    """The inputs of one batch, where the settings say `examples`; fewer of images and videos."""
    return min(examples, FILES_AT_ONCE) if any(field.is_media for field in fields) else examples


def by_name(value: object, columns: Mapping[str, str | int]) -> Mapping[str, Value]:
    """One input with a value for each field; ValueError with the end of a sentence."""
    if isinstance(value, UnreadableInput):
        raise ValueError(value.sentence)
    return containers.by_name(value, columns)


def search_of(
    own: SearchSettings,
    search: SearchLike,
    given: Mapping[str, Any],
    able: Ability,
    where: str = "predict",
) -> SearchSettings:
    """The settings of one call: those given on top of the run's own.

    Several outputs need a beam or sampling.

    `where` is who gave them, for messages.
    """
    if search is not None and not isinstance(search, SearchSettings | str):
        kinds = "'greedy', 'beam' or 'sample', or SearchSettings"
        raise DataError(f"search must be {kinds}, but is {shown(search)}.")
    base = search if isinstance(search, SearchSettings) else own
    if not given and not isinstance(search, str):
        return base
    kind = search if isinstance(search, str) else None
    able.check(kind, given)
    named = {} if kind is None else {"kind": kind}
    values = able.changed(base.model_dump() | named, given, is_named=search is not None)
    settings, faults = checked(SearchSettings, values, "search")
    if settings is None:
        raise RecipeError(faults, where)
    return settings
