"""Text becomes token ids and comes back: words, characters, or subwords.

A text is first normalized: lowercased if asked for, Unicode NFC, every run of white space one
space, none at the ends. Then it is split. BPE and unigram subwords carry the mark `▁` where a space
(or the start) came before them, so that joining them gives the text back; a `▁` of the text itself
becomes `_`. Words carry nothing: punctuation marks say where there is no space, see `joiners`.

A word outside the vocabulary is `<unk>`; or, where words can be copied, a number from the
vocabulary's size on. In stored data that number is a hash of the word, so that no list of such
words is needed; in the output of a decoder it is a position of the source that is copied from.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self, final
from unicodedata import category, name

import numpy as np
from pydantic import Discriminator, Tag
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from sixjars.data.flat import (
    Flat,
    begins_of,
    check_whole,
    cut,
    flattened,
    ranges,
    rows_of,
    segment_ids,
    word_counts,
    words_of,
)
from sixjars.data.text.files import check_file
from sixjars.recipe.data import FilePath
from sixjars.recipe.schema import Settings
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import SPECIAL, STOP, UNK
from sixjars_runtime.text.joiners import folded
from sixjars_runtime.text.segments import segments_of, shortened, words_of_segments
from sixjars_runtime.text.sentences import RULE
from sixjars_runtime.text.spelling import (
    INSIDE,
    MARK,
    Spelling,
    TokenSettings,
    Vocabulary,
    pre_tokenizer_of,
    prepared_of,
    spacing_of,
    unigram_model,
)
from sixjars_runtime.text.tokenizer_files import LARGEST, GivenTokenizer

_COPIES = 1000  # words in one text for the library: few calls, and no text of much memory


class TokenizerFile(Settings):
    """A tokenizer of the user's own."""

    file: FilePath
    """A Hugging Face `tokenizer.json`, or a SentencePiece model."""

    def __str__(self) -> str:
        return f"tokens of {self.file}"


# The brackets make the tags invisible in messages.
Tokens = Annotated[
    Annotated[Literal["words", "characters", "bpe", "unigram"], Tag("[word]")]
    | Annotated[TokenizerFile, Tag("[file]")],
    Discriminator(
        lambda value: "[file]" if isinstance(value, Mapping | TokenizerFile) else "[word]"
    ),
]


def _counted(texts: Iterable[str], normalizer: normalizers.Normalizer) -> tuple[Counter[str], int]:
    """How often each word was seen, prepared to be split, and how many spaces there were.

    Normalizing changes each word by itself, so those that differ are put into one text for it.
    """
    raw, spaces = word_counts(texts)
    words: Counter[str] = Counter()
    stream = iter(raw.items())
    while block := list(islice(stream, _COPIES)):
        normalized = normalizer.normalize_str(" ".join(word for word, _ in block)).split(" ")
        for word, (_, count) in zip(normalized, block, strict=True):
            words[word] += count
    return words, spaces


def _kept(
    counts: Mapping[str, int], settings: TokenSettings, *, always: Sequence[str] = ()
) -> list[str]:
    """The most frequent tokens that `min_count` and `size` allow; equal counts by the alphabet."""
    frequent = (token for token, count in counts.items() if count >= settings.min_count)
    ranked = sorted(set(frequent).difference(always), key=lambda token: (-counts[token], token))
    return [*always, *ranked][: settings.size - len(SPECIAL)]


