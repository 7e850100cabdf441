"""Text becomes token ids and comes back: words, characters, or subwords.

A text is first normalized: lowercased if asked for, Unicode NFC, every run of white space one space, none at the ends.
Then it is split. Words, BPE and unigram subwords carry the mark `▁` where a space (or the start) came before them, so
that joining them gives the text back; a `▁` of the text itself becomes `_`.

A word outside the vocabulary is `<unk>`; or, where words can be copied, a number from the vocabulary's size on. In
stored data that number is a hash of the word, so that no list of such words is needed; in the output of a decoder it is
a position of the source that is copied from.
"""

import json
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

import numpy as np

from sixjars.data.flat import Flat, as_array, begins_of, cut, flattened, ranges, rows_of, segment_ids, words_of
from sixjars.data.text.given import GivenTokenizer
from sixjars.data.text.segments import latest, segments_of
from sixjars.data.text.sentences import RULE
from sixjars.data.text.vocabulary import (
    KINDS,
    MARK,
    BaseTokenizer,
    TokenSettings,
    Vocabulary,
    is_marked,
    learned,
    tokenizer_of,
)
from sixjars.errors import RunError, shown
from sixjars.flow.special import GO, PAD, SPECIAL, STOP, UNK

T = TypeVar("T")
_FORMAT: Final = 2
_HASHES: Final = 2**30  # a size and a hash together still fit 32 bits
_KEPT: Final = 2**17  # words whose ids are kept


@final
@dataclass
class TokenizerSettings:
    """What a tokenizer depends on, where no field's settings are at hand."""

    tokens: str = "words"
    split: str = "punctuation"
    lowercase: bool = False
    size: int = 20_000
    min_count: int = 1


