"""Metrics of n-grams: captions as their literature scores them; variety and novelty of outputs.

The numbers of captions are those of the COCO caption tools (Chen et al. 2015,
https://arxiv.org/abs/1504.00325), except that they split texts with the Penn Treebank tokenizer and
these with `caption_words`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final
from unicodedata import category

from sixjars.evaluation.metrics.outcome import Metric, Outcome, Rows, Score, Sums

Ngram = tuple[str, ...]
WORDS: Final = "tok:spaces, ends bare|case:lower"
"""How `caption_words` appear in a signature."""
NOVELTY: Final = ("corpus", "every occurrence", "tok:spaces", "case:lower")
"""How novelty is counted, for signatures."""

_BETA: Final = 1.2
_ORDERS: Final = (1, 2, 3, 4)
_SIGMA: Final = 6.0


def ngrams(words: Sequence[str], n: int) -> list[Ngram]:
    """All runs of `n` words, in order.

    >>> ngrams(["a", "red", "dog"], 2)
    [('a', 'red'), ('red', 'dog')]
    """
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def caption_words(text: str) -> list[str]:
    """Lower case, split at spaces; each word without punctuation and symbols at its ends.

    What is inside a word stays, so that `t-shirt`, `dog's` and `3.5` are words; the Penn Treebank
    tokenizer makes two of `dog's`. Punctuation alone is no word.

    >>> caption_words("A dog's T-shirt , (blue)!")
    ['a', "dog's", 't-shirt', 'blue']
    """
    return [word for word in map(_bare, text.lower().split()) if word]


@lru_cache(maxsize=100_000)
def _bare(word: str) -> str:
    # by category, not by a pattern: the vowel signs of Devanagari are no letters, but must stay
    kept = [place for place, character in enumerate(word) if category(character)[0] not in "PS"]
    return word[kept[0] : kept[-1] + 1] if kept else ""


def caption_bleu(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""BLEU-n of captions: geometric mean of n-gram precisions, with a brevity penalty; 0 to 100.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \cdot \exp\Bigl(\tfrac1n \sum_{k=1}^n \log p_k\Bigr)

    The outputs have `c` words, the references nearest in length (of two equally near, the shorter)
    have `r`. An n-gram counts as often as in the one reference that has it most. Papineni et al.
    2002, section 2.3 (https://aclanthology.org/P02-1040/), over the whole corpus and without
    smoothing: 0 where no n-gram matches. Words are those of `caption_words`; `bleu` keeps
    punctuation and capitals, so that the two never compare.

    >>> references = ("A dog is running.", "The brown dog runs fast.")
    >>> round(caption_bleu([Outcome(references, ("a dog runs",))], n=1), 2)
    71.65
    """
    return caption_sums(n).over(outcomes)


def caption_sums(n: int) -> Sums:
    """The sums of BLEU-n of captions."""
    return Sums(partial(_caption_rows, n=n), _caption_bleu)


def _caption_rows(outcomes: Sequence[Outcome], *, n: int) -> Rows:
    """Words of output and reference, then the n-grams of each order: matches, and all."""
    rows = []
    for outcome in outcomes:
        words = caption_words(outcome.candidates[0])
        references = [caption_words(reference) for reference in outcome.references]
        lengths = map(len, references)
        nearest = min(lengths, key=lambda length: (abs(length - len(words)), length))
        matched = [_shared(words, references, order + 1) for order in range(n)]
        written = [max(0, len(words) - order) for order in range(n)]
        rows.append([len(words), nearest, *matched, *written])
    return rows


def _caption_bleu(sums: Sequence[float]) -> float:
    n = len(sums) // 2 - 1
    length, reference = sums[:2]
    matched, written = sums[2 : 2 + n], sums[2 + n :]
    if not all(matched):
        return 0.0
    pairs = zip(matched, written, strict=True)
    precisions = math.fsum(math.log(right / every) for right, every in pairs)
    return 100 * min(1.0, math.exp(1 - reference / length)) * math.exp(precisions / n)


def _shared(words: list[str], references: list[list[str]], n: int) -> int:
    most: Counter[Ngram] = Counter()
    for reference in references:
        most |= Counter(ngrams(reference, n))
    return (Counter(ngrams(words, n)) & most).total()


def why_zero(
    metrics: Sequence[Metric], scores: Sequence[Score], outcomes: Sequence[Outcome]
) -> Iterator[str]:
    """A sentence for each BLEU that is 0 because no output, or no reference, has enough words."""
    zero = {score.name for score in scores if score.value == 0}
    for metric in metrics:
        if metric.sums is None or metric.name not in zero & {"bleu", "bleu2", "bleu3", "bleu4"}:
            continue
        right = [replace(each, candidates=(text,)) for each in outcomes for text in each.references]
        short = [
            name
            for name, texts in (("output", outcomes), ("reference", right))
            if not any(row[-1] for row in metric.sums.rows(texts))
        ]
        if short:
            n = metric.name[4:] or "4"
            none = " and no ".join(short)
            yield (
                f"{metric.name} is 0 because no {none} has {n} words, and it needs {n} in a row; "
                "compare exact_match, chrf or rougeL instead."
            )


