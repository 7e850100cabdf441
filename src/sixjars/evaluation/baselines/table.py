"""The baselines for each kind of output, and how they are scored: as the model is."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from sixjars.evaluation.baselines.budget import TimeBudget, TooMuch
from sixjars.evaluation.baselines.ngrams import ORDER, kneser_ney, unigram
from sixjars.evaluation.baselines.problem import (
    BaselineOutputs,
    BaselineProblem,
    Method,
    called,
)
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.baselines.tfidf import linear, name_of, nearest
from sixjars.evaluation.bootstrap import error_of_difference
from sixjars.evaluation.metrics import Metric, Outcome, Score, score
from sixjars.flow.contracts import Holds
from sixjars_runtime.errors import first_line
from sixjars_runtime.text.sentences import sentences_of

LEARNING: Final = 0.8
"""Share of the time of a baseline for its predictions; the rest is for scoring them."""
TRIED: Final = 20
"""Outcomes that a metric is tried on, to know how long it takes for all."""
ALWAYS: Final = 0.1
"""Seconds for a metric, even where a fit that is not interrupted has used up the time."""
MOST_PAIRED: Final = 10_000
"""Examples that the paired bootstrap draws from: a second for a metric. More show all of it."""
MISSING: Final = (
    "scikit-learn is not installed, so {} is not among the baselines. "
    "Run: pip install 'sixjars[baselines]'"
)
FAILED: Final = "{} could not be computed: {}."
LATE: Final = (
    "there was no time for {}, or too little memory: "
    "baselines get a tenth of the time, or 2 s, and about 1 GB."
)


def most_frequent(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The most frequent outputs of the training set; equally frequent ones by the alphabet."""
    rows = problem.learned_from
    counts = Counter(problem.targets(rows))
    ordered = sorted(counts, key=lambda text: (-counts[text], text))[: problem.most]
    return BaselineOutputs([tuple(ordered)] * len(problem.rows), rows=len(rows))


