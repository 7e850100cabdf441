"""The contract of a field: all that is particular about one kind of value.

A field is a text, a label, an order, points, an image or a video. Training, scoring and prediction
take one path: raw values become text (`text_of`), are checked (`check`), admitted (`admit`),
encoded (`encoders`) and padded (`column`).

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
from sixjars.data.batches import ArrayColumn, FieldValues
from sixjars.data.copying import CopyLink
from sixjars.data.storage.cache import LINE, Examples, ExampleTable, IdEncoder
from sixjars.flow.contracts import Holds
from sixjars.flow.values import Padded
from sixjars.progress import Reporter
from sixjars.recipe.data import FieldSettings
from sixjars_runtime.errors import shown, the


class FeatureExtractor(Protocol):
    """Turns the pixels of an image or video field into the numbers that an encoder reads."""

    @property
    def name(self) -> str:
        """Its name, for progress and messages."""

    @property
    def pixels(self) -> int:
        """The side of the squares that it takes, in pixels."""

    @property
    def cells(self) -> bool:
        """Whether it gives the cells of each frame, not only one vector."""

    @property
    def fingerprint(self) -> str | None:
        """A hash of its weights; None where it has none."""

    @property
    def vector(self) -> int:
        """How many of the last numbers of a frame are its vector; 0 for pixels."""

    def plan(self) -> dict[str, Any]:
        """All that the numbers depend on, besides the pixels."""

    def __call__(self, pixels: Tensor, /) -> Tensor:
        """Features (X, N) of frames (X, 3, H, W)."""


@final
@dataclass(frozen=True)
class Equipment:
    """The tools of a field besides its settings: files, features, reporting."""

    places: tuple[Path, ...] = (Path(),)
    """Folders and .zip files that names of files are looked up in."""
    extractor: FeatureExtractor | None = None
    stored: bool = False
    """Whether features are kept for the next time."""
    target_options: Mapping[str, Any] | None = None
    """The decoder's options for an output field; None for an input."""
    learned_from: tuple[str, ...] = ()
    """The fields whose values it learns from; itself where none are named."""
    reporter: Reporter = default(default_factory=Reporter)
    check: Callable[[], None] = lambda: None
    """Called before each file, and each frame of a video, is decoded; what it raises ends that."""


@final
@dataclass(frozen=True)
class Positions:
    """The tokens at the positions of an input, to draw attention over them."""

    tokens: tuple[str, ...] = ()
    segments: tuple[int, ...] = ()
    """The segment of each position; empty for other fields."""
    words: tuple[int, ...] = ()
    """The index of each token's word; empty for other fields."""


