"""What every made-up corpus declares of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, final

Row = dict[str, str]


@final
@dataclass(frozen=True, kw_only=True)
class Sample:
    """One made-up corpus: its columns, and the function that draws a row of it."""

    task: str
    """The system it belongs to."""
    description: str
    """One sentence for a list of corpora."""
    draw: Callable[[Random, int], Row]
    """A row whose source is at most so many tokens long."""
    source: str | None
    """The column that an encoder reads; nothing for a language model."""
    target: str
    """The column that a decoder writes."""
    alignment: str | None = None
    """The column of true links, `0-0 1-2`: source token, target token, both counted from 0."""
    tokens: Literal["words", "characters"] = "words"
    """What a token is."""
    shortest: int
    """The smallest `longest` that leaves something to draw."""
    longest: int | None
    """The `longest` that holds when nobody names one; nothing where rows may not be chosen by length."""
    categories: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Every source token, by what kind of token it is; vectors are made from this."""
    headline: Row | None = None
    """A row that every training part opens with, and no other part has."""
