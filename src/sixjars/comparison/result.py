"""What a comparison of runs found: scores with intervals, significance, cost, score by length, examples."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from sixjars.comparison.seeds import Seeds
from sixjars.evaluation.baselines.result import Baseline, best_by, has_nothing, says_something
from sixjars.evaluation.baselines.verdict import Verdict, verdict
from sixjars.evaluation.bootstrap import IN_LEVEL, Difference
from sixjars.evaluation.by_length import FEW, Bucket
from sixjars.evaluation.metrics import Interval, Score, rounded
from sixjars.progress import duration, in_time, number_of
from sixjars.runs.advice import PAGE
from sixjars.runs.notebook import table

SIGNIFICANT: Final = 0.05
"""A difference is called significant where p is below this."""
BETTER, WORSE = "▲", "▼"
UNITS: Final = ("B", "kB", "MB", "GB")


@final
@dataclass(frozen=True)
class Measured:
    """One score of one run."""

    score: Score
    interval: Interval | None = None
    """How far it may be off by chance; nothing where the metric is of all examples together."""
    difference: Difference | None = None
    """From that of the first run; nothing for the first run, or where the metric has no
    interval."""
    comparable: bool = True
    """Not where it is of the probability of tokens, and those are others than the first run's."""

    @property
    def mark(self) -> str:
        """Whether it is significantly better or worse than that of the first run."""
        if self.difference is None or self.difference.p >= SIGNIFICANT:
            return ""
        return BETTER if (self.difference.value > 0) == (self.score.better == "higher") else WORSE

    def beside(self, value: float) -> Verdict:
        """Whether it is better than a baseline: not where that lies in its interval."""
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
class Cost:
    """What a run takes."""

    size: int
    """Bytes of its weights and vocabularies on disk."""
    steps: int | None
    """Updates until the end of training; nothing where its log is gone."""
    epochs: float | None
    seconds: float | None
    """Of training, where the run has noted them."""
    device: str = ""
    """What it was scored on."""
    speed: float = field(default=0.0, compare=False)
    """Examples scored in a second, just now."""
    trained_on: str = ""
    """The device of training; nothing where that is not known."""

    @property
    def training(self) -> str:
        """Steps, epochs and time, as far as they are known."""
        parts = [number_of(self.steps, "step")] if self.steps is not None else []
        parts += [number_of(round(self.epochs, 1), "epoch")] if self.epochs is not None else []
        if self.seconds is not None:
            parts.append(
                duration(self.seconds) + (f" on {self.trained_on}" if self.trained_on else "")
            )
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
    """The same by length; empty where there is no length."""
    search: str
    """How its outputs were chosen."""
    scores: tuple[Measured, ...] = ()
    cost: Cost | None = None


@final
@dataclass(frozen=True)
class Differing:
    """An example that the first run and another one differ on."""

    name: str
    """The other run."""
    input: str
    references: tuple[str, ...]
    first_output: str | None
    output: str | None
    difference: float
    """The score of the other less that of the first. Where one example has none, by how much the first run's score
    of all would change with this output of the other."""
    times: int = 1
    """How many examples have this input."""


