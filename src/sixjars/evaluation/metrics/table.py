"""Every metric by name: this table is the whole registry."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from sixjars import version_of
from sixjars.errors import DataError, RecipeError, unknown
from sixjars.evaluation.metrics.answers import (
    labels_exact,
    labels_macro_f1,
    labels_micro_f1,
    macro_f1,
    mean_reciprocal_rank,
    micro_f1,
    perplexity,
    rank_how,
)
from sixjars.evaluation.metrics.attention import alignment_error_rate, focus_how, object_focus, rationale_metric
from sixjars.evaluation.metrics.captions import WORDS, caption_bleu, cider_d, rougeL_coco
from sixjars.evaluation.metrics.novelty import (
    NOVELTY,
    copied_words,
    distinct_captions,
    novel_ngrams,
    seen_in_training,
    vocabulary_used,
)
from sixjars.evaluation.metrics.outcome import Metric, Need, Outcome, Score
from sixjars.evaluation.metrics.overlap import (
    ROUGES,
    bleu,
    character_error_rate,
    chrf,
    distinct1,
    distinct2,
    rouge_how,
    sacre_signature,
    ter,
    word_error_rate,
)
from sixjars.evaluation.metrics.tours import tour_length_ratio, tour_over_nearest, valid_tours
from sixjars.recipe.outside import NOTHING, Outside

_ACCURACY: Final = "accuracy@"
_OF_INPUT: Final = frozenset[Need]({"candidates", "given"})
_ANY: Final = ("any reference", "case:mixed")
_SETS: Final = ("any reference", "between:', '", "case:mixed")
_LACKS: Final[dict[Need, str]] = {
    "candidates": "compares what search found, but {} has no candidates. Give at least one; the empty text is one.",
    "likelihood": "needs a log probability and at least 1 token (<stop> counts), but {} has none. Give both for the "
    "first reference.",
    "links": "compares predicted links with sure ones, but {} lacks one of them. Give links and sure; a set without "
    "links is allowed.",
    "familiar": "asks whether the best candidate is in the training data, but {} has no familiar. Say True or False.",
    "given": "compares outputs with the input, but {} has no given. Give the text of its first input.",
}
"""What an outcome without it is told, after the name of the metric."""
_ONE_AT_LEAST: Final[dict[Need, str]] = {
    "focus": "words whose objects have true boxes",
    "rationale": "the weight on the words that decide a document",
}
"""What not every outcome has to have."""


def exact_match(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose best candidate is a right answer.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in R_i]

    Rajpurkar et al. 2016, section 6.1 (https://aclanthology.org/D16-1264/), without its removal of articles,
    punctuation and capitals. An empty candidate is right only where a reference is empty.

    >>> exact_match([Outcome(("two", "2"), ("2",)), Outcome(("red",), ("Red",))])
    0.5
    """
    return accuracy(outcomes, k=1)


def accuracy(outcomes: Sequence[Outcome], *, k: int) -> float:
    r"""Share of examples with a right answer among the first `k` candidates.

    .. math:: \frac{1}{N} \sum_i [\{\hat y_{i1}, \dots, \hat y_{ik}\} \cap R_i \ne \emptyset]

    Called word accuracy for k = 1 in the transliteration task of Li et al. 2009
    (https://aclanthology.org/W09-3501/). Where search found fewer than `k`, those it found are asked.

    >>> accuracy([Outcome(("dilli",), ("delhi", "dilli"))], k=2)
    1.0
    """
    hits = sum(not set(outcome.references).isdisjoint(outcome.candidates[:k]) for outcome in outcomes)
    return hits / len(outcomes)


def _accuracy_at(k: int) -> Metric:
    return Metric(f"{_ACCURACY}{k}", partial(accuracy, k=k), how=_ANY, nbest=k)


