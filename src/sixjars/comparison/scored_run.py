"""A run of a comparison that was scored: its scores with intervals, its cost, and what compares with another run."""

from collections.abc import Sequence
from typing import Final, final

from sixjars.comparison.result import Cost, Measured
from sixjars.decoding import in_words
from sixjars.evaluation.bootstrap import difference, interval, statistics_of
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import Metric
from sixjars.evaluation.metrics.table import widened
from sixjars.evaluation.score import nbest_of
from sixjars.learning.cost import read_cost
from sixjars.runs.evaluate import JudgedRun
from sixjars.runs.folder import RunFolder
from sixjars_runtime.errors import RunError

BUCKETS: Final = 5


@final
class ScoredRun:
    """A run, what it made of the examples, and what the bootstrap needs to know."""

    def __init__(
        self, run: RunFolder, judged: JudgedRun, metrics: Sequence[Metric], device: str
    ) -> None:
        self.run = run
        self.judged = judged
        self.metrics = metrics
        self.device = device
        self.scores = judged.judged.scores(metrics)
        self.outcomes = {
            one.name: judged.judged.outcomes[nbest_of(one, judged.judged.settings)]
            for one in metrics
        }
        self.statistics = {one.name: statistics_of(one, self.outcomes[one.name]) for one in metrics}

    @property
    def cost(self) -> Cost:
        """Size, training and speed."""
        kept = [self.run.weights, *(self.run.folder / "fields").glob("*.json")]
        try:
            last = [{}, *self.run.history()][-1]
        except RunError:
            last = {}
        steps, examples, spent = (
            last.get("step"),
            len(self.judged.judged.rows),
            read_cost(self.run.folder),
        )
        return Cost(
            size=sum(path.stat().st_size for path in kept),
            steps=None if steps is None else int(steps),
            epochs=last.get("epoch"),
            seconds=None if spent is None else spent.seconds,
            device=self.device,
            speed=examples / max(self.judged.seconds, 1e-9),
            trained_on="" if spent is None else spent.device,
        )

    def search(self, metric: Metric) -> str:
        """How outputs were chosen."""
        found = self.judged.judged
        searched = found.searches and "candidates" in metric.needs
        return in_words(widened(found.settings.search, metric.nbest)) if searched else "no search"

    @property
    def references(self) -> list[tuple[str, ...]]:
        """What its outputs are compared with, by example."""
        found = self.judged.judged
        return [outcome.references for outcome in found.outcomes[min(found.outcomes)]]

    def has_references_of(self, first: "ScoredRun") -> bool:
        """Whether both are scored against the same; where case does not count, spellings may differ."""
        if self.references == first.references:
            return True
        folds = all(one.judged.dataset.fields.output.folds_case for one in (self, first))
        mine, theirs = (
            [[text.lower() for text in some] for some in one.references] for one in (self, first)
        )
        return folds and mine == theirs

    def comparable(self, first: "ScoredRun", metric: Metric) -> bool:
        """Whether a score compares with the first run's: the probability of a token does so for the same tokens."""
        mine, theirs = (one.judged.dataset.fields.output.to_json() for one in (self, first))
        return "likelihood" not in metric.needs or mine == theirs

    def measured(self, first: "ScoredRun", *, rival: bool = True) -> tuple[Measured, ...]:
        """Each score, with its interval and, of a `rival`, its difference from the first run's."""
        found = []
        for score, metric in zip(self.scores, self.metrics, strict=True):
            mine, theirs = self.statistics[score.name], first.statistics[score.name]
            between = None if mine is None else interval(mine.resampled())
            comparable = self.comparable(first, metric)
            change = None
            if (
                mine is not None
                and theirs is not None
                and self is not first
                and rival
                and comparable
            ):
                change = difference(theirs, mine)
            found.append(Measured(score, between, change, comparable))
        return tuple(found)

    def buckets(self, metric: Metric, lengths: Sequence[int]) -> tuple[Bucket, ...]:
        """The score by length, with intervals."""
        if not lengths:
            return ()
        statistics, edges = self.statistics[metric.name], edges_of(lengths, buckets=BUCKETS)
        between = (
            (lambda _: None)
            if statistics is None
            else (lambda some: interval(statistics.only(some).resampled()))
        )
        found = scores_by_length(
            self.outcomes[metric.name], lengths, metric=metric, edges=edges, interval=between
        )
        return tuple(found)
