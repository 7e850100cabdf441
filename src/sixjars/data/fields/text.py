"""Texts: how one becomes token ids, in segments or not, and comes back.

Dims: B rows, S positions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field as Limit
from pydantic import StrictBool

from sixjars.data.batches import Column, IdColumn
from sixjars.data.copying import CopyLink
from sixjars.data.field import Equipment, Field, Positions
from sixjars.data.flat import Flat
from sixjars.data.packing import SegmentColumn, packed
from sixjars.data.storage.cache import IdEncoder, Table
from sixjars.data.text.statistics import suggested_tokens
from sixjars.data.text.tokenizer import (
    AnyTokenizer,
    TextEncoding,
    TextTokenizer,
    TokenFile,
    Tokens,
    tokenizer_of_file,
)
from sixjars.data.text.vectors import words_in
from sixjars.data.text.wordllama import NAME as WORDLLAMA
from sixjars.data.text.wordllama import package_folder, piece_vectors
from sixjars.flow.limits import Count, Positive, Share
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings, FilePath
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import SPECIAL, STOP, UNK
from sixjars_runtime.text.segments import segments_of, text_of_segments
from sixjars_runtime.text.tokenizer_files import GivenTokenizer
from sixjars_runtime.text.word_pieces import joined, unknown_named

SAME_WHEN_COPIED = ("tokens", "split", "lowercase")
"""What both sides of a decoder that copies must have in common, so that their words are the same."""
SAME_VOCABULARY = (*SAME_WHEN_COPIED, "size", "min_count", "vectors", "extra_words", "segments")
"""What texts with one vocabulary must have in common."""


class TextSettings(FieldSettings):
    """One column of text, and how it becomes tokens."""

    kind: str = "text"
    column: ColumnName = "text"
    tokens: Tokens = "words"
    """What a token is; or `{file: PATH}` for a tokenizer of yours (`tokenizer.json`, or a SentencePiece model), which
    needs no `size`, `split`, `min_count` or `lowercase`."""
    split: Literal["punctuation", "spaces"] = "punctuation"
    """Whether words end at punctuation too, or at spaces alone (text that is already tokenized)."""
    size: Annotated[int, Limit(ge=5, strict=True)] = 20_000
    """Vocabulary size: the most tokens, the four special ones included."""
    min_count: Positive = 1
    """A token seen fewer times in the training data is unknown."""
    word_dropout: Share = 0.0
    """Of an input: the probability with which a token is `<unk>` in training, so that `<unk>` is learned."""
    lowercase: StrictBool = False
    """Whether the text is lowercased first."""
    max_length: Positive = 200
    """Most tokens of a text; `on_long` says what a longer one does."""
    on_long: Literal["cut", "drop", "error"] | None = None
    """What a text of more than `max_length` tokens does: it is cut there; its row is left out of training, and of
    input refused; or it is an error. When absent, inputs are cut and targets are dropped."""
    segments: Literal["none", "sentences", "lines", "turns"] = "none"
    """What a text is made of: nothing between it and its tokens; sentences, found by a rule; lines (a list of texts in
    JSON lines is a line for each); or lines that are turns of a conversation, the last one by the other speaker."""
    vectors: FilePath | None = None
    """Pretrained word vectors: a file in the word2vec or GloVe text format, plain or gzipped; `wordllama` for those of
    the package of this name (English mostly), for which no file is needed; `sample` for synthetic ones."""
    project_vectors: StrictBool = False
    """Whether vectors of more numbers than the embedding's `size` are reduced to it, by principal components."""
    extra_words: Count = 0
    """How many words beside those of the training data the vocabulary has, `size` not counted: the first ones of
    `vectors`, so that words which only a later text has are known by their vectors."""


