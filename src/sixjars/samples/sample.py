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
    """The column of text that an encoder reads; nothing for a language model, and for pictures and films."""
    media: Literal["image", "video"] | None = None
    """The column of file names of pictures or films that an encoder reads."""
    question: str | None = None
    """The column of questions about the picture."""
    paint: Callable[[str], bytes] | None = field(default=None, repr=False)
    """The bytes of a picture or a film, from its name alone."""
    target: str
    """The column that a decoder writes or chooses."""
    alignment: str | None = None
    """The column of true links, `0-0 1-2`: source token, target token, both counted from 0."""
    boxes: str | None = None
    """The column of true places, `1:0.1,0.1,0.4,0.3`: target token counted from 0, then left, top, right and bottom
    as shares of the picture; empty where no one place tells."""
    rationale: str | None = None
    """The column of the true evidence in the source: sentence and word."""
    again: Callable[[Random, Row], Row] | None = field(default=None, repr=False)
    """Another row about the same picture; nothing where each has one row."""
    each: int = 1
    """How many rows are drawn of each picture, those that turn out the same included."""
    solve: Callable[[list[Row]], list[Row]] | None = field(default=None, repr=False)
    """Finishes the rows of a whole part, for answers that are found faster for many at once than one by one."""
    tokens: Literal["words", "characters", "points", "sentences", "turns"] = "words"
    """What a token is."""
    shortest: int
    """The smallest `longest` that leaves something to draw."""
    longest: int | None
    """The `longest` that holds when nobody names one; nothing where rows may not be chosen by length."""
    most: int | None = None
    """The greatest `longest`; nothing where any will do."""
    categories: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Every token that is read, by what kind of token it is; vectors are made from this."""
    headline: Row | None = None
    """A row that every training part opens with, and no other part has."""

    inputs: tuple[str, ...] = field(init=False)
    """The columns that an encoder reads. The first alone decides which split a row belongs to."""
    columns: tuple[str, ...] = field(init=False)
    """Every column of a row."""

    def __post_init__(self) -> None:
        inputs = tuple(column for column in (self.source, self.media, self.question) if column is not None)
        truths = (column for column in (self.alignment, self.boxes, self.rationale) if column is not None)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "columns", (*inputs, self.target, *truths))
