"""Which baselines there are for what a model outputs, and how they are scored: as the model is, on the same rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from sixjars.errors import first_line
from sixjars.evaluation.baselines.budget import Budget, OutOfTime
from sixjars.evaluation.baselines.constant import copied, in_order, lead, most_frequent
from sixjars.evaluation.baselines.linear import linear
from sixjars.evaluation.baselines.linear import name_of as name_of_linear
from sixjars.evaluation.baselines.nearest import nearest
from sixjars.evaluation.baselines.ngrams import ORDER, kneser_ney, unigram
from sixjars.evaluation.baselines.problem import Method, Predicted, Problem, always, called
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.metrics import Metric, Outcome, Score, score
from sixjars.flow.contracts import Holds

TRIED: Final = 20
"""Outcomes that a metric is tried on, to know how long it takes for all."""
MISSING: Final = (
    "scikit-learn is not installed, so {} is not among the baselines. Run: pip install 'sixjars[baselines]'"
)
FAILED: Final = "{} could not be computed: {}."
LATE: Final = "there was no time for {}: baselines get a tenth of the time, or 2 s."


def has_input(problem: Problem) -> bool:
    """Whether there is something that outputs depend on."""
    return bool(problem.texts) or problem.has_features


def has_text(problem: Problem) -> bool:
    """Whether an input is a text."""
    return bool(problem.texts)


def has_no_input(problem: Problem) -> bool:
    """Whether outputs depend on nothing, as those of a language model."""
    return not problem.fields.inputs


def _has_long_text(problem: Problem) -> bool:
    return has_text(problem) and problem.longer_source


def _sees_nothing(problem: Problem) -> bool:
    """Whether there are inputs, but none that can be compared."""
    return bool(problem.fields.inputs) and not has_input(problem)


def _label(problem: Problem) -> str:
    return f"the most frequent label{'s' if problem.fields.output.multi_label else ''}"


def topic_of_labels(problem: Problem) -> str:
    """Labels of texts, of pairs of texts, or of images and videos."""
    if not problem.texts:
        return "images"
    return "pairs" if len(problem.texts) == 2 else "labels"


METHODS: Final[Mapping[Holds, tuple[Method, ...]]] = {
    "classes": (
        Method(_label, always, most_frequent, topic_of_labels),
        Method(name_of_linear, has_input, linear, topic_of_labels, needs_library=True),
    ),
    "tokens": (
        Method(called("the most frequent output"), _sees_nothing, most_frequent, called("texts")),
        Method(called("copying the input"), has_text, copied, called("texts")),
        Method(called("the first sentence of the input"), _has_long_text, lead, called("texts")),
        Method(
            called("the output of the most similar training row"),
            has_input,
            nearest,
            called("texts"),
            needs_library=True,
        ),
        Method(called("a unigram model"), has_no_input, unigram, called("language")),
        Method(called(f"a Kneser-Ney {ORDER}-gram model"), has_no_input, kneser_ney, called("language")),
    ),
    "positions": (Method(called("the order of the input"), always, in_order, called("order")),),
}
"""By what the output field holds, the cheapest first; an output of another kind has none."""


def has_library() -> bool:
    """Whether scikit-learn is installed; it is not imported for that."""
    return find_spec("sklearn") is not None


def load_library(problem: Problem) -> None:
    """Import scikit-learn where a baseline needs it: that takes seconds once, which say nothing of the rows."""
    if has_library() and any(one.needs_library and problem.rows and one.fits(problem) for one in methods_of(problem)):
        import_module("sklearn.feature_extraction.text")
        import_module("sklearn.linear_model")


def methods_of(problem: Problem) -> tuple[Method, ...]:
    """Those for what the output field holds."""
    return METHODS.get(problem.fields.output.holds, ())


def measured(problem: Problem, metrics: Sequence[Metric], budget: Budget) -> tuple[list[Baseline], list[str]]:
    """The baselines that there is time for, and what a person should know of those left out, a sentence each.

    The first metric is the most important one; `budget` is the time for all of it.
    """
    fitting = [one for one in methods_of(problem) if problem.rows and one.fits(problem)]
    installed = [one for one in fitting if not one.needs_library or has_library()]
    lacking = [one.name(problem) for one in fitting if one not in installed]
    notes = [MISSING.format(" and ".join(lacking))] if lacking else []
    found: list[Baseline] = []
    for place, method in enumerate(installed):
        share = budget.share(len(installed) - place)
        try:
            predicted = method.predict(problem, share)
            seconds = budget.clock() - share.began
        except OutOfTime:
            notes.append(LATE.format(method.name(problem)))
            continue
        except (ImportError, MemoryError, ValueError) as error:  # a model that was trained is worth more than this
            notes.append(FAILED.format(method.name(problem), first_line(error)))
            continue
        if scores := tuple(scored(predicted, problem, metrics, share)):
            name = _named(method, predicted, problem)
            found.append(Baseline(name, scores, seconds, predicted.rows, method.topic(problem)))
    return found, notes


def _named(method: Method, predicted: Predicted, problem: Problem) -> str:
    """With how many rows it learned from, where that is not all of them."""
    rows = predicted.rows
    some = rows is not None and rows < len(problem.learned_from)
    return f"{method.name(problem)} (on {rows:,} rows)" if some else method.name(problem)


def scored(predicted: Predicted, problem: Problem, metrics: Sequence[Metric], budget: Budget) -> Iterator[Score]:
    """The metrics that can be computed of a baseline, and that there is time for."""
    has = {"familiar", "given"} | ({"candidates"} if predicted.candidates is not None else set())
    has |= {"likelihood"} if predicted.likelihoods is not None else set()
    for metric in metrics:
        if not metric.needs <= has:
            continue
        outcomes = outcomes_of(predicted, problem, metric)
        if metric is metrics[0] or _is_quick(metric, outcomes, budget):
            yield from score(outcomes, [metric])


def outcomes_of(predicted: Predicted, problem: Problem, metric: Metric) -> list[Outcome]:
    """What the metric compares: the references of the model's outcomes, and the outputs of a baseline."""
    found = problem.examples
    if predicted.candidates is not None:
        outputs = [some[: metric.nbest] for some in predicted.candidates]
        found = [replace(one, candidates=own) for one, own in zip(found, outputs, strict=True)]
        if "familiar" in metric.needs:
            found = [replace(one, familiar=one.candidates[0] in problem.known_outputs) for one in found]
    if predicted.likelihoods is not None:
        found = [
            replace(one, log_probability=log, tokens=tokens)
            for one, (log, tokens) in zip(found, predicted.likelihoods, strict=True)
        ]
    return list(found)


def _is_quick(metric: Metric, outcomes: Sequence[Outcome], budget: Budget) -> bool:
    """Whether a metric of all outcomes takes no longer than there is time; a few of them tell."""
    if len(outcomes) <= TRIED:
        return True
    began = budget.clock()
    metric.compute(outcomes[:TRIED])
    return (budget.clock() - began) * len(outcomes) / TRIED <= max(budget.left, 0.0)
