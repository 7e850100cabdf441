"""k-fold cross-validation: a model for each part of the training set, and one that learns from all of it."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import torch

from sixjars.errors import RecipeError, RunError
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.metrics import Score, metric_named
from sixjars.progress import Reporter, number_of
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint, notes_on, splits_of
from sixjars.runs.folder import RunFolder, best_of


def fold_recipes(recipe: Recipe) -> list[Recipe]:
    """The recipe of each fold."""
    data, count = recipe.data, recipe.learning.folds or 1
    if data.sample or data.split or data.fold or data.valid is not None or data.test is not None:
        raise RecipeError(
            [
                "learning.folds: the folds are parts of data.train; name no data.valid, test, split, fold or sample."
            ]
        )
    once = recipe.learning.model_copy(update={"folds": None})
    parts = [
        data.model_copy(update={"fold": f"{number}/{count}"}) for number in range(1, count + 1)
    ]
    return [recipe.model_copy(update={"learning": once, "data": part}) for part in parts]


def fold_runs(run: RunFolder) -> list[RunFolder]:
    """The run of each fold, in a folder of its own beside the run's files."""
    return [
        replace(run, folder=run.folder / "folds" / str(number), recipe=recipe)
        for number, recipe in enumerate(fold_recipes(run.recipe), start=1)
    ]


def final_run(run: RunFolder, folds: Sequence[RunFolder]) -> RunFolder:
    """The run that learns from all rows, for as many epochs as were best on average: no row is left to stop it by.

    In updates, for the best one may be in the middle of an epoch; a fold lacks one part of the rows of an epoch. There
    are never more than learning.steps.
    """
    more_rows = len(folds) / (len(folds) - 1)
    steps = max(1, round(more_rows * fmean(best_step(one) for one in folds)))
    steps = min(steps, run.recipe.learning.steps or steps)
    ends = {"steps": steps, "epochs": None, "patience": None, "metric": "loss"}
    learning = run.recipe.learning.model_copy(update=ends)
    return replace(run, recipe=run.recipe.model_copy(update={"learning": learning}))


def best_step(run: RunFolder) -> float:
    """The update whose checkpoint a run kept, from its log."""
    name = run.recipe.learning.metric or "loss"
    better = "lower" if name == "loss" else metric_named(name, run.outside).better
    records = run.history()
    if not records or any(name not in record for record in records):
        raise RunError(
            f"{run.folder / 'log.jsonl'} does not have {name} of each validation, so no best is known."
        )
    return best_of(records, name, better=better)["step"]


def means(scores: Sequence[Sequence[Score]]) -> tuple[Score, ...]:
    """The mean of each metric over the folds, its standard deviation in the signature.

    >>> one, other = Score("bleu", 20.0, "bleu", "higher", 9), Score("bleu", 22.0, "bleu", "higher", 8)
    >>> means([[one], [other]])
    (Score(name='bleu', value=21.0, signature='bleu|mean of 2 folds ± 1.414', better='higher', count=17),)
    """
    found = []
    for same in zip(*scores, strict=True):
        values = [score.value for score in same]
        how = f"{same[0].signature}|mean of {len(same)} folds ± {stdev(values):.4g}"
        found.append(
            replace(
                same[0],
                value=fmean(values),
                signature=how,
                count=sum(score.count for score in same),
            )
        )
    return tuple(found)


def mean_baselines(folds: Sequence[Sequence[Baseline]]) -> tuple[Baseline, ...]:
    """The baselines that all folds have, with the means of their scores; seconds are those of all folds."""
    found = []
    for first in folds[0]:
        same = [one for fold in folds for one in fold if one.name == first.name]
        if len(same) == len(folds) and all(len(one.scores) == len(first.scores) for one in same):
            seconds = sum(one.seconds for one in same)
            scores = means([one.scores for one in same])
            errors = _mean_errors([one.errors for one in same])
            mean = replace(first, scores=scores, seconds=seconds, rows=None, errors=errors)
            found.append(mean)
    return tuple(found)


def _mean_errors(folds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The standard error of a mean over folds, by the metrics that all have; folds share no row.

    >>> _mean_errors([{"bleu": 0.3, "ter": 1.0}, {"bleu": 0.4}])
    {'bleu': 0.25}
    """
    shared = [name for name in folds[0] if all(name in one for one in folds)]
    return {name: math.hypot(*(one[name] for one in folds)) / len(folds) for name in shared}


def note_of_folds(run: RunFolder) -> str:
    """What the folds of a run scored, for whoever scores the model on the rows that it learned from."""
    try:
        kept = json.loads((run.folder / "scores.json").read_text(encoding="utf-8"))["scores"]
        scores = ", ".join(f"{name} {one['value']:.4f}" for name, one in kept.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        scores = "damaged or missing (scores.json)"
    return f"the run learned from all of these rows; in cross-validation, on rows not learned from: {scores}."


def notes_on_all(run: RunFolder, device: torch.device, reporter: Reporter) -> Iterator[str]:
    """What should be known of all rows together; they are read when the first sentence is asked for."""
    blueprint = Blueprint.of(run.recipe, run.outside, device=device, reporter=reporter)
    yield from notes_on(splits_of(blueprint), held_out=False)


def cross_validate(
    run: RunFolder,
    train: Callable[[RunFolder], Any],
    note: Callable[[str], None],
    about: Iterable[str],
) -> Any:
    """Train a model for each fold, then the one that is kept; its scores are the means of the folds.

    What is to be noted `about` the data comes first.
    """
    folds, results = fold_runs(run), []
    note(
        f"learning.folds: {len(folds)} models are trained, each scored on the rows that it did not learn from, then "
        "one on all rows, which is kept; its score is the mean of theirs."
    )
    for sentence in about:
        note(sentence)
    for number, one in enumerate(folds, start=1):
        note(f"fold {number} of {len(folds)}")
        results.append(train(one))
    final = final_run(run, folds)
    note(
        f"all rows, for as long as was best on average: {number_of(final.recipe.learning.steps or 0, 'update')}"
    )
    trained = train(final)
    scores = means([one.scores for one in results])
    if not scores:  # one of several processes, which does not score
        return trained
    values = {score.name: {"value": score.value, "signature": score.signature} for score in scores}
    run.write_scores({"split": "folds", "examples": scores[0].count, "scores": values})
    where = f"the {len(folds)} folds of {trained.where.removeprefix('the training set of ')}"
    baselines = mean_baselines([one.baselines for one in results])
    return replace(
        trained, scores=scores, examples=scores[0].count, where=where, baselines=baselines
    )
