"""Vocabularies: which tokens there are, learned from the training texts, and how a text is split into them."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import isfinite
from typing import Annotated, Any, Final, Literal, Protocol, final

from pydantic import Discriminator, Tag
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from sixjars.data.flat import word_counts
from sixjars.errors import DataError
from sixjars.flow.special import SPECIAL, UNK
from sixjars.recipe.data import FilePath
from sixjars.recipe.schema import Settings

# Inside, the special tokens are spelled with a leading space. No token of a text can begin with a space and go on
# (white space is where a text is split), so a text that says `<stop>` never stops anything.
_INSIDE = [f" {name}" for name in SPECIAL]
MARK: Final = "▁"
"""Begins a token that follows a space or the start of the text."""

_WHITE = Regex(r"[\s\x1c-\x1f\x85]+")  # what str.split takes for white space
_PUNCTUATION = Regex(rf"{MARK}?[[\p{{P}}\p{{S}}]&&[^{MARK}]]")  # one punctuation mark or symbol, and the mark before it
_COPIES = 1000  # words in one text: of one word for a trainer, which counts words itself


class TokenFile(Settings):
    """A tokenizer of the user's own."""

    file: FilePath
    """A Hugging Face `tokenizer.json`, or a SentencePiece model."""

    def __str__(self) -> str:
        return f"tokens of {self.file}"


# The brackets make the tags invisible in messages.
Tokens = Annotated[
    Annotated[Literal["words", "characters", "bpe", "unigram"], Tag("[word]")] | Annotated[TokenFile, Tag("[file]")],
    Discriminator(lambda value: "[file]" if isinstance(value, Mapping | TokenFile) else "[word]"),
]


class TokenSettings(Protocol):
    """What a tokenizer depends on; the settings of a text field have it."""

    tokens: Any
    """`words`, `characters`, `bpe` or `unigram`."""
    split: Any
    """Whether words end at `punctuation` too, or at `spaces` alone."""
    lowercase: bool
    size: int
    min_count: int


