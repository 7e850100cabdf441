"""Vocabularies: which tokens there are, learned from the training texts."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from sixjars.data.flat import word_counts
from sixjars.data.text.splitting import (
    INSIDE,
    MARK,
    TokenSettings,
    Vocabulary,
    is_marked,
    normalizer_of,
    pre_tokenizer_of,
    unigram_model,
)
from sixjars.errors import DataError
from sixjars.flow.special import SPECIAL, UNK
from sixjars.recipe.data import FilePath
from sixjars.recipe.schema import Settings

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


def learned(texts: Iterable[str], settings: TokenSettings, what: str) -> Vocabulary:
    """The vocabulary of the texts; `what` names them in messages."""
    words, spaces = _counted(texts, normalizer_of(settings))
    vocabulary = KINDS[settings.tokens](words, spaces, settings)
    if not set(vocabulary.tokens) - {MARK, " "}:
        raise DataError(
            f"{what}: no token is left for the vocabulary with min_count {settings.min_count} and size "
            f"{settings.size}; lower min_count or raise size."
        )
    return vocabulary


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
    splitter, mark = pre_tokenizer_of(settings), MARK if is_marked(settings) else ""

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
        vocab_size=settings.size, min_frequency=settings.min_count, special_tokens=INSIDE, show_progress=False
    )
    made = _fitted(words, alphabet, models.BPE(unk_token=INSIDE[UNK]), trainer)
    tokens = sorted(made["vocab"], key=made["vocab"].__getitem__)[len(INSIDE) :]
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in made["merges"])  # versions differ
    return Vocabulary(tokens, [(one, two) for one, two in pairs])


def _unigram(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """Subwords of a unigram language model: Kudo 2018 (https://arxiv.org/abs/1804.10959)."""
    alphabet = _kept(_used(words, list), settings, always=[MARK])
    if len(alphabet) == 1:  # the mark alone
        return Vocabulary([])
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.size, special_tokens=INSIDE, unk_token=INSIDE[UNK], show_progress=False
    )
    made = _fitted(words, alphabet, models.Unigram(), trainer)["vocab"]
    # The trainer sums in an order that changes from process to process, and ranks rare letters at random. So scores are
    # rounded, letters at the bottom share the lowest score, and equal scores go by the alphabet: the same texts give
    # the same vocabulary.
    raw = {token: score for token, score in made if token not in INSIDE}
    lowest = min(raw.values())
    bottom = lowest + 1e-4 * (len(alphabet) + 1)  # the trainer's letters without a count are 1e-4 apart
    scores = {token: round(lowest if len(token) == 1 and score < bottom else score, 4) for token, score in raw.items()}
    if settings.min_count > 1:
        tokenizer = Tokenizer(unigram_model(_ranked(scores)))
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