@final
class TextTokenizer(BaseTokenizer):
    """Splits a text into token ids and joins ids to a text.

    >>> tokenizer = TextTokenizer.trained(["Hello, how are you?"], TokenizerSettings(), "source")
    >>> tokenizer.encode("Hello, you?")
    [6, 4, 9, 5]
    >>> tokenizer.decode([6, 4, 9, 5, STOP]), tokenizer.tokens([6, 4, 9, 5, STOP])
    ('Hello, you?', ['Hello', ',', 'you', '?', '<stop>'])
    """

    def __init__(self, vocabulary: Vocabulary, settings: TokenSettings) -> None:
        self._vocabulary = vocabulary
        self._kind: str = settings.tokens
        self._split: str = settings.split
        self._lowercase = settings.lowercase
        self._marked = is_marked(settings)
        self._names = [*SPECIAL, *vocabulary.tokens]
        self._tokenizer = tokenizer_of(vocabulary, settings)
        self._words: dict[str, list[int]] = {}
        self._open_words: dict[str, list[int]] = {}
        # Leaves out the offsets, where this version of the library can.
        self._batch = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)

    @classmethod
    def trained(cls, texts: Iterable[str], settings: TokenSettings, what: str) -> "TextTokenizer":
        """Learns a vocabulary from training texts; `what` names the field in messages."""
        return cls(learned(texts, settings, what), settings)

    def grown(self, other: "TextTokenizer", settings: TokenSettings) -> "TextTokenizer":
        """The same with tokens of another after its own, as many as `size` allows."""
        own = self._vocabulary.tokens
        more = [token for token in other._vocabulary.tokens if token not in set(own)]
        room = max(0, settings.size - self.size)
        return TextTokenizer(Vocabulary([*own, *more[:room]]), settings)

    @property
    def can_copy(self) -> bool:
        """Whether a word outside the vocabulary is one position, so that it can be copied."""
        return self._kind in ("words", "characters")

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """The ids of many texts, faster than one by one; `open` as for `encode_flat`."""
        return rows_of(self.encode_flat(as_array(texts), open=open))

    def encode_flat(self, texts: Any, *, open: bool = False) -> Flat:
        """The ids of a `pyarrow` array of texts.

        With `open`, each word outside the vocabulary has a number of its own, from `size` on, in place of `<unk>`.
        """
        words, places, begins = words_of(texts)
        ids, starts = flattened(self._ids_of_words(words, open=open))
        first, count = starts[places], np.diff(starts)[places]
        if self._kind == "characters":  # the first word of a text follows no space
            first[begins[:-1]] += 1
            count[begins[:-1]] -= 1
        return ids[ranges(first, count)], begins_of(count)[begins]

    def _ids_of_words(self, words: Sequence[str], *, open: bool) -> list[list[int]]:
        """The ids of words, of characters with the space before them; those of the first words are kept."""
        kept = self._open_words if open else self._words
        new = [word for word in words if word not in kept]
        rows: list[list[int]] = [encoding.ids for encoding in self._batch(new)] if new else []
        if open:
            assert self.can_copy
            rows = [self._with_hashes(word, ids) if UNK in ids else ids for word, ids in zip(new, rows, strict=True)]
        if self._kind == "characters":
            space = self._tokenizer.token_to_id(" ")
            before = space if space is not None else self._hash(" ") if open else UNK
            rows = [[before, *ids] for ids in rows]
        same: dict[tuple[int, ...], list[int]] = {}  # most words outside the vocabulary have the same ids
        found = {word: same.setdefault(tuple(ids), ids) for word, ids in zip(new, rows, strict=True)}
        if len(kept) < _KEPT:
            kept.update(found)
        return [found[word] if word in found else kept[word] for word in words]

    def _with_hashes(self, text: str, ids: Sequence[int]) -> list[int]:
        """Ids with the hash of its word in place of each `<unk>`; a word is the same with the mark and without."""
        tokens = zip(self.split(text), ids, strict=True)
        return [self._hash(token) if number == UNK else number for token, number in tokens]

    def _hash(self, token: str) -> int:
        return self.size + zlib.crc32(self.plain(token).encode()) % _HASHES

    def normalize(self, text: str) -> str:
        """A text as it is before it is split: what an output can be compared with."""
        normalizer = self._tokenizer.normalizer
        assert normalizer is not None
        made: str = normalizer.normalize_str(text)
        return made

    def split(self, text: str) -> list[str]:
        """What stands at each position of `encode(text)`, spelled with its mark; unknown words are spelled too.

        Subwords are found by looking them up, so a letter that is not known is `<unk>` among them.
        """
        if not self.can_copy:
            return [self._names[number] for number in self.encode(text)]
        if self._kind == "characters":
            return list(self.normalize(text))
        splitter = self._tokenizer.pre_tokenizer
        assert splitter is not None
        return [token for token, _ in splitter.pre_tokenize_str(self.normalize(text))]

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The text of ids; `<pad>`, `<go>` and `<stop>` are left out.

        An id from `size` on is copied: `source_words` holds the tokens of the source, as `split` gives them.
        """
        kept = [number for number in ids if number not in (PAD, GO, STOP)]
        tokens = [self._name(number, source_words) for number in kept]
        if self._kind == "words" and self._split == "spaces":
            return " ".join(tokens)
        if self._kind == "words":
            tokens = [
                self._spaced(number, before, source_words) for number, before in zip(kept, ["", *tokens], strict=False)
            ]
        text = "".join(tokens)
        return text.replace(MARK, " ").removeprefix(" ") if self._marked else text

    def _spaced(self, number: int, before: str, source_words: Sequence[str]) -> str:
        """A token as it is joined to the one before it; a copied word goes by what it now follows."""
        token = self._name(number, source_words)
        if number == UNK:  # most often a word after a space
            return f" {token}"
        word = self.plain(token)
        if number < self.size or not any(letter.isalnum() for letter in word):
            return token
        place = number - self.size
        as_read = token == word and place > 0 and before == source_words[place - 1]
        return word if as_read or _leads(before) else f" {word}"

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """One readable string for each id, to write beside a heat map; `source_words` as for `decode`."""
        tokens = [self._name(number, source_words) for number in ids]
        if self._kind == "characters":
            return ["␣" if token == " " else token for token in tokens]
        return [self.plain(token) for token in tokens] if self._kind == "words" else tokens

    def word_index(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, which word between white space it belongs to, counted from 0.

        For characters, each is its own word: its position.
        """
        if self._kind == "characters":
            return [list(range(len(ids))) for ids in self.encode_many(texts)]
        return super().word_index(texts)

    def vocabulary(self) -> dict[str, int]:
        """Every token and its id; a special name wins over a word of the text that is spelled the same."""
        ordinary = {token: number for number, token in enumerate(self._names) if number >= len(SPECIAL)}
        return ordinary | {name: number for number, name in enumerate(SPECIAL)}

    def plain(self, token: str) -> str:
        """A token as a file of word vectors would spell it: without the mark."""
        return token.removeprefix(MARK) if self._marked and token != MARK else token

    def adopted(self, token: str, other: "AnyTokenizer") -> str:
        """A token of another tokenizer as this one spells it: marked where a space came before it, or plain."""
        spaced = token.startswith(MARK) if other._marked else other._kind == "words"
        return f"{MARK}{other.plain(token)}" if spaced and self._marked else other.plain(token)

    def to_json(self) -> str:
        """All of it as text, to be kept in a run."""
        how = {"format": _FORMAT, "kind": self._kind, "split": self._split, "lowercase": self._lowercase}
        return json.dumps(how | vars(self._vocabulary), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "TextTokenizer":
        """The opposite of `to_json`; whatever else a stranger put into it is not used."""
        try:
            whole = json.loads(text)
            kind, split, lowercase = whole["kind"], whole["split"], whole["lowercase"]
            if whole["format"] != _FORMAT or kind not in KINDS or not isinstance(lowercase, bool):
                raise ValueError(f"format {shown(whole['format'])}, kind {shown(kind)}, lowercase {shown(lowercase)}")
            if split not in ("punctuation", "spaces"):
                raise ValueError(f"split {shown(split)}")
            vocabulary = Vocabulary(whole["tokens"], whole["merges"], whole["scores"])
            return cls(vocabulary, TokenizerSettings(kind, split, lowercase))
        except RecursionError:
            raise RunError("The saved tokenizer is damaged: it is nested too deep.") from None
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")[:200]
            raise RunError(f"The saved tokenizer is damaged or of another version: {reason}.") from error


AnyTokenizer = TextTokenizer | GivenTokenizer
"""Learned from the training texts, or from a file."""


def _leads(token: str) -> bool:
    """Whether a word follows this without a space: an opening bracket or quote, or a dash or slash inside a word."""
    if token.startswith(MARK):
        sign = token.removeprefix(MARK)
        return sign in ('"', "'") or (len(sign) == 1 and unicodedata.category(sign) in ("Ps", "Pi"))
    return token == "/" or (len(token) == 1 and unicodedata.category(token) in ("Ps", "Pi", "Pd"))


@final
@dataclass(frozen=True)
class TextEncoding:
    """From the texts of a column to ids: a tokenizer, what it is limited to, and the segments of a text."""

    column: str
    tokenizer: AnyTokenizer
    limit: int | None
    """Most ids of a text, the ends of its segments counted."""
    segments: str
    copies: bool
    """Whether words outside the vocabulary have numbers of their own."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; each segment of a text in segments ends in `<stop>`."""
        return rows_of(self.flat(as_array(texts)))

    def flat(self, texts: Any) -> Flat:
        """The same for a `pyarrow` array of texts."""
        if self.segments == "none":
            found = self.tokenizer.encode_flat(texts, open=self.copies)
        else:
            split = [segments_of(text, self.segments) for text in texts.to_pylist()]
            found = segment_ids(self.tokenizer.encode_flat, split, open=self.copies)
        if self.segments == "turns":
            return flattened([self.short(ids, end=STOP) for ids in rows_of(found)])
        return found if self.limit is None else cut(found, self.limit)

    def short(self, row: list[T], *, end: T) -> list[T]:
        """As much of a row as the limit allows."""
        if self.limit is None:
            return row
        return latest(row, self.limit, end=end) if self.segments == "turns" else row[: self.limit]

    def words(self, text: str) -> list[str]:
        """What stands at each position of a text, spelled as the tokenizer does."""
        segments = segments_of(text, self.segments)
        row: list[str | None] = [word for segment in segments for word in (*self.tokenizer.split(segment), None)]
        return [word for word in self.short(row, end=None) if word is not None]

    def key(self) -> str:
        """All that the ids depend on, besides the texts."""
        rule = {"rule": RULE} if self.segments == "sentences" else {}
        how = {"limit": self.limit, "segments": self.segments, "copies": self.copies}
        return json.dumps(how | rule) + self.tokenizer.to_json()