def rougeL_coco(outcomes: Sequence[Outcome]) -> float:  # noqa: N802
    r"""ROUGE-L of the COCO tools: F-score of the longest common subsequence; 0 to 1.

    .. math:: \frac1N \sum_i \frac{(1 + \beta^2) \, P R}{R + \beta^2 P}, \quad
              P = \max_{r \in R_i} \frac{LCS(\hat y_i, r)}{|\hat y_i|}, \;
              R = \max_{r \in R_i} \frac{LCS(\hat y_i, r)}{|r|}, \; \beta = 1.2

    Lin 2004, section 3.1 (https://aclanthology.org/W04-1013/), as in Chen et al. 2015
    (https://arxiv.org/abs/1504.00325). P and R may come from two different references, so `rougeL`,
    which takes both from one and weighs them alike, is another number. An empty text shares
    nothing: 0.

    >>> round(rougeL_coco([Outcome(("a dog", "a dog is in the park"), ("A dog in a park.",))]), 4)
    0.9071
    """
    return math.fsum(_rougeL(outcome) for outcome in outcomes) / len(outcomes)


def _rougeL(outcome: Outcome) -> float:  # noqa: N802
    from rapidfuzz.distance.LCSseq import similarity

    output = caption_words(outcome.candidates[0])
    references = [words for words in map(caption_words, outcome.references) if words]
    common = [similarity(output, reference) for reference in references]
    if not any(common):
        return 0.0
    precision = max(common) / len(output)
    recall = max(length / len(words) for length, words in zip(common, references, strict=True))
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def cider_d(outcomes: Sequence[Outcome]) -> float:
    r"""CIDEr-D: similarity to the references in n-grams that few other examples have; 0 to 10.

    .. math:: \frac1N \sum_i \frac14 \sum_{n=1}^4 \frac{10}{|R_i|} \sum_{r \in R_i}
              e^{-(|\hat y_i| - |r|)^2 / 2\sigma^2} \,
              \frac{\min(g_n(\hat y_i), g_n(r)) \cdot g_n(r)}{\|g_n(\hat y_i)\| \, \|g_n(r)\|},
              \quad g_n(y)_k = \#_k(y) \, \log \frac{N}{\max(1, d_k)}, \quad \sigma = 6

    `d_k` of the N examples have n-gram k in a reference. Vedantam, Zitnick & Parikh 2015
    (https://arxiv.org/abs/1411.5726); as in the COCO tools, words are not stemmed. The weights come
    from the references of these very examples: compare equal sets only. A single example scores 0,
    since nothing in it is rarer than the rest, and so does any n-gram that every example has.
    Captions under four words lack 4-grams, so they stay below 10 however right they are.

    >>> right = Outcome(("a red dog runs",), ("a red dog runs",))
    >>> round(cider_d([right, Outcome(("two men sit here",), ("a man",))]), 6)
    5.0
    """
    texts = [[caption_words(text) for text in (o.candidates[0], *o.references)] for o in outcomes]
    counted: Counter[Ngram] = Counter()
    for _, *references in texts:
        counted.update({g for words in references for n in _ORDERS for g in ngrams(words, n)})
    most = math.log(len(outcomes))
    rarity = {ngram: most - math.log(count) for ngram, count in counted.items()}
    total = 0.0
    for output, *references in texts:
        ours = _vectors(output, rarity, most)
        alike = math.fsum(
            _cosine(ours, _vectors(words, rarity, most))
            * math.exp(-((len(output) - len(words)) ** 2) / (2 * _SIGMA**2))
            for words in references
        )
        total += alike / len(references)
    return 10 * total / len(outcomes)


_Vector = tuple[dict[Ngram, float], float]
"""The weight of each n-gram of a text, and their norm."""


def _vectors(words: list[str], rarity: dict[Ngram, float], most: float) -> list[_Vector]:
    """A vector for each order; an n-gram that no reference has is the rarest."""
    vectors = []
    for n in _ORDERS:
        counts = Counter(ngrams(words, n))
        weights = {ngram: count * rarity.get(ngram, most) for ngram, count in counts.items()}
        vectors.append((weights, math.sqrt(sum(weight * weight for weight in weights.values()))))
    return vectors


def _cosine(output: list[_Vector], reference: list[_Vector]) -> float:
    """The mean over the orders, with the weights of the output clipped to the reference's."""
    total = 0.0
    for (ours, our_norm), (theirs, their_norm) in zip(output, reference, strict=True):
        if our_norm * their_norm:
            shared = sum(
                min(ours[ngram], theirs[ngram]) * theirs[ngram] for ngram in ours.keys() & theirs
            )
            total += shared / (our_norm * their_norm)
    return total / len(_ORDERS)


