"""A tokenizer of the user's own: a Hugging Face `tokenizer.json` or a SentencePiece model.

It is kept whole inside the run. Its ids become ours: its unknown token is `<unk>`, its other
special tokens are left out, and all the rest follow our four special tokens in its own order.
"""

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Protocol, final

from tokenizers import Tokenizer

from sixjars_runtime.errors import DataError, MissingExtra, RunError, first_line, shown
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK
from sixjars_runtime.text.spelling import BaseTokenizer

LARGEST: Final = 1 << 27
"""Bytes of a tokenizer's file."""
_FORMAT: Final = 1
_SPACES = re.compile(
    "^[▁Ġ]|^##"
)  # how tokenizers mark a space before a token, or that there is none


class Engine(Protocol):
    """A library's tokenizer."""

    names: list[str]
    unknown: int | None
    special: set[int]
    """Ids of tokens that no text has: the beginning, the end, padding."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, nothing added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        ...

    def normalize(self, text: str) -> str:
        """Return a text as it is before it is split."""
        ...


@final
class _HuggingFace:
    def __init__(self, content: bytes) -> None:
        whole = json.loads(content)
        special = [
            added["content"] for added in whole.get("added_tokens") or [] if added.get("special")
        ]
        model = whole["model"]
        unknown = model.get("unk_token")
        if unknown is None and model.get("unk_id") is not None:
            unknown = model["vocab"][model["unk_id"]][0]
        # What would cut, pad or frame a text is for the model it came from; a text that says [SEP]
        # is only text.
        whole |= {"truncation": None, "padding": None, "post_processor": None}
        whole["added_tokens"] = [
            added for added in whole.get("added_tokens") or [] if not added.get("special")
        ]
        self._tokenizer = Tokenizer.from_str(json.dumps(whole))
        numbers = self._tokenizer.get_vocab()
        self.names = [""] * (max(numbers.values(), default=-1) + 1)
        for token, number in numbers.items():
            self.names[number] = token
        self.unknown = numbers.get(unknown) if unknown is not None else None
        holes = {number for number, name in enumerate(self.names) if not name}
        self.special = holes | {
            numbers[name] for name in special if name in numbers and name != unknown
        }

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [
            encoding.ids
            for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def normalize(self, text: str) -> str:
        normalized = (
            text
            if self._tokenizer.normalizer is None
            else self._tokenizer.normalizer.normalize_str(text)
        )
        return normalized.replace("▁", " ")


@final
class _SentencePiece:
    def __init__(self, content: bytes) -> None:
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError:
            raise MissingExtra("sentencepiece", "sentencepiece") from None
        self._model: Any = SentencePieceProcessor(model_proto=content)
        count = self._model.get_piece_size()
        self.names = [self._model.id_to_piece(number) for number in range(count)]
        self.unknown: int | None = self._model.unk_id()
        self.special = {number for number in range(count) if self._model.is_control(number)}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(ids) for ids in self._model.encode(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._model.decode(list(ids)))

    def normalize(self, text: str) -> str:
        return text


_ENGINES: Final[dict[str, Callable[[bytes], Engine]]] = {
    "tokenizer.json": _HuggingFace,
    "sentencepiece": _SentencePiece,
}


@final
class GivenTokenizer(BaseTokenizer):
    """Splits a text into token ids and joins ids to a text, as the tokenizer of a file does."""

    _kind, can_copy = "file", False

    def __init__(self, content: bytes, library: str) -> None:
        self._content, self._library = content, library
        engine: Engine = _ENGINES[library](content)
        self._engine = engine
        self._theirs = [
            at
            for at in range(len(engine.names))
            if at not in engine.special and at != engine.unknown
        ]
        if not self._theirs:
            raise ValueError("it has no tokens")
        self._ours = {number: len(SPECIAL) + at for at, number in enumerate(self._theirs)}
        self._names = [*SPECIAL, *(engine.names[number] for number in self._theirs)]

    @classmethod
    def of(cls, content: bytes) -> "GivenTokenizer":
        """Make a tokenizer of a file's content; ValueError where it is none, or damaged."""
        library = "tokenizer.json" if content.lstrip()[:1] == b"{" else "sentencepiece"
        return _made(content, library)

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """Return the ids of many texts; no word has a number of its own, for none is copied."""
        assert not open
        for text in texts:
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise DataError(
                    f"Text {shown(text)} holds half a character (a lone surrogate); remove it."
                )
        rows = self._engine.encode([_tidy(text) for text in texts])
        return [[self._ours.get(number, UNK) for number in ids] for ids in rows]

    def normalize(self, text: str) -> str:
        """Return a text as it is before it is split, to compare an output with."""
        return _tidy(self._engine.normalize(_tidy(text)))

    def split(self, text: str) -> list[str]:
        """Return what stands at each position of `encode(text)`."""
        return [self._names[number] for number in self.encode(text)]

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """Return the text of ids.

        An id from `size` on is a word of the source in place of an unknown one.
        """
        kept = (number for number in ids if number not in (PAD, GO, STOP))
        return " ".join(filter(None, self._spelled(kept, source_words)))

    def _spelled(self, ids: Iterator[int], source_words: Sequence[str]) -> Iterator[str]:
        """Yield runs of its own tokens as texts, and between them unknown or copied words."""
        for is_known, run in groupby(ids, key=lambda number: UNK < number < self.size):
            if is_known:
                yield self._engine.decode(
                    [self._theirs[number - len(SPECIAL)] for number in run]
                ).strip()
            else:
                yield from (self._name(number, source_words) for number in run)

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """Return a readable string for each id, to write beside a heat map."""
        return [self._name(number, source_words) for number in ids]

    def plain(self, token: str) -> str:
        """Return a token as a file of word vectors spells it: without its mark."""
        return _SPACES.sub("", token) or token

    def follows_space(self, token: str) -> bool:
        """Return False, for it is not known: tokenizers differ in what they mark."""
        return False

    def adopted(self, token: str, other: BaseTokenizer) -> str:
        """Return a token of another tokenizer as this one spells it."""
        return other.plain(token)

    def to_json(self) -> str:
        """Return all of it as text, to be kept in a run."""
        content = base64.b64encode(self._content).decode()
        return json.dumps(
            {"format": _FORMAT, "kind": "file", "library": self._library, "content": content}
        )

    @classmethod
    def from_json(cls, text: str) -> "GivenTokenizer":
        """Read what `to_json` wrote."""
        try:
            whole = json.loads(text)
            if (
                whole["format"] != _FORMAT
                or whole["kind"] != "file"
                or whole["library"] not in _ENGINES
            ):
                raise ValueError("it is of another format")
            return _made(base64.b64decode(whole["content"], validate=True), whole["library"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = first_line(error)[:200]
            raise RunError(
                f"The saved tokenizer is damaged or of another version: {reason}."
            ) from error


def _made(content: bytes, library: str) -> GivenTokenizer:
    """Make a tokenizer; whatever a library makes of a damaged file is a ValueError."""
    try:
        return GivenTokenizer(content, library)
    except (MissingExtra, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a panic of the library is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(first_line(error)[:200]) from None


def _tidy(text: str) -> str:
    """Return a text in Unicode NFC, with single spaces and none at the ends.

    Our own tokenizers do the same.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())
