"""Captions as their literature scores them: several references for each, capitals and punctuation left out.

The numbers are those of the COCO caption tools (Chen et al. 2015, https://arxiv.org/abs/1504.00325), except that
they split texts with the Penn Treebank tokenizer and these with `caption_words`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final
from unicodedata import category

from sixjars.evaluation.metrics.outcome import Outcome

WORDS: Final = "tok:spaces, ends bare|case:lower"
"""What a signature says about `caption_words`."""

Ngram = tuple[str, ...]

_BETA: Final = 1.2
_ORDERS: Final = (1, 2, 3, 4)
_SIGMA: Final = 6.0


def caption_words(text: str) -> list[str]:
    """Small letters, split at spaces; each word without punctuation and symbols at its ends.

    What is inside a word stays, so that `t-shirt`, `dog's` and `3.5` are words; the Penn Treebank tokenizer
    makes two of `dog's`. A piece of nothing but punctuation is no word.

    >>> caption_words("A dog's T-shirt , (blue)!")
    ['a', "dog's", 't-shirt', 'blue']
    """
    return [word for word in map(_bare, text.lower().split()) if word]


@lru_cache(maxsize=100_000)
def _bare(piece: str) -> str:
    """By category and not by a pattern: the vowel signs of Devanagari are no letters, but must stay."""
    kept = [place for place, character in enumerate(piece) if category(character)[0] not in "PS"]
    return piece[kept[0] : kept[-1] + 1] if kept else ""


def _ngrams(words: list[str], n: int) -> Counter[Ngram]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def caption_bleu(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""BLEU-n of captions: geometric mean of the precisions up to n-grams, less where too short; 0 to 100.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \cdot \exp\Bigl(\tfrac1n \sum_{k=1}^n \log p_k\Bigr)

    `c` words were written where the references nearest in length (of two equally near, the shorter) have `r`.
    An n-gram counts as often as in the one reference that has it most.
    Papineni et al. 2002, section 2.3 (https://aclanthology.org/P02-1040/), over the whole corpus and without
    smoothing: 0 where no n-gram matches. Words are those of `caption_words`; `bleu` keeps punctuation and
    capitals, so that the two never compare.

    >>> round(caption_bleu([Outcome(("A dog is running.", "The brown dog runs fast."), ("a dog runs",))], n=1), 2)
    71.65
    """
    matched, written = [0] * n, [0] * n
    said = wanted = 0
    for outcome in outcomes:
        words = caption_words(outcome.candidates[0])
        references = [caption_words(reference) for reference in outcome.references]
        said += len(words)
        wanted += _nearest(len(words), [len(reference) for reference in references])
        for order in range(n):
            matched[order] += _shared(words, references, order + 1)
            written[order] += max(0, len(words) - order)
    if not all(matched):
        return 0.0
    precisions = math.fsum(math.log(right / all_) for right, all_ in zip(matched, written, strict=True))
    return 100 * min(1.0, math.exp(1 - wanted / said)) * math.exp(precisions / n)


def _nearest(length: int, lengths: list[int]) -> int:
    return min(lengths, key=lambda other: (abs(other - length), other))


def _shared(words: list[str], references: list[list[str]], n: int) -> int:
    most: Counter[Ngram] = Counter()
    for reference in references:
        most |= _ngrams(reference, n)
    return (_ngrams(words, n) & most).total()


def rougeL_coco(outcomes: Sequence[Outcome]) -> float:  # noqa: N802
    r"""F-score of the longest common subsequence as the COCO tools take it, recall counting more; 0 to 1.

    .. math:: \frac1N \sum_i \frac{(1 + \beta^2) \, P R}{R + \beta^2 P}, \quad
              P = \max_{r \in R_i} \frac{LCS(\hat y_i, r)}{|\hat y_i|}, \;
              R = \max_{r \in R_i} \frac{LCS(\hat y_i, r)}{|r|}, \; \beta = 1.2

    Lin 2004, section 3.1 (https://aclanthology.org/W04-1013/), as in Chen et al. 2015
    (https://arxiv.org/abs/1504.00325). P and R may come from two different references, so `rougeL`, which takes
    both from one and weighs them alike, is another number. An empty text shares nothing: 0.

    >>> round(rougeL_coco([Outcome(("a dog", "a dog is in the park"), ("A dog in a park.",))]), 4)
    0.9071
    """
    return math.fsum(_rougeL(outcome) for outcome in outcomes) / len(outcomes)