def distinct(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Distinct-n: share of different n-grams among all n-grams of the outputs; 0 to 1.

    .. math:: \frac{|\{\text{n-grams}\}|}{\#\,\text{n-grams}}

    Li et al. 2016, section 5 (https://aclanthology.org/N16-1014/), who divide by the number of
    words for n = 2 too, so that even texts without a repeat stay below 1. Low values show that a
    model has one output for all inputs. It falls as the corpus grows: compare equal numbers of
    examples. 0 where no output has n words.

    >>> outcomes = [Outcome(("yes",), ("I do not know",)), Outcome(("no",), ("I do",))]
    >>> distinct(outcomes, n=1), distinct(outcomes, n=2)
    (0.6666666666666666, 0.75)
    """
    runs = [ngram for outcome in outcomes for ngram in ngrams(outcome.candidates[0].split(), n)]
    return len(set(runs)) / max(1, len(runs))


def distinct_captions(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different outputs for each output; 0 to 1.

    .. math:: \frac{|\{\hat y_1, \dots, \hat y_N\}|}{N}

    The share of unique captions in Devlin et al. 2015 (https://aclanthology.org/P15-2017/). Outputs
    are the same when their `caption_words` are. It falls as the corpus grows: compare equal numbers
    of examples.

    >>> texts = ("a dog", "A dog.", "a man", "a dog")
    >>> distinct_captions([Outcome(("x",), (text,)) for text in texts])
    0.5
    """
    captions = {tuple(caption_words(outcome.candidates[0])) for outcome in outcomes}
    return len(captions) / len(outcomes)


def vocabulary_used(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different words in all outputs together.

    .. math:: \Bigl|\bigcup_i \{w : w \in \hat y_i\}\Bigr|

    The types of van Miltenburg, Elliott & Vossen 2018 (https://aclanthology.org/C18-1147/); words
    are those of `caption_words`. It grows with the corpus: compare equal numbers of examples.

    >>> vocabulary_used([Outcome(("x",), (text,)) for text in ("a dog", "A dog.", "a man")])
    3.0
    """
    words = {word for outcome in outcomes for word in caption_words(outcome.candidates[0])}
    return float(len(words))


def seen_in_training(outcomes: Sequence[Outcome]) -> float:
    r"""Share of outputs that are in the training data word for word; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in \mathrm{train}]

    Devlin et al. 2015 (https://aclanthology.org/P15-2017/). A model that retrieves whole captions
    has 1; that of people is small but not 0.

    >>> outputs = {"a dog": True, "a cow": False}
    >>> seen_in_training([Outcome(("x",), (y,), familiar=seen) for y, seen in outputs.items()])
    0.5
    """
    return sum(outcome.familiar is True for outcome in outcomes) / len(outcomes)


def novel_ngrams(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Share of the outputs' n-grams that are not in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{g \in n\text{-grams}(\hat y_i) : g \notin n\text{-grams}(x_i)\}|}
                   {\sum_i |n\text{-grams}(\hat y_i)|}

    Figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368). Every occurrence counts,
    over the whole corpus; 0 where no output has n words. N-grams of the input may cross from one
    segment into the next. Words are split at white space, in lower case.

    Higher is called better, since a model that only copies has 0; but a high share is good only
    where the outputs are right too: compare it with that of the references, and with the other
    metrics.

    >>> outcome = Outcome(("x",), ("a dog barks at night",), given="At night\na dog runs")
    >>> novel_ngrams([outcome], n=2)
    0.5
    """
    return novel_sums(n).over(outcomes)


def novel_sums(n: int) -> Sums:
    """N-grams of the output that are in the input, and all."""
    return Sums(partial(_copied, n=n), lambda sums: (sums[1] - sums[0]) / max(1, sums[1]))


def copied_words(outcomes: Sequence[Outcome]) -> float:
    r"""Share of the outputs' words that are in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{w \in \hat y_i : w \in x_i\}|}{\sum_i |\hat y_i|}

    One less the novel 1-grams in figure 6 of See, Liu & Manning 2017
    (https://arxiv.org/abs/1704.04368), where there are words; 0 where no output has any. Higher is
    called better, for an output that keeps to its input makes up less; but copying everything has 1
    too. Words are split at white space, in lower case.

    >>> copied_words([Outcome(("x",), ("a cat barks",), given="A dog barks")])
    0.6666666666666666
    """
    return COPIED.over(outcomes)


def _copied(outcomes: Sequence[Outcome], *, n: int) -> Rows:
    """How many n-grams of each output are in its input, and how many there are."""
    rows = []
    for outcome in outcomes:
        known = set(ngrams((outcome.given or "").lower().split(), n))
        output = ngrams(outcome.candidates[0].lower().split(), n)
        rows.append((sum(ngram in known for ngram in output), len(output)))
    return rows


COPIED: Final = Sums(partial(_copied, n=1), lambda sums: sums[0] / max(1, sums[1]))
