"""A report of a run: all that is known of it, gathered and written as one HTML file.

Dims: B batch, N examples, D features of a summary vector.
"""

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.errors import DataError
from sixjars.evaluation.bootstrap import interval_of
from sixjars.evaluation.by_length import edges_of, scores_by_length
from sixjars.evaluation.metrics import Interval, Metric, Outcome, metric_named
from sixjars.evaluation.score import encoded_batches, nbest_of
from sixjars.learning.cost import read_cost
from sixjars.learning.engine import Device
from sixjars.progress import Reporter, duration, number_of
from sixjars.recipe.outside import Outside
from sixjars.reports.example_views import chosen_rows
from sixjars.reports.examples import (
    example_of,
    images_of,
    lengths_of,
    ranking_of,
    unknown_words,
    views_of,
)
from sixjars.reports.page import report_page
from sixjars.reports.summary_map import neighbours_of, projected
from sixjars.reports.values import ByLength, Example, History, Report, Shown, SummaryMap
from sixjars.runs.beside import sentence_of
from sixjars.runs.data import Splits
from sixjars.runs.evaluate import (
    Evaluation,
    JudgedRun,
    baselines_beside,
    evaluation_of,
    judged_run,
    wanted_metrics,
    without_annotations,
)
from sixjars.runs.explain import explain
from sixjars.runs.folder import RunFolder, best_of, first_score, noted, open_run
from sixjars.runs.folds import note_of_folds
from sixjars.runs.output_file import check_new, check_not_read, check_writable
from sixjars.runs.recipes import metrics_of
from sixjars.runs.scored_files import are_files
from sixjars.runs.splits import SPLITS
from sixjars.runs.trend import trend_of

ENDINGS = (".html", ".htm")
BUCKETS = 5
MOST_POINTS = 1_000
"""Of the map: as many as a page shows without delay."""
MOST_WORDS = 30
"""Unknown words that are listed."""


def report(  # noqa: PLR0913 - the options of one report
    folder: str | os.PathLike[str],
    *,
    data: Any = None,
    out: str | os.PathLike[str] = "report.html",
    device: Device = "auto",
    reporter: Reporter | None = None,
    baselines: bool = True,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Path:
    """Write a report of a run, on its test set or on other data as `evaluate` takes it; returns the file.

    An earlier report is written over, any other file is not.
    It is one HTML file that loads nothing: the six sections, learning curves, scores (also of `baselines`), examples
    with their attention, a map of summary vectors, and how to repeat the run.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "data.sample.test=8", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     file = sixjars.report(run.folder, out=f"{folder}/report.html")
    ...     print(file.name, file.stat().st_size < 5_000_000)
    report.html True
    """
    path, reporter = Path(out), reporter or Reporter()
    if path.suffix.lower() not in ENDINGS:
        raise DataError(
            f"a report is an HTML file, but {path} does not end in {' or '.join(ENDINGS)}."
        )
    check_writable(path)
    check_not_read(path, data)
    if not is_report(path):
        check_new(path)
    given = os.fspath(folder)
    run = open_run(given, Outside(tuple(allow), tuple(components)))
    metrics, one = _judged(run, data, device, reporter)
    try:
        beside = baselines_beside(run, one, metrics, reporter) if baselines else ()
        found = _Gathering(run, one, metrics, reporter).report(given, data)
        scores = [score for score, _ in found.scores]
        sentence = sentence_of(beside, scores, run.recipe, trend_of(run))
        found = replace(found, baselines=beside, beside=sentence)
    finally:
        reporter.end()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_page(found), encoding="utf-8")
    return path


def is_report(path: Path) -> bool:
    """Whether a file is a report, which may be written again."""
    return path.is_file() and b"<title>Report of " in path.read_bytes()[:1000]


def _judged(
    run: RunFolder, data: Any, device: Device, reporter: Reporter
) -> tuple[list[Metric], JudgedRun]:
    """By the run's metrics; other data that has no annotations, as alignments, by those that need none."""
    metrics = wanted_metrics(run.recipe, None, run.outside)
    plain = without_annotations(metrics)
    try:
        return metrics, judged_run(
            run, metrics, data=data, device=device, reporter=reporter, with_loss=True
        )
    except DataError:
        if data is None or not plain or len(plain) == len(metrics):
            raise
    return plain, judged_run(
        run, plain, data=data, device=device, reporter=reporter, with_loss=True
    )


