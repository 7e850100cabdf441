"""The data section of a recipe: files, splits, synthetic corpora, keys of every field."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from sixjars.flow.limits import AboveZero, NotNegative, Positive, Seed, Size
from sixjars.recipe.schema import Misfits, Settings

Column = Annotated[StrictStr | Positive, Field(union_mode="left_to_right")]
FilePath = StrictStr
Files = FilePath | dict[str, FilePath]


Written = Annotated[
    str,
    BeforeValidator(lambda value: json.dumps(value) if isinstance(value, int | float) else value),
]
"""A value as files have it: `true`, not `True`."""


class TrainingFile(Settings):
    """One of several training files."""

    file: Files
    """A file, as `data.train` names one alone."""
    weight: AboveZero = 1.0
    """How often its rows are drawn in an epoch: 2 for twice each, 0.5 for another half of them in
    each epoch."""


def _as_training_file(value: Any) -> Any:
    """Take a name alone, or parallel files, for a file of weight 1."""
    if not isinstance(value, str | dict | TrainingFile):
        raise ValueError("must be the name of a file, or {file: NAME, weight: NUMBER}")
    is_parallel = isinstance(value, dict) and not {"file", "weight"} & value.keys()
    return {"file": value} if isinstance(value, str) or is_parallel else value


TrainingFiles = tuple[Annotated[TrainingFile, BeforeValidator(_as_training_file)], ...]


class FieldSettings(Settings):
    """One field of the examples; each kind of field adds its own keys."""

    kind: str
    """What the field is: `text`, `label`, `order`, `points`, `image`, `video`, `features`, or a
    class of yours."""
    column: Column
    """Its name in the header, or its number from 1 (then the file has no header). `a.b` reaches
    into a structure."""


LEARN: Final = "learn"  # in place of a file of links: learn them
DIAGONAL: Final = 4.0
"""How strongly an aligner prefers links near the diagonal (λ) before its first iteration."""
STEEPEST: Final = 14.0
"""The largest λ; with much larger ones, words away from the diagonal have a probability of 0."""


class LinkFiles(Settings):
    """Links between words that no column of the data has: a file for each split that needs some."""

    train: FilePath | None = None
    """`learn`, or a file: a line of links for each row, or `sentence source target S` (or `P`) for
    each link."""
    valid: FilePath | None = None
    """The same for the validation set, from a file."""
    test: FilePath | None = None
    """The same for the test set, from a file."""
    diagonal: Annotated[NotNegative, Field(le=STEEPEST)] = DIAGONAL
    """For `learn`: how strongly links near the diagonal are preferred before the first iteration
    (λ), from which it is learned. Where the order of words differs strongly, 0.1 lets the texts
    decide; 0 is no preference at all."""

    def model_post_init(self, _: Any) -> None:
        """Only links that are learned have a diagonal."""
        if self.diagonal != DIAGONAL and self.train != LEARN:
            sentence = (
                "'diagonal' is for links that are learned; say `train: learn` beside it, or "
                "remove it."
            )
            raise Misfits(((("diagonal",), sentence),))

    def lacks(self, place: str, data: Any) -> Iterator[str]:
        """A sentence if the links that a setting needs are not there."""
        sets = data.split or data
        guides = place.startswith("loss")
        split = "valid" if place.startswith("learning") or sets.test is None else "test"
        if guides or not isinstance(getattr(sets, split), str | dict):
            split = "train"
        file = getattr(self, split)
        if file is None or (file == LEARN and not guides):
            learn = " (`train: learn` learns them)" if guides else ""
            yield f"needs true alignments, but data.alignment.{split} names no file{learn}."


def are_learned(links: "Column | LinkFiles | None") -> bool:
    """Whether the links of the training set are learned, and so not known to be true."""
    return isinstance(links, LinkFiles) and links.train == LEARN


Links = Column | LinkFiles | None
"""The source of links: a column, or files of their own."""


class SampleSettings(Settings):
    """A synthetic corpus from the package's own generators, instead of files."""

    size: Size = 4000
    """Training examples."""
    valid: Size = 200
    """Validation examples, none of them in the training set."""
    test: Size = 200
    """Test examples, none of them in the other sets."""
    longest: Size | None = None
    """Most words (or characters, sentences, turns, points) of an input; the generator's own limit
    when absent."""
    seed: Seed = 0
    """Another seed, another corpus."""
    kind: str | None = None
    """Which of the synthetic corpora of the task, where it has several; its first when absent."""


class SplitSettings(Settings):
    """A column that says which split a row belongs to; rows with other values are left out."""

    column: Column = "split"
    """Its name in the header, or its number from 1."""
    train: str = "train"
    """Its value in training rows."""
    valid: str = "valid"
    """Its value in validation rows."""
    test: str | None = None
    """Its value in test rows; the validation set is scored when there is none."""

    def model_post_init(self, _: Any) -> None:
        """No row may be in two splits."""
        values = [value for value in (self.train, self.valid, self.test) if value is not None]
        if len(set(values)) < len(values):
            sentence = f"the splits must have different values, but have {values}."
            raise Misfits(((("train", "valid", "test"), sentence),))


class TableSettings(Settings):
    """How a `.csv`, `.tsv`, `.txt` or `.xlsx` file is written, where its ending does not say it."""

    delimiter: Literal[",", ";", "|", "\t"] | None = None
    """What stands between columns; when absent a comma in `.csv`, a tab in `.tsv`, and a line of
    `.txt` is one text."""
    quotes: StrictBool | None = None
    """Whether quotation marks may enclose a field; when absent, yes unless the delimiter is a
    tab."""
    header: StrictBool | None = None
    """Whether the first line has the names of the columns; when absent, yes if columns are given by
    name."""
    sheet: StrictStr | None = None
    """The sheet of an `.xlsx` workbook that has the rows; when absent the first one."""