@final
@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a vocabulary in the order of their ids; the special ones come before them and are not listed."""

    tokens: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)
    """For BPE: the pairs of tokens that become one, the most frequent first."""
    scores: list[float] = field(default_factory=list)
    """For a unigram language model: the log probability of each token."""

    def __post_init__(self) -> None:
        if not isinstance(self.tokens, list) or not all(isinstance(token, str) for token in self.tokens):
            raise ValueError("its tokens are not a list of texts")
        known = {*_INSIDE, *self.tokens}
        if len(known) != len(_INSIDE) + len(self.tokens):
            raise ValueError("a token is there twice")
        if not all({one, two, one + two} <= known for one, two in self.merges):  # the library would panic
            raise ValueError("a merge is not of tokens, or does not give one")
        if not all(map(isfinite, self.scores)):
            raise ValueError("a score is not finite")


def learned(texts: Iterable[str], settings: TokenSettings, what: str) -> Vocabulary:
    """The vocabulary of the texts; `what` names them in messages."""
    words, spaces = _counted(texts, _normalizer(settings))
    vocabulary = KINDS[settings.tokens](words, spaces, settings)
    if not set(vocabulary.tokens) - {MARK, " "}:
        raise DataError(
            f"{what}: no token is left for the vocabulary with min_count {settings.min_count} and size "
            f"{settings.size}; lower min_count or raise size."
        )
    return vocabulary


def tokenizer_of(vocabulary: Vocabulary, settings: TokenSettings) -> Tokenizer:
    """A tokenizer of the library. All but the vocabulary is made here, so a saved one can bring nothing else along."""
    numbers = {token: number for number, token in enumerate([*_INSIDE, *vocabulary.tokens])}
    model: models.Model
    if settings.tokens == "words":
        model = models.WordLevel(numbers, unk_token=_INSIDE[UNK])
    elif settings.tokens == "unigram":
        model = _unigram_model(vocabulary)
    else:  # characters are BPE that never merges
        merges = [(one, two) for one, two in vocabulary.merges] if settings.tokens == "bpe" else []
        model = models.BPE(numbers, merges, unk_token=_INSIDE[UNK])
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = _normalizer(settings)
    tokenizer.pre_tokenizer = _pre_tokenizer(settings)
    return tokenizer


def _unigram_model(vocabulary: Vocabulary) -> models.Model:
    scores = [0.0] * len(_INSIDE) + vocabulary.scores
    return models.Unigram(list(zip([*_INSIDE, *vocabulary.tokens], scores, strict=True)), UNK)


def is_marked(settings: TokenSettings) -> bool:
    """Whether tokens carry a mark where a space came before them."""
    return settings.tokens in ("bpe", "unigram") or (settings.tokens == "words" and settings.split == "punctuation")


def _normalizer(settings: TokenSettings) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if settings.lowercase else []
    steps += [normalizers.NFC(), normalizers.Replace(_WHITE, " "), normalizers.Strip()]
    if is_marked(settings):
        steps.append(normalizers.Replace(MARK, "_"))
    return normalizers.Sequence(steps)


def _pre_tokenizer(settings: TokenSettings) -> pre_tokenizers.PreTokenizer:
    if settings.tokens == "characters":
        return pre_tokenizers.Sequence([])
    if not is_marked(settings):
        return pre_tokenizers.WhitespaceSplit()
    steps: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Metaspace(replacement=MARK)]
    if settings.tokens == "words":
        steps.append(pre_tokenizers.Split(_PUNCTUATION, "isolated"))
    return pre_tokenizers.Sequence(steps)


def _counted(texts: Iterable[str], normalizer: normalizers.Normalizer) -> tuple[Counter[str], int]:
    """How often each normalized word was seen, and how many spaces there were.

    Normalizing changes each word by itself, so those that differ are put into one text for it.
    """
    raw, spaces = word_counts(texts)
    words: Counter[str] = Counter()
    stream = iter(raw.items())
    while some := list(islice(stream, _COPIES)):
        normalized = normalizer.normalize_str(" ".join(word for word, _ in some)).split(" ")
        for word, (_, count) in zip(normalized, some, strict=True):
            words[word] += count
    return words, spaces


def _kept(counts: Mapping[str, int], settings: TokenSettings, *, always: Sequence[str] = ()) -> list[str]:
    """The most frequent tokens that `min_count` and `size` allow; equal counts by the alphabet."""
    often = sorted(
        (token for token, count in counts.items() if count >= settings.min_count and token not in always),
        key=lambda token: (-counts[token], token),
    )
    return [*always, *often][: settings.size - len(SPECIAL)]


def _used(words: Mapping[str, int], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """How often each token is used to write the training words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token in split(word):
            counts[token] += count
    return counts