def copied(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The first text of the input."""
    return _from_input(problem, lambda text: text)


def lead(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The first sentence of the first text, which few summarizers of news beat.

    Nenkova 2005, section 4 (https://cdn.aaai.org/AAAI/2005/AAAI05-228.pdf).
    """
    return _from_input(problem, lambda text: next(iter(sentences_of(text)), ""))


def _from_input(problem: BaselineProblem, part: Callable[[str], str]) -> BaselineOutputs:
    texts = problem.scored.table.texts(problem.texts[0], problem.rows)
    normalize = problem.fields.output.normalize
    return BaselineOutputs([(normalize(" ".join(part(text).split())),) for text in texts])


def in_order(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """All positions of the first input as they come."""
    name = next(iter(problem.fields.inputs))
    lengths: Sequence[int] = problem.scored.lengths(name)
    return BaselineOutputs([(" ".join(map(str, range(lengths[row]))),) for row in problem.rows])


def _label(problem: BaselineProblem) -> str:
    return f"the most frequent label{'s' if problem.fields.output.multi_label else ''}"


def topic_of_labels(problem: BaselineProblem) -> str:
    """The key of advice on labels: of texts, single words, pairs of texts, images and videos."""
    if not problem.texts:
        return "images"
    if problem.counts_characters:
        return "names"
    return "pairs" if len(problem.texts) == 2 else "labels"


TEXTS: Final = called("texts")
NEAREST: Final = called("the output of the most similar training row")
KNESER_NEY: Final = called(f"a Kneser-Ney {ORDER}-gram model")
METHODS: Final[Mapping[Holds, tuple[Method, ...]]] = {
    "classes": (
        Method(_label, "always", most_frequent, topic_of_labels),
        Method(name_of, "input", linear, topic_of_labels, needs_library=True),
    ),
    "tokens": (
        Method(called("the most frequent output"), "unseen input", most_frequent, TEXTS),
        Method(called("copying the input"), "text", copied, TEXTS),
        Method(called("the first sentence of the input"), "long text", lead, TEXTS),
        Method(NEAREST, "input", nearest, TEXTS, needs_library=True),
        Method(called("a unigram model"), "no input", unigram, called("language")),
        Method(KNESER_NEY, "no input", kneser_ney, called("language")),
    ),
    "positions": (Method(called("the order of the input"), "always", in_order, called("order")),),
}
"""The methods for each kind of output, the cheapest first."""


def has_library() -> bool:
    """Whether scikit-learn is installed; it is not imported for that."""
    return find_spec("sklearn") is not None


def load_library(problem: BaselineProblem) -> None:
    """Import scikit-learn where a baseline needs it, so that the seconds are not in its time."""
    needed = (method.needs_library and method.fits(problem) for method in methods_of(problem))
    if has_library() and problem.rows and any(needed):
        with suppress(Exception):  # where it is broken, the baseline that needs it says so
            import_module("sklearn.feature_extraction.text")
            import_module("sklearn.linear_model")


def methods_of(problem: BaselineProblem) -> tuple[Method, ...]:
    """The methods for the output of a problem."""
    return METHODS.get(problem.fields.output.holds, ())


def measured(
    problem: BaselineProblem, metrics: Sequence[Metric], budget: TimeBudget
) -> tuple[list[Baseline], list[str]]:
    """The baselines that there is time for, and a sentence for each one that is left out.

    The first metric is the most important one; `budget` is the time for all of it.
    """
    fitting = [method for method in methods_of(problem) if problem.rows and method.fits(problem)]
    installed = [method for method in fitting if not method.needs_library or has_library()]
    lacking = [method.name(problem) for method in fitting if method not in installed]
    notes = [MISSING.format(" and ".join(lacking))] if lacking else []
    baselines: list[Baseline] = []
    for place, method in enumerate(installed):
        share = budget.share(1 / (len(installed) - place))
        try:
            baselines.append(_scored_baseline(method, problem, metrics, share))
        except TooMuch:
            notes.append(LATE.format(method.name(problem)))
        except Exception as error:  # noqa: BLE001 - a model that was trained is worth more than this
            notes.append(FAILED.format(method.name(problem), first_line(error)))
    return baselines, notes


def _scored_baseline(
    method: Method, problem: BaselineProblem, metrics: Sequence[Metric], budget: TimeBudget
) -> Baseline:
    """The scores of a baseline, with the seconds and rows that it took."""
    predicted = method.predict(problem, budget.share(LEARNING))
    seconds = budget.clock() - budget.began
    scores = tuple(scored(predicted, problem, metrics, budget))
    if not scores:
        raise TooMuch
    known = {score.name for score in scores}
    errors = errors_of(predicted, problem, [metric for metric in metrics if metric.name in known])
    name, rows = method.name(problem), predicted.rows
    if rows is not None and rows < len(problem.learned_from):
        name = f"{name} (on {rows:,} rows)"
    return Baseline(name, scores, seconds, rows, method.topic(problem), errors)


def scored(
    predicted: BaselineOutputs,
    problem: BaselineProblem,
    metrics: Sequence[Metric],
    budget: TimeBudget,
) -> Iterator[Score]:
    """The metrics that can be computed of a baseline, and that there is time for."""
    has = {"familiar", "given"} | ({"candidates"} if predicted.candidates is not None else set())
    has |= {"likelihood"} if predicted.likelihoods is not None else set()
    for metric in metrics:
        if metric.needs <= has:
            outcomes = outcomes_of(predicted, problem, metric)
            if _is_quick(metric, outcomes, budget):
                yield from score(outcomes, [metric])


def errors_of(
    predicted: BaselineOutputs, problem: BaselineProblem, metrics: Sequence[Metric]
) -> dict[str, float]:
    """The standard errors of the difference from the model, by metric, where known."""
    model = problem.model
    if model is None or len(problem.rows) > MOST_PAIRED:
        return {}
    errors = dict[str, float]()
    for metric in metrics:
        error = error_of_difference(metric, outcomes_of(predicted, problem, metric), model(metric))
        errors |= {} if error is None else {metric.name: error}
    return errors


def outcomes_of(
    predicted: BaselineOutputs, problem: BaselineProblem, metric: Metric
) -> list[Outcome]:
    """The outcomes of the model with the outputs of a baseline in their place."""
    outcomes = problem.examples
    if predicted.candidates is not None:
        pairs = zip(outcomes, predicted.candidates, strict=True)
        outcomes = [replace(each, candidates=best[: metric.nbest]) for each, best in pairs]
        if "familiar" in metric.needs:
            known = problem.known_outputs
            outcomes = [replace(each, familiar=each.candidates[0] in known) for each in outcomes]
    if predicted.likelihoods is not None:
        likelihoods = zip(outcomes, predicted.likelihoods, strict=True)
        outcomes = [
            replace(each, log_probability=log, tokens=tokens) for each, (log, tokens) in likelihoods
        ]
    return list(outcomes)


def _is_quick(metric: Metric, outcomes: Sequence[Outcome], budget: TimeBudget) -> bool:
    """Whether a metric of all outcomes takes no longer than there is time; a few of them tell."""
    if len(outcomes) <= TRIED:
        return True
    began = budget.clock()
    metric.compute(outcomes[:TRIED])
    seconds = (budget.clock() - began) * len(outcomes) / TRIED
    return seconds <= max(budget.left, ALWAYS)
