"""The fields of a task, and one split of its data: encoded examples for batches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.annotations import TrueLinks, links_of
from sixjars.data.batches import Batches, EmptyColumn, FieldValues
from sixjars.data.copying import CopyLink
from sixjars.data.field import Field, Positions
from sixjars.data.flat import Flat, TextStream, flattened, portions, slices
from sixjars.data.storage.cache import (
    Examples,
    ExampleTable,
    IdEncoder,
    cache_folder,
    cached,
    encoded,
)
from sixjars.flow.values import Batch
from sixjars.progress import counted
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import STOP, UNK

if TYPE_CHECKING:
    from sixjars.data.alignment.guides import Guides

T = TypeVar("T")
DRAWN = "drawn"
"""The column that has the file of each row, of several, and how often it is drawn in an epoch."""
NOTHING = "nothing"  # the name of the input of a task without inputs


@final
@dataclass(frozen=True)
class Fields:
    """The input fields and the output field of a task."""

    inputs: Mapping[str, Field]
    output: Field

    @property
    def all(self) -> dict[str, Field]:
        """All fields by name, the output last."""
        return {**self.inputs, self.output.name: self.output}

    @cached_property
    def link(self) -> CopyLink | None:
        """The link from which the output copies words, if it does."""
        return self.output.link(self.inputs)

    def mapped(self, change: Callable[[Field], Field]) -> "Fields":
        """The same with `change` applied to every field."""
        inputs = {name: change(field) for name, field in self.inputs.items()}
        return Fields(inputs, change(self.output))

    def learned(self, train: Examples) -> "Fields":
        """The fields with what the training set teaches: vocabularies, labels."""

        def taught(field: Field) -> Field:
            if not field.learns:
                return field
            names = field.equipment.learned_from or (field.name,)
            arrays = chain.from_iterable(portions(train.table.column(name)) for name in names)
            what = f"learning the vocabulary of {field.name}"
            total = len(names) * train.table.num_rows
            return field.learned(TextStream(counted(arrays, what, rows=len, total=total)))

        return self.mapped(taught)

    def admit(self, examples: Examples, *, skip: bool) -> Examples:
        """The examples whose values every field can use."""
        for field in self.all.values():
            examples = field.admit(examples, skip=skip)
        return examples

    def encoders(self) -> dict[str, IdEncoder]:
        """The encoders that turn texts into ids, by name."""
        encoders: dict[str, IdEncoder] = {}
        for field in self.all.values():
            encoders |= field.encoders()
        return encoders | ({} if self.link is None else self.link.encoders())

    def examined(
        self, columns: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, Sequence[str]], dict[int, str]]:
        """The columns of a few inputs with the facts of their files; or a fault of each bad row."""
        beside: dict[str, Sequence[str]] = {**columns}
        faults: dict[int, str] = {}
        for name, field in self.inputs.items():
            facts, wrong = field.examined(columns[name])
            for row, value in enumerate(columns[name]):
                if value in wrong:
                    faults.setdefault(row, f"the {name}: {wrong[value]}")
            if not faults:
                for fact, of_value in facts.items():
                    beside[fact] = [of_value[value] for value in columns[name]]
        return beside, faults

    def encode(self, rows: ExampleTable) -> Batch:
        """All rows as one padded batch, those with the most positions first."""
        count = len(rows)
        columns = {name: field.column(rows) for name, field in self.inputs.items()}
        columns = columns or {NOTHING: EmptyColumn(count)}
        known = rows.has(self.output.name)
        target: FieldValues = self.output.column(rows) if known else EmptyColumn(count)
        lengths = sum((column.lengths for column in columns.values()), target.lengths)
        order = np.argsort(-lengths, kind="stable")
        inputs, outputs = {}, target.padded(order)
        for name, column in columns.items():
            inputs[name] = column.padded(order)
        if self.link is not None:
            joint = self.link.joint(rows)
            joint.check(columns)
            inputs, outputs = joint.join(order, inputs, outputs)
        return Batch(inputs, outputs, torch.from_numpy(order), None)

    def facts(self) -> dict[str, dict[str, Any]]:
        """The facts of each field that a network needs."""
        return {name: field.facts() for name, field in self.all.items()}


@final
class InputRows:
    """A few inputs as plain lists, which fields read as they read the tables of a training set.

    >>> rows = InputRows({"source": ["one", "two"]}, {})
    >>> len(rows), rows.texts("source", [1]), rows.line(1)
    (2, ['two'], 2)
    """

    fingerprint = ""

    def __init__(
        self, columns: Mapping[str, Sequence[str]], encoders: Mapping[str, IdEncoder]
    ) -> None:
        self._columns = columns
        self._ids: dict[str, Flat] = {}
        for name, encoder in encoders.items():
            if encoder.column in columns:
                self._ids[name] = flattened(encoder.encode(columns[encoder.column]))

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def has(self, field: str) -> bool:
        """Whether there is such a field of text."""
        return field in self._columns

    def texts(self, field: str, rows: Sequence[int] | None = None) -> list[str]:
        """The texts of a field, of all rows or of some."""
        column = self._columns[field]
        return [*column] if rows is None else [column[row] for row in rows]

    def ids(self, field: str) -> Flat:
        """All ids of a field on end, and where each row begins and the last ends."""
        return self._ids[field]

    def line(self, row: int) -> int:
        """The place of an input, counted from 1."""
        return row + 1


def _counted(ids: Sequence[NDArray[np.int32]]) -> tuple[int, int]:
    """How many tokens there are, and how many of them are unknown."""
    tokens = sum(int((row != STOP).sum()) for row in ids)
    return tokens, sum(int((row == UNK).sum()) for row in ids)


@final
@dataclass(frozen=True)
class Dataset:
    """One split of the data (train, valid or test), or the inputs of a prediction, encoded."""

    table: ExampleTable
    fields: Fields
    where: str
    """The file, for messages."""
    skipped: int = 0
    """Bad rows that were left out."""
    notes: tuple[str, ...] = ()
    """Sentences about the reading, for a person."""
    diagonal: float | None = None
    """λ at first, where links are learned to guide attention."""

    @classmethod
    def stored(cls, examples: Examples, fields: Fields) -> "Dataset":
        """A dataset that is encoded once, kept in the cache and memory-mapped."""
        table = cached(examples, fields.encoders(), folder=cache_folder())
        return cls(table, fields, examples.where, examples.skipped, examples.notes)

    @classmethod
    def in_memory(cls, examples: Examples, fields: Fields) -> "Dataset":
        """A dataset for a prediction, encoded now; only the fields that the examples have."""
        present = set(examples.table.column_names)
        items = fields.encoders().items()
        encoders = {name: encoder for name, encoder in items if encoder.column in present}
        return cls(encoded(examples, encoders), fields, examples.where)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def inputs(self) -> list[dict[str, str]]:
        """The inputs of each row: texts normalized, names of files."""
        columns = {name: self.normalized(name) for name in self.fields.inputs}
        return [{name: texts[row] for name, texts in columns.items()} for row in range(len(self))]

    @cached_property
    def targets(self) -> list[str]:
        """The targets, normalized as their tokens are (Unicode form, spaces, case if asked for)."""
        return self.normalized(self.fields.output.name)

    def normalized(self, name: str, rows: Sequence[int] | None = None) -> list[str]:
        """The texts of a field as it normalizes them, of all rows or of some."""
        return list(map(self.fields.all[name].normalize, self.table.texts(name, rows)))

    @cached_property
    def _sorted_out(self) -> tuple[NDArray[np.bool_], dict[str, int]]:
        """Which rows can be learned from, and how many cannot, by the first reason of each."""
        usable = np.ones(len(self), dtype=bool)
        reasons: dict[str, int] = {}
        for field in self.fields.all.values():
            try:
                lost = usable & ~field.usable(self.table)
            except DataError as error:
                raise DataError(f"{self.where}: {error}") from None
            usable &= ~lost
            if lost.any():
                reason = field.why_unusable(self.table, np.flatnonzero(lost))
                reasons[reason] = reasons.get(reason, 0) + int(lost.sum())
        return usable, reasons

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Which rows can be learned from."""
        return self._sorted_out[0]

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """How often each row is drawn in an epoch; None where each is drawn once."""
        if not self.table.has(DRAWN):
            return None
        return np.array([float(text.split()[1]) for text in self.table.texts(DRAWN)])

    @cached_property
    def unknown(self) -> float | None:
        """The share of `<unk>` among the tokens of the inputs, if they have any and copy none."""
        tokens, unknown = _counted([self.table.ids(name)[0] for name in self.text_inputs])
        return unknown / tokens if tokens and self.fields.link is None else None

    @cached_property
    def text_inputs(self) -> list[str]:
        """The inputs that are made of tokens."""
        return [
            name
            for name, field in self.fields.inputs.items()
            if "vocabulary" in field.fact_names and name in field.encoders()
        ]

    def tokens_read(self, row: int) -> tuple[int, int]:
        """Tokens of the inputs of a row, and how many are `<unk>`; none that can be copied."""
        columns = [self.table.ids(name) for name in self.text_inputs]
        texts = [ids[offsets[row] : offsets[row + 1]] for ids, offsets in columns]
        tokens, unknown = _counted(texts)
        return tokens, unknown if self.fields.link is None else 0

    @property
    def dropped(self) -> int:
        """Rows that cannot be learned from: too long, or with a label that is not in the list."""
        return int((~self.usable).sum())

    @property
    def why_dropped(self) -> str:
        """The reason in words; of several, how many rows for each."""
        reasons = self._sorted_out[1]
        if len(reasons) < 2:
            return "".join(reasons)
        return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())

    @cached_property
    def source_words_index(self) -> list[list[int]]:
        """For each token of each source, the word that it belongs to."""
        return self.fields.inputs["source"].words([row["source"] for row in self.inputs])

    @cached_property
    def target_words_index(self) -> list[list[int]]:
        """For each token of each target, the word that it belongs to."""
        return self.fields.output.words(self.targets)

    @cached_property
    def alignments(self) -> list[TrueLinks | None] | None:
        """True links between words (or characters), where the data has them, by row."""
        if not self.table.has("alignment"):
            return None
        return self.true_links(range(len(self)), (self.source_words_index, self.target_words_index))

    def true_links(
        self, rows: range, words: Sequence[Sequence[Sequence[int]]]
    ) -> list[TrueLinks | None]:
        """The true links of some rows, from the words of both sides."""
        names = ("source", self.fields.output.name)

        def parsed(row: int, text: str | None) -> TrueLinks | None:
            if text is None:
                return None
            sides = [side[row - rows.start] for side in words]
            return links_of(text, [side[-1] + 1 if side else 0 for side in sides], names)

        return self.annotated("alignment", parsed, rows) or []

    def annotated(
        self, name: str, parsed: Callable[[int, str], T], rows: Sequence[int] | None = None
    ) -> list[T] | None:
        """The annotations of this name, if the data has them, each `parsed` from row and text."""
        if not self.table.has(name):
            return None
        annotations = []
        rows = range(len(self)) if rows is None else rows
        for row, text in zip(rows, self.table.texts(name, rows), strict=True):
            try:
                annotations.append(parsed(row, text))
            except ValueError as error:
                raise DataError(f"{self.where}, line {self.table.line(row)}: {error}") from None
        return annotations

    @cached_property
    def guides(self) -> "Guides":
        """The links that attention is guided by, read once: those learned, or the sure ones."""
        from sixjars.data.alignment.guides import guides_of

        return guides_of(self)

    def positions(self, row: int, count: int, of: str | None = None) -> Positions:
        """What each of `count` attended positions is, for the input `of` or else the first."""
        field = self.fields.inputs.get(of or next(iter(self.fields.inputs), ""))
        if field is None:
            return Positions()
        positions = field.positions(self.table, row, count)
        if self.fields.link is None:
            return positions
        words = self.fields.link.source_words(self.raw(row))
        return replace(positions, tokens=tuple(self.fields.link.shown(words)))

    def source_words(self, row: int) -> list[str]:
        """The words that a decoder may copy from a row; none where it copies nothing."""
        return [] if self.fields.link is None else self.fields.link.source_words(self.raw(row))

    def raw(self, row: int) -> dict[str, str]:
        """The inputs of a row as they were given."""
        return {name: self.table.texts(name, [row])[0] for name in self.fields.inputs}

    def batches(
        self,
        *,
        batch_tokens: int | None = None,
        batch_examples: int | None = None,
        seed: int = 0,
        training: bool = False,
        guided: bool = False,
    ) -> Batches:
        """Padded batches of this dataset.

        With `training` only usable rows, by their weights; with `guided` also the true alignment.
        """
        inputs = {name: self._column(name) for name in self.fields.inputs}
        output = self.fields.output.name
        target: FieldValues = EmptyColumn(len(self))
        if self.table.has(output):
            target = self._column(output, training=training)
        has_links = self.diagonal is not None or self.table.has("alignment")
        link = self.fields.link
        return Batches(
            inputs or {NOTHING: EmptyColumn(len(self))},
            target,
            usable=self.usable if training else None,
            batch_tokens=batch_tokens,
            batch_examples=batch_examples,
            seed=seed,
            weights=self.weights if training else None,
            links=self.guides if guided and has_links else None,
            joint=None if link is None else link.joint(self.table),
        )

    def _column(self, name: str, *, training: bool = False) -> FieldValues:
        return self.fields.all[name].column(self.table, training=training)

    def lengths(self, name: str) -> Sequence[int]:
        """The number of positions of each row, as an encoder gets them."""
        return [int(length) for length in self._column(name).lengths]

    def known_tokens(self, name: str) -> tuple[int, float] | None:
        """The number of tokens of a text field, and the share of known ones."""
        field = self.fields.all[name]
        vocabulary = field.facts().get("vocabulary")
        if vocabulary is None or name not in field.encoders():
            return None
        ids, _ = self.table.ids(name)
        # Copied words are numbered beyond the vocabulary.
        known = 0
        for block in slices(ids):
            known += int(np.count_nonzero((block != UNK) & (block < vocabulary)))
        return len(ids), known / max(len(ids), 1)

    def label_counts(self) -> dict[str, int]:
        """The number of rows with each label of the list."""
        field = self.fields.output
        counts = np.bincount(self.table.ids(field.name)[0], minlength=field.facts()["classes"])
        return {field.decode([number]): int(count) for number, count in enumerate(counts)}
