"""Metrics of the overlap of outputs with references, and of the edits between them.

BLEU, chrF and TER are sacrebleu's, ROUGE is rouge-score's; both libraries load when first used.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import zip_longest
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Literal

from sixjars.evaluation.metrics.outcome import Outcome, Rows, Sums
from sixjars.version import version_of

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric

SacreName = Literal["bleu", "chrf", "ter"]
REMEMBERED = 300_000
"""Characters of references whose n-grams are kept between scores: time against memory."""


def bleu(outcomes: Sequence[Outcome]) -> float:
    r"""BLEU: geometric mean of the n-gram precisions p_1 to p_4, with a brevity penalty; 0 to 100.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \cdot \exp\Bigl(\tfrac14 \sum_{n=1}^4 \log p_n\Bigr)

    The outputs have `c` words, the references nearest in length have `r`. Papineni et al. 2002,
    section 2.3 (https://aclanthology.org/P02-1040/), computed over the whole corpus as in Post 2018
    (https://aclanthology.org/W18-6319/). 0 where nothing matches, so also when all texts are empty;
    and 0 where no output has four words, however right it is: use chrF there.
    """
    return _sacre(outcomes, "bleu")


def chrf(outcomes: Sequence[Outcome]) -> float:
    r"""Character F-score (chrF): character n-grams up to six, recall counting twice; 0 to 100.

    .. math:: 100 \cdot \frac{(1 + \beta^2) \, P R}{\beta^2 P + R}, \quad \beta = 2

    `P` and `R` are means over the n-gram orders. Popović 2015 (https://aclanthology.org/W15-3049/).
    0 where nothing matches, so also when all texts are empty.
    """
    return _sacre(outcomes, "chrf")


def ter(outcomes: Sequence[Outcome]) -> float:
    r"""Translation edit rate: word edits (a moved phrase is one), in percent of reference length.

    .. math:: 100 \cdot \frac{\sum_i \min_{r \in R_i} \mathrm{edits}(\hat y_i, r)}
              {\sum_i \mathrm{mean}_{r \in R_i} |r|}

    Snover et al. 2006 (https://aclanthology.org/2006.amta-papers.25/). Capitals do not count; may
    exceed 100. When all references are empty: 0 if all candidates are empty too, else 100.
    """
    return _sacre(outcomes, "ter")


def _sacre(outcomes: Sequence[Outcome], name: SacreName) -> float:
    """The score of sacrebleu, with what it knows of the references cached where they are few."""
    streams = [*map(tuple, _streams(outcomes))]
    texts = [outcome.candidates[0] for outcome in outcomes]
    few = sum(len(text or "") for stream in streams for text in stream) <= REMEMBERED
    metric = _sacre_metric(name, tuple(streams) if few else ())
    return float(metric.corpus_score(texts, None if few else streams).score)  # type: ignore[arg-type]


def _streams(outcomes: Sequence[Outcome]) -> list[list[str | None]]:
    """All first references, all second ones, and so on, with None where an example has fewer."""
    return [*map(list, zip_longest(*(outcome.references for outcome in outcomes)))]


@lru_cache(maxsize=6)
def _sacre_metric(
    name: SacreName, streams: tuple[tuple[str | None, ...], ...] = ()
) -> "SacreMetric":
    """A metric; it keeps the n-grams of references that it is given: half of the work of every epoch."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    references: Any = {"references": [*map(list, streams)]} if streams else {}
    if name == "bleu":
        return BLEU(force=True, **references)  # no warning about a space before the full stop
    return CHRF(**references) if name == "chrf" else TER(**references)


def sacre_sums(name: SacreName) -> Sums:
    """The sums that sacrebleu computes a metric from."""

    def rows(outcomes: Sequence[Outcome]) -> Rows:
        texts: Any = [outcome.candidates[0] for outcome in outcomes]
        streams: Any = _streams(outcomes)
        found: Rows = _sacre_metric(name)._extract_corpus_statistics(texts, streams)
        return found

    def value(sums: Sequence[float]) -> float:
        return float(_sacre_metric(name)._compute_score_from_stats(list(sums)).score)

    return Sums(rows, value)


def sacre_signature(outcomes: Sequence[Outcome], *, name: SacreName) -> str:
    """The signature that sacrebleu itself prints."""
    metric = _sacre_metric.__wrapped__(name)
    counts = {len(outcome.references) for outcome in outcomes}
    metric.num_refs = counts.pop() if len(counts) == 1 else -1
    return str(metric.get_signature())


def rouge(outcomes: Sequence[Outcome], *, name: str) -> float:
    r"""ROUGE: F1 of shared stems (1), pairs (2) or longest subsequence (L), or of words; 0 to 1.

    .. math:: \frac1N \sum_i \max_{r \in R_i} \frac{2 P R}{P + R}, \quad
              P = \frac{m(\hat y_i, r)}{|\hat y_i|}, \; R = \frac{m(\hat y_i, r)}{|r|}

    `m` is how many n-grams both have, repeats counted, or the length of their longest common
    subsequence. Lin 2004, sections 2 and 3.1 (https://aclanthology.org/W04-1013/), with equal
    weight for P and R and Porter stems as in its ROUGE-1.5.5 script; each text is one sentence.
    Computed by rouge-score with its own tokenizer, which keeps the letters a to z and digits alone,
    so that nothing of a Hindi text is left. Names that end in `_spaces` split words at spaces and
    do not stem, for texts in any script. A text without n-grams shares nothing: 0.

    >>> rouge([Outcome(("main ghar जा रहा",), ("Main जा रहा",))], name="rouge1_spaces")
    0.8571428571428571
    """
    from rouge_score.rouge_scorer import RougeScorer

    kind, _, spaces = name.partition("_")
    words = SimpleNamespace(tokenize=lambda text: text.lower().split()) if spaces else None
    # a tokenizer of its own stems for itself
    scorer = RougeScorer([kind], use_stemmer=True, tokenizer=words)
    best = (scorer.score_multi(each.references, each.candidates[0])[kind] for each in outcomes)
    return math.fsum(score.fmeasure for score in best) / len(outcomes)


def rouge_how(_: Sequence[Outcome], *, name: str) -> tuple[str, ...]:
    """The tokenizer, and the version of the library."""
    words = "tok:spaces|no stems" if name.endswith("_spaces") else "tok:a-z0-9|Porter stems"
    return "F1", "best reference", words, "case:lower", f"rouge-score:{version_of('rouge-score')}"


def character_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Levenshtein distance in characters, for each character of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad
              r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    The distance `d` is that of Levenshtein 1966, "Binary codes capable of correcting deletions,
    insertions, and reversals". A character is a Unicode code point: a vowel sign of Devanagari
    counts, and so does a space. Of references that are equally near, the longest one is counted.
    The rate may exceed 1. When every reference is empty: 0 if every candidate is empty too, else 1,
    as in sacrebleu's TER.

    >>> character_error_rate([Outcome(("kitten",), ("sitting",))])
    0.5
    """
    return CHARACTER_ERRORS.over(outcomes)


def word_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""Levenshtein distance in words, for each word of the references.

    .. math:: \frac{\sum_i d(\hat y_i, r_i)}{\sum_i |r_i|}, \quad
              r_i = \arg\min_{r \in R_i} d(\hat y_i, r)

    Levenshtein 1966, over words split at spaces; otherwise as `character_error_rate`.

    >>> word_error_rate([Outcome(("I am going home",), ("I going to home",))])
    0.5
    """
    return WORD_ERRORS.over(outcomes)


def _errors(outcomes: Sequence[Outcome], *, units: Callable[[str], list[str]]) -> Rows:
    """Edits, and the length of the nearest reference."""
    from rapidfuzz.distance.Levenshtein import distance

    rows = []
    for outcome in outcomes:
        output = units(outcome.candidates[0])
        references = [units(reference) for reference in outcome.references]
        # of references that are equally near, the longest
        edits, length = min((distance(output, words), -len(words)) for words in references)
        rows.append((edits, -length))
    return rows


def _error_rate(sums: Sequence[float]) -> float:
    edits, length = sums
    return edits / length if length else float(edits > 0)


CHARACTER_ERRORS: Final = Sums(partial(_errors, units=list), _error_rate)
WORD_ERRORS: Final = Sums(partial(_errors, units=str.split), _error_rate)
