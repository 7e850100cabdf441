"""How a text is split into tokens of a vocabulary, and how their ids are joined to a text again."""

import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from typing import Any, Final, Literal, Protocol, Self, final
from unicodedata import category

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from sixjars_runtime.errors import RunError, first_line, shown
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK
from sixjars_runtime.text.joiners import JOINER, STAND_IN, stand_ins, text_of, without_joiners

# Inside, the special tokens are spelled with a leading space. No token of a text can begin with a
# space and go on (white space is where a text is split), so a text that says `<stop>` never stops
# anything.
INSIDE = [f" {name}" for name in SPECIAL]
MARK: Final = "▁"
"""Begins a token that follows a space or the start of the text, where tokens have marks."""

_WHITE = Regex(r"[\s\x1c-\x1f\x85]+")  # what str.split takes for white space
# A punctuation mark or symbol, and the mark before it.
_MARKED = Regex(rf"{MARK}?[[\p{{P}}\p{{S}}]&&[^{MARK}]]")
_SIGNS = r"\p{P}\p{S}\uFE0E\uFE0F\u20E3"  # also what says that the sign before it is an emoji: ✔️, 1️⃣
_SIGN = f"[{_SIGNS}]"
# Such a sign, and the joiners of its sides.
_JOINED = Regex(rf"{JOINER}?[{_SIGN}&&[^{JOINER}]](?:{JOINER}(?!{_SIGN}))?")
_SEAM = Regex(rf"(?<=\S)(?={_SIGN})|(?<={_SIGN})(?=[^{_SIGNS}\s])")  # where a joiner is put
KINDS: Final = ("bpe", "characters", "unigram", "words")
MARKED_WORDS: Final = "punctuation, words with marks"
"""How words are split in a tokenizer of format 2: at punctuation, and each word carries the mark
too."""
_FORMAT: Final = 3
_FORMAT_OF_MARKS: Final = 2  # still that of all other kinds, which have not changed since
Spacing = Literal["marks", "joiners", "bare"]
"""A mark begins each token after a space; a joiner is where no space is; or nothing but the
tokens."""
# What a text may not hold, and what it becomes.
_RESERVED: Final = {"marks": [(MARK, "_")], "joiners": [(JOINER, STAND_IN)], "bare": []}
_HASHES: Final = 2**30  # a size and a hash together still fit 32 bits
_KEPT: Final = 2**17  # words whose ids are kept


