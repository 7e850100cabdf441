"""Text becomes numbers and comes back: words, characters, or pieces of words.

A text is first made regular: small letters if asked for, Unicode NFC, every run of white space one space,
none at the ends. Then it is cut. Words, BPE and unigram pieces carry the mark `▁` where a space (or the
start) came before them, so that joining them gives the text back; a `▁` of the text itself becomes `_`.

What the vocabulary holds is learned in `vocabularies.py`.

A word that it does not hold is `<unk>`; or, where words can be copied, a number from the vocabulary's size on. In kept
data that number is a hash of the word, so that no list of such words is needed; in what a decoder writes it is a
position of the text that is copied from.
"""

import json
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, final

from tokenizers import Tokenizer

from sixjars.data.vocabularies import GO, INSIDE, KINDS, MARK, PAD, SPECIAL, STOP, UNK, learned
from sixjars.errors import DataError, RunError

if TYPE_CHECKING:
    from sixjars.recipe.fields import TextSettings

__all__ = ["GO", "MARK", "PAD", "SPECIAL", "STOP", "UNK", "Tokens"]

_FORMAT = 1
_HASHES = 2**30  # a size and a hash together still fit 32 bits


@final
class Tokens:
    """Cuts a text into token ids and joins ids to a text.

    >>> from sixjars.recipe.jars import TextSettings
    >>> tokens = Tokens.trained(["Hello, how are you?"], TextSettings(), "source")
    >>> tokens.encode("Hello, you?")
    [6, 4, 9, 5]
    >>> tokens.decode([6, 4, 9, 5, STOP]), tokens.pieces([6, 4, 9, 5, STOP])
    ('Hello, you?', ['Hello', ',', 'you', '?', '<stop>'])
    """

    def __init__(self, tokenizer: Tokenizer, *, kind: str, split: str) -> None:
        self._tokenizer = tokenizer
        self._kind = kind
        self._split = split
        self._marked = kind in ("bpe", "unigram") or (kind == "words" and split == "punctuation")
        by_id = sorted((number, token) for token, number in tokenizer.get_vocab(with_added_tokens=False).items())
        self._spelled = [*SPECIAL, *(token for _, token in by_id[len(SPECIAL) :])]
        self._batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # leaves out the offsets

    @classmethod
    def trained(cls, texts: Iterable[str], settings: "TextSettings", what: str) -> "Tokens":
        """Learns a vocabulary from training texts; `what` names the field in messages."""
        return cls(learned(texts, settings, what), kind=settings.tokens, split=settings.split)

    @property
    def size(self) -> int:
        """How many tokens there are, the special ones included."""
        return len(self._spelled)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `<go>` and `<stop>`."""
        return self.encode_many([text])[0]

    @property
    def can_copy(self) -> bool:
        """Whether a word outside the vocabulary is one position, so that it can be told from others and copied."""
        return self._kind in ("words", "characters")

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """The ids of many texts, faster than one by one.

        With `open`, each word outside the vocabulary has a number of its own, from `size` on, in place of `<unk>`.
        """
        rows = self._looked_up(texts)
        if not open:
            return rows
        assert self.can_copy
        return [self._told_apart(text, ids) if UNK in ids else ids for text, ids in zip(texts, rows, strict=True)]

    def encode_parted(self, texts: Sequence[Sequence[str]], *, open: bool = False) -> list[list[int]]:
        """The ids of texts in parts: each part is encoded by itself and ends in `<stop>`, also one without a word."""
        encoded = iter(self.encode_many([part for parts in texts for part in parts], open=open))
        return [[number for ids in islice(encoded, len(parts)) for number in (*ids, STOP)] for parts in texts]

    def _told_apart(self, text: str, ids: Sequence[int]) -> list[int]:
        """Ids with the hash of its word in place of each `<unk>`; a word is the same with the mark and without."""
        return [
            self.size + zlib.crc32(self.plain(piece).encode()) % _HASHES if number == UNK else number
            for piece, number in zip(self.cut(text), ids, strict=True)
        ]

    def _looked_up(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            return [encoding.ids for encoding in self._batch(texts)]
        except TypeError:
            row = next((row for row, text in enumerate(texts) if not _is_unicode(text)), None)
            if row is None:
                raise
            raise DataError(f"Text {texts[row]!r} holds half a character (a lone surrogate); remove it.") from None

    def normal(self, text: str) -> str:
        """A text made regular, as it is before it is cut: what an output can be compared with."""
        normalizer = self._tokenizer.normalizer
        assert normalizer is not None
        made: str = normalizer.normalize_str(text)
        return made

    def cut(self, text: str) -> list[str]:
        """What stands at each position of `encode(text)`, in or outside the vocabulary, spelled with its mark.

        Only where words can be copied: pieces of words are found by looking them up.
        """
        assert self.can_copy
        if self._kind == "characters":
            return list(self.normal(text))
        cutter = self._tokenizer.pre_tokenizer
        assert cutter is not None
        return [piece for piece, _ in cutter.pre_tokenize_str(self.normal(text))]

    def decode(self, ids: Sequence[int], beyond: Sequence[str] = ()) -> str:
        """The text of ids; `<pad>`, `<go>` and `<stop>` are left out.

        An id from `size` on is copied: `beyond` holds the pieces of the text that it comes from, as `cut` gives them.
        """
        kept = [number for number in ids if number not in (PAD, GO, STOP)]
        tokens = [self._spelling(number, beyond) for number in kept]
        if self._kind == "words" and self._split == "spaces":
            return " ".join(tokens)
        if self._kind == "words":
            tokens = [self._spaced(number, before, beyond) for number, before in zip(kept, ["", *tokens], strict=False)]
        text = "".join(tokens)
        return text.replace(MARK, " ").removeprefix(" ") if self._marked else text

    def _spelling(self, number: int, beyond: Sequence[str]) -> str:
        return self._spelled[number] if number < self.size else beyond[number - self.size]

    def _spaced(self, number: int, before: str, beyond: Sequence[str]) -> str:
        """A token as it is joined to the one before it; a copied word goes by what it now follows."""
        token = self._spelling(number, beyond)
        if number == UNK:  # most often a word after a space
            return f" {token}"
        word = self.plain(token)
        if number < self.size or not any(letter.isalnum() for letter in word):
            return token
        place = number - self.size
        as_read = token == word and place > 0 and before == beyond[place - 1]
        return word if as_read or _leads(before) else f" {word}"

    def pieces(self, ids: Sequence[int], beyond: Sequence[str] = ()) -> list[str]:
        """One readable string for each id, to write beside a heat map; `beyond` as for `decode`."""
        tokens = [self._spelling(number, beyond) for number in ids]
        if self._kind == "characters":
            return ["␣" if token == " " else token for token in tokens]
        return [self.plain(token) for token in tokens] if self._kind == "words" else tokens

    def words_of(self, text: str) -> list[int]:
        """For each token of `encode(text)`, which word between white space it belongs to, counted from 0.

        For characters, each is its own word: its position.
        """
        if self._kind == "characters":
            return list(range(len(self.encode(text))))
        return [word for word, ids in enumerate(self.encode_many(text.split())) for _ in ids]

    def vocabulary(self) -> dict[str, int]:
        """Every token and its id; a special name wins over a word of the text that is spelled the same."""
        ordinary = {token: number for number, token in enumerate(self._spelled) if number >= len(SPECIAL)}
        return ordinary | {name: number for number, name in enumerate(SPECIAL)}

    def plain(self, token: str) -> str:
        """A token as a file of word vectors would spell it: without the mark."""
        return token.removeprefix(MARK) if self._marked and token != MARK else token

    def by_word(self) -> dict[str, list[int]]:
        """Plain spelling -> all ids spelled so (`▁the` and `the` are one word), special tokens left out."""
        found: dict[str, list[int]] = {}
        for number in range(len(SPECIAL), self.size):
            found.setdefault(self.plain(self._spelled[number]), []).append(number)
        return found

    def to_json(self) -> str:
        """All of it as text, to be kept in a run."""
        tokenizer = json.loads(self._tokenizer.to_str())
        parts = {"format": _FORMAT, "kind": self._kind, "split": self._split, "tokenizer": tokenizer}
        return json.dumps(parts, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Tokens":
        """The opposite of `to_json`."""
        try:
            parts = json.loads(text)
            if parts["format"] != _FORMAT or parts["kind"] not in KINDS:
                raise ValueError(f"format {parts['format']!r}, kind {parts['kind']!r}")
            tokenizer = Tokenizer.from_str(json.dumps(parts["tokenizer"]))
            tokens = cls(tokenizer, kind=parts["kind"], split=parts["split"])
            if [tokenizer.token_to_id(name) for name in INSIDE] != [PAD, GO, STOP, UNK]:
                raise ValueError("its special tokens are not the first four")
        except Exception as error:
            raise RunError(f"The saved tokenizer is damaged or of another version: {error}.") from error
        return tokens


def _leads(token: str) -> bool:
    """Whether a word follows this without a space: an opening bracket or quote, or a dash or slash inside a word."""
    if token.startswith(MARK):
        sign = token.removeprefix(MARK)
        return sign in ('"', "'") or (len(sign) == 1 and unicodedata.category(sign) in ("Ps", "Pi"))
    return token == "/" or (len(token) == 1 and unicodedata.category(token) in ("Ps", "Pi", "Pd"))


def _is_unicode(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False
