"""Every metric by name: this table is the whole registry."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from sixjars.errors import DataError, RecipeError, unknown
from sixjars.evaluation.metrics.answers import accuracy, exact_match, mean_reciprocal_rank, rank_signature
from sixjars.evaluation.metrics.captions import WORDS_SIGNATURE, caption_bleu, cider_d, rougeL_coco
from sixjars.evaluation.metrics.classes import labels_exact, labels_macro_f1, labels_micro_f1, macro_f1, micro_f1
from sixjars.evaluation.metrics.edits import character_error_rate, word_error_rate
from sixjars.evaluation.metrics.focus import focus_signature, object_focus
from sixjars.evaluation.metrics.keys import key_metric
from sixjars.evaluation.metrics.likelihood import perplexity
from sixjars.evaluation.metrics.links import alignment_error_rate
from sixjars.evaluation.metrics.meteor import meteor_exact_stem
from sixjars.evaluation.metrics.novelty import NOVELTY_SIGNATURE, copied_words, novel_ngrams
from sixjars.evaluation.metrics.outcome import Better, Compute, Metric, Need, Outcome, Score, signed
from sixjars.evaluation.metrics.overlap import (
    bleu,
    chrf,
    distinct1,
    distinct2,
    rouge1,
    rouge2,
    rouge_signature,
    rougeL,
    sacre_signature,
    ter,
)
from sixjars.evaluation.metrics.tours import tour_length_ratio, tour_over_nearest, valid_tours
from sixjars.evaluation.metrics.variety import distinct_captions, seen_in_training, vocabulary_used

_TEXT: Final = frozenset[Need]({"candidates"})
_ACCURACY: Final = "accuracy@"
_ONE_AT_LEAST: Final[dict[Need, str]] = {
    "focus": "words whose objects have true boxes",
    "key": "the weight on the place that decides a document",
}
"""What not every outcome has to have."""


def _accuracy_at(k: int) -> Metric:
    name = f"{_ACCURACY}{k}"
    sign = signed(name, "any reference", "case:mixed")
    return Metric(name, partial(accuracy, k=k), "higher", _TEXT, sign, nbest=k)


def _caption(name: str, compute: Compute, *how: str) -> Metric:
    return Metric(name, compute, "higher", _TEXT, signed(name, *how, WORDS_SIGNATURE))


def _caption_bleu(n: int) -> Metric:
    return _caption(f"bleu{n}", partial(caption_bleu, n=n), "corpus", "closest length", "no smoothing")


def _set_of_labels(name: str, compute: Compute, *how: str) -> Metric:
    return Metric(name, compute, "higher", _TEXT, signed(name, *how, "any reference", "between:', '", "case:mixed"))


def _novelty(name: str, compute: Compute) -> Metric:
    return Metric(name, compute, "higher", frozenset({"candidates", "given"}), signed(name, NOVELTY_SIGNATURE))


def _tour(name: str, compute: Compute, better: Better, *how: str) -> Metric:
    return Metric(name, compute, better, frozenset({"candidates", "given"}), signed(name, "closed", *how))


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("bleu", bleu, "higher", _TEXT, partial(sacre_signature, name="bleu")),
        Metric("chrf", chrf, "higher", _TEXT, partial(sacre_signature, name="chrf")),
        Metric("ter", ter, "lower", _TEXT, partial(sacre_signature, name="ter")),
        Metric("rouge1", rouge1, "higher", _TEXT, partial(rouge_signature, name="rouge1")),
        Metric("rouge2", rouge2, "higher", _TEXT, partial(rouge_signature, name="rouge2")),
        Metric("rougeL", rougeL, "higher", _TEXT, partial(rouge_signature, name="rougeL")),
        *(_caption_bleu(n) for n in (1, 2, 3, 4)),
        _caption("rougeL_coco", rougeL_coco, "beta:1.2", "best P, best R"),
        _caption("cider_d", cider_d, "n:1-4", "sigma:6", "rarity:these references"),
        _caption("meteor_exact_stem", meteor_exact_stem, "best reference", "nltk's Porter stems"),
        _caption("distinct_captions", distinct_captions),
        _caption("vocabulary_used", vocabulary_used),
        Metric(
            "seen_in_training",
            seen_in_training,
            "lower",
            frozenset({"candidates", "familiar"}),
            signed("seen_in_training", "word for word"),
        ),
        Metric("exact_match", exact_match, "higher", _TEXT, signed("exact_match", "any reference", "case:mixed")),
        _accuracy_at(1),
        Metric("mean_reciprocal_rank", mean_reciprocal_rank, "higher", _TEXT, rank_signature, nbest=10),
        Metric("macro_f1", macro_f1, "higher", _TEXT, signed("macro_f1", "mean of F1", "any reference", "case:mixed")),
        Metric("micro_f1", micro_f1, "higher", _TEXT, signed("micro_f1", "pooled", "any reference", "case:mixed")),
        _set_of_labels("labels_macro_f1", labels_macro_f1, "mean of F1"),
        _set_of_labels("labels_micro_f1", labels_micro_f1, "pooled"),
        _set_of_labels("labels_exact", labels_exact),
        Metric(
            "character_error_rate",
            character_error_rate,
            "lower",
            _TEXT,
            signed("character_error_rate", "nearest reference", "unit:code point", "case:mixed"),
        ),
        Metric(
            "word_error_rate",
            word_error_rate,
            "lower",
            _TEXT,
            signed("word_error_rate", "nearest reference", "tok:spaces", "case:mixed"),
        ),
        Metric("distinct1", distinct1, "higher", _TEXT, signed("distinct1", "tok:spaces", "case:mixed")),
        Metric("distinct2", distinct2, "higher", _TEXT, signed("distinct2", "tok:spaces", "case:mixed")),
        Metric(
            "perplexity",
            perplexity,
            "lower",
            frozenset({"likelihood"}),
            signed("perplexity", "first reference", "per token with <stop>"),
        ),
        Metric(
            "alignment_error_rate",
            alignment_error_rate,
            "lower",
            frozenset({"links"}),
            signed("alignment_error_rate", "corpus"),
        ),
        Metric("object_focus", object_focus, "higher", frozenset({"focus"}), focus_signature),
        _tour("tour_length_ratio", tour_length_ratio, "lower", "first reference", "valid tours only"),
        _tour("tour_over_nearest", tour_over_nearest, "lower", "nearest from point 0", "valid tours only"),
        _tour("valid_tours", valid_tours, "higher"),
        _novelty("novel_bigrams", partial(novel_ngrams, n=2)),
        _novelty("novel_trigrams", partial(novel_ngrams, n=3)),
        _novelty("copied_words", copied_words),
        key_metric("key_sentence", "sentence", "weight on the key sentence"),
        key_metric("key_word", "word", "share of its sentence"),
        key_metric("key_word_near", "near", "share of its sentence, with neighbours"),
    )
}
"""`accuracy@1` stands for `accuracy@k` with any k from 1 on."""


def names() -> list[str]:
    """Every metric there is, in the order of the alphabet; `accuracy@1` stands for any `accuracy@k`.

    >>> names()[:3]
    ['accuracy@1', 'alignment_error_rate', 'bleu']
    """
    return sorted(METRICS)


def metric_named(name: str) -> Metric:
    """The metric of that name.

    >>> metric_named("accuracy@5").nbest
    5
    """
    if name in METRICS:
        return METRICS[name]
    if re.fullmatch(f"{_ACCURACY}[1-9][0-9]{{0,8}}", name):
        return _accuracy_at(int(name.removeprefix(_ACCURACY)))
    if name.startswith(_ACCURACY):
        raise RecipeError([f"metric {name!r} needs a whole number from 1 to 999999999 after the @, as accuracy@5."])
    known = [f"{_ACCURACY}k" if other.startswith(_ACCURACY) else other for other in names()]
    raise RecipeError([unknown("metric", name, known)])


def score(outcomes: Sequence[Outcome], metrics: Sequence[str]) -> list[Score]:
    """One score for each metric, in the order asked for.

    >>> score([Outcome(("two", "2"), ("2",))], ["exact_match"])[0].value
    1.0
    """
    wanted = _all_named(metrics)
    if not outcomes:
        raise DataError("There are no outcomes, so there is nothing to score. Give at least one example.")
    for metric in wanted:
        for number, outcome in enumerate(outcomes, start=1):
            _check(metric, outcome, f"example {number} of {len(outcomes)}")
        for need, what in _ONE_AT_LEAST.items():
            if need in metric.needs and all(getattr(outcome, need) is None for outcome in outcomes):
                raise DataError(
                    f"{metric.name} needs {what}, but none of {len(outcomes)} examples has a {need}. "
                    "Give it for one at least."
                )
    return [
        Score(metric.name, metric.compute(outcomes), metric.signature(outcomes), metric.better, len(outcomes))
        for metric in wanted
    ]


def _all_named(metrics: Sequence[str]) -> list[Metric]:
    """Every metric, or one error with every fault."""
    found: list[Metric] = []
    faults: list[str] = []
    for name in metrics:
        try:
            found.append(metric_named(name))
        except RecipeError as error:
            faults += error.faults
    if faults:
        raise RecipeError(faults, where="the list of metrics")
    return found


def _check(metric: Metric, outcome: Outcome, which: str) -> None:
    if "candidates" in metric.needs and not outcome.candidates:
        raise DataError(
            f"{metric.name} compares what search found, but {which} has no candidates. "
            "Give at least one; the empty text is one."
        )
    if "likelihood" in metric.needs and (outcome.log_probability is None or outcome.tokens < 1):
        raise DataError(
            f"{metric.name} needs a log probability and at least 1 token (<stop> counts), but {which} has "
            f"log_probability {outcome.log_probability} and tokens {outcome.tokens}. "
            "Give both for the first reference."
        )
    if "links" in metric.needs and (outcome.links is None or outcome.sure is None):
        lacks = " and ".join(name for name in ("links", "sure") if getattr(outcome, name) is None)
        raise DataError(
            f"{metric.name} compares predicted links with sure ones, but {which} has no {lacks}. "
            "Give both; a set without links is allowed."
        )
    if "familiar" in metric.needs and outcome.familiar is None:
        raise DataError(
            f"{metric.name} asks whether the best candidate stands in the training data, but {which} has no "
            "familiar. Say True or False."
        )
    if "given" in metric.needs and outcome.given is None:
        raise DataError(
            f"{metric.name} compares outputs with what the model read, but {which} has no given. "
            "Give the text of its first input."
        )