@final
class TextField(Field):
    r"""A text, tokenized.

    >>> field = TextField("source", TextSettings(segments="lines")).learned(["one two", "two"])
    >>> field.encoders()["source"].encode(["two one", "two\none"])
    [[4, 5, 2], [4, 2, 5, 2]]
    """

    kind = "text"
    settings_class = TextSettings
    holds = "tokens"
    fact_names = ("vocabulary", "vectors")
    learns = True

    def __init__(self, name: str, settings: TextSettings) -> None:
        super().__init__(name, settings)
        self.settings: TextSettings = settings
        self.in_segments = settings.segments != "none"
        self.word_dropout = settings.word_dropout
        self.unusable = f"with more tokens than data.{name}.max_length ({settings.max_length})"
        self.lists = "value" if self.in_segments else "refused"
        self._tokenizer: AnyTokenizer | None = None
        self._assumed: int | None = None

    def equipped(self, equipment: Equipment) -> Self:
        """A list of texts to output is several right answers, a row each."""
        made = super().equipped(equipment)
        made.lists = "rows" if made.is_output and not made.in_segments else made.lists
        return made

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Learned before it is used."""
        assert self._tokenizer is not None, f"the vocabulary of {self.name} was not learned yet"
        return self._tokenizer

    @property
    def copies(self) -> bool:
        """Of an output: whether words of the source are copied into it."""
        return bool((self.equipment.target_options or {}).get("copies"))

    @property
    def is_output(self) -> bool:
        """Whether it is what the decoder outputs."""
        return self.equipment.target_options is not None

    @property
    def on_long(self) -> str:
        """What a text of too many tokens does."""
        return self.settings.on_long or ("drop" if self.is_output else "cut")

    def misfits(self, *, is_output: bool, is_first: bool) -> list[str]:
        """Only the text that is attended to has segments."""
        faults = []
        if self.in_segments and (is_output or not is_first):
            faults.append(f"data.{self.name}.segments: only a source has segments; remove it.")
        faults += self._vector_misfits(is_output=is_output)
        if is_output and self.settings.word_dropout:
            faults.append(
                f"data.{self.name}.word_dropout: only an input has word dropout; remove it."
            )
        return faults

    def _vector_misfits(self, *, is_output: bool) -> Iterator[str]:
        """Settings about vectors where there are none, and extra words that nothing can be done with."""
        settings, where = self.settings, f"data.{self.name}"
        if settings.vectors is None and settings.project_vectors:
            yield f"{where}.project_vectors: is for pretrained vectors, but {where}.vectors names none; remove it."
        if not settings.extra_words:
            return
        if settings.vectors in (None, "sample"):
            yield (
                f"{where}.extra_words: takes words from {where}.vectors, which must be a file or {WORDLLAMA}, but is "
                f"{settings.vectors or 'not given'}; give it, or remove extra_words."
            )
        if settings.tokens != "words":
            yield (
                f"{where}.extra_words: is for tokens: words, but {where}.tokens is {settings.tokens}; remove it, or "
                f"say {where}.extra_words=0."
            )
        if is_output:
            yield f"{where}.extra_words: only an input has extra words, for an output learns none of them; remove it."

    def copy_misfits(self, source: Any) -> list[str]:
        """Why words of a source cannot be copied into this text."""
        if not isinstance(source, TextField):
            return ["there is no source text to copy from."]
        faults = []
        if self.settings.tokens not in ("words", "characters"):
            faults.append(
                f"copies words or characters, but data.{self.name}.tokens is {self.settings.tokens}."
            )
        differ = [
            key
            for key in SAME_WHEN_COPIED
            if getattr(source.settings, key) != getattr(self.settings, key)
        ]
        if differ:
            faults.append(
                f"data.{source.name} and data.{self.name} must have the same {' and '.join(differ)}."
            )
        return faults

    def vocabulary_misfits(self, other: Any) -> list[str]:
        """Why the words of another text cannot be numbered as those of this one."""
        if not isinstance(other, TextField):
            return [
                f"data.{other.name}: must be a text, as data.{self.name} is; they have one vocabulary."
            ]
        differ = [
            key
            for key in SAME_VOCABULARY
            if getattr(other.settings, key) != getattr(self.settings, key)
        ]
        both = f"data.{self.name} and data.{other.name} have one vocabulary"
        return [f"{both}; give them the same {' and '.join(differ)}."] if differ else []

    def link(self, inputs: Mapping[str, Field]) -> CopyLink | None:
        """Words of the source, where they are copied."""
        source = next(iter(inputs.values()), None)
        return CopyLink(source, self) if self.copies and isinstance(source, TextField) else None

    def as_text(self, value: object) -> str:
        """A text; a list of segments is a line for each."""
        return (
            text_of_segments(value)
            if isinstance(value, list) and self.in_segments
            else super().as_text(value)
        )

    def normalize(self, text: str) -> str:
        """As the tokenizer normalizes it; segments stay on lines of their own."""
        if not self.in_segments:
            return self.tokenizer.normalize(text)
        return "\n".join(
            self.tokenizer.normalize(part) for part in segments_of(text, self.settings.segments)
        )

    def learned(self, texts: Iterable[str]) -> Self:
        """With the vocabulary of the texts, or that of a file; one that it has already grows, unless of subwords."""
        if self.settings.vectors == WORDLLAMA:
            package_folder()  # where it is not installed, that is told before the texts are gone through
        if self._tokenizer is not None and not self._tokenizer.can_copy:
            return self
        if isinstance(self.settings.tokens, TokenFile):
            file = self._path(self.settings.tokens.file)
            return self._with(tokenizer_of_file(file, f"data.{self.name}.tokens"))
        if self.in_segments:
            texts = (part for text in texts for part in segments_of(text, self.settings.segments))
        before, extra = self._tokenizer, self.settings.extra_words
        settings = (
            before.like(self.settings) if isinstance(before, TextTokenizer) else self.settings
        )
        made = TextTokenizer.trained(texts, settings, f"data.{self.name}")
        if extra:
            made = made.extended(self._words_of_vectors(), settings, extra=extra)
        if isinstance(before, TextTokenizer):
            made = before.grown(made, settings, extra=extra)
        return self._with(made)

    def _words_of_vectors(self) -> Iterable[str]:
        """The words that have pretrained vectors, in the order of their file or package."""
        source = self.settings.vectors
        if source == WORDLLAMA:
            return piece_vectors().whole_words
        assert source is not None
        return words_in(self._path(source))

    def _path(self, file: str) -> Path:
        """A file of this field, beside the data."""
        return next(iter(self.equipment.places), Path()) / file

    def to_json(self) -> str:
        """The tokenizer."""
        return self.tokenizer.to_json()

    def restored(self, text: str) -> Self:
        """With a tokenizer that was kept."""
        given = isinstance(self.settings.tokens, TokenFile)
        return self._with(
            GivenTokenizer.from_json(text) if given else TextTokenizer.from_json(text)
        )

    def _with(self, tokenizer: AnyTokenizer) -> Self:
        made = copy(self)
        made._tokenizer = tokenizer
        return made

    def encoding(
        self, tokenizer: AnyTokenizer | None = None, *, copies: bool = False
    ) -> TextEncoding:
        """How its texts become ids; by another tokenizer where another field's vocabulary numbers its words."""
        limit = None if self.is_output or self.on_long != "cut" else self.settings.max_length
        return TextEncoding(
            self.name, tokenizer or self.tokenizer, limit, self.settings.segments, copies
        )

    def encoders(self) -> dict[str, IdEncoder]:
        """Its own ids."""
        return {self.name: self.encoding(copies=self.copies)}

    def column(self, table: Table, *, training: bool = False) -> Column:
        """Ids; a target ends in `<stop>`, and where it is cut for training it does not."""
        limit = (
            self.settings.max_length
            if training and self.is_output and self.on_long == "cut"
            else None
        )
        return self.id_column(table.ids(self.name), limit)

    def id_column(self, flat: Flat, limit: int | None = None) -> Column:
        """Ids as a column of such texts."""
        stop = STOP if self.is_output else None
        return SegmentColumn(flat) if self.in_segments else IdColumn(flat, stop=stop, limit=limit)

    def usable(self, table: Table) -> NDArray[np.bool_]:
        """Rows that are not too long, where those are left out."""
        lengths = np.diff(table.ids(self.name)[1])
        long = (lengths > self.settings.max_length) & (self.on_long != "cut")
        if long.any() and self.on_long == "error":
            row = int(np.flatnonzero(long)[0])
            raise DataError(
                f"the {self.name} of line {table.line(row)} has {lengths[row]} tokens, but data.{self.name}.max_length "
                f"is {self.settings.max_length}; raise it, or say on_long: cut or drop."
            )
        return np.asarray(~long)

    def truncated(self, table: Table, rows: Sequence[int]) -> NDArray[np.bool_]:
        """Which texts were cut; one shorter than the limit was not, unless whole turns of it are left out."""
        encoding, offsets, at = (
            self.encoding(),
            table.ids(self.name)[1],
            np.asarray(rows, dtype=np.int64),
        )
        lengths = offsets[at + 1] - offsets[at]
        if encoding.limit is None:
            return np.asarray((lengths > self.settings.max_length) & (self.on_long == "cut"))
        found = np.asarray((lengths >= encoding.limit) | (encoding.segments == "turns"))
        whole = replace(encoding, limit=None).encode(table.texts(self.name, at[found].tolist()))
        found[found] = [len(ids) > encoding.limit for ids in whole]
        return found

    def blank(self) -> Padded:
        """Two tokens, in one segment if there are some."""
        ids = torch.tensor([[len(SPECIAL), STOP]])
        segments = packed(np.array([2]), np.array([1])) if self.in_segments else None
        return Padded(ids, torch.ones_like(ids, dtype=torch.bool), segments)

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The text of ids; those from the vocabulary's size on are words of the source."""
        return self.tokenizer.decode(ids, source_words)

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """The same token by token."""
        return self.tokenizer.tokens(ids, source_words)

    def replacing_unknown(
        self, ids: Sequence[int], weights: Sequence[Sequence[float]], source: Field, text: str
    ) -> tuple[Sequence[int], list[str]]:
        """Copies are numbered from the vocabulary's size on; a source that is no text has no words to copy."""
        if not isinstance(source, TextField):
            return ids, []
        words = [
            self.tokenizer.adopted(word, source.tokenizer) for word in source.encoding().words(text)
        ]
        best = [max(range(len(words)), key=row.__getitem__) for row in weights]
        return [
            self.tokenizer.size + best[at] if number == UNK else number
            for at, number in enumerate(ids)
        ], words

    def positions(self, table: Table, row: int, count: int) -> Positions:
        """The tokens, with their segments and words; one that is not known as `<unk:WORD>`, where its word is."""
        (ids, offsets), size = table.ids(self.name), self.tokenizer.size
        own = [
            number if number < size else UNK
            for number in ids[offsets[row] : offsets[row + 1]].tolist()
        ]
        words = [number for number in own if number != STOP]
        ends = np.cumsum([number == STOP for number in own]).tolist() if self.in_segments else []
        segments = [part for number, part in zip(own, ends, strict=False) if number != STOP]
        spelled = (
            self.encoding().words(table.texts(self.name, [row])[0]) if UNK in words else []
        )  # it takes a while
        tokens = unknown_named(
            self.tokenizer.tokens(words), list(map(self.tokenizer.plain, spelled))
        )
        return Positions(tuple(tokens), tuple(segments), tuple(joined(self.decode, words, ())))

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, the word between white space that it belongs to."""
        return self.tokenizer.word_index(texts)

    def facts(self) -> dict[str, Any]:
        """The size of the vocabulary; vectors are added where there are some."""
        return {"vocabulary": self._assumed or self.tokenizer.size, "vectors": None}

    def assumed(self) -> Self:
        """As if the vocabulary were full."""
        made = copy(self)
        made._assumed = self.settings.size + self.settings.extra_words
        return made

    def describe(self) -> str:
        """Tokens, segments and vocabulary."""
        made = str(self.settings.tokens) + (
            f" in {self.settings.segments}" if self.in_segments else ""
        )
        return f"{made}, a vocabulary of {self.facts()['vocabulary']:,}"

    @classmethod
    def suggest(cls, texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
        """Tokens, vocabulary size and longest text."""
        return suggested_tokens(texts, tokens=tokens, long=long)

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Texts, or lists of texts."""
        if all(
            isinstance(value, list) and value and all(isinstance(one, str) for one in value)
            for value in values
        ):
            return {"segments": "lines"}
        return super().guess(values)