@final
@dataclass(frozen=True)
class Comparison:
    """All of them, on the same metrics and the same examples.

    >>> Comparison("bleu", (), Path("by_length.png"), 200, "the test set of pairs.tsv").to_json()["data"]
    'the test set of pairs.tsv'
    """

    metric: str
    """Of the curves and the examples."""
    contenders: tuple[Contender, ...]
    picture: Path | None
    """Nothing where none was drawn."""
    examples: int
    """How many were scored."""
    data: str
    """What they are: the split, and its file."""
    by: str = ""
    """What the length is of; empty where nothing has a length."""
    differing: tuple[Differing, ...] = ()
    """Where the first run and another one differ most, in both directions."""
    seeds: tuple[Seeds, ...] = ()
    """Runs of one recipe with different seeds: no rivals, but what chance does to its scores."""
    baselines: tuple[Baseline, ...] = ()
    """What costs nothing, scored on the same examples."""

    @property
    def title(self) -> str:
        """The metric, the examples and the search; several searches are named one by one."""
        searches = dict.fromkeys(found.search for found in self.contenders)
        how = ", ".join(searches)
        if len(searches) > 1:
            how = "; ".join(f"{found.name}: {found.search}" for found in self.contenders)
        return f"{self.metric} on {self.examples:,} examples of {self.data}, {how}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of the runs, and a row for each score and for what they take."""
        runs = self.contenders
        names = [measured.score.name for measured in runs[0].scores]
        rows = [[name, *(one.scores[at].shown for one in runs)] for at, name in enumerate(names)]
        rows.append(["parameters", *(f"{one.parameters:,}" for one in runs)])
        costs = [one.cost for one in runs if one.cost is not None]
        if len(costs) == len(runs):
            rows.append(["size", *(size_of(cost.size) for cost in costs)])
            rows.append(
                ["examples scored", *(f"{cost.speed:,.0f}/s on {cost.device}" for cost in costs)]
            )
            rows.append(["training", *(cost.training for cost in costs)])
        return ["", *(one.name for one in runs)], rows

    def by_length(self) -> tuple[list[str], list[list[str]]]:
        """The same for the score by length; the last row has the number of examples."""
        buckets = self.contenders[0].buckets
        rows = [
            [one.name, f"{rounded(one.overall)} ", *map(_cell, one.buckets)]
            for one in self.contenders
        ]
        counts = [f"{count:,} " for count in (self.examples, *(bucket.count for bucket in buckets))]
        return ["", "all", *(one.name for one in buckets)], [*rows, ["examples", *counts]]

    def notes(self) -> Iterator[str]:
        """What the marks in the score by length mean."""
        buckets = self.contenders[0].buckets
        if any(0 < bucket.count < FEW for bucket in buckets):
            yield f"* fewer than {FEW} examples: too few to go by"
        if any(bucket.value is None for bucket in buckets):
            yield "– no example of such a length can be scored"

    def findings(self) -> Iterator[str]:
        """Each difference from the first run in words; of runs that differ in the seed alone, mean and spread."""
        first = self.contenders[0]
        alike = {row for some in self.seeds if 0 in some.rows for row in some.rows}
        names = [one.name for one in self.contenders]
        for at, measured in enumerate(first.scores):
            name = measured.score.name
            for some in self.seeds:
                values = [one.scores[at].score.value for one in self.contenders]
                yield f"{name}: {some.in_words(names, values, partial(rounded, like=max(values)))}."
            if measured.interval is None:
                yield f"{name}: no interval, for {_why_none(measured.score)}."
                continue
            for other in [
                one for row, one in enumerate(self.contenders) if row and row not in alike
            ]:
                yield f"{name}: {_in_words(other.name, first.name, other.scores[at])}"

    def beside(self) -> str:
        """The best baseline beside all runs in a sentence, by the metric of the comparison; nothing without one."""
        every = [measured.score for run in self.contenders for measured in run.scores]
        best = best_by([one for one in self.baselines if not has_nothing(one, every)], self.metric)
        value = None if best is None else best.value(self.metric)
        scores = [(run.name, one) for run in self.contenders for one in run.scores]
        own = {name: one for name, one in scores if one.score.name == self.metric}
        if best is None or value is None:
            return ""
        if not any(says_something(value, one.score) for one in own.values()):
            return ""
        told = [f"{name} {rounded(one.score.value, like=value)}" for name, one in own.items()]
        found = {name: one.beside(value) for name, one in own.items()}
        unsure = [name for name, how in found.items() if how == "no difference"]
        behind = [name for name, how in found.items() if how in ("worse", "equal")]
        rows = number_of(next(iter(own.values())).score.count, "row")
        verdicts = [f" No difference that {rows} can show: {', '.join(unsure)}."] if unsure else []
        verdicts += [f" No better: {', '.join(behind)}; {PAGE} says what to try."] if behind else []
        reached = f"{best.name} reaches {rounded(value)} in {in_time(best.seconds)}"
        return f"{self.metric}: {reached}; {'; '.join(told)}.{''.join(verdicts)}"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {
            **asdict(self),
            "picture": None if self.picture is None else str(self.picture),
            "baselines": [baseline.to_json() for baseline in self.baselines],
        }

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return table(*self.table(), self.title)


def in_words(interval: Interval, between: str, *, like: float) -> str:
    """From where to where."""
    return f"{rounded(interval.low, like=like)}{between}{rounded(interval.high, like=like)}"


def size_of(count: float) -> str:
    """Bytes for a person.

    >>> size_of(812), size_of(1_640_000)
    ('812 B', '1.6 MB')
    """
    power = 0
    while count >= 1000 and power < len(UNITS) - 1:
        count, power = count / 1000, power + 1
    return (
        f"{count:.0f} {UNITS[power]}"
        if count >= 100 or not power
        else f"{count:.1f} {UNITS[power]}"
    )


def _cell(bucket: Bucket) -> str:
    """A score; with a mark where it is of few examples."""
    if bucket.value is None:
        return "– "
    return f"{rounded(bucket.value)}{'*' if bucket.count < FEW else ' '}"


def _why_none(score: Score) -> str:
    """Why a score has no interval."""
    if score.count < 2:
        return "there is only one example"
    return (
        "only all examples together have a value"
        if math.isfinite(score.value)
        else f"it is {score.value}"
    )


def _in_words(name: str, first: str, measured: Measured) -> str:
    found = measured.difference
    if not measured.comparable:
        return f"{name} and {first} have different vocabularies, so their values do not compare."
    if found is None:
        return f"too few resamples have a value to compare {name} with {first}."
    value = measured.score.value
    change = rounded(found.value, like=value)
    between = f"95 % interval {in_words(found.interval, ' to ', like=value)}, p = {found.p:.2g}"
    if not measured.mark:
        return f"{name} and {first} do not differ significantly ({change}; {between})."
    how = "better" if measured.mark == BETTER else "worse"
    return f"{name} is significantly {how} than {first} ({'+' if found.value > 0 else ''}{change}; {between})."


def unique_names(names: Sequence[str]) -> list[str]:
    """Names with a number where one occurs again.

    >>> unique_names(["run", "other", "run"])
    ['run', 'other', 'run (2)']
    """
    counted = [names[: at + 1].count(name) for at, name in enumerate(names)]
    return [
        name if count == 1 else f"{name} ({count})"
        for name, count in zip(names, counted, strict=True)
    ]
