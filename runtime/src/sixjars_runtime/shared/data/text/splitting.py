"""How a text is split into tokens: a tokenizer of the library, made of a vocabulary that was learned elsewhere."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, Protocol, final

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from sixjars_runtime.shared.flow.special import SPECIAL, UNK

# Inside, the special tokens are spelled with a leading space. No token of a text can begin with a space and go on
# (white space is where a text is split), so a text that says `<stop>` never stops anything.
INSIDE = [f" {name}" for name in SPECIAL]
MARK: Final = "▁"
"""Begins a token that follows a space or the start of the text."""

_WHITE = Regex(r"[\s\x1c-\x1f\x85]+")  # what str.split takes for white space
_PUNCTUATION = Regex(rf"{MARK}?[[\p{{P}}\p{{S}}]&&[^{MARK}]]")  # one punctuation mark or symbol, and the mark before it
KINDS: Final = ("bpe", "characters", "unigram", "words")
"""What a token may be."""


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
    """The tokens of a vocabulary in the order of their ids; the special ones come before them and are not listed."""

    tokens: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)
    """For BPE: the pairs of tokens that become one, the most frequent first."""
    scores: list[float] = field(default_factory=list)
    """For a unigram language model: the log probability of each token."""

    def __post_init__(self) -> None:
        if not isinstance(self.tokens, list) or not all(isinstance(token, str) for token in self.tokens):
            raise ValueError("its tokens are not a list of texts")
        known = {*INSIDE, *self.tokens}
        if len(known) != len(INSIDE) + len(self.tokens):
            raise ValueError("a token is there twice")
        if not all({one, two, one + two} <= known for one, two in self.merges):  # the library would panic
            raise ValueError("a merge is not of tokens, or does not give one")
        if not all(map(isfinite, self.scores)):
            raise ValueError("a score is not finite")


def tokenizer_of(vocabulary: Vocabulary, settings: TokenSettings) -> Tokenizer:
    """A tokenizer of the library. All but the vocabulary is made here, so a saved one can bring nothing else along."""
    numbers = {token: number for number, token in enumerate([*INSIDE, *vocabulary.tokens])}
    model: models.Model
    if settings.tokens == "words":
        model = models.WordLevel(numbers, unk_token=INSIDE[UNK])
    elif settings.tokens == "unigram":
        model = unigram_model(vocabulary)
    else:  # characters are BPE that never merges
        merges = [(one, two) for one, two in vocabulary.merges] if settings.tokens == "bpe" else []
        model = models.BPE(numbers, merges, unk_token=INSIDE[UNK])
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer_of(settings)
    tokenizer.pre_tokenizer = pre_tokenizer_of(settings)
    return tokenizer


def unigram_model(vocabulary: Vocabulary) -> models.Model:
    """A unigram language model of the library."""
    scores = [0.0] * len(INSIDE) + vocabulary.scores
    return models.Unigram(list(zip([*INSIDE, *vocabulary.tokens], scores, strict=True)), UNK)


def is_marked(settings: TokenSettings) -> bool:
    """Whether tokens carry a mark where a space came before them."""
    return settings.tokens in ("bpe", "unigram") or (settings.tokens == "words" and settings.split == "punctuation")


def normalizer_of(settings: TokenSettings) -> normalizers.Normalizer:
    """What a text is made of before it is split."""
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if settings.lowercase else []
    steps += [normalizers.NFC(), normalizers.Replace(_WHITE, " "), normalizers.Strip()]
    if is_marked(settings):
        steps.append(normalizers.Replace(MARK, "_"))
    return normalizers.Sequence(steps)


def pre_tokenizer_of(settings: TokenSettings) -> pre_tokenizers.PreTokenizer:
    """Splits a normalized text into words, or leaves it whole."""
    if settings.tokens == "characters":
        return pre_tokenizers.Sequence([])
    if not is_marked(settings):
        return pre_tokenizers.WhitespaceSplit()
    steps: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Metaspace(replacement=MARK)]
    if settings.tokens == "words":
        steps.append(pre_tokenizers.Split(_PUNCTUATION, "isolated"))
    return pre_tokenizers.Sequence(steps)