def _words(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """One token for each word; `min_count` and `size` decide which."""
    splitter, mark = _pre_tokenizer(settings), MARK if is_marked(settings) else ""

    def split(word: str) -> list[str]:
        if word.isalnum():  # there is nothing to split at
            return [mark + word]
        return [token for token, _ in splitter.pre_tokenize_str(word)]

    return Vocabulary(_kept(_used(words, split), settings))


def _characters(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """One token for each code point."""
    return Vocabulary(_kept(_used(words, list) + Counter({" ": spaces}), settings))


def _fitted(words: Mapping[str, int], alphabet: Sequence[str], model: models.Model, trainer: trainers.Trainer) -> Any:
    """What a trainer of the library makes of words, which end where a letter is not in the alphabet."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_repeated(words, set(alphabet)), trainer)
    return json.loads(tokenizer.to_str())["model"]


def _repeated(words: Mapping[str, int], alphabet: set[str]) -> Iterator[str]:
    for word, count in sorted(words.items()):
        known = "".join(letter if letter in alphabet else " " for letter in MARK + word)
        for start in range(0, count, _COPIES):
            yield " ".join([known] * min(_COPIES, count - start))


def _bpe(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """Byte pair encoding over letters: Sennrich, Haddow & Birch 2016 (https://arxiv.org/abs/1508.07909)."""
    alphabet = _kept(_used(words, list), settings, always=[MARK])
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size, min_frequency=settings.min_count, special_tokens=_INSIDE, show_progress=False
    )
    made = _fitted(words, alphabet, models.BPE(unk_token=_INSIDE[UNK]), trainer)
    tokens = sorted(made["vocab"], key=made["vocab"].__getitem__)[len(_INSIDE) :]
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in made["merges"])  # versions differ
    return Vocabulary(tokens, [(one, two) for one, two in pairs])


def _unigram(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """Subwords of a unigram language model: Kudo 2018 (https://arxiv.org/abs/1804.10959)."""
    alphabet = _kept(_used(words, list), settings, always=[MARK])
    if len(alphabet) == 1:  # the mark alone
        return Vocabulary([])
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.size, special_tokens=_INSIDE, unk_token=_INSIDE[UNK], show_progress=False
    )
    made = _fitted(words, alphabet, models.Unigram(), trainer)["vocab"]
    # The trainer sums in an order that changes from process to process, and ranks rare letters at random. So scores are
    # rounded, letters at the bottom share the lowest score, and equal scores go by the alphabet: the same texts give
    # the same vocabulary.
    raw = {token: score for token, score in made if token not in _INSIDE}
    lowest = min(raw.values())
    bottom = lowest + 1e-4 * (len(alphabet) + 1)  # the trainer's letters without a count are 1e-4 apart
    scores = {token: round(lowest if len(token) == 1 and score < bottom else score, 4) for token, score in raw.items()}
    if settings.min_count > 1:
        tokenizer = Tokenizer(_unigram_model(_ranked(scores)))
        used = _used(words, lambda word: tokenizer.encode(MARK + word).tokens)
        scores = {
            token: score for token, score in scores.items() if len(token) == 1 or used[token] >= settings.min_count
        }
    best = sorted(scores, key=lambda token: (len(token) > 1, -scores[token], token))  # letters stay
    return _ranked({token: scores[token] for token in best[: settings.size - len(SPECIAL)]})


def _ranked(scores: Mapping[str, float]) -> Vocabulary:
    tokens = sorted(scores, key=lambda token: (-scores[token], token))
    return Vocabulary(tokens, scores=[scores[token] for token in tokens])


KINDS: dict[str, Callable[[Mapping[str, int], int, TokenSettings], Vocabulary]] = {
    "bpe": _bpe,
    "characters": _characters,
    "unigram": _unigram,
    "words": _words,
}
"""How each kind of vocabulary is learned."""


class BaseTokenizer(ABC):
    """What all tokenizers share: tokens by number, the special ones first; ids from `size` on are words of a source."""

    _names: list[str]

    @property
    def size(self) -> int:
        """How many tokens there are, the special ones included."""
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `<go>` and `<stop>`."""
        return self.encode_many([text])[0]

    @abstractmethod
    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """The ids of many texts."""

    @abstractmethod
    def plain(self, token: str) -> str:
        """A token without the mark of a space."""

    def _name(self, number: int, source_words: Sequence[str]) -> str:
        return self._names[number] if number < self.size else source_words[number - self.size]

    def word_index(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, which word between white space it belongs to, counted from 0."""
        words = [text.split() for text in texts]
        different = list(dict.fromkeys(chain.from_iterable(words)))
        counts = dict(zip(different, map(len, self.encode_many(different)), strict=True))
        return [[at for at, word in enumerate(some) for _ in range(counts[word])] for some in words]

    def by_word(self) -> dict[str, list[int]]:
        """Plain spelling -> all ids spelled so (`▁the` and `the` are one word), special tokens left out."""
        found: dict[str, list[int]] = {}
        for number in range(len(SPECIAL), self.size):
            found.setdefault(self.plain(self._names[number]), []).append(number)
        return found
