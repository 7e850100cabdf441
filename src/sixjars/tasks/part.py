"""One part of the data: its texts, its tokens, its pictures and films, as columns that batches are cut from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

from sixjars.data.batches import Alignments, Batches, Links
from sixjars.data.cache import Table
from sixjars.data.columns import Column, Frames, Nothing
from sixjars.data.copying import Copying
from sixjars.data.cuts import Kept
from sixjars.data.points import Numbers
from sixjars.data.text import STOP, Tokens
from sixjars.errors import DataError
from sixjars.evaluation.metrics import Box
from sixjars.tasks.fields import SAID, Fields
from sixjars.tasks.seeing import Seeing, records_of
from sixjars.tasks.table import Task

KEY = "{} key"
"""The column with the keys of the content of a field's files."""


@final
@dataclass(frozen=True)
class Part:
    """One part of the data (train, valid or test), tokenised."""

    task: Task
    table: Table
    fields: Fields
    where: str
    """For messages."""
    skipped: int = 0
    """Bad rows that were left out."""
    seeing: Mapping[str, Seeing] = field(default_factory=dict)
    """How the files of a field become numbers."""

    def __len__(self) -> int:
        return len(self.table)

    @property
    def tokens(self) -> Mapping[str, Kept]:
        """The vocabularies, by field."""
        return self.fields.tokens

    def text(self, name: str) -> Tokens:
        """The vocabulary of a field of text."""
        kept = self.tokens[name]
        assert isinstance(kept, Tokens)
        return kept

    @cached_property
    def inputs(self) -> list[dict[str, str]]:
        """What the encoder reads of each row: texts made regular, names of files; nothing where it reads nothing."""
        columns = {
            name: [self.fields.normal(name, text) for text in self.table.texts(name)] for name in self.task.inputs
        }
        return [{name: texts[row] for name, texts in columns.items()} for row in range(len(self))]

    @cached_property
    def targets(self) -> list[str]:
        """What the decoder should say, made regular as its tokens are (Unicode form, spaces, case if asked for)."""
        kept = self.tokens[self.task.output]
        return [kept.normal(text) for text in self.table.texts(self.task.output)]

    @cached_property
    def alignments(self) -> list[frozenset[tuple[int, int]]] | None:
        """True links between words (or characters), where the data has them."""
        if not self.table.has("alignment"):
            return None
        return [self._links(row, text) for row, text in enumerate(self.table.texts("alignment"))]

    @cached_property
    def boxes(self) -> list[tuple[Box, ...]] | None:
        """True places of words of the output, where the data has them."""
        if not self.table.has("boxes"):
            return None
        return [self._boxes(row, text) for row, text in enumerate(self.table.texts("boxes"))]

    def _boxes(self, row: int, text: str) -> tuple[Box, ...]:
        try:
            pairs = [pair.split(":") for pair in text.split()]
            found = [(int(word), [float(share) for share in place.split(",")]) for word, place in pairs]
            boxes = tuple((word, left, top, right, bottom) for word, (left, top, right, bottom) in found)
            if not all(_covers(box) for box in boxes):
                raise ValueError("a box that covers nothing of the picture")
        except ValueError:
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: boxes {text!r} must be like `2:0.1,0.1,0.4,0.3`: "
                "word, left, top, right, bottom."
            ) from None
        output = self.task.output
        count = 1 if output == "label" else self.text(output).words_of(self.targets[row])[-1] + 1
        over = [word for word, *_ in boxes if not 0 <= word < count]
        if over:
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: a box belongs to word {over[0]}, but the {output} has "
                f"{count} (counted from 0)."
            )
        return boxes

    @cached_property
    def keys(self) -> list[tuple[int, int] | None] | None:
        """The sentence that decides each row and its word, both counted from 0, where the data has them."""
        if not self.table.has("keys"):
            return None
        return [self._key(row, text) for row, text in enumerate(self.table.texts("keys"))]

    def _key(self, row: int, text: str) -> tuple[int, int] | None:
        if not text.strip():
            return None
        try:
            sentence, word = (int(number) for number in text.split())
            if min(sentence, word) < 0:
                raise ValueError("counted from 0")
        except ValueError:
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: keys {text!r} must be like `2 5`: sentence, word."
            ) from None
        parts = self.fields.cuts["source"].parts_of(self.table.texts("source", [row])[0])
        if sentence >= len(parts):
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: keys name sentence {sentence}, but the source has "
                f"{len(parts)} (counted from 0)."
            )
        return sentence, word

    def _links(self, row: int, text: str) -> frozenset[tuple[int, int]]:
        try:
            pairs = [tuple(int(number) for number in pair.split("-")) for pair in text.split()]
            links = frozenset((source, target) for source, target in pairs)
        except ValueError:
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: alignment {text!r} must be pairs like `0-0 1-2`."
            ) from None
        sides = {"source": self.inputs[row]["source"], "target": self.targets[row]}
        for side, (name, words) in enumerate(sides.items()):
            count = self.text(name).words_of(words)[-1] + 1
            over = [link for link in links if not 0 <= link[side] < count]
            if over:
                raise DataError(
                    f"{self.where}, line {self.table.line(row)}: alignment {over[0][0]}-{over[0][1]} points outside "
                    f"the {name}, which has {count} words (counted from 0)."
                )
        return links

    def token_links(self, row: int) -> Links:
        """True links between token positions of a row."""
        assert self.alignments is not None
        source = self.text("source").words_of(self.inputs[row]["source"])[: self.length("source", row)]
        target = self.text("target").words_of(self.targets[row])[: self.length("target", row)]
        links = self.alignments[row]
        return tuple(
            (s, t) for s, word in enumerate(source) for t, written in enumerate(target) if (word, written) in links
        )

    def length(self, name: str, row: int) -> int:
        """How many tokens of a row were kept."""
        ids, offsets = self.table.ids(name)
        kept = ids[offsets[row] : offsets[row + 1]]
        return len(kept) - (int((kept == STOP).sum()) if self.fields.cuts[name].parts != "none" else 0)

    def batches(
        self,
        *,
        batch_tokens: int | None = None,
        batch_examples: int | None = None,
        seed: int = 0,
        guided: bool = False,
    ) -> Batches:
        """The same as padded batches; `guided` ones carry the true alignment."""
        alignments: Alignments | None = self.token_links if guided and self.alignments is not None else None
        inputs: dict[str, Column] = {name: self._column(name) for name in self.task.inputs}
        copying = Copying(self._column(SAID), self.text("target").size) if self.fields.copies else None
        return Batches(
            inputs or {"source": Nothing(len(self))},
            self._column(self.task.output),
            batch_tokens=batch_tokens,
            batch_examples=batch_examples,
            seed=seed,
            alignments=alignments,
            copying=copying,
        )

    def _column(self, name: str) -> Column:
        if name in self.seeing:
            return Frames(records_of(self.table.texts(KEY.format(name)), self.seeing[name]))
        if name == "points":
            return Numbers.parsed(self.table.texts(name))
        return self.fields.column(name, self.table.ids(name))


def _covers(box: Box) -> bool:
    """Whether some of the picture is in a box."""
    _, left, top, right, bottom = box
    return max(left, 0.0) < min(right, 1.0) and max(top, 0.0) < min(bottom, 1.0)