@final
@dataclass(frozen=True)
class _Gathering:
    """A run that was scored, and what is made of it step by step."""

    run: RunFolder
    one: JudgedRun
    metrics: Sequence[Metric]
    reporter: Reporter

    def report(self, given: str, data: Any) -> Report:
        """All values of the report; `given` and `data` are as they were named."""
        run, one, kept = self.run, self.one, {metric.name for metric in self.metrics}
        evaluation, ranking = (
            evaluation_of(one.judged, self.metrics, one.dataset),
            ranking_of(one, self.metrics),
        )
        lengths, unit = lengths_of(one)
        examples = [
            example_of(one, at, ranking.value(at), length) for at, length in enumerate(lengths)
        ]
        explanation = explain(
            run.folder, allow=run.outside.packages, components=run.outside.components
        )
        files = data if are_files(data) else [data if isinstance(data, str | Path) else "FILE"]
        file = [] if data is None else [word for one in files for word in ("--data", str(one))]
        return Report(
            title=f"Report of {Path(given).name or Path(given).resolve().name}",
            where=evaluation.where,
            count=evaluation.examples,
            skipped=evaluation.skipped,
            explanation=explanation,
            scores=[
                (score, interval_of(metric, self._outcomes(metric)))
                for score, metric in zip(evaluation.scores, self.metrics, strict=True)
            ],
            notes=list(notes_of(run, one, own=data is None)),
            ranked_by=ranking.name,
            shown=self._shown(examples, [ranking.key(at) for at in range(len(examples))]),
            has_attention=one.network.decoder.has_attention,
            cost=self._cost(explanation.count, explanation.frozen),
            versions=self._versions(),
            recipe=run.recipe.to_yaml(),
            command=shlex.join(["sixjars", "report", "runs/again", *file]),
            history=self._history(),
            by_length=self._by_length(lengths, unit),
            summary_map=self._map(examples, evaluation, lower=ranking.lower),
            classes=evaluation.classes,
            confusion=evaluation.confusion,
            unknown=evaluation.unknown,
            left_out=[
                metric.name
                for metric in metrics_of(run.recipe, run.outside)
                if metric.name not in kept
            ],
            unknown_words=unknown_words(one.dataset).most_common(MOST_WORDS)
            if evaluation.unknown
            else [],
        )

    def _outcomes(self, metric: Metric) -> list[Outcome]:
        return self.one.judged.outcomes[nbest_of(metric, self.one.judged.settings)]

    def _shown(self, examples: Sequence[Example], keys: Sequence[tuple[float, ...]]) -> list[Shown]:
        """The best, the median and the worst, with their attention; each input once."""
        inputs, rows = self.one.inputs, self.one.judged.rows
        groups, counts = chosen_rows(keys, inputs), Counter(inputs)
        views = views_of(self.one, [rows[at] for some in groups.values() for at in some])
        found = []
        for group, some in groups.items():
            for at in some:
                view = views.get(rows[at])
                images = () if view is not None else images_of(self.one.dataset, rows[at])
                found.append(Shown(group, examples[at], view, images, counts[inputs[at]]))
        return found

    def _history(self) -> History | None:
        records = self.run.history()
        metric = self.run.recipe.learning.metric or "loss"
        if not records or any(metric not in record for record in records):
            return None
        better = "lower" if metric == "loss" else metric_named(metric, self.run.outside).better
        shown = metric if metric != "loss" else first_score(records)
        return History(records, shown, best_of(records, metric, better=better)["step"], metric)

    def _by_length(self, lengths: Sequence[int], unit: str) -> ByLength | None:
        """By the first metric; nothing where all lengths are the same."""
        metric = self.metrics[0]
        if len(set(lengths)) < 2:
            return None
        outcomes, edges = self._outcomes(metric), edges_of(lengths, buckets=BUCKETS)

        def interval(places: Sequence[int]) -> Interval | None:
            return interval_of(metric, [outcomes[at] for at in places])

        buckets = scores_by_length(outcomes, lengths, metric=metric, edges=edges, interval=interval)
        if all(bucket.value is None or not math.isfinite(bucket.value) for bucket in buckets):
            return None
        return ByLength(metric.name, unit, buckets)

    def _map(
        self, examples: Sequence[Example], evaluation: Evaluation, *, lower: bool
    ) -> SummaryMap | None:
        """Of all inputs that differ, or of some at equal distances: the same input has the same vector."""
        places = sorted({given: at for at, given in enumerate(self.one.inputs)}.values())
        chosen = places[:: -(-len(places) // MOST_POINTS)]
        vectors_ND = self._summaries([self.one.judged.rows[at] for at in chosen])
        found = projected(vectors_ND)
        if found is None:
            return None
        labels = (
            [examples[at].references[0] for at in chosen]
            if evaluation.confusion is not None
            else []
        )
        return SummaryMap(
            *found, neighbours_of(vectors_ND), [examples[at] for at in chosen], lower, labels
        )

    def _summaries(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """The summary vector of each row."""
        found: dict[int, NDArray[np.float64]] = {}
        batches, examples = self.one.dataset.batches(), self.run.recipe.evaluation.batch_examples
        for batch, encoded in encoded_batches(
            self.one.network, batches, examples=examples, rows=rows
        ):
            vectors_BD = encoded.summary.detach().double().cpu().numpy()
            found |= zip(batch.numbers.tolist(), vectors_BD, strict=True)
            self.reporter.preparing("map of summary vectors", done=len(found), total=len(rows))
        return np.stack([found[row] for row in rows])

    def _cost(self, trained: int, frozen: int) -> dict[str, str]:
        """What is known of it."""
        spent = read_cost(self.run.folder)
        time = (
            "not known; the run did not note it"
            if spent is None
            else f"{spent.words}, with validation"
        )
        found = {
            "training time": time,
            "parameters": f"{trained:,} trained" + (f", {frozen:,} frozen" if frozen else ""),
        }
        found["steps"] = "not known; the run has no log"
        for last in self.run.history()[-1:]:
            epochs = number_of(float(f"{last['epoch']:.3g}"), "epoch")
            found["steps"] = f"{last['step']:,.0f} ({epochs})"
        found["weights"] = f"{self.run.weights.stat().st_size / 1e6:,.1f} MB"
        count, device = len(self.one.judged.rows), self.one.network.device
        found["scoring"] = (
            f"{number_of(count, 'example')} in {duration(self.one.seconds)} on {device}, for this report"
        )
        return found

    def _versions(self) -> dict[str, str]:
        """Seed, versions, and the data that it was trained on."""
        folder, learning = self.run.folder, self.run.recipe.learning
        found = {"seed": str(learning.seed), "Python": str(noted(folder, "python") or "not known")}
        versions, data, origin = (noted(folder, fact) for fact in ("versions", "data", "from"))
        versions, data = (facts if isinstance(facts, dict) else {} for facts in (versions, data))
        found |= {str(name): str(number) for name, number in versions.items()}
        found |= {
            f"checksum of the {SPLITS.get(name, name)} set": str(number)
            for name, number in data.items()
        }
        return found | ({"fine-tuned from": str(origin)} if origin else {})


def notes_of(run: RunFolder, one: JudgedRun, *, own: bool) -> Iterator[str]:
    """A sentence each; `own` says that the run was scored on its own data, not on another file."""
    learning = run.recipe.learning
    if learning.folds is None:
        kept = (
            "are those"
            if learning.average == 1
            else f"are the mean of the {learning.average} checkpoints"
        )
        yield f"The validation set chose the weights: they {kept} with the best {learning.metric or 'loss'} on it."
    elif own:
        sentence = note_of_folds(run)
        yield f"{sentence[:1].upper()}{sentence[1:]}"
    if not own or one.splits is None:
        yield _counted(one.dataset.skipped, "bad row", "skipped in reading this file")
        return
    if one.splits.test is None and learning.folds is None:
        yield "There is no test set, so these scores are of the validation set too, and may be too good."
    yield from _rows(one.splits)


def _rows(splits: Splits) -> Iterator[str]:
    yield _counted(splits.skipped, "bad row", "skipped in reading the data")
    why = f" ({splits.train.why_dropped})" if splits.train.dropped else ""
    yield _counted(splits.train.dropped, "training row", f"left out{why}")


def _counted(count: int, row: str, how: str) -> str:
    """What happened to so many rows."""
    many = f"No {row}" if not count else number_of(count, row)
    return f"{many} {'was' if count < 2 else 'were'} {how}."
