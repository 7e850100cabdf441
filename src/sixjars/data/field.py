"""The contract of a field: everything about one kind of value, so that nobody else asks which kind it is.

A field is a text, a label, an order, points, an image or a video. Training, scoring and prediction take one path: raw
values become text (`text_of`), are checked (`check`), admitted (`admit`), encoded (`encoders`) and padded (`column`).

Dims: B rows, S positions, N numbers of a position.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from dataclasses import field as default
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.bad_rows import without_bad
from sixjars.data.batches import ArrayColumn, Column
from sixjars.data.copying import CopyLink
from sixjars.data.storage.cache import LINE, Examples, IdEncoder, Table
from sixjars.errors import shown, the
from sixjars.flow.contracts import Holds
from sixjars.flow.values import Padded
from sixjars.progress import Reporter
from sixjars.recipe.data import FieldSettings


class FeatureExtractor(Protocol):
    """What an image or video field is handed: from pixels to the numbers that an encoder reads."""

    @property
    def name(self) -> str:
        """For progress and messages."""

    @property
    def pixels(self) -> int:
        """Of each side of the squares that it takes."""

    @property
    def cells(self) -> bool:
        """Whether it gives the cells of each frame, or its vector alone."""

    @property
    def fingerprint(self) -> str | None:
        """Changes with its weights; nothing where it has none."""

    @property
    def vector(self) -> int:
        """How many of the last numbers of a frame describe the whole of it; none where they are pixels."""

    def plan(self) -> dict[str, Any]:
        """All that the numbers depend on, besides the pixels."""

    def __call__(self, pixels: Tensor, /) -> Tensor:
        """(X, 3, H, W) to (X, N)."""


@final
@dataclass(frozen=True)
class Equipment:
    """What a field may need besides its settings."""

    places: tuple[Path, ...] = (Path(),)
    """Folders and .zip files that names of files are looked up in."""
    extractor: FeatureExtractor | None = None
    stored: bool = False
    """Whether features are kept for the next time."""
    target_options: Mapping[str, Any] | None = None
    """Of an output: what the decoder needs of it."""
    learned_from: tuple[str, ...] = ()
    """The fields whose values it learns from; itself where none are named."""
    reporter: Reporter = default(default_factory=Reporter)
    check: Callable[[], None] = lambda: None
    """Called before each file, and each frame of a video, is decoded; what it raises ends that."""


@final
@dataclass(frozen=True)
class Positions:
    """What stands at each position of an input, for pictures of attention."""

    tokens: tuple[str, ...] = ()
    segments: tuple[int, ...] = ()
    """Of a text in segments, the segment that each position belongs to."""
    words: tuple[int, ...] = ()
    """Of a text, the word that each token is a piece of."""


class Field(ABC):
    """One field of the examples of a task, with its settings and what it learned from the training set.

    A field of your own sets `kind`, `holds` and `settings_class`, and gives at least `arrays`, `blank`, `describe`.
    """

    kind: ClassVar[str]
    """As recipes name it."""
    settings_class: ClassVar[type[FieldSettings]]
    """Its keys in a recipe."""
    holds: ClassVar[Holds]
    """What its values are, so that a decoder knows what to output."""
    fact_names: ClassVar[tuple[str, ...]] = ()
    """The names of its `facts`: parameters of encoders or decoders that no recipe sets."""
    learns: ClassVar[bool] = False
    """Whether it learns something from the training set that a run must keep."""

    in_segments: bool = False
    """Whether its values are texts in segments."""
    multi_label: bool = False
    """Whether an example may have several labels."""
    single_label: bool = False
    """Whether every example has exactly one label."""
    folds_case: bool = False
    """Whether values that differ only in case are one."""
    word_dropout: float = 0.0
    """Of an input: the probability with which a token is unknown in training."""
    is_media: bool = False
    """Whether its values are names of files."""
    archive_endings: frozenset[str] = frozenset()
    """How the archives of its files end, lowercased, that a prediction looks in too."""
    lists: Literal["rows", "value", "refused"] = "refused"
    """What a list in a file means: several rows, one value, or a bad row."""
    unusable: str = "that cannot be learned from"
    """What is said of rows that are not `usable`."""
    default_metrics: tuple[str, ...] = ()
    """Metrics that replace those of the task."""
    equipment = Equipment()

    def __init__(self, name: str, settings: Any) -> None:
        self.name = name
        self.settings = settings

    def equipped(self, equipment: Equipment) -> Self:
        """The same field with what it may need besides its settings."""
        made = copy(self)
        made.equipment = equipment
        return made

    def misfits(self, *, is_output: bool, is_first: bool) -> list[str]:
        """Settings that its role in the task does not allow, a sentence each."""
        return []

    def copy_misfits(self, source: Any) -> list[str]:
        """Why words of an input cannot be copied into this field, a sentence each."""
        return [f"copies words, but data.{self.name} is of kind {self.kind}."]

    def vocabulary_misfits(self, other: Any) -> list[str]:
        """Why this field and another cannot have one vocabulary, a sentence each."""
        return [f"data.{self.name}: must be a text, but is of kind {self.kind}."]

    def link(self, inputs: "Mapping[str, Field]") -> CopyLink | None:
        """What ties this output to an input, if something does."""
        return None

    def as_text(self, value: object) -> str:
        """A value as the text that is kept of it; ValueError with half a sentence, whose beginning the caller knows."""
        if isinstance(value, str):
            return value
        raise ValueError(f"must be a text, but is {shown(value)}.")

    @final
    def text_of(self, value: object) -> str:
        """The same; ValueError with a whole sentence."""
        try:
            return self.as_text(value)
        except ValueError as error:
            raise ValueError(f"{the(self.name)} {error}") from None

    def arguments(self, given: str) -> list[Any]:
        """The values that one argument of a command means; where a list is one value, JSON may be written."""
        if self.lists == "value" and given.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):  # a text may begin with a bracket too
                return [json.loads(given)]
        return [given]

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """ValueError with a sentence if a text is no value of this field; `row` has the other fields of the example."""
        if not text.strip():
            raise ValueError(f"{the(self.name)} is empty.")

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """The examples whose values pass the check; a bad one is an error, or left out and counted.

        Readers refuse empty values already, so where a kind has no check of its own there is nothing to do.
        """
        if type(self).check is Field.check:
            return examples
        faults: dict[int, str] = {}
        batches = examples.table.drop_columns([LINE]).to_batches(4096)
        for at, row in enumerate(row for some in batches for row in some.to_pylist()):
            try:
                self.check(row[self.name], row)
            except ValueError as error:
                faults[at] = str(error)
        return without_bad(examples, faults, skip=skip) if faults else examples

    def settled(self, train: Examples) -> Self:
        """With what the admitted training set decides about which examples of the other sets are admitted."""
        return self

    def normalize(self, text: str) -> str:
        """A value as it is compared with others."""
        return text

    def learned(self, texts: Iterable[str]) -> Self:
        """With what the training texts teach: a vocabulary, labels; what it knows already keeps its number."""
        return self

    def to_json(self) -> str:
        """What was learned, to be kept in a run."""
        return "null"

    def restored(self, text: str) -> Self:
        """The same field with what `to_json` kept."""
        return self

    # From text to tensors.

    def encoders(self) -> dict[str, IdEncoder]:
        """What encodes its texts into ids that are kept, by name; nothing where there are none."""
        return {}

    def arrays(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """The numbers of each text, (S,) or (S, N)."""
        raise NotImplementedError(f"{type(self).__name__} must give `arrays` or `column`.")

    def column(self, table: Table, *, training: bool = False) -> Column:
        """All rows of a table, to take padded batches from; `training` says what for."""
        arrays = self.arrays(table.texts(self.name))
        return ArrayColumn(
            arrays.__getitem__, np.array([len(array) for array in arrays], dtype=np.int64)
        )

    def usable(self, table: Table) -> NDArray[np.bool_]:
        """Which rows can be learned from; of the others there is nothing to learn, or the settings leave them out."""
        return np.ones(len(table), dtype=bool)

    def why_unusable(self, table: Table, rows: NDArray[np.int64]) -> str:
        """What is said of some rows that are not `usable`."""
        return self.unusable

    def truncated(self, table: Table, rows: Sequence[int]) -> NDArray[np.bool_]:
        """Which of some rows were longer than what is read of them, or of a target learned."""
        return np.zeros(len(rows), dtype=bool)

    def frozen_features(self, table: Table, rows: Sequence[int]) -> NDArray[np.float32] | None:
        """One vector for each of some rows, (R, N), where frozen features are stored; nothing where there are none."""
        return None

    @abstractmethod
    def blank(self) -> Padded:
        """One small value, (1, S) or (1, S, N), such as a network could be given."""

    # From ids to text, and to what a person reads.

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The text of a decoder's output."""
        raise NotImplementedError(f"no decoder outputs a field of kind {self.kind}.")

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """The same token by token."""
        raise NotImplementedError(f"no decoder outputs a field of kind {self.kind}.")

    def replacing_unknown(
        self, ids: Sequence[int], weights: Sequence[Sequence[float]], source: "Field", text: str
    ) -> tuple[Sequence[int], list[str]]:
        """The ids with `<unk>` replaced by a copy of the position of `text` with the most attention, and its words."""
        return ids, []

    def positions(self, table: Table, row: int, count: int) -> Positions:
        """What stands at each of the `count` positions that an encoder made of a row."""
        return Positions()

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, which word it belongs to; a value that is no text is one word."""
        return [[0] for _ in texts]

    def backdrop(self, text: str) -> Any:
        """What a picture of attention is drawn on: the image, the frames, the points; nothing for a text."""
        return None

    def facts(self) -> dict[str, Any]:
        """What a network must know: sizes of vocabularies, of points, of images; as `fact_names` names them."""
        return {}

    def assumed(self) -> Self:
        """The same field as if it had learned as much as its settings allow, where the data is not at hand."""
        return self

    @abstractmethod
    def describe(self) -> str:
        """What its values are, for `explain`."""

    @classmethod
    def suggest(cls, texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
        """Settings for a starter recipe, from the texts of a column (none where there is no data yet).

        `tokens` is what the task takes for a token, `long` whether its encoder reads long texts.
        """
        return {}

    @classmethod
    def decoder_options(cls, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Settings of the decoder that the texts of all columns decide."""
        return {}

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Settings for a column with these values; nothing if it cannot hold this kind of field."""
        return {} if all(isinstance(value, str) for value in values) else None
