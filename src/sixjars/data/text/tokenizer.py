"""Text becomes token ids and comes back: words, characters, or subwords.

A text is first normalized: lowercased if asked for, Unicode NFC, every run of white space one space, none at the ends.
Then it is split. Words, BPE and unigram subwords carry the mark `▁` where a space (or the start) came before them, so
that joining them gives the text back; a `▁` of the text itself becomes `_`.

A word outside the vocabulary is `<unk>`; or, where words can be copied, a number from the vocabulary's size on. In
stored data that number is a hash of the word, so that no list of such words is needed; in the output of a decoder it is
a position of the source that is copied from.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from sixjars.data.flat import Flat, as_array, begins_of, cut, flattened, ranges, rows_of, segment_ids, words_of
from sixjars.data.text.given import GivenTokenizer
from sixjars.data.text.segments import latest, segments_of
from sixjars.data.text.sentences import RULE
from sixjars.data.text.spelling import Spelling
from sixjars.data.text.splitting import TokenSettings, Vocabulary
from sixjars.data.text.vocabulary import learned
from sixjars.flow.special import SPECIAL, STOP

T = TypeVar("T")


@final
class TextTokenizer(Spelling):
    """Splits a text into token ids and joins ids to a text.

    >>> from sixjars.data.text.splitting import TokenizerSettings
    >>> tokenizer = TextTokenizer.trained(["Hello, how are you?"], TokenizerSettings(), "source")
    >>> tokenizer.encode("Hello, you?")
    [6, 4, 9, 5]
    >>> tokenizer.decode([6, 4, 9, 5, STOP]), tokenizer.tokens([6, 4, 9, 5, STOP])
    ('Hello, you?', ['Hello', ',', 'you', '?', '<stop>'])
    """

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


AnyTokenizer = TextTokenizer | GivenTokenizer
"""Learned from the training texts, or from a file."""


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
