"""Text fields: tokens and their ids, with or without segments."""

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

from sixjars.data.batches import FieldValues, IdColumn
from sixjars.data.copying import CopyLink
from sixjars.data.field import Equipment, Field, Positions, are_text_lists
from sixjars.data.flat import Flat
from sixjars.data.packing import SegmentColumn, packed
from sixjars.data.storage.cache import ExampleTable, IdEncoder
from sixjars.data.text.tokenizer import (
    AnyTokenizer,
    TextEncoding,
    TextTokenizer,
    TokenizerFile,
    Tokens,
    joined,
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
from sixjars_runtime.text.spelling import unknown_named
from sixjars_runtime.text.tokenizer_files import GivenTokenizer

SAME_WHEN_COPIED = ("tokens", "split", "lowercase")
"""Settings that source and target of a decoder that copies must share."""
SAME_VOCABULARY = (*SAME_WHEN_COPIED, "size", "min_count", "vectors", "extra_words", "segments")
"""Settings that texts with one vocabulary must share."""


class TextSettings(FieldSettings):
    """One column of text, and how it becomes tokens."""

    kind: str = "text"
    column: ColumnName = "text"
    tokens: Tokens = "words"
    """What a token is; or `{file: PATH}` for a tokenizer of yours (`tokenizer.json`, or a
    SentencePiece model), which needs no `size`, `split`, `min_count` or `lowercase`."""
    split: Literal["punctuation", "spaces"] = "punctuation"
    """Whether words end at punctuation too, or at spaces alone (text that is already tokenized)."""
    size: Annotated[int, Limit(ge=5, strict=True)] = 20_000
    """Vocabulary size: the most tokens, the four special ones included."""
    min_count: Positive = 1
    """A token seen fewer times in the training data is unknown."""
    word_dropout: Share = 0.0
    """Of an input: the probability with which a token is `<unk>` in training, so that `<unk>` is
    learned."""
    lowercase: StrictBool = False
    """Whether the text is lowercased first."""
    max_length: Positive = 200
    """Most tokens of a text; `on_long` says what a longer one does."""
    on_long: Literal["cut", "drop", "error"] | None = None
    """What a text of more than `max_length` tokens does: it is cut there; its row is left out of
    training, and of input refused; or it is an error. When absent, inputs are cut and targets are
    dropped."""
    segments: Literal["none", "sentences", "lines", "turns"] = "none"
    """What a text is made of: nothing between it and its tokens; sentences, found by a rule; lines
    (a list of texts in JSON lines is a line for each); or lines that are turns of a conversation,
    the last one by the other speaker."""
    vectors: FilePath | None = None
    """Pretrained word vectors: a file in the word2vec or GloVe text format, plain or gzipped;
    `wordllama` for those of the package of this name (English mostly), for which no file is needed;
    `sample` for synthetic ones."""
    project_vectors: StrictBool = False
    """Whether vectors of more numbers than the embedding's `size` are reduced to it, by principal
    components."""
    extra_words: Count = 0
    """How many words beside those of the training data the vocabulary has, `size` not counted: the
    first ones of `vectors`, so that words which only a later text has are known by their
    vectors."""


@final
class TextField(Field):
    r"""A field of text, split into tokens.

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
        self.has_vectors = settings.vectors is not None
        self.word_dropout = settings.word_dropout
        self.unusable = f"with more tokens than data.{name}.max_length ({settings.max_length})"
        self.lists = "value" if self.in_segments else "refused"
        self._tokenizer: AnyTokenizer | None = None
        self._assumed: int | None = None

    def equipped(self, equipment: Equipment) -> Self:
        """The field with its equipment; a list of output texts is a row for each."""
        field = super().equipped(equipment)
        field.lists = "rows" if field.is_output and not field.in_segments else field.lists
        return field

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer, which must have been learned."""
        assert self._tokenizer is not None, f"the vocabulary of {self.name} was not learned yet"
        return self._tokenizer

    @property
    def copies(self) -> bool:
        """Whether, as an output, it copies words of the source."""
        return bool((self.equipment.target_options or {}).get("copies"))

    @property
    def is_output(self) -> bool:
        """Whether the decoder outputs it."""
        return self.equipment.target_options is not None

    @property
    def on_long(self) -> str:
        """The treatment of texts of more than `max_length` tokens."""
        return self.settings.on_long or ("drop" if self.is_output else "cut")

    def misfits(self, *, is_output: bool, is_first: bool) -> list[str]:
        """Only the source has segments, and only inputs have word dropout."""
        faults = []
        if self.in_segments and (is_output or not is_first):
            faults.append(f"data.{self.name}.segments: only a source has segments; remove it.")
        faults += self._vector_misfits(is_output=is_output)
        if is_output and self.settings.word_dropout:
            where = f"data.{self.name}.word_dropout"
            faults.append(f"{where}: only an input has word dropout; remove it.")
        return faults

    def _vector_misfits(self, *, is_output: bool) -> Iterator[str]:
        """Settings about vectors where there are none, and extra words that are of no use."""
        settings = self.settings
        where = f"data.{self.name}"
        if settings.vectors is None and settings.project_vectors:
            why = f"is for pretrained vectors, but {where}.vectors names none; remove it."
            yield f"{where}.project_vectors: {why}"
        if not settings.extra_words:
            return
        if settings.vectors in (None, "sample"):
            yield (
                f"{where}.extra_words: takes words from {where}.vectors, which must be a file or "
                f"{WORDLLAMA}, but is {settings.vectors or 'not given'}; give it, or say "
                "extra_words: 0."
            )
        if settings.tokens != "words":
            yield (
                f"{where}.extra_words: is for tokens: words, but {where}.tokens is "
                f"{settings.tokens}; remove it, or say {where}.extra_words=0."
            )
        if is_output:
            why = "only an input has extra words, for an output learns none of them; remove it."
            yield f"{where}.extra_words: {why}"

    def copy_misfits(self, source: Any) -> list[str]:
        """Why words of a source cannot be copied into this text."""
        if not isinstance(source, TextField):
            return ["there is no source text to copy from."]
        faults = []
        tokens = self.settings.tokens
        if tokens not in ("words", "characters"):
            faults.append(f"copies words or characters, but data.{self.name}.tokens is {tokens}.")
        if differing := self._differing(source, SAME_WHEN_COPIED):
            fields = f"data.{source.name} and data.{self.name}"
            faults.append(f"{fields} must have the same {differing}.")
        return faults

    def vocabulary_misfits(self, other: Any) -> list[str]:
        """Why the words of another text cannot be numbered as those of this one."""
        if not isinstance(other, TextField):
            why = f"as data.{self.name} is; they have one vocabulary."
            return [f"data.{other.name}: must be a text, {why}"]
        if differing := self._differing(other, SAME_VOCABULARY):
            fields = f"data.{self.name} and data.{other.name}"
            return [f"{fields} have one vocabulary; give them the same {differing}."]
        return []

    def _differing(self, other: "TextField", keys: Sequence[str]) -> str:
        """The settings in which two texts differ, for a message."""
        first, second = self.settings, other.settings
        return " and ".join(key for key in keys if getattr(first, key) != getattr(second, key))

    def link(self, inputs: Mapping[str, Field]) -> CopyLink | None:
        """The link to the source, if words are copied."""
        source = next(iter(inputs.values()), None)
        return CopyLink(source, self) if self.copies and isinstance(source, TextField) else None

    def as_text(self, value: object) -> str:
        """A text as it is; a list of segments as lines."""
        if isinstance(value, list) and self.in_segments:
            return text_of_segments(value)
        return super().as_text(value)

    def normalize(self, text: str) -> str:
        """As the tokenizer normalizes it; segments stay on lines of their own."""
        if not self.in_segments:
            return self.tokenizer.normalize(text)
        return "\n".join(map(self.tokenizer.normalize, segments_of(text, self.settings.segments)))

    def learned(self, texts: Iterable[str]) -> Self:
        """The field with a vocabulary of texts or a file; a known one grows, but for subwords."""
        if self.settings.vectors == WORDLLAMA:
            package_folder()  # raises where it is not installed, before the texts are read
        if self._tokenizer is not None and not self._tokenizer.can_copy:
            return self
        if isinstance(self.settings.tokens, TokenizerFile):
            file = self._path(self.settings.tokens.file)
            return self._with(tokenizer_of_file(file, f"data.{self.name}.tokens"))
        if self.in_segments:
            texts = (part for text in texts for part in segments_of(text, self.settings.segments))
        before = self._tokenizer if isinstance(self._tokenizer, TextTokenizer) else None
        settings = before.like(self.settings) if before else self.settings
        extra = self.settings.extra_words
        tokenizer = TextTokenizer.trained(texts, settings, f"data.{self.name}")
        if extra:
            tokenizer = tokenizer.extended(self._words_of_vectors(), settings, extra=extra)
        return self._with(before.grown(tokenizer, settings, extra=extra) if before else tokenizer)

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
        """The field with a saved tokenizer."""
        from_file = isinstance(self.settings.tokens, TokenizerFile)
        return self._with((GivenTokenizer if from_file else TextTokenizer).from_json(text))

    def _with(self, tokenizer: AnyTokenizer) -> Self:
        field = copy(self)
        field._tokenizer = tokenizer
        return field

    def encoding(
        self, tokenizer: AnyTokenizer | None = None, *, copies: bool = False
    ) -> TextEncoding:
        """How its texts become ids; by another tokenizer where fields share a vocabulary."""
        limit = None if self.is_output or self.on_long != "cut" else self.settings.max_length
        tokenizer = tokenizer or self.tokenizer
        return TextEncoding(self.name, tokenizer, limit, self.settings.segments, copies)

    def encoders(self) -> dict[str, IdEncoder]:
        """Encodes texts as token ids."""
        return {self.name: self.encoding(copies=self.copies)}

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """Ids; a target ends in `<stop>`, and where it is cut for training it does not."""
        cut = training and self.is_output and self.on_long == "cut"
        return self.id_column(table.ids(self.name), self.settings.max_length if cut else None)

    def id_column(self, flat: Flat, limit: int | None = None) -> FieldValues:
        """A column of stored ids."""
        stop = STOP if self.is_output else None
        return SegmentColumn(flat) if self.in_segments else IdColumn(flat, stop=stop, limit=limit)

    def usable(self, table: ExampleTable) -> NDArray[np.bool_]:
        """The rows that `on_long` does not leave out."""
        lengths = np.diff(table.ids(self.name)[1])
        long = (lengths > self.settings.max_length) & (self.on_long != "cut")
        if long.any() and self.on_long == "error":
            row = int(np.flatnonzero(long)[0])
            raise DataError(
                f"the {self.name} of line {table.line(row)} has {lengths[row]} tokens, but "
                f"data.{self.name}.max_length is {self.settings.max_length}; raise it, or say "
                "on_long: cut or drop."
            )
        return np.asarray(~long)

    def truncated(self, table: ExampleTable, rows: Sequence[int]) -> NDArray[np.bool_]:
        """Which texts were cut: of those at the limit, and of turns, the whole is encoded again."""
        encoding = self.encoding()
        offsets = table.ids(self.name)[1]
        at = np.asarray(rows, dtype=np.int64)
        lengths = offsets[at + 1] - offsets[at]
        if encoding.limit is None:
            return np.asarray((lengths > self.settings.max_length) & (self.on_long == "cut"))
        cut = np.asarray((lengths >= encoding.limit) | (encoding.segments == "turns"))
        uncut = replace(encoding, limit=None).encode(table.texts(self.name, at[cut].tolist()))
        cut[cut] = [len(ids) > encoding.limit for ids in uncut]
        return cut

    def blank(self) -> Padded:
        """Two tokens, in one segment if there are some."""
        ids = torch.tensor([[len(SPECIAL), STOP]])
        segments = packed(np.array([2]), np.array([1])) if self.in_segments else None
        return Padded(ids, torch.ones_like(ids, dtype=torch.bool), segments)

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The text of ids; those from the vocabulary's size on are words of the source."""
        return self.tokenizer.decode(ids, source_words)

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """The tokens of ids."""
        return self.tokenizer.tokens(ids, source_words)

    def replacing_unknown(
        self, ids: Sequence[int], weights: Sequence[Sequence[float]], source: Field, text: str
    ) -> tuple[Sequence[int], list[str]]:
        """Copied words are numbered from the vocabulary's size on."""
        if not isinstance(source, TextField):
            return ids, []
        spelled = source.encoding().words(text)
        words = [self.tokenizer.adopted(word, source.tokenizer) for word in spelled]
        copied = list(ids)
        best = [max(range(len(words)), key=row.__getitem__) for row in weights]
        for step, number in enumerate(ids):
            if number == UNK:
                copied[step] = self.tokenizer.size + best[step]
        return copied, words

    def positions(self, table: ExampleTable, row: int, count: int) -> Positions:
        """The tokens, with their segments and words; an unknown word as `<unk:WORD>`."""
        ids, offsets = table.ids(self.name)
        words, segments = [], []
        segment = 0
        for number in ids[offsets[row] : offsets[row + 1]].tolist():
            if number == STOP:
                segment += 1
            else:
                words.append(number if number < self.tokenizer.size else UNK)
                segments.append(segment)
        spelled: list[str] = []
        if UNK in words:  # spelling the text again is slow
            spelled = self.encoding().words(table.texts(self.name, [row])[0])
        plain = list(map(self.tokenizer.plain, spelled))
        tokens = tuple(unknown_named(self.tokenizer.tokens(words), plain))
        in_words = tuple(joined(self.decode, words, ()))
        return Positions(tokens, tuple(segments) if self.in_segments else (), in_words)

    def words(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, the word between white space that it belongs to."""
        return self.tokenizer.word_index(texts)

    def facts(self) -> dict[str, Any]:
        """The size of the vocabulary; vectors are added where there are some."""
        return {"vocabulary": self._assumed or self.tokenizer.size, "vectors": None}

    def assumed(self) -> Self:
        """The field as if its vocabulary were full."""
        field = copy(self)
        field._assumed = self.settings.size + self.settings.extra_words
        return field

    def describe(self) -> str:
        """Tokens, segments and vocabulary."""
        segments = f" in {self.settings.segments}" if self.in_segments else ""
        vocabulary = self.facts()["vocabulary"]
        return f"{self.settings.tokens}{segments}, a vocabulary of {vocabulary:,}"

    @classmethod
    def suggest(cls, texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
        """Tokens, vocabulary size and longest text."""
        from sixjars.data.text.statistics import suggested_tokens

        return suggested_tokens(texts, tokens=tokens, long=long)

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """No settings for texts; lists of texts are lines."""
        return {"segments": "lines"} if are_text_lists(values) else super().guess(values)