class TokenSettings(Protocol):
    """What a tokenizer depends on; the settings of a text field have it."""

    tokens: Any
    """`words`, `characters`, `bpe` or `unigram`."""
    split: Any
    """Whether words end at `punctuation` too, or at `spaces` alone; or `MARKED_WORDS`."""
    lowercase: bool
    size: int
    min_count: int


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
@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a vocabulary by their ids, without the special ones before them."""

    tokens: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)
    """For BPE: the pairs of tokens that become one, the most frequent first."""
    scores: list[float] = field(default_factory=list)
    """For a unigram language model: the log probability of each token."""

    def __post_init__(self) -> None:
        is_list = isinstance(self.tokens, list)
        if not is_list or not all(isinstance(token, str) for token in self.tokens):
            raise ValueError("its tokens are not a list of texts")
        known = {*INSIDE, *self.tokens}
        if len(known) != len(INSIDE) + len(self.tokens):
            raise ValueError("a token is there twice")
        # The library would panic.
        if not all({left, right, left + right} <= known for left, right in self.merges):
            raise ValueError("a merge is not of tokens, or does not give one")
        if not all(map(isfinite, self.scores)):
            raise ValueError("a score is not finite")


def tokenizer_of(vocabulary: Vocabulary, settings: TokenSettings) -> Tokenizer:
    """Make a tokenizer of the library from a vocabulary alone: a saved one brings nothing else."""
    numbers = {token: number for number, token in enumerate([*INSIDE, *vocabulary.tokens])}
    model: models.Model
    if settings.tokens == "words":
        if spacing_of(settings) == "joiners":
            forms = stand_ins(vocabulary.tokens)
            numbers |= {form: numbers[other] for form, other in forms.items()}
        model = models.WordLevel(numbers, unk_token=INSIDE[UNK])
    elif settings.tokens == "unigram":
        model = unigram_model(vocabulary)
    else:  # characters are BPE that never merges
        pairs = vocabulary.merges if settings.tokens == "bpe" else []
        merges = [(left, right) for left, right in pairs]
        model = models.BPE(numbers, merges, unk_token=INSIDE[UNK])
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = prepared_of(settings)
    tokenizer.pre_tokenizer = pre_tokenizer_of(settings)
    return tokenizer


def unigram_model(vocabulary: Vocabulary) -> models.Model:
    """Make a unigram language model of the library."""
    scores = [0.0] * len(INSIDE) + vocabulary.scores
    return models.Unigram(list(zip([*INSIDE, *vocabulary.tokens], scores, strict=True)), UNK)


def spacing_of(settings: TokenSettings) -> Spacing:
    """Return how tokens keep the spaces of a text."""
    if settings.tokens in ("bpe", "unigram"):
        return "marks"
    splits: dict[str, Spacing] = {"punctuation": "joiners", MARKED_WORDS: "marks"}
    return splits.get(settings.split, "bare") if settings.tokens == "words" else "bare"


def normalizer_of(settings: TokenSettings) -> normalizers.Normalizer:
    """Make what normalizes a text before it is split."""
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if settings.lowercase else []
    steps += [normalizers.NFC(), normalizers.Replace(_WHITE, " "), normalizers.Strip()]
    steps += [normalizers.Replace(*pair) for pair in _RESERVED[spacing_of(settings)]]
    return normalizers.Sequence(steps)


def prepared_of(settings: TokenSettings) -> normalizers.Normalizer:
    """Make what normalizes a text and puts joiners in it, where tokens have them."""
    joins = spacing_of(settings) == "joiners"
    seams = [normalizers.Replace(_SEAM, JOINER)] if joins else []
    return normalizers.Sequence([normalizer_of(settings), *seams])


def pre_tokenizer_of(settings: TokenSettings) -> pre_tokenizers.PreTokenizer:
    """Make what splits a prepared text into words, or leaves it whole."""
    if settings.tokens == "characters":
        return pre_tokenizers.Sequence([])
    if spacing_of(settings) != "marks":
        joins = spacing_of(settings) == "joiners"
        at_marks = [pre_tokenizers.Split(_JOINED, "isolated")] if joins else []
        return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *at_marks])
    steps: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Metaspace(replacement=MARK)]
    if settings.tokens == "words":
        steps.append(pre_tokenizers.Split(_MARKED, "isolated"))
    return pre_tokenizers.Sequence(steps)


def has_marked_words(saved: Mapping[str, Any]) -> bool:
    """Whether a saved tokenizer is of an older version, in which words carry marks."""
    is_split = saved.get("kind") == "words" and saved.get("split") == "punctuation"
    return is_split and saved.get("format") == _FORMAT_OF_MARKS


def unknown_named(tokens: list[str], spelled: list[str]) -> list[str]:
    """Return tokens, the unknown ones with what stands in the text.

    >>> unknown_named(["the", "<unk>", "<unk>"], ["the", "jar", "<unk>"])
    ['the', '<unk:jar>', '<unk>']
    """
    if len(tokens) != len(spelled):  # a tokenizer of somebody else's
        return tokens
    pairs = zip(tokens, spelled, strict=True)
    return [f"<unk:{word}>" if token == SPECIAL[UNK] != word else token for token, word in pairs]


def _leads(token: str) -> bool:
    """Whether a word follows a token without a space, as after `(`, “, a dash or a slash."""
    if token.startswith(MARK):
        sign = token.removeprefix(MARK)
        return sign in ('"', "'") or (len(sign) == 1 and category(sign) in ("Ps", "Pi"))
    return token == "/" or (len(token) == 1 and category(token) in ("Ps", "Pi", "Pd"))


class BaseTokenizer(ABC):
    """What all tokenizers share.

    Tokens have numbers, the special ones first; ids from `size` on are words of a source.
    """

    _names: list[str]

    @property
    def size(self) -> int:
        """The number of tokens, the special ones included."""
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without `<go>` and `<stop>`."""
        return self.encode_many([text])[0]

    @abstractmethod
    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """Return the ids of many texts."""

    @abstractmethod
    def plain(self, token: str) -> str:
        """Return a token without the mark of a space, and without joiners."""

    @abstractmethod
    def follows_space(self, token: str) -> bool:
        """Whether a space came before a token, as far as its spelling tells."""

    def _name(self, number: int, source_words: Sequence[str]) -> str:
        return self._names[number] if number < self.size else source_words[number - self.size]

    def word_index(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the word between white space, from 0, that each token of each text belongs to."""
        words = [text.split() for text in texts]
        different = list(dict.fromkeys(chain.from_iterable(words)))
        counts = dict(zip(different, map(len, self.encode_many(different)), strict=True))
        return [[at for at, word in enumerate(some) for _ in range(counts[word])] for some in words]

    def by_word(self) -> dict[str, list[int]]:
        """Return all ids of each plain spelling, which `￭,` and `,` share; no special tokens."""
        ids: dict[str, list[int]] = {}
        for number in range(len(SPECIAL), self.size):
            ids.setdefault(self.plain(self._names[number]), []).append(number)
        return ids


class Spelling(BaseTokenizer):
    """Splits a text into tokens of a learned vocabulary, and joins ids to a text."""

    def __init__(self, vocabulary: Vocabulary, settings: TokenSettings) -> None:
        self._vocabulary = vocabulary
        self._kind: str = settings.tokens
        self._split: str = settings.split
        self._lowercase = settings.lowercase
        self._spacing = spacing_of(settings)
        self._names = [*SPECIAL, *vocabulary.tokens]
        self._tokenizer = tokenizer_of(vocabulary, settings)
        self._normalizer = normalizer_of(settings)
        self._words: dict[str, list[int]] = {}
        self._open_words: dict[str, list[int]] = {}
        # Leaves out the offsets, where this version of the library can.
        self._batch = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)

    @property
    def can_copy(self) -> bool:
        """Whether a word outside the vocabulary is one position, so that it can be copied."""
        return self._kind in ("words", "characters")

    def _ids_of_words(self, words: Sequence[str], *, open: bool) -> list[list[int]]:
        """Return the ids of words, and keep some; characters have the space before them."""
        kept = self._open_words if open else self._words
        new = [word for word in words if word not in kept]
        rows = self._rows_of(new)
        if open:
            assert self.can_copy
            pairs = zip(new, rows, strict=True)
            rows = [self._with_hashes(word, ids) if UNK in ids else ids for word, ids in pairs]
        if self._kind == "characters":
            space = self._tokenizer.token_to_id(" ")
            before = space if space is not None else self._hash(" ") if open else UNK
            rows = [[before, *ids] for ids in rows]
        same: dict[tuple[int, ...], list[int]] = {}  # as most words outside the vocabulary have
        ids_of = [same.setdefault(tuple(ids), ids) for ids in rows]
        new_ids = dict(zip(new, ids_of, strict=True))
        if len(kept) < _KEPT:
            kept.update(new_ids)
        return [new_ids[word] if word in new_ids else kept[word] for word in words]

    def _rows_of(self, words: Sequence[str]) -> list[list[int]]:
        """Return the ids of words that are not kept.

        Most words are letters and digits of ASCII, which are one token and are normalized to
        themselves: looking them up takes half the time of splitting them.
        """
        begin = MARK if self._spacing == "marks" else ""
        whole = [self._kind == "words" and word.isascii() and word.isalnum() for word in words]
        others = [word for word, is_whole in zip(words, whole, strict=True) if not is_whole]
        split = iter(self._batch(others) if others else [])

        def looked_up(word: str) -> list[int]:
            spelled = word.lower() if self._lowercase else word
            number = self._tokenizer.token_to_id(begin + spelled)
            return [UNK if number is None else number]

        # In order: rows that lie beside each other in memory are put together faster later.
        pairs = zip(words, whole, strict=True)
        return [looked_up(word) if is_whole else next(split).ids for word, is_whole in pairs]

    def _with_hashes(self, text: str, ids: Sequence[int]) -> list[int]:
        tokens = zip(self.split(text), ids, strict=True)
        return [self._hash(token) if number == UNK else number for token, number in tokens]

    def _hash(self, token: str) -> int:
        """Return a number for a word outside the vocabulary, the same however it is joined.

        Two words with one number are taken for the same word, so that the wrong one of them may be
        copied. Only words of one row are compared with each other: of 1,000 such words in a row,
        two are taken for one another in 0.05 % of such rows (1000² / 2 / 2³⁰).
        """
        return self.size + zlib.crc32(self.plain(token).encode()) % _HASHES

    def normalize(self, text: str) -> str:
        """Return a text as it is before it is split, to compare an output with."""
        normalized: str = self._normalizer.normalize_str(text)
        return normalized

    def split(self, text: str) -> list[str]:
        """Return what stands at each position of `encode(text)`, spelled as in the vocabulary.

        Unknown words are spelled too. Subwords are found by looking them up, so a letter that is
        not known is `<unk>` among them.
        """
        if not self.can_copy:
            return [self._names[number] for number in self.encode(text)]
        if self._kind == "characters":
            return list(self.normalize(text))
        prepare, splitter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        assert prepare is not None
        assert splitter is not None
        return [token for token, _ in splitter.pre_tokenize_str(prepare.normalize_str(text))]

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """Return the text of ids; `<pad>`, `<go>` and `<stop>` are left out.

        An id from `size` on is copied: `source_words` holds the tokens of the source, as `split`
        gives them.
        """
        kept = [number for number in ids if number not in (PAD, GO, STOP)]
        tokens = [self._name(number, source_words) for number in kept]
        if self._spacing == "joiners":
            return text_of(self._as_in_source(kept, tokens, source_words))
        if self._kind == "words" and self._spacing == "bare":
            return " ".join(tokens)
        if self._kind == "words":
            pairs = zip(kept, ["", *tokens], strict=False)
            tokens = [self._spaced(number, before, source_words) for number, before in pairs]
        text = "".join(tokens)
        return text.replace(MARK, " ").removeprefix(" ") if self._spacing == "marks" else text

    def _as_in_source(
        self, ids: Sequence[int], tokens: list[str], source_words: Sequence[str]
    ) -> list[str]:
        """Spell tokens beside a copied word as they stand beside it in the source.

        A mark takes that form, if it stands in for it: of `3,500` the comma, where the vocabulary
        has no comma between two words. And a piece of a word that a subword tokenizer read goes on
        only with the piece before it.
        """
        spelled = list(tokens)
        for at, number in enumerate(ids):
            place = number - self.size
            if place < 0:
                continue
            before = source_words[place - 1] if at and place else None
            if any(map(str.isalnum, tokens[at])) and tokens[at - 1] != before:
                spelled[at] = without_joiners(tokens[at])
            for step in (-1, 1):
                if 0 <= at + step < len(ids) and 0 <= place + step < len(source_words):
                    form = source_words[place + step]
                    stands_in = self._tokenizer.token_to_id(form) == ids[at + step]
                    spelled[at + step] = form if stands_in else spelled[at + step]
        return spelled

    def _spaced(self, number: int, before: str, source_words: Sequence[str]) -> str:
        """Join a marked word to the token before it; a copied one goes by what it now follows."""
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
        """Return a readable string for each id; `source_words` are as for `decode`."""
        tokens = [self._name(number, source_words) for number in ids]
        if self._kind == "characters":
            return ["␣" if token == " " else token for token in tokens]
        return [self.plain(token) for token in tokens] if self._kind == "words" else tokens

    def plain(self, token: str) -> str:
        """Return a token as a file of word vectors spells it: without mark and joiners."""
        if self._spacing == "joiners":
            return without_joiners(token)
        return token.removeprefix(MARK) if self._spacing == "marks" and token != MARK else token

    def follows_space(self, token: str) -> bool:
        """Whether a space came before a token; words with joiners are taken to follow one."""
        if self._spacing == "joiners":
            return not token.startswith(JOINER)
        return token.startswith(MARK) if self._spacing == "marks" else self._kind == "words"

    def adopted(self, token: str, other: BaseTokenizer) -> str:
        """Return a token of another tokenizer as this one spells it."""
        if isinstance(other, Spelling) and self._spacing == other._spacing == "joiners":
            return token
        before = {"marks": ("", MARK), "joiners": (JOINER, ""), "bare": ("", "")}[self._spacing]
        return before[other.follows_space(token)] + other.plain(token)

    def like(self, settings: TokenSettings) -> TokenizerSettings:
        """Return settings for more tokens of its own spelling, which an older run may have."""
        return TokenizerSettings(
            self._kind, self._split, self._lowercase, settings.size, settings.min_count
        )

    def to_json(self) -> str:
        """Return all of it as text, to be kept in a run."""
        form = _FORMAT if self._spacing == "joiners" else _FORMAT_OF_MARKS
        split = "punctuation" if self._split == MARKED_WORDS else self._split
        about = {"format": form, "kind": self._kind, "split": split, "lowercase": self._lowercase}
        return json.dumps(about | vars(self._vocabulary), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; whatever else a stranger put into it is not used."""
        try:
            whole = json.loads(text)
            kind, split, lowercase = whole["kind"], whole["split"], whole["lowercase"]
            is_known = whole["format"] in (_FORMAT_OF_MARKS, _FORMAT) and kind in KINDS
            if not is_known or not isinstance(lowercase, bool):
                about = f"format {shown(whole['format'])}, kind {shown(kind)}"
                raise ValueError(f"{about}, lowercase {shown(lowercase)}")
            if split not in ("punctuation", "spaces"):
                raise ValueError(f"split {shown(split)}")
            split = MARKED_WORDS if has_marked_words(whole) else split
            vocabulary = Vocabulary(whole["tokens"], whole["merges"], whole["scores"])
            return cls(vocabulary, TokenizerSettings(kind, split, lowercase))
        except RecursionError:
            raise RunError("The saved tokenizer is damaged: it is nested too deep.") from None
        except Exception as error:
            reason = first_line(error)[:200]
            raise RunError(
                f"The saved tokenizer is damaged or of another version: {reason}."
            ) from error
