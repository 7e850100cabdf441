"""Recipes or runs side by side: scores with intervals, significance, cost, lengths, examples."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from sixjars.comparison.result import (
    Comparison,
    Contender,
    DifferingExample,
    alike_first,
    unique_names,
)
from sixjars.comparison.scored_run import ScoredRun, seeds_of
from sixjars.comparison.tables import RUNS, ComparisonOutput
from sixjars.data.dataset import Dataset
from sixjars.evaluation.bootstrap import exchanged
from sixjars.evaluation.metrics import Metric, Outcome, metric_named, value_alone
from sixjars.kernels.backends import Device, device_named
from sixjars.progress import Reporter, usual_reporter
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.sections import Recipe
from sixjars.runs.evaluate import baselines_beside, judged_run, wanted_metrics, without_annotations
from sixjars.runs.explanation.explain import is_run, recipe_or_run
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.output_file import check_not_read
from sixjars.runs.recipes import metrics_of, read_recipe
from sixjars.runs.train import train
from sixjars.runs.training.resume import resume_run
from sixjars_runtime.errors import DataError

EXAMPLES: Final = 2
"""Examples that two runs differ on most, in each direction."""


def compare(  # noqa: PLR0913 - the options of one comparison
    named: Sequence[str | os.PathLike[str]],
    *,
    data: Any = None,
    out: str | Path = RUNS,
    metric: str | None = None,
    device: Device = "auto",
    baselines: bool = True,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Comparison:
    """Train recipes, load runs, and score all on the same examples.

    A recipe is not trained again where `out` has its run. The examples are the test set of each, or
    `data`, as for `evaluate`. `out` is a folder, or a file: a new table (.md, .csv, .json) or the
    picture of the score by length (.png, .svg, .pdf). `metric` is that of the curves and the
    examples. `baselines`, simple methods without a network, are scored beside them; they learn from
    the training set of the first.

    >>> import sixjars
    >>> sixjars.compare(["translation/sample_attention"])
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: compare needs two recipes or runs, or more.
    """
    outside = AllowedCode(tuple(allow), tuple(components))
    target = ComparisonOutput(Path(out))
    names = [os.fspath(name) for name in named]
    if metric is not None:
        metric_named(metric, outside)
    if len(names) < 2:
        raise DataError("compare needs two recipes or runs, or more.")
    recipes = [
        open_run(name, outside).recipe if is_run(name) else recipe_or_run(name, (), outside)
        for name in names
    ]
    first = recipes[0].task
    for name, recipe in zip(names, recipes, strict=True):
        if recipe.task != first:
            models = f"{names[0]} is a {first} model, but {name} is a {recipe.task} model"
            raise DataError(f"{models}; compare models of one task.")
    metrics, chosen = _metrics(names, recipes, metric, outside)
    check_not_read(target.path, data)
    target.check()
    reporter = usual_reporter()
    runs = [_run(name, target.runs, device, reporter, outside) for name in names]
    judge = partial(_judged, names, runs, data=data, device=device, reporter=reporter)
    scored, chosen = _with_known_metrics(
        judge, metrics, chosen, data=data, named=metric, reporter=reporter
    )
    labels = unique_names(short_names(_names(names, runs)))
    result = _comparison(labels, scored, chosen, target.picture)
    if baselines:
        beside = baselines_beside(runs[0], scored[0].judged, scored[0].metrics, reporter)
        result = replace(result, baselines=beside)
    target.write(result)
    return result


def _with_known_metrics(
    judge: Callable[[Sequence[Metric]], list[ScoredRun]],
    metrics: Sequence[Metric],
    chosen: Metric,
    *,
    data: Any,
    named: str | None,
    reporter: Reporter,
) -> tuple[list[ScoredRun], Metric]:
    """All runs scored, by metrics whose annotations the data has, and the metric of the curves."""
    try:
        return judge(metrics), chosen
    except DataError:
        plain = without_annotations(metrics)
        can_leave_out = data is not None and plain and len(plain) < len(metrics)
        if not can_leave_out or (named and chosen not in plain):
            raise
    scored = judge(plain)
    left_out = ", ".join(each.name for each in metrics if each not in plain)
    reporter.note(f"left out, for this data has no annotations: {left_out}.")
    return scored, chosen if chosen in plain else plain[0]


def _judged(
    names: Sequence[str],
    runs: Sequence[RunFolder],
    metrics: Sequence[Metric],
    *,
    data: Any,
    device: Device,
    reporter: Reporter,
) -> list[ScoredRun]:
    """All runs scored on the same examples; the first run says whether equal inputs are one."""
    scored: list[ScoredRun] = []
    group = runs[0].recipe.evaluation.group
    for name, run in zip(names, runs, strict=True):
        judged = judged_run(run, metrics, data=data, device=device, reporter=reporter, group=group)
        scored.append(ScoredRun(run, judged, metrics, str(device_named(device))))
        if judged.dataset.unknown:
            share = f"{100 * judged.dataset.unknown:.3g} %"
            reporter.note(f"{share} of the input tokens are unknown to {name} (<unk>).")
        _check_data(names[0], scored[0].dataset, name, judged.dataset)
        if not scored[-1].has_references_of(scored[0]):
            raise DataError(
                f"{names[0]} and {name} are scored against different references, for they "
                "normalize texts differently (lowercase); compare runs that have this setting "
                "alike."
            )
    return scored


def _metrics(
    names: Sequence[str], recipes: Sequence[Recipe], metric: str | None, outside: AllowedCode
) -> tuple[list[Metric], Metric]:
    """The metrics that all have, with the one that is named; and the one that is drawn."""
    theirs = [{each.name: each for each in metrics_of(recipe, outside)} for recipe in recipes]
    shared = {name: each for name, each in theirs[0].items() if all(name in s for s in theirs)}
    for recipe in recipes if metric is not None and metric not in shared else ():
        shared |= {each.name: each for each in wanted_metrics(recipe, [str(metric)], outside)}
    if not shared:
        remedy = "choose one with --metric NAME."
        raise DataError(f"{names[0]} and the others have no metric in common; {remedy}")
    usual = recipes[0].learning.metric
    usual = usual if usual in shared else next(iter(shared))
    return list(shared.values()), shared[metric or usual]


def _check_data(first: str, firsts: Dataset, name: str, dataset: Dataset) -> None:
    examples, others = _examples(firsts), _examples(dataset)
    if examples == others:
        return
    what = "different examples"
    if sorted(examples) == sorted(others):
        what = "the same examples in a different order"
    raise DataError(
        f"{first} and {name} are scored on {what}; score both on one file: --data FILE."
    )


def _examples(dataset: Dataset) -> list[tuple[str, ...]]:
    """The inputs and the target of each example, as texts."""
    return list(zip(*(dataset.table.texts(name) for name in dataset.fields.all), strict=True))


def _names(named: Sequence[str], runs: Sequence[RunFolder]) -> list[str]:
    """The name of each run's folder or file; the given path where two have the same name."""
    names = {}
    for path, run in zip(named, runs, strict=True):
        is_file = Path(path).is_file()
        place = (Path(path) if is_file else run.folder).resolve()
        names[path] = place, place.stem if is_file else place.name
    counts = Counter(name for _, name in set(names.values()))
    return [names[path][1] if counts[names[path][1]] == 1 else path for path in named]


