"""Text becomes numbers and comes back: words, characters, or pieces of words.

A text is first made regular: small letters if asked for, Unicode NFC, every run of white space one space,
none at the ends. Then it is cut. Words, BPE and unigram pieces carry the mark `▁` where a space (or the
start) came before them, so that joining them gives the text back; a `▁` of the text itself becomes `_`.

What the vocabulary holds is learned in `vocabularies.py`.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, final

from tokenizers import Tokenizer

from sixjars.data.vocabularies import GO, INSIDE, KINDS, MARK, PAD, SPECIAL, STOP, UNK, learned
from sixjars.errors import DataError, RunError

if TYPE_CHECKING:
    from sixjars.recipe.fields import TextSettings

__all__ = ["GO", "MARK", "PAD", "SPECIAL", "STOP", "UNK", "Tokens"]

_FORMAT = 1


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

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, faster than one by one."""
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

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; `<pad>`, `<go>` and `<stop>` are left out."""
        tokens = [self._spelled[number] for number in ids if number not in (PAD, GO, STOP)]
        if self._kind == "words" and self._split == "spaces":
            return " ".join(tokens)
        if self._kind == "words":  # an unknown word is most often a word after a space
            tokens = [f" {token}" if token == SPECIAL[UNK] else token for token in tokens]
        text = "".join(tokens)
        return text.replace(MARK, " ").removeprefix(" ") if self._marked else text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One readable string for each id, to write beside a heat map."""
        tokens = [self._spelled[number] for number in ids]
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


def _is_unicode(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False
