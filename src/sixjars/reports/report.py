"""A report of a run: its values, gathered and written as one HTML file.

Dims: B batch, N examples, D features of a summary vector.
"""

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.bootstrap import interval_of
from sixjars.evaluation.by_length import edges_of, scores_by_length
from sixjars.evaluation.metrics import Interval, Metric, Outcome
from sixjars.evaluation.score import encoded_batches, nbest_of
from sixjars.kernels.backends import Device
from sixjars.learning.checkpoints import read_cost
from sixjars.progress import Reporter, duration, number_of
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.reports.examples import (
    attention_of,
    chosen_rows,
    example_of,
    images_of,
    lengths_of,
    ranking_of,
    unknown_words,
)
from sixjars.reports.page import report_page
from sixjars.reports.summary_map import neighbours_of, projected
from sixjars.reports.values import ByLength, Example, History, Report, ShownExample, SummaryScatter
from sixjars.runs.baselines.run_baselines import sentence_of
from sixjars.runs.data.scored_files import are_files
from sixjars.runs.data.split_files import SPLITS
from sixjars.runs.data.splits import Splits
from sixjars.runs.evaluate import (
    Evaluation,
    JudgedRun,
    baselines_beside,
    evaluation_of,
    judged_run,
    wanted_metrics,
    without_annotations,
)
from sixjars.runs.explanation.explain import explain
from sixjars.runs.folder.run_folder import RunFolder, best_of, first_score, noted, open_run
from sixjars.runs.output_file import check_new, check_not_read, check_writable
from sixjars.runs.recipes import chosen_by, metrics_of
from sixjars.runs.training.folds import held_out_baselines, held_out_scores, note_of_folds
from sixjars.runs.training.trend import trend_of
from sixjars_runtime.errors import DataError

ENDINGS = (".html", ".htm")
BUCKETS = 5
MOST_POINTS = 1_000
"""Points of the map: as many as a page shows without delay."""
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
    """Write a report of a run, on its test set or other data as for `evaluate`; return the file.

    An earlier report is written over, any other file is not. It is one HTML file that loads
    nothing: the six sections, learning curves, scores (also of `baselines`), examples with their
    attention, a map of summary vectors, and how to repeat the run.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "data.sample.test=8", "learning.steps=2"]
    >>> few.append("evaluation.search.max_length=5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     file = sixjars.report(run.folder, out=f"{folder}/report.html")
    ...     print(file.name, file.stat().st_size < 5_000_000)
    report.html True
    """
    path = Path(out)
    reporter = reporter or Reporter()
    if path.suffix.lower() not in ENDINGS:
        endings = " or ".join(ENDINGS)
        raise DataError(f"a report is an HTML file, but {path} does not end in {endings}.")
    check_writable(path)
    check_not_read(path, data)
    if not is_report(path):
        check_new(path)
    name = os.fspath(folder)
    run = open_run(name, AllowedCode(tuple(allow), tuple(components)))
    metrics, judged = _judged(run, data, device, reporter)
    try:
        values = _Gathering(run, judged, metrics, reporter).report(name, data)
        has_learned = data is None and run.recipe.learning.folds is not None
        held_out = held_out_scores(run) if has_learned else ()
        beside: tuple[Baseline, ...] = ()
        if baselines and held_out:
            beside = held_out_baselines(run)
        elif baselines:
            beside = baselines_beside(run, judged, metrics, reporter)
        values = replace(values, baselines=beside, held_out=held_out)
        sentence = sentence_of(beside, values.own_scores, run.recipe, trend_of(run))
    finally:
        reporter.end()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_page(replace(values, beside=sentence)), encoding="utf-8")
    return path


def is_report(path: Path) -> bool:
    """Whether a file is a report, which may be written again."""
    return path.is_file() and b"<title>Report of " in path.read_bytes()[:1000]


def _judged(
    run: RunFolder, data: Any, device: Device, reporter: Reporter
) -> tuple[list[Metric], JudgedRun]:
    """The run judged by its metrics; other data without annotations by those that need none."""
    metrics = wanted_metrics(run.recipe, None, run.outside)
    plain = without_annotations(metrics)
    judge = partial(judged_run, run, data=data, device=device, reporter=reporter, with_loss=True)
    try:
        return metrics, judge(metrics)
    except DataError:
        if data is None or not plain or len(plain) == len(metrics):
            raise
    return plain, judge(plain)


