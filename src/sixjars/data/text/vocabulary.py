"""Vocabularies: which tokens there are, learned from the training texts, and how a text is split into them.

Inside, the four special tokens are spelled with a leading space. No token of a text can hold a space there,
so a text that says `<stop>` never stops anything.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from sixjars.errors import DataError
from sixjars.flow.special import SPECIAL, UNK

INSIDE: Final = [f" {name}" for name in SPECIAL]
"""The special tokens as the tokenizer itself spells them."""
MARK: Final = "▁"
"""Begins a token that follows a space or the start of the text."""

_WHITE = Regex(r"[\s\x1c-\x1f\x85]+")  # what str.split takes for white space
_MARKS = Regex(rf"{MARK}?[[\p{{P}}\p{{S}}]&&[^{MARK}]]")  # one punctuation mark or symbol
_COPIES = 1000  # of one word in one line for a trainer

Model = dict[str, Any]


class TokenSettings(Protocol):
    """What a tokenizer depends on; the settings of a text field have it."""

    tokens: Any
    """`words`, `characters`, `bpe` or `unigram`."""
    split: Any
    """Whether words end at `punctuation` too, or at `spaces` alone."""
    lowercase: bool
    size: int
    min_count: int


def learned(texts: Iterable[str], settings: TokenSettings, what: str) -> Model:
    """The model of a tokenizer whose vocabulary is that of the texts; `what` names them in messages."""
    words, spaces = _counted(texts, _normalizer(settings))
    model = KINDS[settings.tokens](words, spaces, settings)
    names = model["vocab"] if isinstance(model["vocab"], dict) else [piece for piece, _ in model["vocab"]]
    if not set(names) - {*INSIDE, MARK, " "}:
        raise DataError(
            f"{what}: no token is left for the vocabulary with min_count {settings.min_count} and size "
            f"{settings.size}; lower min_count or raise size."
        )
    return plain_model(model)


def plain_model(model: Model) -> Model:
    """A model's vocabulary and merges, and nothing else that a library or a stranger put beside them."""
    kind, vocabulary = model["type"], model["vocab"]
    if kind == "Unigram":
        names = [str(piece) for piece, _ in vocabulary]
        made: Model = {"unk_id": UNK, "vocab": [[str(piece), float(score)] for piece, score in vocabulary]}
    else:
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError("its ids are not 0, 1, 2, …")
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        made = {"unk_token": INSIDE[UNK], "vocab": {str(token): int(at) for token, at in vocabulary.items()}}
    if kind == "BPE":
        made["merges"] = [[str(one), str(two)] for one, two in (_pair(merge) for merge in model["merges"])]
    if kind not in ("BPE", "Unigram", "WordLevel") or names[: len(INSIDE)] != INSIDE:
        raise ValueError("its special tokens are not the first four")
    return {"type": kind, **made}


def _pair(merge: Any) -> Sequence[str]:
    """A merge, which older versions of the library write as one text."""
    return merge.split(" ") if isinstance(merge, str) else merge


def tokenizer_of(model: Model, settings: TokenSettings) -> Tokenizer:
    """The tokenizer of a model. All but the model is made here, so a saved one can bring nothing else along."""
    tokenizer = Tokenizer(models.WordLevel({}, unk_token=INSIDE[UNK]))
    tokenizer.normalizer = _normalizer(settings)
    tokenizer.pre_tokenizer = _pre_tokenizer(settings)
    whole = json.loads(tokenizer.to_str()) | {"model": model, "added_tokens": []}
    return Tokenizer.from_str(json.dumps(whole))


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
        steps.append(pre_tokenizers.Split(_MARKS, "isolated"))
    return pre_tokenizers.Sequence(steps)


def _counted(texts: Iterable[str], normalizer: normalizers.Normalizer) -> tuple[Counter[str], int]:
    """How often each word between spaces was seen, and how many spaces there were."""
    words: Counter[str] = Counter()
    spaces = 0
    for text in texts:
        found = normalizer.normalize_str(text).split(" ")
        words.update(found)
        spaces += len(found) - 1
    del words[""]
    return words, spaces


def _kept(counts: Mapping[str, int], settings: TokenSettings, *, always: Sequence[str] = ()) -> list[str]:
    """The most frequent tokens that `min_count` and `size` allow; equal counts by the alphabet."""
    often = sorted(
        (token for token, count in counts.items() if count >= settings.min_count and token not in always),
        key=lambda token: (-counts[token], token),
    )
    return [*always, *often][: settings.size - len(SPECIAL)]


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate([*INSIDE, *tokens])}


