"""The baselines beside a run: simple methods, scored on the rows that the model is scored on.

They learn from the training set alone, take at most a tenth of the time of the training or
evaluation that they stand beside (or 2 s, besides loading scikit-learn), and are kept in the run's
folder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import TimeBudget
from sixjars.evaluation.baselines.problem import BaselineProblem
from sixjars.evaluation.baselines.result import (
    Baseline,
    Verdict,
    best_by,
    has_nothing,
    is_ahead,
    opposed,
    says_something,
    verdict_on,
)
from sixjars.evaluation.baselines.table import load_library, measured
from sixjars.evaluation.metrics import METRICS, Metric, Score, rounded
from sixjars.evaluation.score import JudgedOutputs, groups_of
from sixjars.progress import Reporter, in_time, number_of
from sixjars.recipe.sections import Recipe
from sixjars.runs.baselines.advice import PAGE, advice_for
from sixjars.runs.folder.baseline_scores import BaselineEntry, keep_entry, kept_entry
from sixjars.runs.folder.run_folder import RunFolder, noted
from sixjars.runs.training.trend import Trend
from sixjars.tasks import TASKS
from sixjars.version import version_of

SHARE: Final = 0.1
"""The share of the seconds of a training or an evaluation that baselines may take."""
LEAST: Final = 2.0
"""Seconds that baselines may take beside a short run: a tenth of ten seconds scores nothing."""
PERFECT: Final = ("1.000", "100.0")
"""The best values of shares and of percentages."""
STOPPED: Final = "the baselines were stopped; all else is complete. --no-baselines leaves them out."


@final
@dataclass(frozen=True)
class BaselineScoring:
    """The recipe, metrics and outputs that baselines stand beside, and their time."""

    recipe: Recipe
    metrics: Sequence[Metric]
    seconds: float
    """The time that baselines may take."""
    group: bool = False
    """Whether rows with the same input are one example."""
    model: JudgedOutputs | None = None
    """The judged outputs of the model for the same rows; None before there is one."""

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        metrics: Sequence[Metric],
        *,
        took: float,
        group: bool | None = None,
        model: JudgedOutputs | None = None,
    ) -> "BaselineScoring":
        """Beside a training or an evaluation that took so many seconds."""
        chosen = recipe.evaluation.group if group is None else group
        return cls(recipe, by_importance(recipe, metrics), max(LEAST, SHARE * took), chosen, model)

    def key(self, train: str, scored: Dataset) -> dict[str, str]:
        """All that scores depend on; `train` is the fingerprint of the training set."""
        return {
            "train": train,
            "scored": scored.table.fingerprint,
            "metrics": ",".join(metric.name for metric in self.metrics),
            "group": str(self.group).lower(),
            "model": "" if self.model is None else self.model.fingerprint,
            "scikit-learn": version_of("scikit-learn"),
        }

    def measured(
        self, train: Dataset, scored: Dataset, clock: Callable[[], float] | None = None
    ) -> BaselineEntry:
        """The baselines, computed now."""
        problem = BaselineProblem(
            train,
            scored,
            tuple(map(tuple, groups_of(scored, group=self.group))),
            most=max(metric.nbest for metric in self.metrics),
            longer_source=TASKS[self.recipe.task].longer_source,
            model=None if self.model is None else self.model.compared,
        )
        load_library(problem)
        budget = TimeBudget(self.seconds) if clock is None else TimeBudget(self.seconds, clock)
        baselines, notes = measured(problem, self.metrics, budget)
        return BaselineEntry(
            self.key(train.table.fingerprint, scored), tuple(baselines), tuple(notes)
        )


def by_importance(recipe: Recipe, metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics, with the one that chooses the weights first."""
    return sorted(metrics, key=lambda metric: metric.name != recipe.learning.metric)


