"""How much the output shares with the references or with itself, and how much of it would have to be corrected.

BLEU, chrF and TER are sacrebleu's, ROUGE is rouge-score's; both libraries load when first used.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, final

from sixjars import version_of
from sixjars.evaluation.metrics.outcome import Outcome

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric

SacreName = Literal["bleu", "chrf", "ter"]


def bleu(outcomes: Sequence[Outcome]) -> float:
    r"""Geometric mean of the n-gram precisions p_1 to p_4, less where the output is too short; 0 to 100.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \cdot \exp\Bigl(\tfrac14 \sum_{n=1}^4 \log p_n\Bigr)

    `c` words were written where the references nearest in length have `r`. Papineni et al. 2002, section 2.3
    (https://aclanthology.org/P02-1040/), computed over the whole corpus as in Post 2018
    (https://aclanthology.org/W18-6319/). 0 where nothing matches, so also when all texts are empty;
    and 0 where no output has four words, however right it is: then chrF tells more.
    """
    return _sacre(outcomes, "bleu")


def chrf(outcomes: Sequence[Outcome]) -> float:
    r"""F-score of character n-grams up to six, recall counting twice as much; 0 to 100.

    .. math:: 100 \cdot \frac{(1 + \beta^2) \, P R}{\beta^2 P + R}, \quad \beta = 2

    `P` and `R` are means over the n-gram orders. Popović 2015 (https://aclanthology.org/W15-3049/).
    0 where nothing matches, so also when all texts are empty.
    """
    return _sacre(outcomes, "chrf")


def ter(outcomes: Sequence[Outcome]) -> float:
    r"""Word edits, where moving a phrase is one edit, in percent of the reference's length.

    .. math:: 100 \cdot \frac{\sum_i \min_{r \in R_i} \mathrm{edits}(\hat y_i, r)}
              {\sum_i \mathrm{mean}_{r \in R_i} |r|}

    Snover et al. 2006 (https://aclanthology.org/2006.amta-papers.25/). Capitals do not count; may exceed 100.
    When all references are empty: 0 if all candidates are empty too, else 100.
    """
    return _sacre(outcomes, "ter")


def _sacre(outcomes: Sequence[Outcome], name: SacreName) -> float:
    """Sacrebleu wants a stream of first references, one of second ones, and None where there is no such."""
    width = max(len(outcome.references) for outcome in outcomes)
    streams = [
        [outcome.references[place] if place < len(outcome.references) else None for outcome in outcomes]
        for place in range(width)
    ]
    texts = [outcome.candidates[0] for outcome in outcomes]
    return float(_sacre_metric(name).corpus_score(texts, streams).score)  # type: ignore[arg-type]


def _sacre_metric(name: SacreName) -> "SacreMetric":
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name == "bleu":
        return BLEU(force=True)  # the text is scored as it is; no talk about a space before the full stop
    return CHRF() if name == "chrf" else TER()


def sacre_signature(outcomes: Sequence[Outcome], *, name: SacreName) -> str:
    """The line that sacrebleu itself prints."""
    metric = _sacre_metric(name)
    counts = {len(outcome.references) for outcome in outcomes}
    metric.num_refs = counts.pop() if len(counts) == 1 else -1
    return str(metric.get_signature())


@final
class SpaceTokenizer:
    """Small letters, split at spaces.

    The tokenizer of rouge-score keeps a-z and 0-9 alone, so that nothing of a Hindi text is left.

    >>> SpaceTokenizer().tokenize("Main ghar जा रहा हूँ")
    ['main', 'ghar', 'जा', 'रहा', 'हूँ']
    """

    def tokenize(self, text: str) -> list[str]:
        """The words of a text."""
        return text.lower().split()


def rouge_n(outcomes: Sequence[Outcome], *, name: str) -> float:
    r"""F-score of shared words or pairs of words, best reference of each example, averaged; 0 to 1.

    .. math:: \frac1N \sum_i \max_{r \in R_i} \frac{2 P R}{P + R}, \quad
              P = \frac{|\hat y_i \cap r|}{|\hat y_i|}, \; R = \frac{|\hat y_i \cap r|}{|r|}

    The sets count repeats. Lin 2004, section 2 (https://aclanthology.org/W04-1013/), with an F-score and Porter stems
    as in its ROUGE-1.5.5 script: what rouge-score computes with its own tokenizer, which keeps the letters a to z and
    digits alone. Names that end in `_spaces` split words at spaces and do not stem, for texts in any script. A text
    without words, or of one word where pairs are counted, shares nothing: 0.
    """
    return _rouge(outcomes, name)


def rouge_l(outcomes: Sequence[Outcome], *, name: str) -> float:
    r"""F-score of the longest common subsequence, best reference of each example, averaged; 0 to 1.

    .. math:: \frac1N \sum_i \max_{r \in R_i} \frac{2 P R}{P + R}, \quad
              P = \frac{LCS(\hat y_i, r)}{|\hat y_i|}, \; R = \frac{LCS(\hat y_i, r)}{|r|}

    Lin 2004, section 3.1 (https://aclanthology.org/W04-1013/), with equal weight for P and R; each text is one
    sentence. Words as for `rouge1` and `rouge1_spaces`.
    """
    return _rouge(outcomes, name)


ROUGES: Final[Mapping[str, Callable[..., float]]] = {
    **{f"rouge{n}{ending}": rouge_n for ending in ("", "_spaces") for n in (1, 2)},
    **{f"rougeL{ending}": rouge_l for ending in ("", "_spaces")},
}


def _rouge(outcomes: Sequence[Outcome], name: str) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    kind, _, spaces = name.partition("_")
    scorer = RougeScorer([kind], tokenizer=SpaceTokenizer()) if spaces else RougeScorer([kind], use_stemmer=True)
    best = (scorer.score_multi(outcome.references, outcome.candidates[0])[kind].fmeasure for outcome in outcomes)
    return math.fsum(best) / len(outcomes)


def rouge_how(_: Sequence[Outcome], *, name: str) -> tuple[str, ...]:
    """Names the library, since the count is its own, and the tokenizer."""
    how = ("tok:spaces", "no stems") if name.endswith("_spaces") else ("tok:a-z0-9", "Porter stems")
    return "F1", "best reference", *how, "case:lower", f"rouge-score:{version_of('rouge-score')}"


def character_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Fewest characters to insert, delete or replace, for each character of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    The distance `d` is that of Levenshtein 1966, "Binary codes capable of correcting deletions,
    insertions, and reversals". A character is a Unicode code point: a vowel sign of Devanagari counts, and so
    does a space.
    Of references that are equally near, the longest one is counted. The rate may exceed 1.
    When every reference is empty there is nothing to divide by: 0 if every candidate is empty too, else 1,
    which is also what sacrebleu's TER says.

    >>> character_error_rate([Outcome(("kitten",), ("sitting",))])
    0.5
    """
    return _error_rate(outcomes, units=list)


def word_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Fewest words to insert, delete or replace, for each word of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    Levenshtein 1966, over what stands between spaces. Nearest reference, range and empty references as in
    `character_error_rate`.

    >>> word_error_rate([Outcome(("I am going home",), ("I going to home",))])
    0.5
    """
    return _error_rate(outcomes, units=str.split)


def _error_rate(outcomes: Sequence[Outcome], *, units: Callable[[str], list[str]]) -> float:
    from rapidfuzz.distance.Levenshtein import distance

    edits = length = 0
    for outcome in outcomes:
        said = units(outcome.candidates[0])
        rights = [units(reference) for reference in outcome.references]
        fewest, shortfall = min((distance(said, right), -len(right)) for right in rights)
        edits += fewest
        length -= shortfall
    if length == 0:
        return 1.0 if edits else 0.0
    return edits / length


def distinct1(outcomes: Sequence[Outcome]) -> float:
    r"""Share of different words among all words of the best candidates; 0 to 1.

    .. math:: \frac{|\{\text{n-grams}\}|}{\#\,\text{n-grams}}, \quad n = 1

    Li et al. 2016, section 5 (https://aclanthology.org/N16-1014/). Low values betray a model that always says
    the same. It falls as the corpus grows: compare equal numbers of examples. 0 where nothing was said.

    >>> distinct1([Outcome(("yes",), ("I do not know",)), Outcome(("no",), ("I do",))])
    0.6666666666666666
    """
    return _distinct(outcomes, n=1)


def distinct2(outcomes: Sequence[Outcome]) -> float:
    r"""Share of different pairs of neighbouring words among all such pairs of the best candidates; 0 to 1.

    .. math:: \frac{|\{\text{n-grams}\}|}{\#\,\text{n-grams}}, \quad n = 2

    Li et al. 2016, section 5 (https://aclanthology.org/N16-1014/), who divide by the number of words instead,
    so that even texts without a repeat stay below 1. 0 where no candidate has two words.

    >>> distinct2([Outcome(("yes",), ("I do not know",)), Outcome(("no",), ("I do",))])
    0.75
    """
    return _distinct(outcomes, n=2)


def _distinct(outcomes: Sequence[Outcome], *, n: int) -> float:
    ngrams = [
        tuple(words[start : start + n])
        for words in (outcome.candidates[0].split() for outcome in outcomes)
        for start in range(len(words) - n + 1)
    ]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0
