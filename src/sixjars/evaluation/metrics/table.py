"""Every metric by name: this table is the whole registry. Exact match and accuracy are here."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sixjars.evaluation.metrics import attention, classes, ngrams, overlap, tours, truth
from sixjars.evaluation.metrics.ngrams import WORDS
from sixjars.evaluation.metrics.outcome import Better, Compute, Metric, Need, Outcome, Score, Sums
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.sections import SearchSettings
from sixjars.version import version_of
from sixjars_runtime.errors import DataError, RecipeError, shown, unknown

_ACCURACY: Final = "accuracy@"
_ANY: Final = ("any reference", "case:mixed")
_LABELS: Final = ("any reference", "between:', '", "case:mixed")
_CAPTIONS: Final = ("corpus", "closest length", "no smoothing", WORDS)
_RARITY: Final = ("n:1-4", "sigma:6", "rarity:these references", WORDS)
_FOCUSED: Final = partial(attention.how_known, how="weight in box / area of box", need="focus")
_SPACES: Final = ("tok:spaces", "case:mixed")
_CHARACTERS: Final = ("nearest reference", "unit:code point", "case:mixed")
_WORDS: Final = ("nearest reference", *_SPACES)
_PER_TOKEN: Final = ("first reference", "per token with <stop>")
_TRUE_TOUR: Final = ("closed", "first reference", "valid tours only")
_NEAREST_TOUR: Final = ("closed", "nearest from point 0", "valid tours only")
_SEEN: Final = frozenset[Need]({"candidates", "familiar"})
_INPUT: Final = frozenset[Need]({"candidates", "given"})
_LIKELIHOOD: Final = frozenset[Need]({"likelihood"})
_LINKS: Final = frozenset[Need]({"links"})
_FOCUS: Final = frozenset[Need]({"focus"})
_RATIONALE: Final = frozenset[Need]({"rationale"})
_LACKS: Final[dict[Need, str]] = {
    "candidates": "compares outputs, but {} has no candidates. "
    "Give at least one; the empty text is one.",
    "likelihood": "needs a log probability and at least 1 token (<stop> counts), but {} has none. "
    "Give both for the first reference.",
    "links": "compares predicted links with sure ones, but {} lacks one of them. "
    "Give links and sure; a set without links is allowed.",
    "familiar": "asks whether the best candidate is in the training data, but {} has no familiar. "
    "Give True or False.",
    "given": "compares outputs with the input, but {} has no given. "
    "Give the text of its first input.",
}
"""The message for an outcome that lacks it, after the name of the metric."""
_ONE_AT_LEAST: Final[dict[Need, str]] = {
    "focus": "words whose objects have true boxes",
    "rationale": "the attention weight on true rationales",
}
"""The needs that at least one outcome must meet."""
_TRUTHS: Final[dict[Need, str]] = {"links": "sure", "focus": "focus", "rationale": "rationale"}
"""Needs that an outcome may lack, and what is then nothing."""


def exact_match(outcomes: Sequence[Outcome]) -> float:
    r"""Share of examples whose best candidate is a right answer; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in R_i]

    Rajpurkar et al. 2016, section 6.1 (https://aclanthology.org/D16-1264/), without its removal of
    articles, punctuation and capitals. An empty candidate is right only where a reference is empty.

    >>> exact_match([Outcome(("two", "2"), ("2",)), Outcome(("red",), ("Red",))])
    0.5
    """
    return accuracy(outcomes, k=1)


def accuracy(outcomes: Sequence[Outcome], *, k: int) -> float:
    r"""Share of examples with a right answer among the first `k` candidates; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\{\hat y_{i1}, \dots, \hat y_{ik}\} \cap R_i \ne \emptyset]

    Called word accuracy for k = 1 in the transliteration task of Li et al. 2009
    (https://aclanthology.org/W09-3501/). Where search found fewer than `k`, those it found are
    compared.

    >>> accuracy([Outcome(("dilli",), ("delhi", "dilli"))], k=2)
    1.0
    """
    hits = sum(not set(each.references).isdisjoint(each.candidates[:k]) for each in outcomes)
    return hits / len(outcomes)


def _accuracy_at(k: int) -> Metric:
    return Metric(f"{_ACCURACY}{k}", partial(accuracy, k=k), how=_ANY, nbest=k)


def _sacre(name: overlap.SacreName, compute: Compute, better: Better, **more: Any) -> Metric:
    signature = partial(overlap.sacre_signature, name=name)
    sums = overlap.sacre_sums(name)
    return Metric(name, compute, better, how=signature, sums=sums, **more)


def _rouge(name: str) -> Metric:
    how = partial(overlap.rouge_how, name=name)
    return Metric(name, partial(overlap.rouge, name=name), how=how)


def _caption_bleu(n: int) -> Metric:
    compute, sums = partial(ngrams.caption_bleu, n=n), ngrams.caption_sums(n)
    return Metric(f"bleu{n}", compute, how=_CAPTIONS, per_example=False, sums=sums)


def _f1(name: str, compute: Callable[..., float], sums: Sums, how: str) -> Metric:
    return Metric(name, compute, how=(how, *_ANY), per_example=False, sums=sums)


def _labels_f1(name: str, compute: Callable[..., float], sums: Sums, how: str) -> Metric:
    of_labels = partial(compute, multi_label=True)
    return Metric(f"labels_{name}", of_labels, how=(how, *_LABELS), per_example=False, sums=sums)


def _novel(name: str, n: int) -> Metric:
    compute = partial(ngrams.novel_ngrams, n=n)
    return Metric(name, compute, needs=_INPUT, how=ngrams.NOVELTY, sums=ngrams.novel_sums(n))


def _rationale(name: str, level: attention.Level, part: str) -> Metric:
    compute = partial(attention.rationale_mean, level=level)
    how = partial(attention.how_known, how=part, need="rationale")
    return Metric(name, compute, needs=_RATIONALE, how=how)


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        _sacre("bleu", overlap.bleu, "higher", per_example=False),
        _sacre("chrf", overlap.chrf, "higher"),
        _sacre("ter", overlap.ter, "lower", slow=True),
        *(_rouge(f"rouge{kind}{words}") for words in ("", "_spaces") for kind in "12L"),
        *map(_caption_bleu, (1, 2, 3, 4)),
        Metric("rougeL_coco", ngrams.rougeL_coco, how=("beta:1.2", "best P, best R", WORDS)),
        Metric("cider_d", ngrams.cider_d, how=_RARITY, per_example=False),
        Metric("distinct_captions", ngrams.distinct_captions, how=(WORDS,), per_example=False),
        Metric("vocabulary_used", ngrams.vocabulary_used, how=(WORDS,), per_example=False),
        Metric("seen_in_training", ngrams.seen_in_training, "lower", _SEEN, how=("word for word",)),
        Metric("exact_match", exact_match, how=_ANY),
        _accuracy_at(1),
        Metric("mean_reciprocal_rank", truth.mean_reciprocal_rank, how=truth.rank_how, nbest=10),
        _f1("macro_f1", classes.macro_f1, classes.macro_sums(), "mean of F1"),
        _f1("micro_f1", classes.micro_f1, classes.micro_sums(), "pooled"),
        _labels_f1(
            "macro_f1", classes.macro_f1, classes.macro_sums(multi_label=True), "mean of F1"
        ),
        _labels_f1("micro_f1", classes.micro_f1, classes.micro_sums(multi_label=True), "pooled"),
        Metric("labels_exact", classes.labels_exact, how=_LABELS),
        Metric(
            "character_error_rate",
            overlap.character_error_rate,
            "lower",
            how=_CHARACTERS,
            sums=overlap.CHARACTER_ERRORS,
        ),
        Metric(
            "word_error_rate",
            overlap.word_error_rate,
            "lower",
            how=_WORDS,
            sums=overlap.WORD_ERRORS,
        ),
        Metric("distinct1", partial(ngrams.distinct, n=1), how=_SPACES, per_example=False),
        Metric("distinct2", partial(ngrams.distinct, n=2), how=_SPACES, per_example=False),
        Metric(
            "perplexity",
            truth.perplexity,
            "lower",
            _LIKELIHOOD,
            _PER_TOKEN,
            sums=truth.LIKELIHOODS,
        ),
        Metric(
            "alignment_error_rate",
            attention.alignment_error_rate,
            "lower",
            _LINKS,
            partial(attention.how_linked, by="attention"),
            sums=attention.ALIGNMENT_ERRORS,
        ),
        Metric(
            "posterior_error_rate",
            attention.posterior_error_rate,
            "lower",
            _LINKS,
            partial(attention.how_linked, by="posterior attention"),
            sums=attention.POSTERIOR_ERRORS,
        ),
        Metric("object_focus", attention.object_focus, needs=_FOCUS, how=_FOCUSED),
        Metric("tour_length_ratio", tours.tour_length_ratio, "lower", _INPUT, _TRUE_TOUR),
        Metric("tour_over_nearest", tours.tour_over_nearest, "lower", _INPUT, _NEAREST_TOUR),
        Metric("valid_tours", tours.valid_tours, needs=_INPUT, how=("closed",)),
        _novel("novel_bigrams", 2),
        _novel("novel_trigrams", 3),
        Metric(
            "copied_words",
            ngrams.copied_words,
            needs=_INPUT,
            how=ngrams.NOVELTY,
            sums=ngrams.COPIED,
        ),
        _rationale("rationale_sentence", "sentence", "weight on the sentence that decides"),
        _rationale("rationale_word", "word", "share of its sentence"),
        _rationale("rationale_word_near", "near", "share of its sentence, with neighbours"),
    )
}
"""`accuracy@1` stands for `accuracy@k` with any k from 1 on."""


def metric_named(name: str, outside: AllowedCode = NOTHING) -> Metric:
    """The metric of that name; one of yours has a path, as `my_package.metrics.LOUDNESS`.

    >>> metric_named("accuracy@5").nbest
    5
    """
    if name in METRICS:
        return METRICS[name]
    if re.fullmatch(f"{_ACCURACY}[1-9][0-9]{{0,8}}", name):
        return _accuracy_at(int(name.removeprefix(_ACCURACY)))
    if name.startswith(_ACCURACY):
        numbers = "a whole number from 1 to 999999999"
        raise RecipeError([f"metric {name!r} needs {numbers} after the @, as accuracy@5."])
    for component in outside.components:
        if isinstance(component, Metric) and component.name == name:
            return component
    if "." in name or outside.hands(name):
        component = outside.component(name, Metric, "metric", is_class=False)
        # the name of the recipe, whose other keys refer to it
        return replace(as_metric(component), name=name)
    known = [f"{_ACCURACY}k" if other.startswith(_ACCURACY) else other for other in METRICS]
    raise RecipeError([unknown("metric", name, known) + outside.listed])


def as_metric(metric: "Metric | Compute") -> Metric:
    """A metric of yours: a `Metric`, or a plain function of outcomes; then higher is better.

    >>> def loud(outcomes):
    ...     return sum(outcome.candidates[0].isupper() for outcome in outcomes) / len(outcomes)
    >>> as_metric(loud).name
    'loud'
    """
    if isinstance(metric, Metric):
        return metric
    return Metric(str(getattr(metric, "__name__", "metric")), metric)


def score(outcomes: Sequence[Outcome], metrics: Sequence[str | Metric | Compute]) -> list[Score]:
    """One score for each metric (by name, or a metric or function of your own), in the order given.

    >>> score([Outcome(("two", "2"), ("2",))], ["exact_match"])[0].value
    1.0
    """
    named: list[Metric] = []
    faults: list[str] = []
    for name in metrics:
        try:
            named.append(metric_named(name) if isinstance(name, str) else as_metric(name))
        except RecipeError as error:
            faults += error.faults
    if faults:
        raise RecipeError(faults, where="the list of metrics")
    if not outcomes:
        raise DataError(
            "There are no outcomes, so there is nothing to score. Give at least one example."
        )
    for metric in named:
        _check(metric, outcomes)
    scores = []
    for metric in named:
        # the signature of a library, or the metric, settings and version
        signature = metric.how(outcomes) if callable(metric.how) else metric.how
        if not isinstance(signature, str):
            signature = "|".join([metric.name, *signature, f"sixjars:{version_of()}"])
        value = _value(metric, outcomes)
        scores.append(Score(metric.name, value, signature, metric.better, len(outcomes)))
    return scores


def is_annotated(outcome: Outcome, metric: Metric) -> bool:
    """Whether the truth that a metric compares attention with is known of an outcome."""
    needed = [part for need, part in _TRUTHS.items() if need in metric.needs]
    return all(getattr(outcome, part) is not None for part in needed)


def value_alone(metric: Metric, outcome: Outcome) -> float | None:
    """The value of one example by itself; nothing where it has none, or lacks the truth for it."""
    if not metric.per_example or not is_annotated(outcome, metric):
        return None
    value = _value(metric, [outcome])
    return value if math.isfinite(value) else None


def _value(metric: Metric, outcomes: Sequence[Outcome]) -> float:
    """The value of a metric, which must be a number."""
    value = metric.compute(outcomes)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"metric {metric.name} must return a number, but returned {shown(value)}."
        ) from None


def widened(settings: SearchSettings, nbest: int) -> SearchSettings:
    """Search settings for as many hypotheses as a metric needs: greedy search becomes a beam."""
    if nbest <= settings.nbest:
        return settings
    kind = "beam" if settings.kind == "greedy" else settings.kind
    wider = {"kind": kind, "nbest": nbest, "width": max(settings.width, nbest)}
    return settings.model_copy(update=wider)


def _check(metric: Metric, outcomes: Sequence[Outcome]) -> None:
    linked = any(outcome.sure is not None for outcome in outcomes)
    for number, outcome in enumerate(outcomes, start=1):
        if not outcome.references:
            raise DataError(
                f"example {number} has no references, but a metric needs one right answer or more."
            )
        has = {
            "candidates": bool(outcome.candidates),
            "likelihood": outcome.log_probability is not None and outcome.tokens > 0,
            "links": outcome.links is not None and linked,
            "familiar": outcome.familiar is not None,
            "given": outcome.given is not None,
        }
        for need, message in _LACKS.items():
            if need in metric.needs and not has[need]:
                raise DataError(
                    f"{metric.name} {message.format(f'example {number} of {len(outcomes)}')}"
                )
    for need, what in _ONE_AT_LEAST.items():
        if need in metric.needs and all(getattr(outcome, need) is None for outcome in outcomes):
            raise DataError(
                f"{metric.name} needs {what}, but none of {len(outcomes)} examples has a {need}. "
                "Give it for one at least."
            )


def missed_of(expected: Mapping[str, float], scores: Sequence[Score]) -> tuple[str, ...]:
    """A sentence for each score that is worse than the recipe expects."""
    by_name = {score.name: score for score in scores}
    missed = []
    for name, floor in expected.items():
        value, higher = by_name[name].value, by_name[name].better == "higher"
        if value < floor if higher else value > floor:
            limit = "at least" if higher else "at most"
            missed.append(f"{name} is {value:.4g}, but the recipe expects {limit} {floor:.4g}.")
    return tuple(missed)
