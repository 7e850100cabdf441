"""The settings of one field of the data: a text, a picture, a film, a label; a sentence under each key."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, model_validator

from sixjars.recipe.ranges import AboveZero, Positive

Column = Annotated[StrictStr | Positive, Field(union_mode="left_to_right")]
FilePath = StrictStr
Files = FilePath | dict[str, FilePath]


class Settings(BaseModel):
    """A section of a recipe: frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    def misfits(self) -> list[str]:
        """What is wrong with several keys together, a sentence each."""
        return []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if faults := self.misfits():
            raise ValueError("\n".join(faults))
        return self


class TextSettings(Settings):
    """One column of text, and how it becomes tokens."""

    column: Column = "text"
    """Its name in the header, or its number from 1 (then the file has no header). `a.b` reaches into a structure."""
    tokens: Literal["words", "characters", "bpe", "unigram"] = "words"
    """What a token is."""
    split: Literal["punctuation", "spaces"] = "punctuation"
    """Whether words end at punctuation too, or at spaces alone (text that is already tokenised)."""
    size: Annotated[int, Field(ge=5, strict=True)] = 20_000
    """Most tokens in the vocabulary, the four special ones included."""
    min_count: Positive = 1
    """A token seen fewer times in the training data is unknown."""
    lowercase: StrictBool = False
    """Whether capital letters are made small before anything else."""
    max_length: Positive = 200
    """Most tokens; a longer text is cut there in training and scoring, not in prediction."""
    parts: Literal["none", "sentences", "lines", "turns"] = "none"
    """What a text is made of: nothing between it and its tokens; sentences, found by a rule; lines (a list of texts in
    JSON lines is a line for each); or lines that are turns of a conversation, the last one by the other speaker."""
    vectors: FilePath | None = None
    """Pretrained word vectors in the word2vec or GloVe text format, plain or gzipped; `sample` for made-up ones."""


class MediaSettings(Settings):
    """One column of file names, and how the files become pixels."""

    column: Column = "file"
    """Its name in the header, or its number from 1."""
    media: FilePath | tuple[FilePath, ...] = "."
    """Where the files are: a folder, a `.zip` that is read in place, or a list of those."""
    size: Positive | None = None
    """Pixels of each side as the network sees them; the backbone's usual size when absent."""
    fit: Literal["crop", "pad", "stretch"] = "crop"
    """How another shape becomes a square: its middle, bars at the sides, or stretched."""
    max_pixels: Positive = 50_000_000
    """A larger picture (width times height) is refused before it is unpacked."""


class ImageSettings(MediaSettings):
    """One column of pictures."""

    column: Column = "image"
    """Its name in the header, or its number from 1."""


class VideoSettings(MediaSettings):
    """One column of films."""

    column: Column = "video"
    """Its name in the header, or its number from 1."""
    frames: Positive = 16
    """Frames taken of each film, evenly from its beginning to its end; with `rate` the most that are taken."""
    rate: AboveZero | None = None
    """Frames taken of each second instead."""


class LabelSettings(Settings):
    """One column of labels: a closed list, learned from the training data and kept in the run."""

    column: Column = "label"
    """Its name in the header, or its number from 1."""
    size: Positive | None = None
    """Most labels, the most frequent first; a rarer one is never chosen, and not learned from."""
    min_count: Positive = 1
    """A label seen fewer times in the training data is never chosen."""
    lowercase: StrictBool = False
    """Whether capital letters are made small."""
    several: StrictBool = False
    """Whether an example may have several labels: a list in JSON lines, else a text with commas between them."""


class PointsSettings(Settings):
    """One column of points (or numbers): `0.1,0.7 0.3,0.2`, or a list of lists in JSON lines."""

    column: Column = "points"
    """Its name in the header, or its number from 1."""
    numbers: Positive = 2
    """Numbers of each point: 2 in a plane, 1 for plain numbers."""


class OrderSettings(Settings):
    """One column of positions of points, counted from 0: `2 0 1`, or a list in JSON lines."""

    column: Column = "order"
    """Its name in the header, or its number from 1."""