def _used(words: Mapping[str, int], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """How often each token is used to write the training words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token in split(word):
            counts[token] += count
    return counts


def _words(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """One token for each word; `min_count` and `size` decide which."""
    splitter = pre_tokenizer_of(settings)
    spacing = spacing_of(settings)
    mark = MARK if spacing == "marks" else ""

    def split(word: str) -> list[str]:
        if word.isalnum():  # there is nothing to split at
            return [mark + word]
        return [token for token, _ in splitter.pre_tokenize_str(word)]

    counts: Mapping[str, int] = _used(words, split)
    if spacing == "joiners":
        counts = folded(counts, settings.min_count)
    return Vocabulary(_kept(counts, settings))


def _characters(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """One token for each code point."""
    return Vocabulary(_kept(_used(words, list) + Counter({" ": spaces}), settings))


def _fitted(
    words: Mapping[str, int], alphabet: set[str], model: models.Model, trainer: trainers.Trainer
) -> Any:
    """Train a model of the library; a letter outside the alphabet ends a word."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_repeated(words, alphabet), trainer)
    return json.loads(tokenizer.to_str())["model"]


def _repeated(words: Mapping[str, int], alphabet: set[str]) -> Iterator[str]:
    """Each word as often as it was counted: a trainer takes texts, and counts words itself."""
    for word, count in sorted(words.items()):
        known = "".join(letter if letter in alphabet else " " for letter in MARK + word)
        for start in range(0, count, _COPIES):
            yield " ".join([known] * min(_COPIES, count - start))


def _bpe(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """Byte pair encoding: Sennrich, Haddow & Birch 2016 (https://arxiv.org/abs/1508.07909)."""
    alphabet = set(_kept(_used(words, list), settings, always=[MARK]))
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=settings.min_count,
        special_tokens=INSIDE,
        show_progress=False,
    )
    trained = _fitted(words, alphabet, models.BPE(unk_token=INSIDE[UNK]), trainer)
    tokens = sorted(trained["vocab"], key=trained["vocab"].__getitem__)[len(INSIDE) :]
    # Versions of the library write a merge as one text or as a pair.
    merges = (pair.split(" ") if isinstance(pair, str) else pair for pair in trained["merges"])
    return Vocabulary(tokens, [(left, right) for left, right in merges])


def _unigram(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Vocabulary:
    """Subwords of a unigram language model: Kudo 2018 (https://arxiv.org/abs/1804.10959)."""
    alphabet = set(_kept(_used(words, list), settings, always=[MARK]))
    if len(alphabet) == 1:  # the mark alone
        return Vocabulary([])
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.size, special_tokens=INSIDE, unk_token=INSIDE[UNK], show_progress=False
    )
    trained = _fitted(words, alphabet, models.Unigram(), trainer)["vocab"]
    # The trainer sums in an order that changes from process to process, and ranks rare letters at
    # random. So scores are rounded, letters at the bottom share the lowest score, and equal scores
    # go by the alphabet: the same texts give the same vocabulary.
    scores = {token: score for token, score in trained if token not in INSIDE}
    lowest = min(scores.values())
    bottom = lowest + 1e-4 * (len(alphabet) + 1)  # letters without a count are 1e-4 apart
    for token, score in scores.items():
        scores[token] = round(lowest if len(token) == 1 and score < bottom else score, 4)
    if settings.min_count > 1:
        tokenizer = Tokenizer(unigram_model(_ranked(scores)))
        used = _used(words, lambda word: tokenizer.encode(MARK + word).tokens)
        rare = {token for token in scores if len(token) > 1 and used[token] < settings.min_count}
        scores = {token: score for token, score in scores.items() if token not in rare}
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


@final
class TextTokenizer(Spelling):
    """Splits a text into token ids and joins ids to a text.

    >>> from sixjars_runtime.text.spelling import TokenizerSettings
    >>> tokenizer = TextTokenizer.trained(["Hello, how are you?"], TokenizerSettings(), "source")
    >>> tokenizer.encode("Hello, you?")
    [4, 8, 7, 9]
    >>> tokenizer.decode([4, 8, 7, 9, STOP]), tokenizer.tokens([4, 8, 7, 9, STOP])
    ('Hello, you?', ['Hello', ',', 'you', '?', '<stop>'])
    """

    @classmethod
    def trained(cls, texts: Iterable[str], settings: TokenSettings, what: str) -> Self:
        """Learn a vocabulary from training texts; `what` names the field in messages."""
        words, spaces = _counted(texts, prepared_of(settings))
        vocabulary = KINDS[settings.tokens](words, spaces, settings)
        if not set(vocabulary.tokens) - {MARK, " "}:
            raise DataError(
                f"{what}: no token is left for the vocabulary with min_count {settings.min_count} "
                f"and size {settings.size}; lower min_count or raise size."
            )
        return cls(vocabulary, settings)

    def grown(self, other: Self, settings: TokenSettings, *, extra: int = 0) -> Self:
        """The same with tokens of another after its own, as many as `size` and `extra` allow."""
        known = set(self._vocabulary.tokens)
        new = [token for token in other._vocabulary.tokens if token not in known]
        room = max(0, settings.size + extra - self.size)
        return type(self)(Vocabulary([*self._vocabulary.tokens, *new[:room]]), settings)

    def extended(self, words: Iterable[str], settings: TokenSettings, *, extra: int) -> Self:
        """The same with the first `extra` of these words that it lacks, whatever `size` is.

        What texts never have as one token is passed over: a word with a space, or a hyphen in it.
        """
        tokens = dict.fromkeys(self._vocabulary.tokens)
        most = len(tokens) + extra
        for word in words:
            if len(tokens) >= most:
                break
            tokens |= dict.fromkeys(self._as_token(word))
        return type(self)(Vocabulary(list(tokens)), settings)

    def _as_token(self, word: str) -> list[str]:
        """A word as its one token, where the vocabulary lacks it; else nothing.

        A mark that the vocabulary has in another form is not lacking: that form stands in for it.
        """
        tokens = self.split(word)
        is_new = len(tokens) == 1 and self._tokenizer.token_to_id(tokens[0]) is None
        return tokens if is_new else []

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """The ids of each text.

        With `open`, a word outside the vocabulary has a number from `size` on in place of `<unk>`.
        """
        check_whole(texts)
        words = [text.split() or [""] for text in texts]
        different = [*dict.fromkeys(chain.from_iterable(words))]
        ids_of = dict(zip(different, self._ids_of_words(different, open=open), strict=True))
        skipped = int(self._kind == "characters")  # the first word of a text follows no space
        rows = (chain.from_iterable(map(ids_of.__getitem__, row)) for row in words)
        return [[*islice(row, skipped, None)] for row in rows]

    def encode_flat(self, texts: Any, *, open: bool = False) -> Any:
        """The same for a `pyarrow` array of texts, which may be very many."""
        words, places, begins = words_of(texts)
        ids, starts = flattened(self._ids_of_words(words, open=open))
        first, count = starts[places], np.diff(starts)[places]
        if self._kind == "characters":  # the first word of a text follows no space
            first[begins[:-1]] += 1
            count[begins[:-1]] -= 1
        return ids[ranges(first, count)], begins_of(count)[begins]

    def word_index(self, texts: Sequence[str]) -> list[list[int]]:
        """For each token of each text, the index of its word between white space, from 0.

        For characters, each is its own word: its position.
        """
        if self._kind == "characters":
            return [list(range(len(ids))) for ids in self.encode_many(texts)]
        return super().word_index(texts)


AnyTokenizer = TextTokenizer | GivenTokenizer  # learned from the training texts, or from a file


def tokenizer_of_file(path: Path, what: str) -> GivenTokenizer:
    """Read somebody's own tokenizer from a file; `what` names the field in messages."""
    check_file(path)
    if path.stat().st_size > LARGEST:
        raise DataError(f"{what}: {path} is larger than {LARGEST:,} bytes, so it is no tokenizer.")
    try:
        return GivenTokenizer.of(path.read_bytes())
    except ValueError as error:
        expected = "a tokenizer.json of Hugging Face or a SentencePiece model"
        raise DataError(f"{what}: {path} is not {expected}, or damaged: {error}.") from error


def flat_ids(tokenizer: AnyTokenizer, texts: Any, *, open: bool = False) -> Flat:
    """The ids of a `pyarrow` array of texts, those of all rows one after the other."""
    if isinstance(tokenizer, TextTokenizer):
        flat: Flat = tokenizer.encode_flat(texts, open=open)
        return flat
    return flattened(tokenizer.encode_many(texts.to_pylist(), open=open))


@final
@dataclass(frozen=True)
class TextEncoding:
    """How the texts of a column become ids: a tokenizer, a limit, and the segments of a text."""

    column: str
    tokenizer: AnyTokenizer
    limit: int | None
    """Most ids of a text, the ends of its segments counted."""
    segments: str
    copies: bool
    """Whether words outside the vocabulary have numbers of their own."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; each segment of a text in segments ends in `<stop>`."""
        if self.segments == "none":
            rows = self.tokenizer.encode_many(texts, open=self.copies)
            return [row[: self.limit] for row in rows]
        split = [segments_of(text, self.segments) for text in texts]
        ids = iter(self.tokenizer.encode_many([*chain(*split)], open=self.copies))
        rows = [[*chain.from_iterable((*next(ids), STOP) for _ in parts)] for parts in split]
        return [shortened(row, self.limit, self.segments, end=STOP) for row in rows]

    def flat(self, texts: Any) -> Any:
        """The same for a `pyarrow` array of texts, which may be very many."""
        if self.segments == "none":
            flat = flat_ids(self.tokenizer, texts, open=self.copies)
        else:
            split = [segments_of(text, self.segments) for text in texts.to_pylist()]
            flat = segment_ids(partial(flat_ids, self.tokenizer), split, open=self.copies)
        if self.segments == "turns":
            rows = rows_of(flat)
            return flattened([shortened(row, self.limit, "turns", end=STOP) for row in rows])
        return flat if self.limit is None else cut(flat, self.limit)

    def words(self, text: str) -> list[str]:
        """The words of a text, one for each position, spelled as the tokenizer does."""
        return words_of_segments(text, self.segments, self.tokenizer.split, self.limit)

    def key(self) -> str:
        """All that the ids depend on, besides the texts."""
        settings = {"limit": self.limit, "segments": self.segments, "copies": self.copies}
        rule = {"rule": RULE} if self.segments == "sentences" else {}
        return json.dumps(settings | rule) + self.tokenizer.to_json()


UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")
"""How the names of letters begin, of scripts that write no spaces between words."""

Decode = Callable[[Sequence[int], Sequence[str]], str]
"""Makes a text of ids, and of the words of a source that some of them copy."""


def joined(decode: Decode, ids: Sequence[int], words: Sequence[str]) -> list[int]:
    """The word that each token belongs to, counted from 0.

    A token goes on with the word before it where nothing stands between their letters: no space and
    no punctuation. So subwords and characters become words, and words stay what they are; a space
    belongs to the word behind it.

    >>> pieces = [" un", "do", " it", ","]
    >>> joined(lambda ids, words: "".join(pieces[at] for at in ids).strip(), [0, 1, 2, 3], [])
    [0, 0, 1, 2]
    """
    alone = {number: decode([number], words) for number in set(ids)}
    words_of_tokens: list[int] = []
    for at, number in enumerate(ids):
        before, current = alone[ids[at - 1]] if at else "", alone[number]
        apart = True
        if before and current:
            apart = decode([ids[at - 1], number], words) == f"{before} {current}"
        goes_on = before and (not before.strip() or (not apart and _meet(before, current)))
        latest = words_of_tokens[-1] if words_of_tokens else -1
        words_of_tokens.append(latest if goes_on else latest + 1)
    return words_of_tokens


def _meet(before: str, current: str) -> bool:
    """Whether a letter follows a letter; half a character is one too.

    Scripts without spaces have no words to join.
    """
    return all(
        (category(letter)[0] in "LMN" or letter == "\ufffd")
        and not name(letter, "").startswith(UNSPACED)
        for letter in (before[-1], current[0])
    )