@final
@dataclass(frozen=True)
class _Gathering:
    run: RunFolder
    judged: JudgedRun
    metrics: Sequence[Metric]
    reporter: Reporter

    def report(self, name: str, data: Any) -> Report:
        """All values of the report; `name` and `data` are as they were given."""
        run, judged = self.run, self.judged
        evaluation = evaluation_of(judged.judged, self.metrics, judged.dataset)
        ranking = ranking_of(judged, self.metrics)
        lengths, unit = lengths_of(judged)
        places = enumerate(lengths)
        examples = [example_of(judged, at, ranking.value(at), length) for at, length in places]
        keys = [ranking.key(at) for at in range(len(examples))]
        packages, components = run.outside.packages, run.outside.components
        explanation = explain(run.folder, allow=packages, components=components)
        intervals = [interval_of(metric, self._outcomes(metric)) for metric in self.metrics]
        names = [metric.name for metric in metrics_of(run.recipe, run.outside)]
        kept = {metric.name for metric in self.metrics}
        unknown = unknown_words(judged.dataset) if evaluation.unknown else Counter[str]()
        return Report(
            title=f"Report of {Path(name).name or Path(name).resolve().name}",
            where=evaluation.where,
            count=evaluation.examples,
            skipped=evaluation.skipped,
            explanation=explanation,
            scores=list(zip(evaluation.scores, intervals, strict=True)),
            notes=list(notes_of(run, judged, own=data is None)),
            ranked_by=ranking.name,
            shown=self._shown(examples, keys),
            has_attention=judged.network.decoder.has_attention,
            cost=self._cost(explanation.count, explanation.frozen),
            versions=self._versions(),
            recipe=run.recipe.to_yaml(),
            command=_command(data),
            history=self._history(),
            by_length=self._by_length(lengths, unit),
            summary_map=self._map(examples, evaluation, lower=ranking.lower),
            classes=evaluation.classes,
            confusion=evaluation.confusion,
            unknown=evaluation.unknown,
            left_out=[name for name in names if name not in kept],
            unknown_words=unknown.most_common(MOST_WORDS),
        )

    def _outcomes(self, metric: Metric) -> list[Outcome]:
        return self.judged.judged.outcomes[nbest_of(metric, self.judged.judged.settings)]

    def _shown(
        self, examples: Sequence[Example], keys: Sequence[tuple[float, ...]]
    ) -> list[ShownExample]:
        """The best, the median and the worst, with their attention; each input once."""
        inputs, rows = self.judged.inputs, self.judged.judged.rows
        groups = chosen_rows(keys, inputs)
        counts = Counter(inputs)
        views = attention_of(self.judged, [rows[at] for places in groups.values() for at in places])
        shown = []
        for group, places in groups.items():
            for at in places:
                view = views.get(rows[at])
                images = () if view is not None else images_of(self.judged.dataset, rows[at])
                shown.append(ShownExample(group, examples[at], view, images, counts[inputs[at]]))
        return shown

    def _history(self) -> History | None:
        records = self.run.history()
        metric, better = chosen_by(self.run.recipe, self.run.outside)
        if not records or any(metric not in record for record in records):
            return None
        shown = metric if metric != "loss" else first_score(records)
        return History(records, shown, best_of(records, metric, better=better)["step"], metric)

    def _by_length(self, lengths: Sequence[int], unit: str) -> ByLength | None:
        """The first metric by length; None where all lengths are the same."""
        metric = self.metrics[0]
        if len(set(lengths)) < 2:
            return None
        outcomes = self._outcomes(metric)
        edges = edges_of(lengths, buckets=BUCKETS)

        def interval(places: Sequence[int]) -> Interval | None:
            return interval_of(metric, [outcomes[at] for at in places])

        buckets = scores_by_length(outcomes, lengths, metric=metric, edges=edges, interval=interval)
        if all(bucket.value is None or not math.isfinite(bucket.value) for bucket in buckets):
            return None
        return ByLength(metric.name, unit, buckets)

    def _map(
        self, examples: Sequence[Example], evaluation: Evaluation, *, lower: bool
    ) -> SummaryScatter | None:
        """A map of the different inputs, or of some evenly spaced: equal ones have one vector."""
        places = sorted({text: at for at, text in enumerate(self.judged.inputs)}.values())
        chosen = places[:: -(-len(places) // MOST_POINTS)]
        vectors_ND = self._summaries([self.judged.judged.rows[at] for at in chosen])
        plane = projected(vectors_ND)
        if plane is None:
            return None
        shown = [examples[at] for at in chosen]
        has_classes = evaluation.confusion is not None
        labels = [example.references[0] for example in shown] if has_classes else []
        return SummaryScatter(*plane, neighbours_of(vectors_ND), shown, lower, labels)

    def _summaries(self, rows: Sequence[int]) -> NDArray[np.float64]:
        summaries: dict[int, NDArray[np.float64]] = {}
        network = self.judged.network
        batches = self.judged.dataset.batches()
        examples = self.run.recipe.evaluation.batch_examples
        for batch, encoded in encoded_batches(network, batches, examples=examples, rows=rows):
            vectors_BD = encoded.summary.detach().double().cpu().numpy()
            summaries |= zip(batch.numbers.tolist(), vectors_BD, strict=True)
            done = len(summaries)
            self.reporter.preparing("map of summary vectors", done=done, total=len(rows))
        return np.stack([summaries[row] for row in rows])

    def _cost(self, trained: int, frozen: int) -> dict[str, str]:
        """The time, the steps and the sizes of the training, as far as they are known."""
        spent = read_cost(self.run.folder)
        judged = self.judged
        time, steps = "not known; the run did not note it", "not known; the run has no log"
        if spent is not None:
            time = f"{spent.words}, with validation"
        for last in self.run.history()[-1:]:
            epochs = number_of(float(f"{last['epoch']:.3g}"), "epoch")
            steps = f"{last['step']:,.0f} ({epochs})"
        count = number_of(len(judged.judged.rows), "example")
        seconds = duration(judged.seconds)
        return {
            "training time": time,
            "parameters": f"{trained:,} trained" + (f", {frozen:,} frozen" if frozen else ""),
            "steps": steps,
            "weights": f"{self.run.weights.stat().st_size / 1e6:,.1f} MB",
            "scoring": f"{count} in {seconds} on {judged.network.device}, for this report",
        }

    def _versions(self) -> dict[str, str]:
        """The seed, the versions, and the data of the training."""
        folder, learning = self.run.folder, self.run.recipe.learning
        texts = {"seed": str(learning.seed), "Python": str(noted(folder, "python") or "not known")}
        versions, data, origin = (noted(folder, fact) for fact in ("versions", "data", "from"))
        versions, data = (facts if isinstance(facts, dict) else {} for facts in (versions, data))
        texts |= {str(name): str(number) for name, number in versions.items()}
        for name, number in data.items():
            texts[f"checksum of the {SPLITS.get(name, name)} set"] = str(number)
        return texts | ({"fine-tuned from": str(origin)} if origin else {})


def _command(data: Any) -> str:
    """The command that makes a report of the same data, where that is in files."""
    files = [data if isinstance(data, str | Path) else "FILE"]
    if data is None or are_files(data):
        files = data or []
    words = [word for file in files for word in ("--data", str(file))]
    return shlex.join(["sixjars", "report", "runs/again", *words])


def notes_of(run: RunFolder, judged: JudgedRun, *, own: bool) -> Iterator[str]:
    """Notes on the scores; `own` says that they are of the run's own data, not of another file."""
    learning = run.recipe.learning
    if learning.folds is None:
        weights = "are those"
        if learning.average > 1:
            weights = f"are the mean of the {learning.average} checkpoints"
        best = f"with the best {learning.metric or 'loss'} on it."
        yield f"The validation set chose the weights: they {weights} {best}"
    elif own:
        sentence = note_of_folds(run)
        yield f"{sentence[:1].upper()}{sentence[1:]}"
    if not own or judged.splits is None:
        yield _counted(judged.dataset.skipped, "bad row", "skipped in reading this file")
        return
    if judged.splits.test is None and learning.folds is None:
        same = "these scores are of the validation set too, and may be too good."
        yield f"There is no test set, so {same}"
    yield from _rows(judged.splits)


def _rows(splits: Splits) -> Iterator[str]:
    yield _counted(splits.skipped, "bad row", "skipped in reading the data")
    why = f" ({splits.train.why_dropped})" if splits.train.dropped else ""
    yield _counted(splits.train.dropped, "training row", f"left out{why}")


def _counted(count: int, row: str, end: str) -> str:
    rows = f"No {row}" if not count else number_of(count, row)
    return f"{rows} {'was' if count < 2 else 'were'} {end}."
