"""The declaration of a synthetic corpus."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from random import Random
from typing import Literal, final

Row = dict[str, str]


@final
@dataclass(frozen=True)
class Corpus:
    """One synthetic corpus: its columns, and the function that draws a row of it.

    Such a function is declared by `@partial(Corpus, task, inputs, target, …)`; its docstring
    describes the corpus in lists of them.
    """

    task: str
    inputs: Sequence[str]
    """The columns that an encoder reads: texts, points, names of files, questions about them. The
    first alone decides on the split of a row."""
    target: str
    """The column that a decoder generates or predicts."""
    draw: Callable[[Random, int], Row]
    """A row whose source is at most so many tokens long."""
    _: KW_ONLY
    media: Literal["image", "video"] | None = None
    """What the first input names, where it names files."""
    paint: Callable[[str], bytes] | None = field(default=None, repr=False)
    """The bytes of an image or a video, from its name alone."""
    truths: Sequence[Literal["alignment", "boxes", "rationale"]] = ()
    """Columns of annotations: true links, `0-0 1-2`, of source and target token, both counted from
    0; true bounding boxes, `1:0.1,0.1,0.4,0.3`, of target token (from 0), left, top, right and
    bottom as shares of the image, empty without a single decisive object; the true evidence in the
    source, sentence and word."""
    again: Callable[[Random, Row], Row] | None = field(default=None, repr=False)
    """Another row about the same image; nothing where each has one row."""
    each: int = 1
    """How many rows are drawn of each image, duplicates included."""
    solve: Callable[[list[Row]], list[Row]] | None = field(default=None, repr=False)
    """Completes the rows of a split, for targets that are computed faster for many rows."""
    tokens: Literal["words", "characters", "points", "sentences", "turns"] = "words"
    """The unit of `lengths` and `most`."""
    lengths: tuple[int, int] | None = None
    """The smallest `longest` that leaves something to draw, and its default; nothing where rows may
    not be chosen by length."""
    most: int | None = None
    """The greatest `longest`; nothing where any will do."""
    categories: Callable[[], Mapping[str, tuple[str, ...]]] | None = field(default=None, repr=False)
    """Every source token by its category, for synthetic word vectors, if there are any."""
    headline: Row | None = None
    """A row that every training set opens with, and no other split has."""

    @property
    def shortest(self) -> int:
        """The smallest `longest`."""
        return self.lengths[0] if self.lengths else 1

    @property
    def longest(self) -> int | None:
        """The default of `longest`."""
        return self.lengths[1] if self.lengths else None

    def inputs_of(self, row: Row) -> tuple[str, ...]:
        """What an encoder reads of a row."""
        return tuple(row[column] for column in self.inputs)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Every column of a row."""
        return (*self.inputs, self.target, *self.truths)

    @property
    def description(self) -> str:
        """A sentence or two for a list of corpora."""
        return " ".join((self.draw.__doc__ or "").split())