def _rougeL(outcome: Outcome) -> float:  # noqa: N802
    from rapidfuzz.distance.LCSseq import similarity

    said = caption_words(outcome.candidates[0])
    references = [words for words in map(caption_words, outcome.references) if words]
    common = [similarity(said, reference) for reference in references]
    if not any(common):
        return 0.0
    precision = max(common) / len(said)
    recall = max(length / len(reference) for length, reference in zip(common, references, strict=True))
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


@final
@dataclass(frozen=True)
class _Weighted:
    """A text as vectors: for each order the weight of every n-gram, and the vector's length."""

    weights: list[dict[Ngram, float]]
    norms: list[float]
    words: int


def cider_d(outcomes: Sequence[Outcome]) -> float:
    r"""CIDEr-D: how alike captions and references are in the n-grams that few other pictures have; 0 to 10.

    .. math:: \frac1N \sum_i \frac14 \sum_{n=1}^4 \frac{10}{|R_i|} \sum_{r \in R_i}
              e^{-(|\hat y_i| - |r|)^2 / 2\sigma^2} \,
              \frac{\min(g_n(\hat y_i), g_n(r)) \cdot g_n(r)}{\|g_n(\hat y_i)\| \, \|g_n(r)\|},
              \quad g_n(y)_k = \#_k(y) \, \log \frac{N}{\max(1, d_k)}, \quad \sigma = 6

    `d_k` of the N examples have n-gram k in a reference. Vedantam, Zitnick & Parikh 2015
    (https://arxiv.org/abs/1411.5726); as in the COCO tools, words are not stemmed. The weights come from the
    references of these very examples: compare equal sets only. A single example scores 0, since nothing in it
    is rarer than the rest, and so does any n-gram that every example has. Captions under four words lack
    4-grams, so they stay below 10 however right they are.

    >>> pictures = [Outcome(("a red dog runs",), ("a red dog runs",)), Outcome(("two men sit here",), ("a man",))]
    >>> round(cider_d(pictures), 6)
    5.0
    """
    said = [_counted(outcome.candidates[0]) for outcome in outcomes]
    rights = [[_counted(reference) for reference in outcome.references] for outcome in outcomes]
    examples: Counter[Ngram] = Counter()
    for references in rights:
        examples.update({ngram for reference in references for counts in reference for ngram in counts})
    rarest = math.log(len(outcomes))
    rarity = {ngram: rarest - math.log(count) for ngram, count in examples.items()}
    total = 0.0
    for text, references in zip(said, rights, strict=True):
        ours = _weighted(text, rarity, rarest)
        alike = math.fsum(_similarity(ours, _weighted(reference, rarity, rarest)) for reference in references)
        total += alike / len(references)
    return 10 * total / len(outcomes)


def _counted(text: str) -> list[Counter[Ngram]]:
    words = caption_words(text)
    return [_ngrams(words, n) for n in _ORDERS]


def _weighted(counted: list[Counter[Ngram]], rarity: dict[Ngram, float], rarest: float) -> _Weighted:
    weights = [{ngram: count * rarity.get(ngram, rarest) for ngram, count in counts.items()} for counts in counted]
    norms = [math.sqrt(sum(weight * weight for weight in of_order.values())) for of_order in weights]
    return _Weighted(weights, norms, words=counted[0].total())


def _similarity(said: _Weighted, right: _Weighted) -> float:
    """The mean over the orders, less where the lengths differ."""
    total = 0.0
    for order in range(len(_ORDERS)):
        ours, theirs = said.weights[order], right.weights[order]
        norms = said.norms[order] * right.norms[order]
        if norms:
            total += sum(min(ours[ngram], theirs[ngram]) * theirs[ngram] for ngram in ours.keys() & theirs) / norms
    return total / len(_ORDERS) * math.exp(-((said.words - right.words) ** 2) / (2 * _SIGMA**2))