class Field(ABC):
    """One field of a task's examples: its settings, and what it learned from the training set.

    A field of your own sets `kind`, `holds` and `settings_class`, and gives at least `arrays`,
    `blank`, `describe`.
    """

    kind: ClassVar[str]
    """Its name in recipes."""
    settings_class: ClassVar[type[FieldSettings]]
    """Its keys in a recipe."""
    holds: ClassVar[Holds]
    """The kind of its values, which a decoder must produce."""
    fact_names: ClassVar[tuple[str, ...]] = ()
    """The names of its `facts`: parameters of encoders or decoders that no recipe sets."""
    learns: ClassVar[bool] = False
    """Whether it learns something from the training set that a run must keep."""

    in_segments: bool = False
    """Whether its values are texts in segments."""
    has_vectors: bool = False
    """Whether its tokens have pretrained vectors."""
    multi_label: bool = False
    """Whether an example may have several labels."""
    single_label: bool = False
    """Whether every example has exactly one label."""
    folds_case: bool = False
    """Whether values that differ only in case are one."""
    word_dropout: float = 0.0
    """The probability with which an input token is unknown in training."""
    is_media: bool = False
    """Whether its values are names of files."""
    archive_endings: frozenset[str] = frozenset()
    """How the archives of its files end, lowercased, that a prediction looks in too."""
    lists: Literal["rows", "value", "refused"] = "refused"
    """The meaning of a list in a file: several rows, one value, or a bad row."""
    unusable: str = "that cannot be learned from"
    """The words for rows that are not `usable`."""
    default_metrics: tuple[str, ...] = ()
    """Metrics that replace those of the task."""
    equipment = Equipment()

    def __init__(self, name: str, settings: Any) -> None:
        self.name = name
        self.settings = settings

    def equipped(self, equipment: Equipment) -> Self:
        """The same field with its equipment."""
        field = copy(self)
        field.equipment = equipment
        return field

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
        """The link by which this output copies words of an input, if it does."""
        return None

    def as_text(self, value: object) -> str:
        """The text that is kept of a value; ValueError with the second half of a sentence."""
        if isinstance(value, str):
            return value
        raise ValueError(f"must be a text, but is {shown(value)}.")

    @final
    def text_of(self, value: object) -> str:
        """As `as_text`, but ValueError has a whole sentence."""
        try:
            return self.as_text(value)
        except ValueError as error:
            raise ValueError(f"{the(self.name)} {error}") from None

    def arguments(self, argument: str) -> list[Any]:
        """The values of one command-line argument; JSON where a list is one value."""
        if self.lists == "value" and argument.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):  # a text may begin with a bracket too
                return [json.loads(argument)]
        return [argument]

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """Raise ValueError if a text is no value of this field; `row` has the other fields."""
        if not text.strip():
            raise ValueError(f"{the(self.name)} is empty.")

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """The examples whose values pass the check; a bad one is an error, or left out and counted.

        Readers refuse empty values already: a kind without a check of its own admits all.
        """
        if type(self).check is Field.check:
            return examples
        faults: dict[int, str] = {}
        batches = examples.table.drop_columns([LINE]).to_batches(4096)
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, row in enumerate(rows):
            try:
                self.check(row[self.name], row)
            except ValueError as error:
                faults[number] = str(error)
        return without_bad(examples, faults, skip=skip) if faults else examples

    def examined(self, values: Sequence[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """Columns of facts that are kept of values, each by value; and a fault for each bad one.

        Only values that are names have some: facts of their files.
        """
        return {}, {}

    def settled(self, train: Examples) -> Self:
        """The field with what the admitted training set decides for other sets."""
        return self

    def normalize(self, text: str) -> str:
        """The form in which a value is compared with others."""
        return text

    def learned(self, texts: Iterable[str]) -> Self:
        """The field with what training texts teach (vocabulary, labels); known ids stay."""
        return self

    def to_json(self) -> str:
        """The learned state as JSON, to be kept in a run."""
        return "null"

    def restored(self, text: str) -> Self:
        """The field with a state that `to_json` wrote."""
        return self

    # From text to tensors.

    def encoders(self) -> dict[str, IdEncoder]:
        """The encoders of its texts whose ids are stored, by name; none for other kinds."""
        return {}

    def arrays(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """The numbers of each text, (S,) or (S, N)."""
        raise NotImplementedError(f"{type(self).__name__} must give `arrays` or `column`.")

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """All rows of a table as a column that gives padded batches."""
        arrays = self.arrays(table.texts(self.name))
        lengths = np.array([len(array) for array in arrays], dtype=np.int64)
        return ArrayColumn(arrays.__getitem__, lengths)

    def usable(self, table: ExampleTable) -> NDArray[np.bool_]:
        """The rows that can be learned from: not left out by settings, and not without content."""
        return np.ones(len(table), dtype=bool)

    def why_unusable(self, table: ExampleTable, rows: NDArray[np.int64]) -> str:
        """What is said of some rows that are not `usable`."""
        return self.unusable

    def note_on_unknown(self, table: ExampleTable) -> str:
        """A sentence on rows that ask for an output which was never learned; empty without any."""
        return ""

    def truncated(self, table: ExampleTable, rows: Sequence[int]) -> NDArray[np.bool_]:
        """Which of some rows are longer than the part that is encoded."""
        return np.zeros(len(rows), dtype=bool)

    def frozen_features(
        self, table: ExampleTable, rows: Sequence[int]
    ) -> NDArray[np.float32] | None:
        """One vector for each of some rows, (R, N), where frozen features are stored, else None."""
        return None

    @abstractmethod
    def blank(self) -> Padded:
        """A small value, (1, S) or (1, S, N), as an example for a network."""

    # From ids to text, and to what a person reads.

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The text of a decoder's output."""
        raise NotImplementedError(f"no decoder outputs a field of kind {self.kind}.")

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """The tokens of a decoder's output."""
        raise NotImplementedError(f"no decoder outputs a field of kind {self.kind}.")

    def replacing_unknown(
        self, ids: Sequence[int], weights: Sequence[Sequence[float]], source: "Field", text: str
    ) -> tuple[Sequence[int], list[str]]:
        """Ids with `<unk>` replaced by copies from where attention was, and the words of `text`."""
        return ids, []

    def positions(self, table: ExampleTable, row: int, count: int) -> Positions:
        """The tokens, segments and words at the `count` positions of a row."""
        return Positions()

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, the index of its word; other values are one word."""
        return [[0] for _ in texts]

    def backdrop(self, text: str) -> Any:
        """The image, frames or points that attention is drawn on; None for a text."""
        return None

    def facts(self) -> dict[str, Any]:
        """The parameters of a network that the field decides; see `fact_names`."""
        return {}

    def assumed(self) -> Self:
        """The field as if it had learned as much as its settings allow, without data."""
        return self

    @abstractmethod
    def describe(self) -> str:
        """A description of its values, for `explain`."""

    @classmethod
    def suggest(cls, texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
        """Settings for a starter recipe from the texts of a column, which may be none.

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


def are_text_lists(values: Sequence[object]) -> bool:
    """Whether every value is a list of texts, with one at least."""
    lists = [value for value in values if isinstance(value, list) and value]
    texts = all(isinstance(text, str) for value in lists for text in value)
    return len(lists) == len(values) and texts
