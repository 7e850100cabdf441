"""The data section of a recipe: where examples are, how they are split, and the keys that every field has."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    StrictStr,
    model_serializer,
)

from sixjars.flow.limits import AboveZero, Number, Positive, Seed, Size
from sixjars.recipe.schema import Misfit, Settings
from sixjars.recipe.tables import TableSettings

Column = Annotated[StrictStr | Positive, Field(union_mode="left_to_right")]
FilePath = StrictStr
Files = FilePath | dict[str, FilePath]
Written = Annotated[str, BeforeValidator(lambda value: json.dumps(value) if isinstance(value, int | float) else value)]
"""A value as files have it: `true`, not `True`."""


class TrainingFile(Settings):
    """One of several training files."""

    file: Files
    """A file, as `data.train` names one alone."""
    weight: AboveZero = 1.0
    """How often its rows are drawn in an epoch: 2 for twice each, 0.5 for another half of them in each epoch."""


def _as_training_file(value: Any) -> Any:
    """A name alone, or parallel files, is a file of weight 1."""
    if not isinstance(value, str | dict | TrainingFile):
        raise ValueError("must be the name of a file, or {file: NAME, weight: NUMBER}")
    named = isinstance(value, str) or (isinstance(value, dict) and not {"file", "weight"} & value.keys())
    return {"file": value} if named else value


TrainingFiles = tuple[Annotated[TrainingFile, BeforeValidator(_as_training_file)], ...]


class FieldSettings(Settings):
    """One field of the examples; each kind of field adds its own keys."""

    kind: str
    """What the field is: `text`, `label`, `order`, `points`, `image`, `video`, `features`, or a class of yours."""
    column: Column
    """Its name in the header, or its number from 1 (then the file has no header). `a.b` reaches into a structure."""


class SampleSettings(Settings):
    """A synthetic corpus from the package's own generators, instead of files."""

    size: Size = 4000
    """Training examples."""
    valid: Size = 200
    """Validation examples, none of them in the training set."""
    test: Size = 200
    """Test examples, none of them in the other sets."""
    longest: Size | None = None
    """Most words (or characters, sentences, turns, points) of an input; the generator's own limit when absent."""
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

    def misfits(self) -> Iterator[Misfit]:
        """No row may be in two splits."""
        values = [value for value in (self.train, self.valid, self.test) if value is not None]
        if len(set(values)) < len(values):
            yield ("train", "valid", "test"), f"the splits must have different values, but have {values}."


class DataSettings(TableSettings):
    """Jar 2: where the examples are. Each field of the task is a key too, such as `source`, `image` or `label`."""

    sample: SampleSettings | None = None
    """The task's synthetic corpus; then no files are named."""
    folder: FilePath = "."
    """Where relative file names start."""
    format: Literal["table", "coco", "flickr8k", "folders", "dialogs"] = "table"
    """Rows of a file; captions as COCO or Flickr8k have them; a folder for each label; or whole conversations (JSON
    lines, each a list of turns), of which every turn but the first is an example."""
    train: Files | TrainingFiles | None = None
    """A file (.tsv .csv .jsonl .json .txt .gz .parquet .xlsx), `hf:NAME[@CONFIG][:SPLIT]`, or parallel
    `{column: file}`; or a list of files, some with a weight: `[{file: a.tsv, weight: 2}, b.tsv]`."""
    valid: Files | Number | None = None
    """A file, or the fraction of the training inputs to hold out. When absent, 0.05 of them, but at least 20 and 2 of
    each label, and at most a third. Labels are held out in proportion, and rows with equal inputs together."""
    test: Files | Number | None = None
    """A file or a fraction; the validation set is scored when there is none."""
    seed: Seed = 0
    """Of which rows are held out."""
    fold: Annotated[str, Field(pattern=r"^[1-9]\d*/[1-9]\d*$")] | None = None
    """One model of a cross-validation (`learning.folds` trains them all): `2/5` validates on the second of five parts
    of the training set."""
    split: SplitSettings | None = None
    """Or all splits in the training file, with a column that names the split."""
    fields: dict[str, SerializeAsAny[FieldSettings]] = Field(default={}, exclude=True)
    """What each field of the task is, inputs first; in a recipe each stands beside the other keys of `data`."""
    speakers: Column | None = None
    """For `format: dialogs`, a list of who speaks each turn; two speakers in turn when absent."""
    alignment: Column | None = None
    """A column of true links, `0-0 1-2`: source word, target word, both counted from 0."""
    boxes: Column | None = None
    """A column of true regions, `2:0.1,0.1,0.4,0.3 ...`: target word counted from 0; left, top, right and bottom as
    fractions of what the network gets of the image."""
    rationale: Column | None = None
    """A column of the true evidence, `2 5`: the sentence that decides and its word, both counted from 0."""
    filter: dict[str, Written] = {}
    """Keep only the rows whose column (by name, or by number in quotes) has this value."""
    on_bad_row: Literal["error", "skip"] = "error"
    """What a malformed or empty row does."""

    def misfits(self) -> Iterator[Misfit]:
        """Examples must come from one place, each split must have some, and no two fields may be one column."""
        if (self.sample is None) == (self.train is None):
            yield ("sample", "train"), "needs either 'train' (a file) or 'sample' (a synthetic corpus), not both."
        if self.train == ():
            yield ("train",), "'train' is an empty list; name a file."
        if self.split is not None and (self.sample or self.test is not None or self.valid is not None):
            message = "'split' finds all splits in the training file; name no 'valid', 'test' or 'sample' beside it."
            yield ("split", "sample", "valid", "test"), message
        if self.fold is not None and (self.sample or self.split or (self.valid, self.test) != (None, None)):
            yield ("fold",), "'fold' is a part of the training file; name no 'valid', 'test', 'split' or 'sample'."
        yield from self._fractions()
        if self.speakers is not None and self.format != "dialogs":
            yield ("speakers",), f"'speakers' belongs to `format: dialogs`, but the format is {self.format}."
        if self.train is not None and self.format != "dialogs":
            yield from self._twice()

    def _fractions(self) -> Iterator[Misfit]:
        for name, share in (("valid", self.valid), ("test", self.test)):
            if isinstance(share, float) and not 0.0 < share < 1.0:
                yield (name,), f"{name!r} as a fraction must lie between 0 and 1, but is {share}."

    def _twice(self) -> Iterator[Misfit]:
        for (one, first), (other, second) in combinations(self.fields.items(), 2):
            if first.column == second.column:
                yield (one, other), f"{one!r} and {other!r} are both column {first.column!r}; name two columns."

    @model_serializer(mode="wrap")
    def _beside_the_fields(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Fields stand beside the other keys."""
        own: dict[str, Any] = plain(self)
        return own | {name: settings.model_dump(mode="json") for name, settings in self.fields.items()}

    @property
    def training_files(self) -> tuple[TrainingFile, ...]:
        """The files of the training set, each with its weight."""
        if isinstance(self.train, tuple) or self.train is None:
            return self.train or ()
        return (TrainingFile(file=self.train),)

    def path(self, name: FilePath) -> Path:
        """A file of this section, as the machine finds it."""
        return Path(self.folder).expanduser() / name
