"""The result of a comparison: scores with intervals, significance, cost, lengths, examples."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, final

from sixjars.evaluation.baselines.result import (
    Baseline,
    Verdict,
    best_by,
    has_nothing,
    says_something,
    verdict,
)
from sixjars.evaluation.bootstrap import IN_LEVEL, Difference
from sixjars.evaluation.by_length import FEW, Bucket
from sixjars.evaluation.metrics import Interval, Score, rounded
from sixjars.progress import duration, in_time, listed, number_of
from sixjars.runs.baselines.advice import PAGE
from sixjars.runs.notebook import table

SIGNIFICANT: Final = 0.05
"""A difference is called significant where p is below this."""
BETTER, WORSE = "▲", "▼"
UNITS: Final = ("B", "kB", "MB", "GB")


@final
@dataclass(frozen=True)
class RunScore:
    """One score of one run."""

    score: Score
    interval: Interval | None = None
    """Its bootstrap interval; None where the metric is of all examples together."""
    difference: Difference | None = None
    """From the first run's; None for the first run, or where the metric has no interval."""
    comparable: bool = True
    """False for the probability of tokens, where they are not the first run's tokens."""

    @property
    def mark(self) -> str:
        """The mark of a score that is significantly better or worse than the first run's."""
        if self.difference is None or self.difference.p >= SIGNIFICANT:
            return ""
        return BETTER if (self.difference.value > 0) == (self.score.better == "higher") else WORSE

    def beside(self, value: float) -> Verdict:
        """The verdict against a baseline: no difference where that lies in the interval."""
        between = self.interval
        error = None if between is None else (between.high - between.low) / 2 / IN_LEVEL
        return verdict(self.score, value, error)

    @property
    def shown(self) -> str:
        """The value, its interval and its mark."""
        value = self.score.value
        between = "" if self.interval is None else f" ({in_words(self.interval, '–', like=value)})"
        return f"{rounded(value)}{between}{self.mark and f' {self.mark}'}"


@final
@dataclass(frozen=True)
class RunCost:
    """The size, the training and the speed of a run."""

    size: int
    """Bytes of its weights and vocabularies on disk."""
    steps: int | None
    """Updates until the end of training; None without a log."""
    epochs: float | None
    seconds: float | None
    """Seconds of training, where the run has noted them."""
    device: str = ""
    """The device that it was scored on."""
    speed: float = field(default=0.0, compare=False)
    """Examples scored in a second, just now."""
    trained_on: str = ""
    """The device of training; empty where it is not known."""

    @property
    def training(self) -> str:
        """Steps, epochs and time, as far as they are known."""
        parts = [number_of(self.steps, "step")] if self.steps is not None else []
        parts += [number_of(round(self.epochs, 1), "epoch")] if self.epochs is not None else []
        if self.seconds is not None:
            device = f" on {self.trained_on}" if self.trained_on else ""
            parts.append(duration(self.seconds) + device)
        return ", ".join(parts) or "not known"


@final
@dataclass(frozen=True)
class Contender:
    """One model of a comparison."""

    name: str
    parameters: int
    overall: float
    """Its score by the metric of the comparison."""
    buckets: tuple[Bucket, ...]
    """Its score by length; empty where there is no length."""
    search: str
    """The search that chose its outputs."""
    scores: tuple[RunScore, ...] = ()
    cost: RunCost | None = None


@final
@dataclass(frozen=True)
class DifferingExample:
    """An example that the first run and another one differ on."""

    name: str
    """The other run."""
    input: str
    references: tuple[str, ...]
    first_output: str | None
    output: str | None
    difference: float
    """The score of the other less that of the first. Where one example has none, by how much the
    first run's score of all would change with this output of the other."""
    times: int = 1
    """How many examples have this input."""


