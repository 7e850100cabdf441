"""Several recipes or runs side by side: scores with intervals, significance, cost, score by length, examples."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from sixjars.comparison.result import Comparison, Contender, Differing, unique_names
from sixjars.comparison.scored_run import ScoredRun
from sixjars.comparison.seeds import seeds_of
from sixjars.comparison.tables import RUNS, Target
from sixjars.data.dataset import Dataset
from sixjars.evaluation.bootstrap import exchanged
from sixjars.evaluation.metrics import Metric, Outcome, metric_named, value_alone
from sixjars.learning.engine import Device, device_named
from sixjars.progress import Reporter, usual_reporter
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.evaluate import baselines_beside, judged_run, wanted_metrics, without_annotations
from sixjars.runs.explain import is_run, recipe_or_run
from sixjars.runs.extension import resume_run
from sixjars.runs.folder import RunFolder, open_run
from sixjars.runs.output_file import check_not_read
from sixjars.runs.recipes import metrics_of, read_recipe
from sixjars.runs.train import train
from sixjars_runtime.errors import DataError

EXAMPLES: Final = 2
"""Of those that two runs differ on most, in each direction."""


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
    """Train what is a recipe (unless `out` has it trained already), load what is a run, score all on the same examples.

    These are the test set of each, or `data`, as for `evaluate`. `out` is a folder, or a file: a new table (.md, .csv,
    .json) or the picture of the score by length (.png, .svg, .pdf). `metric` is that of the curves and the examples.
    `baselines`, which cost nothing, are scored beside them; they learn from the training set of the first.

    >>> import sixjars
    >>> sixjars.compare(["translation/sample_attention"])
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: compare needs two recipes or runs, or more.
    """
    outside, target = Outside(tuple(allow), tuple(components)), Target(Path(out))
    names = [os.fspath(name) for name in named]
    if metric is not None:
        metric_named(metric, outside)
    if len(names) < 2:
        raise DataError("compare needs two recipes or runs, or more.")
    recipes = [
        open_run(n, outside).recipe if is_run(n) else recipe_or_run(n, (), outside) for n in names
    ]
    _check_tasks(names, recipes)
    metrics, chosen = _metrics(names, recipes, metric, outside)
    check_not_read(target.path, data)
    target.check()
    reporter = usual_reporter()
    runs = [
        open_run(name, outside)
        if is_run(name)
        else _trained(name, target.runs, device, reporter, outside)
        for name in names
    ]
    judge = partial(_judged, names, runs, data=data, device=device, reporter=reporter)
    found, chosen = _with_what_is_known(
        judge, metrics, chosen, data=data, named=metric, reporter=reporter
    )
    result = _comparison(
        unique_names(short_names(_names(names, runs))), found, chosen, target.picture
    )
    if baselines:
        beside = baselines_beside(runs[0], found[0].judged, found[0].metrics, reporter)
        result = replace(result, baselines=beside)
    target.write(result)
    return result


def _with_what_is_known(
    judge: Callable[[Sequence[Metric]], list[ScoredRun]],
    metrics: Sequence[Metric],
    chosen: Metric,
    *,
    data: Any,
    named: str | None,
    reporter: Reporter,
) -> tuple[list[ScoredRun], Metric]:
    """All of them scored, and the metric of the curves; other data without annotations by the metrics without."""
    try:
        return judge(metrics), chosen
    except DataError:
        plain = without_annotations(metrics)
        if (
            data is None
            or len(plain) == len(metrics)
            or not plain
            or (named and chosen not in plain)
        ):
            raise
    found = judge(plain)
    left_out = ", ".join(one.name for one in metrics if one not in plain)
    reporter.note(f"left out, for this data has no annotations: {left_out}.")
    return found, chosen if chosen in plain else plain[0]


def _judged(
    names: Sequence[str],
    runs: Sequence[RunFolder],
    metrics: Sequence[Metric],
    *,
    data: Any,
    device: Device,
    reporter: Reporter,
) -> list[ScoredRun]:
    """All of them, on the same examples; rows with the same input are put together as the first run has it."""
    found: list[ScoredRun] = []
    group = runs[0].recipe.evaluation.group
    for name, run in zip(names, runs, strict=True):
        judged = judged_run(run, metrics, data=data, device=device, reporter=reporter, group=group)
        found.append(ScoredRun(run, judged, metrics, str(device_named(device))))
        if judged.dataset.unknown:
            share = f"{100 * judged.dataset.unknown:.3g} %"
            reporter.note(f"{share} of the input tokens are unknown to {name} (<unk>).")
        _check_data(names[0], found[0].judged.dataset, name, judged.dataset)
        if not found[-1].has_references_of(found[0]):
            raise DataError(
                f"{names[0]} and {name} are scored against different references, for they normalize texts differently "
                "(lowercase); compare runs that have this setting alike."
            )
    return found


def _check_tasks(names: Sequence[str], recipes: Sequence[Recipe]) -> None:
    """Only models of one task can be compared."""
    for name, recipe in zip(names, recipes, strict=True):
        if recipe.task != recipes[0].task:
            both = f"{names[0]} is a {recipes[0].task} model, but {name} is a {recipe.task} model"
            raise DataError(f"{both}; compare models of one task.")


def _metrics(
    names: Sequence[str], recipes: Sequence[Recipe], metric: str | None, outside: Outside
) -> tuple[list[Metric], Metric]:
    """The metrics that all of them have, with the one that is wanted; and which one is drawn."""
    theirs = [{one.name: one for one in metrics_of(recipe, outside)} for recipe in recipes]
    shared = {
        name: one for name, one in theirs[0].items() if all(name in others for others in theirs)
    }
    for recipe in recipes if metric is not None and metric not in shared else ():
        shared |= {one.name: one for one in wanted_metrics(recipe, [str(metric)], outside)}
    if not shared:
        raise DataError(
            f"{names[0]} and the others have no metric in common; choose one with --metric NAME."
        )
    usual = recipes[0].learning.metric
    return list(shared.values()), shared[
        metric or (usual if usual in shared else next(iter(shared)))
    ]


def _check_data(first: str, firsts: Dataset, name: str, dataset: Dataset) -> None:
    """Scores compare only on the same examples."""
    one, two = _examples(firsts), _examples(dataset)
    if one == two:
        return
    how = (
        "the same examples in a different order"
        if sorted(one) == sorted(two)
        else "different examples"
    )
    raise DataError(f"{first} and {name} are scored on {how}; score both on one file: --data FILE.")


def _examples(dataset: Dataset) -> list[tuple[str, ...]]:
    """Inputs and targets as they were given."""
    return list(zip(*(dataset.table.texts(name) for name in dataset.fields.all), strict=True))


def _names(named: Sequence[str], runs: Sequence[RunFolder]) -> list[str]:
    """What each run is called: the name of its folder or file; what was given, where two have the same name."""
    places = [
        (Path(n) if Path(n).is_file() else run.folder).resolve()
        for n, run in zip(named, runs, strict=True)
    ]
    names = {place: place.stem if place.is_file() else place.name for place in places}
    count = Counter(names.values())
    return [
        names[at] if count[names[at]] == 1 else given
        for at, given in zip(places, named, strict=True)
    ]


def _trained(
    name: str, out: Path, device: Device, reporter: Reporter, outside: Outside
) -> RunFolder:
    folder = out / name.removesuffix(".yaml").replace("/", "-")
    begun = (folder / "recipe.yaml").is_file()
    if begun:
        resume_run(
            folder, read_recipe(name, (), outside), outside
        )  # refuses one that an older recipe trained
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
    cut = max(
        (end for end in ends if all(name.startswith(names[0][:end]) for name in names)), default=0
    )
    return [name[cut:] or name for name in names]


def _comparison(
    names: Sequence[str], found: Sequence[ScoredRun], metric: Metric, picture: Path | None
) -> Comparison:
    first = found[0]
    by, lengths = _lengths(first.judged.dataset, first.judged.judged.rows)
    seeds = seeds_of([one.run for one in found])
    alike = {row for some in seeds if 0 in some.rows for row in some.rows}  # no rivals of the first
    contenders = tuple(
        Contender(
            name,
            one.judged.parameters,
            next(score.value for score in one.scores if score.name == metric.name),
            one.buckets(metric, lengths),
            one.search(metric),
            one.measured(first, rival=row not in alike),
            one.cost,
        )
        for row, (name, one) in enumerate(zip(names, found, strict=True))
    )
    rivals = [
        pair for row, pair in enumerate(zip(names, found, strict=True)) if row and row not in alike
    ]
    others = [(name, one) for name, one in rivals if one.comparable(first, metric)]
    differing = tuple(
        example for name, one in others for example in _differing(name, first, one, metric)
    )
    data, count = first.judged.dataset.where, len(first.judged.judged.rows)
    return Comparison(
        metric.name, contenders, picture if by else None, count, data, by, differing, seeds
    )


def _lengths(dataset: Dataset, rows: Sequence[int]) -> tuple[str, list[int]]:
    """Of the first input that is not always equally long, else of the reference, in words, characters or points.

    Nothing where all are equally long, as labels are.
    """
    fields, inputs = dataset.fields.inputs, dataset.inputs
    columns = {
        f"length of {'the input' if len(fields) == 1 else name}": (
            field,
            [inputs[row][name] for row in rows],
        )
        for name, field in fields.items()
    }
    columns["length of the reference"] = (
        dataset.fields.output,
        [dataset.targets[row] for row in rows],
    )
    for what, (field, texts) in columns.items():
        lengths = [words[-1] + 1 if words else 0 for words in field.words(texts)]
        if len(set(lengths)) > 1:
            unit = "words" if "vocabulary" in field.fact_names else field.name
            unit = "characters" if sum(lengths) > sum(len(text.split()) for text in texts) else unit
            return f"{what} ({unit})", lengths
    return "", []


def _differing(name: str, first: ScoredRun, other: ScoredRun, metric: Metric) -> list[Differing]:
    """The examples that two runs differ on most, those where the other has more first; each input once."""
    ours, theirs = first.outcomes[metric.name], other.outcomes[metric.name]
    changes, inputs = _changes(metric, ours, theirs), first.judged.inputs
    counts, chosen = Counter(inputs), list[int]()
    for sign in (1, -1):
        order = sorted(
            (at for at in changes if sign * changes[at] > 0), key=lambda at: abs(changes[at])
        )
        largest = {inputs[at]: at for at in order}.values()  # of the same input, the last one
        chosen += sorted(largest, key=lambda at: -abs(changes[at]))[:EXAMPLES]
    return [
        Differing(
            name,
            " | ".join(first.judged.dataset.raw(first.judged.judged.rows[at]).values()),
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
    """How much the score of each example changes, or how much that of all would by its output."""
    if not metric.per_example:
        return dict(enumerate(exchanged(metric, first, other)))
    values = ([value_alone(metric, outcome) for outcome in some] for some in (first, other))
    both = enumerate(zip(*values, strict=True))
    return {at: two - one for at, (one, two) in both if one is not None and two is not None}