def _run(
    name: str, out: Path, device: Device, reporter: Reporter, outside: AllowedCode
) -> RunFolder:
    """A run that is there, or one of a recipe, which is trained unless `out` has it already."""
    if is_run(name):
        return open_run(name, outside)
    folder = out / name.removesuffix(".yaml").replace("/", "-")
    begun = (folder / "recipe.yaml").is_file()
    if begun:  # refuse one that an older recipe trained
        resume_run(folder, read_recipe(name, (), outside), outside)
    if not (folder / "scores.json").is_file():
        train(
            name,
            out=folder,
            resume=begun,
            device=device,
            reporter=reporter,
            baselines=False,  # they come once, beside all of them
            allow=outside.packages,
            components=outside.components,
        )
    return open_run(folder, outside)


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the words that they all begin with.

    >>> short_names(["translation-long_initial", "translation-long_every_step"])
    ['initial', 'every_step']
    """
    ends = [at + 1 for at, letter in enumerate(names[0]) if letter in "-_/"]
    shared = [end for end in ends if all(name.startswith(names[0][:end]) for name in names)]
    return [name[max(shared, default=0) :] or name for name in names]


def _comparison(
    names: Sequence[str], scored: Sequence[ScoredRun], metric: Metric, picture: Path | None
) -> Comparison:
    first = scored[0]
    by, lengths = _lengths(first.dataset, first.outputs.rows)
    seeds = seeds_of([each.run for each in scored])
    alike = alike_first(seeds)
    contenders, differing = [], list[DifferingExample]()
    for row, (name, run) in enumerate(zip(names, scored, strict=True)):
        overall = next(score.value for score in run.scores if score.name == metric.name)
        buckets, search = run.buckets(metric, lengths), run.search(metric)
        scores = run.run_scores(first, rival=row not in alike)
        parameters = run.judged.parameters
        contender = Contender(name, parameters, overall, buckets, search, scores, run.cost)
        contenders.append(contender)
        if row and row not in alike and run.comparable(first, metric):
            differing += _differing(name, first, run, metric)
    return Comparison(
        metric.name,
        tuple(contenders),
        picture if by else None,
        len(first.outputs.rows),
        first.dataset.where,
        by,
        tuple(differing),
        seeds,
    )


def _lengths(dataset: Dataset, rows: Sequence[int]) -> tuple[str, list[int]]:
    """The lengths of the first input that varies in length, else of the reference, with a name.

    They are words, characters or points; none where all are equally long, as labels are.
    """
    fields, inputs = dataset.fields.inputs, dataset.inputs
    columns = []
    for name, field in fields.items():
        what = f"length of {'the input' if len(fields) == 1 else name}"
        columns.append((what, field, [inputs[row][name] for row in rows]))
    targets = [dataset.targets[row] for row in rows]
    columns.append(("length of the reference", dataset.fields.output, targets))
    for what, field, texts in columns:
        lengths = [words[-1] + 1 if words else 0 for words in field.words(texts)]
        if len(set(lengths)) > 1:
            unit = "words" if "vocabulary" in field.fact_names else field.name
            unit = "characters" if sum(lengths) > sum(len(text.split()) for text in texts) else unit
            return f"{what} ({unit})", lengths
    return "", []


def _differing(
    name: str, first: ScoredRun, other: ScoredRun, metric: Metric
) -> list[DifferingExample]:
    """The examples that two runs differ on most, those where the other has more first."""
    ours, theirs = first.outcomes[metric.name], other.outcomes[metric.name]
    changes = _changes(metric, ours, theirs)
    inputs = first.judged.inputs
    counts = Counter(inputs)
    chosen = list[int]()
    for sign in (1, -1):
        order = [at for at in changes if sign * changes[at] > 0]
        order.sort(key=lambda at: abs(changes[at]))
        largest = {inputs[at]: at for at in order}.values()  # of the same input, the last one
        chosen += sorted(largest, key=lambda at: -abs(changes[at]))[:EXAMPLES]
    return [
        DifferingExample(
            name,
            " | ".join(first.dataset.raw(first.outputs.rows[at]).values()),
            ours[at].references,
            next(iter(ours[at].candidates), None),
            next(iter(theirs[at].candidates), None),
            changes[at],
            counts[inputs[at]],
        )
        for at in chosen
    ]


def _changes(
    metric: Metric, first: Sequence[Outcome], other: Sequence[Outcome]
) -> dict[int, float]:
    """The change in the score of each example, or else in that of all by its output."""
    if not metric.per_example:
        return dict(enumerate(exchanged(metric, first, other)))
    values = [[value_alone(metric, outcome) for outcome in each] for each in (first, other)]
    pairs = enumerate(zip(*values, strict=True))
    return {at: new - old for at, (old, new) in pairs if old is not None and new is not None}