@final
@dataclass(frozen=True)
class Seeds:
    """Runs of one recipe.

    >>> seeds = Seeds((0, 1, 2), (0, 1, 2))
    >>> seeds.in_words(["a", "b", "c"], [0.5, 0.6, 0.7], str).partition(": ")[2]
    'mean 0.6, standard deviation 0.1, from 0.5 to 0.7'
    """

    rows: tuple[int, ...]
    """Their places among the runs that are compared."""
    seeds: tuple[int, ...]

    def in_words(self, names: Sequence[str], values: Sequence[float], written: Any) -> str:
        """Names, seeds, and mean and spread of a metric's values; `written` formats a value."""
        scores = [values[row] for row in self.rows]
        runs, seeds = listed([names[row] for row in self.rows]), listed(list(map(str, self.seeds)))
        middle, spread = written(round(fmean(scores), 9)), written(round(stdev(scores), 9))
        return (
            f"{runs} are one recipe with seed {seeds}: mean {middle}, standard deviation {spread}, "
            f"from {written(min(scores))} to {written(max(scores))}"
        )


def alike_first(groups: Sequence[Seeds]) -> set[int]:
    """The runs that differ from the first in the seed alone: they are no rivals of it."""
    return {row for group in groups if 0 in group.rows for row in group.rows}


@final
@dataclass(frozen=True)
class Comparison:
    """All runs, by the same metrics on the same examples.

    >>> comparison = Comparison("bleu", (), Path("by_length.png"), 200, "the test set of pairs.tsv")
    >>> comparison.to_json()["data"]
    'the test set of pairs.tsv'
    """

    metric: str
    """The metric of the curves and the examples."""
    contenders: tuple[Contender, ...]
    picture: Path | None
    """None where none was drawn."""
    examples: int
    """The number of examples that were scored."""
    data: str
    """The name of these examples: the split, and its file."""
    by: str = ""
    """The text whose length is meant; empty where nothing has a length."""
    differing: tuple[DifferingExample, ...] = ()
    """The examples that the first run and another one differ on most, in both directions."""
    seeds: tuple[Seeds, ...] = ()
    """Runs of one recipe with different seeds: no rivals, but the spread of its scores."""
    baselines: tuple[Baseline, ...] = ()
    """Simple methods without a network, scored on the same examples."""

    @property
    def title(self) -> str:
        """The metric, the examples and the search; several searches are named one by one."""
        searches = dict.fromkeys(run.search for run in self.contenders)
        names = ", ".join(searches)
        if len(searches) > 1:
            names = "; ".join(f"{run.name}: {run.search}" for run in self.contenders)
        return f"{self.metric} on {self.examples:,} examples of {self.data}, {names}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of the runs, and a row for each score and each cost."""
        runs = self.contenders
        names = [measured.score.name for measured in runs[0].scores]
        rows = [[name, *(run.scores[at].shown for run in runs)] for at, name in enumerate(names)]
        rows.append(["parameters", *(f"{run.parameters:,}" for run in runs)])
        costs = [run.cost for run in runs if run.cost is not None]
        if len(costs) == len(runs):
            speeds = [f"{cost.speed:,.0f}/s on {cost.device}" for cost in costs]
            rows.append(["size", *(size_of(cost.size) for cost in costs)])
            rows.append(["examples scored", *speeds])
            rows.append(["training", *(cost.training for cost in costs)])
        return ["", *(run.name for run in runs)], rows

    def by_length(self) -> tuple[list[str], list[list[str]]]:
        """The same for the score by length; the last row has the number of examples."""
        buckets = self.contenders[0].buckets
        rows = []
        for run in self.contenders:
            rows.append([run.name, f"{rounded(run.overall)} ", *map(_cell, run.buckets)])
        counts = [f"{count:,} " for count in (self.examples, *(bucket.count for bucket in buckets))]
        return ["", "all", *(bucket.name for bucket in buckets)], [*rows, ["examples", *counts]]

    def notes(self) -> Iterator[str]:
        """The meaning of the marks in the score by length."""
        buckets = self.contenders[0].buckets
        if any(0 < bucket.count < FEW for bucket in buckets):
            yield f"* fewer than {FEW} examples: too few to go by"
        if any(bucket.value is None for bucket in buckets):
            yield "– no example of such a length can be scored"

    def findings(self) -> Iterator[str]:
        """Sentences on differences from the first run, and on runs that differ in seed alone."""
        first, *others = self.contenders
        alike = alike_first(self.seeds)
        names = [run.name for run in self.contenders]
        for at, measured in enumerate(first.scores):
            name = measured.score.name
            values = [run.scores[at].score.value for run in self.contenders]
            for seeds in self.seeds:
                written = partial(rounded, like=max(values))
                yield f"{name}: {seeds.in_words(names, values, written)}."
            if measured.interval is None:
                yield f"{name}: no interval, for {_why_none(measured.score)}."
                continue
            for row, other in enumerate(others, start=1):
                if row not in alike:
                    yield f"{name}: {_in_words(other.name, first.name, other.scores[at])}"

    def beside(self) -> str:
        """A sentence on the best baseline and all runs, by the comparison's metric; or none."""
        every = [measured.score for run in self.contenders for measured in run.scores]
        rivals = [each for each in self.baselines if not has_nothing(each, every)]
        best = best_by(rivals, self.metric)
        value = None if best is None else best.value(self.metric)
        pairs = [(run.name, each) for run in self.contenders for each in run.scores]
        scores = {name: each for name, each in pairs if each.score.name == self.metric}
        if best is None or value is None:
            return ""
        if not any(says_something(value, measured.score) for measured in scores.values()):
            return ""
        values = [
            f"{name} {rounded(each.score.value, like=value)}" for name, each in scores.items()
        ]
        verdicts = {name: measured.beside(value) for name, measured in scores.items()}
        unsure = [name for name in scores if verdicts[name] == "no difference"]
        behind = [name for name in scores if verdicts[name] in ("worse", "equal")]
        rows = number_of(next(iter(scores.values())).score.count, "row")
        ends = f" No difference that {rows} can show: {', '.join(unsure)}." if unsure else ""
        ends += f" No better: {', '.join(behind)}; {PAGE} says what to try." if behind else ""
        reached = f"{best.name} reaches {rounded(value)} in {in_time(best.seconds)}"
        return f"{self.metric}: {reached}; {'; '.join(values)}.{ends}"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {
            **asdict(self),
            "picture": None if self.picture is None else str(self.picture),
            "baselines": [baseline.to_json() for baseline in self.baselines],
        }

    def _repr_html_(self) -> str:
        return table(*self.table(), self.title)


