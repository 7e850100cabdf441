"""Inputs on their way through a predictor: checked, encoded, and what search found for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from sixjars.data.dataset import Dataset
from sixjars.flow.values import Hypothesis, Layout, Padded

Value = str | list[Any]
"""One input: a text, or the path of a file; or a list of sentences, turns or points where a model reads those."""


@final
@dataclass(frozen=True)
class Unreadable:
    """In the place of an input that could not be read: why."""

    sentence: str


Input = Value | Mapping[str, Value] | Unreadable
"""What a model is given: its one input, or each input by name."""


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


@final
@dataclass(frozen=True)
class Found:
    """What search found for one request."""

    hypotheses: list[Hypothesis]
    length: int
    """Positions of its source."""
    layout: Layout


def is_utf8(text: str) -> bool:
    """Whether a text has no half characters, as Python makes of bytes that are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def unfit(dataset: Dataset) -> dict[int, str]:
    """Rows that are too long, or have no token at all, with a sentence each; counted as they were given."""
    found: dict[int, str] = {}
    for name, own in dataset.fields.inputs.items():
        usable, lengths = own.usable(dataset.table), dataset.lengths(name)
        for row in range(len(dataset)):
            if not usable[row]:
                found[dataset.table.line(row) - 1] = f"the {name} is longer than data.{name}.max_length."
            elif not lengths[row]:
                found[dataset.table.line(row) - 1] = f"the {name} is empty: it has no token."
    return found
