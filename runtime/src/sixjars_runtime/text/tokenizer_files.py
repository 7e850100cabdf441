"""A tokenizer of the user's own: a Hugging Face `tokenizer.json` or a SentencePiece model.

It is kept whole inside the run. Its ids become ours: its unknown token is `<unk>`, its other
special tokens are left out, and all the rest follow our four special tokens in its own order.
"""

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, final

from tokenizers import Tokenizer

from sixjars_runtime.errors import DataError, MissingExtra, RunError, first_line, need, shown
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK
from sixjars_runtime.text.segments import has_half_character
from sixjars_runtime.text.spelling import BaseTokenizer

LARGEST: Final = 1 << 27
"""Bytes of a tokenizer's file."""
_FORMAT: Final = 1
_SPACES = re.compile("^[▁Ġ]|^##")
"""How tokenizers mark a space before a token, or that there is none."""


@final
@dataclass(frozen=True)
class Engine:
    """A library's tokenizer."""

    names: Sequence[str]
    """Its tokens, by their ids."""
    unknown: int | None
    special: Collection[int]
    """Ids of tokens that no text has: the beginning, the end, padding."""
    encode: Callable[[list[str]], list[list[int]]]
    """Makes ids of each text, nothing added."""
    decode: Callable[[list[int]], str]
    normalize: Callable[[str], str]
    """Makes a text what it is before it is split."""


def _hugging_face(content: bytes) -> Engine:
    whole = json.loads(content)
    added = whole.get("added_tokens") or []
    special = [token["content"] for token in added if token.get("special")]
    model = whole["model"]
    unknown = model.get("unk_token")
    if unknown is None and model.get("unk_id") is not None:
        unknown = model["vocab"][model["unk_id"]][0]
    # What would cut, pad or frame a text is for the model it came from; a text that says [SEP]
    # is only text.
    whole |= {"truncation": None, "padding": None, "post_processor": None}
    whole["added_tokens"] = [token for token in added if not token.get("special")]
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    numbers = tokenizer.get_vocab()
    names = [""] * (max(numbers.values(), default=-1) + 1)
    for token, number in numbers.items():
        names[number] = token
    holes = {number for number, name in enumerate(names) if not name}

    def encode(texts: list[str]) -> list[list[int]]:
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(ids: list[int]) -> str:
        text: str = tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def normalize(text: str) -> str:
        normalizer = tokenizer.normalizer
        normalized: str = text if normalizer is None else normalizer.normalize_str(text)
        return normalized.replace("▁", " ")

    return Engine(
        names=names,
        unknown=None if unknown is None else numbers.get(unknown),
        special=holes | {numbers[name] for name in special if name in numbers and name != unknown},
        encode=encode,
        decode=decode,
        normalize=normalize,
    )


def _sentence_piece(content: bytes) -> Engine:
    need("sentencepiece", "sentencepiece")
    from sentencepiece import SentencePieceProcessor

    model: Any = SentencePieceProcessor(model_proto=content)
    count = model.get_piece_size()
    return Engine(
        names=[model.id_to_piece(number) for number in range(count)],
        unknown=model.unk_id(),
        special={number for number in range(count) if model.is_control(number)},
        encode=lambda texts: [list(ids) for ids in model.encode(texts)],
        decode=lambda ids: str(model.decode(ids)),
        normalize=lambda text: text,
    )


_ENGINES: Final[dict[str, Callable[[bytes], Engine]]] = {
    "tokenizer.json": _hugging_face,
    "sentencepiece": _sentence_piece,
}


@final
class GivenTokenizer(BaseTokenizer):
    """Splits a text into token ids and joins ids to a text, as the tokenizer of a file does."""

    _kind, can_copy = "file", False

    def __init__(self, content: bytes, library: str) -> None:
        self._content, self._library = content, library
        self._engine = engine = _ENGINES[library](content)
        ordinary = (at for at in range(len(engine.names)) if at not in engine.special)
        self._theirs = [at for at in ordinary if at != engine.unknown]
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
            if has_half_character(text):
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
        """Return the text of ids; one from `size` on is a word of the source."""
        kept = (number for number in ids if number not in (PAD, GO, STOP))
        return " ".join(filter(None, self._spelled(kept, source_words)))

    def _spelled(self, ids: Iterator[int], source_words: Sequence[str]) -> Iterator[str]:
        """Yield runs of its own tokens as texts, and between them unknown or copied words."""
        for is_known, run in groupby(ids, key=lambda number: UNK < number < self.size):
            if is_known:
                theirs = [self._theirs[number - len(SPECIAL)] for number in run]
                yield self._engine.decode(theirs).strip()
            else:
                yield from self.tokens(list(run), source_words)

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
        about = {"format": _FORMAT, "kind": "file", "library": self._library}
        return json.dumps(about | {"content": content})

    @classmethod
    def from_json(cls, text: str) -> "GivenTokenizer":
        """Read what `to_json` wrote."""
        try:
            whole = json.loads(text)
            is_known = whole["format"] == _FORMAT and whole["kind"] == "file"
            if not is_known or whole["library"] not in _ENGINES:
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
    """Return a text in NFC, with single spaces and none at the ends, as our tokenizers do."""
    return " ".join(unicodedata.normalize("NFC", text).split())