def kept_baselines(
    run: RunFolder,
    beside: BaselineScoring,
    scored: Dataset,
    training: Callable[[], Dataset],
    reporter: Reporter,
) -> tuple[Baseline, ...]:
    """The baselines of a run: those that it keeps of this data, or else computed now and kept.

    `training` gives the training set, which is not read where nothing is computed.
    """
    known = noted(run.folder, "data")
    train = known.get("train") if isinstance(known, Mapping) else None
    # A function of yours may change between two calls, and its name stays.
    names = [metric.name for metric in beside.metrics]
    ours = all(name in METRICS or name.startswith("accuracy@") for name in names)
    can_be_kept = isinstance(train, str) and ours
    entry = kept_entry(run.folder, beside.key(str(train), scored)) if can_be_kept else None
    if entry is None:
        try:
            entry = beside.measured(training(), scored)
        except KeyboardInterrupt:
            if run.recipe.data.fold is not None:  # more is to come, which is to be stopped
                raise
            reporter.note(STOPPED)
            return ()
        if can_be_kept and entry.key["train"] == train:
            keep_entry(run.folder, entry)
    for sentence in entry.notes:
        reporter.note(sentence)
    return entry.baselines


def sentence_of(
    baselines: Sequence[Baseline],
    scores: Sequence[Score],
    recipe: Recipe,
    trend: Trend | None = None,
) -> str:
    """The best baseline beside a model, by the most important metric that both have; or nothing.

    It says where the difference is less than the rows can show, and where another metric clearly
    says something else. Where the model is no better, also what to try, in order.
    """
    metrics = sorted(scores, key=lambda score: score.name != recipe.learning.metric)
    rivals = [baseline for baseline in baselines if not has_nothing(baseline, scores)]
    for score in metrics:
        best = best_by(rivals, score.name)
        if best is not None and says_something(best.value(score.name) or 0.0, score):
            others = [other for other in metrics if other is not score]
            sentence, ahead = _sentence(best, score, others)
            if ahead:
                return sentence
            return f"{sentence} {_to_try(advice_for(best.topic, recipe, trend))}"
    return ""


def _sentence(best: Baseline, score: Score, others: Sequence[Score]) -> tuple[str, bool]:
    """A sentence that compares both scores; and whether the model is ahead: nothing to try then."""
    value = best.value(score.name) or 0.0
    verdict = verdict_on(score, best) or "equal"
    of_baseline, of_model = rounded(value), rounded(score.value, like=value)
    reached = f"{best.name} reaches {of_baseline} in {in_time(best.seconds)}"
    begins = f"{score.name}: {reached}; this model {of_model}"
    same = of_baseline == of_model
    if same and of_model in PERFECT:  # nothing is left to be better at
        return f"{begins} too.", True
    opposite = opposed(others, best, verdict)
    sentence = f"{begins}{_in_words(verdict, score, same=same)}."
    sentence += "".join(_opposite(other, how, best) for other, how in opposite.items())
    if "better" in opposite.values():
        return sentence, True
    is_clear = verdict == "better" or "worse" not in opposite.values()
    return sentence, is_ahead(score, value) and not same and is_clear


def _in_words(verdict: Verdict, score: Score, *, same: bool) -> str:
    """The end of a sentence, after the score of the model."""
    too = " too" if same else ""
    if verdict == "no difference":
        return f"{too}: no difference that {number_of(score.count, 'row')} can show"
    if same:
        return f"{too}, no better"
    return ", which is worse" if verdict == "worse" else ""


def _opposite(score: Score, verdict: Verdict, best: Baseline) -> str:
    value = best.value(score.name) or 0.0
    scores = f"{rounded(score.value, like=value)} against {rounded(value)}"
    return f" By {score.name} it is {verdict}: {scores}."


def _to_try(changes: Sequence[str]) -> str:
    if not changes:
        return f"{PAGE} says what to try."
    if len(changes) == 1:
        return f"Try {changes[0]}. {PAGE} says more."
    listed = "; ".join(f"{number}. {change}" for number, change in enumerate(changes, start=1))
    return f"Try, in this order: {listed}. {PAGE} says more."