def _letters(words: Mapping[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    return counts


def _words(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Model:
    """One token for each word; `min_count` and `size` decide which."""
    cut = _pre_tokenizer(settings)
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token, _ in cut.pre_tokenize_str(word):
            counts[token] += count
    return {"type": "WordLevel", "vocab": _numbered(_kept(counts, settings)), "unk_token": INSIDE[UNK]}


def _characters(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Model:
    """One token for each code point: BPE that never merges."""
    counts = _letters(words)
    if spaces:
        counts[" "] = spaces
    return {
        "type": "BPE",
        "vocab": _numbered(_kept(counts, settings)),
        "merges": [],
        "unk_token": INSIDE[UNK],
    }


def _fed(words: Mapping[str, int], alphabet: set[str]) -> Iterator[str]:
    """The words as a trainer counts them, cut where a letter is not in the alphabet."""
    for word, count in sorted(words.items()):
        parts = "".join(letter if letter in alphabet else " " for letter in MARK + word)
        for start in range(0, count, _COPIES):
            yield " ".join([parts] * min(_COPIES, count - start))


def _fitted(tokenizer: Tokenizer, trainer: trainers.Trainer, lines: Iterator[str]) -> Model:
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(lines, trainer)
    model: Model = json.loads(tokenizer.to_str())["model"]
    return model


def _bpe(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Model:
    """Byte pair encoding over letters: Sennrich, Haddow & Birch 2016 (https://arxiv.org/abs/1508.07909)."""
    alphabet = _kept(_letters(words), settings, always=[MARK])
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=settings.min_count,
        special_tokens=INSIDE,
        show_progress=False,
    )
    return _fitted(Tokenizer(models.BPE(unk_token=INSIDE[UNK])), trainer, _fed(words, set(alphabet)))


def _unigram(words: Mapping[str, int], spaces: int, settings: TokenSettings) -> Model:
    """Pieces of a unigram language model: Kudo 2018 (https://arxiv.org/abs/1804.10959).

    The trainer adds up in an order that changes from process to process, and ranks rare letters at random. So
    scores are rounded, letters at the bottom share the lowest score, and equal scores go in the order of the
    alphabet: the same texts give the same model.
    """
    alphabet = _kept(_letters(words), settings, always=[MARK])
    if len(alphabet) == 1:
        return {"type": "Unigram", "unk_id": UNK, "vocab": [[name, 0.0] for name in INSIDE]}
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.size, special_tokens=INSIDE, unk_token=INSIDE[UNK], show_progress=False
    )
    model = _fitted(Tokenizer(models.Unigram()), trainer, _fed(words, set(alphabet)))
    learned = [(piece, score) for piece, score in model["vocab"] if piece not in INSIDE]
    lowest = min(score for _, score in learned)
    bottom = lowest + 1e-4 * (len(alphabet) + 1)
    scores = {piece: round(lowest if len(piece) == 1 and score < bottom else score, 4) for piece, score in learned}
    if settings.min_count > 1:
        used = _used(_unigram_of(scores), words)
        scores = {
            piece: score for piece, score in scores.items() if len(piece) == 1 or used[piece] >= settings.min_count
        }
    best = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))  # letters stay
    return _unigram_of({piece: scores[piece] for piece in best[: settings.size - len(SPECIAL)]})


def _unigram_of(scores: Mapping[str, float]) -> Model:
    pieces = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return {
        "type": "Unigram",
        "unk_id": UNK,
        "vocab": [*([name, 0.0] for name in INSIDE), *map(list, pieces)],
    }


def _used(model: Model, words: Mapping[str, int]) -> Counter[str]:
    """How often a unigram model uses each piece to write the training words."""
    tokenizer = Tokenizer(models.Unigram([(piece, score) for piece, score in model["vocab"]], UNK))
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece in tokenizer.encode(MARK + word).tokens:
            counts[piece] += count
    return counts


KINDS: dict[str, Callable[[Mapping[str, int], int, TokenSettings], Model]] = {
    "bpe": _bpe,
    "characters": _characters,
    "unigram": _unigram,
    "words": _words,
}
"""How each kind of vocabulary is learned."""
