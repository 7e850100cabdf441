"""A scored run of a comparison: its scores with intervals, its cost, its differences."""

import json
from collections.abc import Sequence
from typing import Any, Final, final

from sixjars.comparison.result import RunCost, RunScore, Seeds
from sixjars.decoding import in_words
from sixjars.evaluation.bootstrap import difference, interval, statistics_of
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import Interval, Metric
from sixjars.evaluation.metrics.table import widened
from sixjars.learning.checkpoints import read_cost
from sixjars.runs.evaluate import JudgedRun
from sixjars.runs.folder.run_folder import RunFolder, noted
from sixjars_runtime.errors import RunError

BUCKETS: Final = 5


@final
class ScoredRun:
    """A run with its judged outputs, and the statistics that the bootstrap resamples."""

    def __init__(
        self, run: RunFolder, judged: JudgedRun, metrics: Sequence[Metric], device: str
    ) -> None:
        self.run = run
        self.judged = judged
        self.outputs, self.dataset = judged.judged, judged.dataset
        self.metrics = metrics
        self.device = device
        self.scores = self.outputs.scores(metrics)
        self.outcomes = {each.name: self.outputs.compared(each) for each in metrics}
        self.statistics = {
            each.name: statistics_of(each, self.outcomes[each.name]) for each in metrics
        }

    @property
    def cost(self) -> RunCost:
        """Its size, training and speed."""
        kept = [self.run.weights, *(self.run.folder / "fields").glob("*.json")]
        try:
            last = [{}, *self.run.history()][-1]
        except RunError:
            last = {}
        steps = last.get("step")
        spent = read_cost(self.run.folder)
        return RunCost(
            size=sum(path.stat().st_size for path in kept),
            steps=None if steps is None else int(steps),
            epochs=last.get("epoch"),
            seconds=None if spent is None else spent.seconds,
            device=self.device,
            speed=len(self.outputs.rows) / max(self.judged.seconds, 1e-9),
            trained_on="" if spent is None else spent.device,
        )

    def search(self, metric: Metric) -> str:
        """The search that chose outputs for a metric, in words."""
        if not self.outputs.searches or "candidates" not in metric.needs:
            return "no search"
        return in_words(widened(self.outputs.settings.search, metric.nbest))

    @property
    def references(self) -> list[tuple[str, ...]]:
        """The references of each example."""
        outcomes = self.outputs.outcomes
        return [outcome.references for outcome in outcomes[min(outcomes)]]

    def has_references_of(self, first: "ScoredRun") -> bool:
        """Whether both are scored against the same; where case does not count, it may differ."""
        if self.references == first.references:
            return True
        if not all(run.dataset.fields.output.folds_case for run in (self, first)):
            return False
        mine, theirs = (
            [[text.lower() for text in texts] for texts in run.references] for run in (self, first)
        )
        return mine == theirs

    def comparable(self, first: "ScoredRun", metric: Metric) -> bool:
        """Whether a score compares with the first run's; the probability of other tokens cannot."""
        mine, theirs = (run.dataset.fields.output.to_json() for run in (self, first))
        return "likelihood" not in metric.needs or mine == theirs

    def run_scores(self, first: "ScoredRun", *, rival: bool = True) -> tuple[RunScore, ...]:
        """Each score, with its interval and, of a `rival`, its difference from the first run's."""
        scores = []
        for score, metric in zip(self.scores, self.metrics, strict=True):
            mine, theirs = self.statistics[score.name], first.statistics[score.name]
            between = None if mine is None else interval(mine.resampled)
            comparable = self.comparable(first, metric)
            change = None
            if mine is not None and theirs is not None and self is not first:
                change = difference(theirs, mine) if rival and comparable else None
            scores.append(RunScore(score, between, change, comparable))
        return tuple(scores)

    def buckets(self, metric: Metric, lengths: Sequence[int]) -> tuple[Bucket, ...]:
        """The score by length, with intervals."""
        if not lengths:
            return ()
        statistics = self.statistics[metric.name]
        edges = edges_of(lengths, buckets=BUCKETS)

        def between(rows: Any) -> Interval | None:
            return None if statistics is None else interval(statistics.only(rows).resampled)

        outcomes = self.outcomes[metric.name]
        return tuple(
            scores_by_length(outcomes, lengths, metric=metric, edges=edges, interval=between)
        )


def seeds_of(runs: Sequence[RunFolder]) -> tuple[Seeds, ...]:
    """The groups of runs of one recipe with several seeds, of the same rows and first weights."""
    groups: dict[str, list[int]] = {}
    for row, run in enumerate(runs):
        groups.setdefault(_without_seeds(run), []).append(row)
    numbers = [run.recipe.learning.seed for run in runs]
    groups_of_seeds = [
        Seeds(tuple(rows), tuple(numbers[row] for row in rows)) for rows in groups.values()
    ]
    return tuple(group for group in groups_of_seeds if len({*group.seeds}) > 1)


def _without_seeds(run: RunFolder) -> str:
    """The common part of runs of one recipe: neither seeds nor the places of files."""
    values = run.recipe.model_dump(mode="json")
    values["learning"].pop("seed")
    values["learning"].pop("loggers")
    values["evaluation"]["search"].pop("seed")
    # Files of the same name in two folders differ in their rows, which are compared.
    values["data"].pop("folder")
    learned = [noted(run.folder, fact) for fact in ("data", "from")]
    return json.dumps([values, learned], sort_keys=True, default=str)