def in_words(interval: Interval, between: str, *, like: float) -> str:
    """The ends of an interval, with some text between them."""
    return f"{rounded(interval.low, like=like)}{between}{rounded(interval.high, like=like)}"


def size_of(count: float) -> str:
    """Bytes for a person.

    >>> size_of(812), size_of(1_640_000)
    ('812 B', '1.6 MB')
    """
    power = 0
    while count >= 1000 and power < len(UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 0 if count >= 100 or not power else 1
    return f"{count:.{digits}f} {UNITS[power]}"


def _cell(bucket: Bucket) -> str:
    """A score by length, with a mark where it is of few examples."""
    if bucket.value is None:
        return "– "
    return f"{rounded(bucket.value)}{'*' if bucket.count < FEW else ' '}"


def _why_none(score: Score) -> str:
    if score.count < 2:
        return "there is only one example"
    if math.isfinite(score.value):
        return "only all examples together have a value"
    return f"it is {score.value}"


def _in_words(name: str, first: str, measured: RunScore) -> str:
    difference = measured.difference
    if not measured.comparable:
        return f"{name} and {first} have different vocabularies, so their values do not compare."
    if difference is None:
        return f"too few resamples have a value to compare {name} with {first}."
    value = measured.score.value
    change = rounded(difference.value, like=value)
    interval = f"95 % interval {in_words(difference.interval, ' to ', like=value)}"
    between = f"{interval}, p = {difference.p:.2g}"
    if not measured.mark:
        return f"{name} and {first} do not differ significantly ({change}; {between})."
    better = "better" if measured.mark == BETTER else "worse"
    sign = "+" if difference.value > 0 else ""
    return f"{name} is significantly {better} than {first} ({sign}{change}; {between})."


def unique_names(names: Sequence[str]) -> list[str]:
    """Names with a number where one occurs again.

    >>> unique_names(["run", "other", "run"])
    ['run', 'other', 'run (2)']
    """
    numbered = []
    for at, name in enumerate(names, start=1):
        count = names[:at].count(name)
        numbered.append(name if count == 1 else f"{name} ({count})")
    return numbered