def _bleu(n: int) -> Metric:
    return Metric(f"bleu{n}", partial(caption_bleu, n=n), how=("corpus", "closest length", "no smoothing", WORDS))


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("bleu", bleu, how=partial(sacre_signature, name="bleu")),
        Metric("chrf", chrf, how=partial(sacre_signature, name="chrf")),
        Metric("ter", ter, "lower", how=partial(sacre_signature, name="ter")),
        *(Metric(n, partial(rouge, name=n), how=partial(rouge_how, name=n)) for n, rouge in ROUGES.items()),
        *(_bleu(n) for n in (1, 2, 3, 4)),
        Metric("rougeL_coco", rougeL_coco, how=("beta:1.2", "best P, best R", WORDS)),
        Metric("cider_d", cider_d, how=("n:1-4", "sigma:6", "rarity:these references", WORDS)),
        Metric("distinct_captions", distinct_captions, how=(WORDS,)),
        Metric("vocabulary_used", vocabulary_used, how=(WORDS,)),
        Metric(
            "seen_in_training",
            seen_in_training,
            "lower",
            frozenset({"candidates", "familiar"}),
            how=("word for word",),
        ),
        Metric("exact_match", exact_match, how=_ANY),
        _accuracy_at(1),
        Metric("mean_reciprocal_rank", mean_reciprocal_rank, how=rank_how, nbest=10),
        Metric("macro_f1", macro_f1, how=("mean of F1", *_ANY)),
        Metric("micro_f1", micro_f1, how=("pooled", *_ANY)),
        Metric("labels_macro_f1", labels_macro_f1, how=("mean of F1", *_SETS)),
        Metric("labels_micro_f1", labels_micro_f1, how=("pooled", *_SETS)),
        Metric("labels_exact", labels_exact, how=_SETS),
        Metric(
            "character_error_rate",
            character_error_rate,
            "lower",
            how=("nearest reference", "unit:code point", "case:mixed"),
        ),
        Metric("word_error_rate", word_error_rate, "lower", how=("nearest reference", "tok:spaces", "case:mixed")),
        Metric("distinct1", distinct1, how=("tok:spaces", "case:mixed")),
        Metric("distinct2", distinct2, how=("tok:spaces", "case:mixed")),
        Metric(
            "perplexity",
            perplexity,
            "lower",
            frozenset({"likelihood"}),
            how=("first reference", "per token with <stop>"),
        ),
        Metric("alignment_error_rate", alignment_error_rate, "lower", frozenset({"links"}), how=("corpus",)),
        Metric("object_focus", object_focus, needs=frozenset({"focus"}), how=focus_how),
        Metric(
            "tour_length_ratio",
            tour_length_ratio,
            "lower",
            _OF_INPUT,
            how=("closed", "first reference", "valid tours only"),
        ),
        Metric(
            "tour_over_nearest",
            tour_over_nearest,
            "lower",
            _OF_INPUT,
            how=("closed", "nearest from point 0", "valid tours only"),
        ),
        Metric("valid_tours", valid_tours, needs=_OF_INPUT, how=("closed",)),
        Metric("novel_bigrams", partial(novel_ngrams, n=2), needs=_OF_INPUT, how=NOVELTY),
        Metric("novel_trigrams", partial(novel_ngrams, n=3), needs=_OF_INPUT, how=NOVELTY),
        Metric("copied_words", copied_words, needs=_OF_INPUT, how=NOVELTY),
        rationale_metric("rationale_sentence", "sentence", "weight on the sentence that decides"),
        rationale_metric("rationale_word", "word", "share of its sentence"),
        rationale_metric("rationale_word_near", "near", "share of its sentence, with neighbours"),
    )
}
"""`accuracy@1` stands for `accuracy@k` with any k from 1 on."""


def metric_named(name: str, outside: Outside = NOTHING) -> Metric:
    """The metric of that name; one from outside has a path, `my_package.metrics.LOUDNESS`, or was handed over.

    >>> metric_named("accuracy@5").nbest
    5
    """
    if name in METRICS:
        return METRICS[name]
    if re.fullmatch(f"{_ACCURACY}[1-9][0-9]{{0,8}}", name):
        return _accuracy_at(int(name.removeprefix(_ACCURACY)))
    if name.startswith(_ACCURACY):
        raise RecipeError([f"metric {name!r} needs a whole number from 1 to 999999999 after the @, as accuracy@5."])
    handed = [one for one in outside.components if isinstance(one, Metric) and one.name == name]
    if handed or "." in name:
        found: Metric = handed[0] if handed else outside.component(name, Metric, "metric")
        return found
    known = [f"{_ACCURACY}k" if other.startswith(_ACCURACY) else other for other in METRICS]
    raise RecipeError([unknown("metric", name, known)])


def metrics_named(names: Sequence[str | Metric], outside: Outside = NOTHING) -> list[Metric]:
    """Every metric, or one error with every fault."""
    found: list[Metric] = []
    faults: list[str] = []
    for name in names:
        try:
            found.append(name if isinstance(name, Metric) else metric_named(name, outside))
        except RecipeError as error:
            faults += error.faults
    if faults:
        raise RecipeError(faults, where="the list of metrics")
    return found


def score(outcomes: Sequence[Outcome], metrics: Sequence[str | Metric]) -> list[Score]:
    """One score for each metric (by name, or a metric of your own), in the order given.

    >>> score([Outcome(("two", "2"), ("2",))], ["exact_match"])[0].value
    1.0
    """
    wanted = metrics_named(metrics)
    if not outcomes:
        raise DataError("There are no outcomes, so there is nothing to score. Give at least one example.")
    for metric in wanted:
        _check(metric, outcomes)
    return [
        Score(metric.name, metric.compute(outcomes), _signature(metric, outcomes), metric.better, len(outcomes))
        for metric in wanted
    ]


def _signature(metric: Metric, outcomes: Sequence[Outcome]) -> str:
    """How a value came about, in one line: that of another library, or the metric, how it is computed, our version."""
    how = metric.how(outcomes) if callable(metric.how) else metric.how
    return how if isinstance(how, str) else "|".join([metric.name, *how, f"sixjars:{version_of()}"])


def _check(metric: Metric, outcomes: Sequence[Outcome]) -> None:
    """Refuse outcomes that lack what a metric needs."""
    for number, outcome in enumerate(outcomes, start=1):
        if not outcome.references:
            raise DataError(f"example {number} has no references, but a metric needs one right answer or more.")
        has = {
            "candidates": bool(outcome.candidates),
            "likelihood": outcome.log_probability is not None and outcome.tokens > 0,
            "links": outcome.links is not None and outcome.sure is not None,
            "familiar": outcome.familiar is not None,
            "given": outcome.given is not None,
        }
        for need, told in _LACKS.items():
            if need in metric.needs and not has[need]:
                raise DataError(f"{metric.name} {told.format(f'example {number} of {len(outcomes)}')}")
    for need, what in _ONE_AT_LEAST.items():
        if need in metric.needs and all(getattr(outcome, need) is None for outcome in outcomes):
            raise DataError(
                f"{metric.name} needs {what}, but none of {len(outcomes)} examples has a {need}. "
                "Give it for one at least."
            )
