"""Scoring a run after it was trained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch

from sixjars.errors import RecipeError
from sixjars.evaluation.metrics import ClassRow, Confusion, Score, confusion, per_class
from sixjars.learning.devices import Device, device_named
from sixjars.learning.progress import Reporter, Silent
from sixjars.recipe import Recipe
from sixjars.recipe.fields import MediaSettings
from sixjars.tasks.corpus import corpus_of, part_of, sample_folder, seen
from sixjars.tasks.examples import read_files, sample_columns
from sixjars.tasks.part import Part
from sixjars.tasks.reading import TRUTHS, comparing_attention, lacking_for, metric_faults, set_faults
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.scoring import outcomes_of, scores_of
from sixjars.tasks.table import TASKS
from sixjars.tasks.training import metrics_of


@final
@dataclass(frozen=True)
class Evaluation:
    """Scores, and what they are of."""

    scores: tuple[Score, ...]
    examples: int
    skipped: int
    where: str
    classes: tuple[ClassRow, ...] = ()
    """Of a model that chooses labels: how each fares."""
    confusion: Confusion | None = None
    """And which is taken for which."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        told: dict[str, Any] = {
            "data": self.where,
            "examples": self.examples,
            "skipped": self.skipped,
            "scores": {score.name: asdict(score) for score in self.scores},
        }
        if self.classes:
            told["classes"] = [asdict(row) for row in self.classes]
        return told if self.confusion is None else told | {"confusion": asdict(self.confusion)}


def evaluated(
    folder: Path,
    *,
    data: Path | None = None,
    metrics: Sequence[str] | None = None,
    device: Device = "auto",
    reporter: Reporter | None = None,
) -> Evaluation:
    """The scores of a run, on the part its recipe keeps for that or on another file with the same columns."""
    run, where, reporter = open_run(folder), device_named(device), reporter or Silent()
    named = list(metrics) if metrics else metrics_of(run.recipe)
    _check(run, named)
    run.check_backbones()
    network = run.network(run.tokens()).to(where)
    try:
        part, training = _parts(run, data, named, reporter, where)
    finally:
        reporter.end()
    settings = run.recipe.evaluation
    scores = tuple(scores_of(network, part, settings, named, training=training))
    if TASKS[run.recipe.task].output != "label":
        return Evaluation(scores, scores[0].count, part.skipped, part.where)
    outcomes = outcomes_of(network, part, settings, ["accuracy@1"])
    several = run.recipe.data.label is not None and run.recipe.data.label.several
    table = tuple(per_class(outcomes, several=several))
    taken = None if several else confusion(outcomes)
    return Evaluation(scores, scores[0].count, part.skipped, part.where, table, taken)


def _check(run: Run, metrics: Sequence[str]) -> None:
    """Refuse what this run cannot be measured by, before anything is computed."""
    named = [("--metrics", name) for name in metrics]
    faults = metric_faults(named) + set_faults(run.recipe.data, named)
    for _, name, need in comparing_attention([("", name) for name in metrics]):
        lacks = lacking_for(need, TASKS[run.recipe.task], run.recipe.data, run.recipe.model)
        faults += [f"--metrics: {name} {lack}" for lack in lacks]
    if faults:
        raise RecipeError(faults, "the command line")


def scored_part(run: Run) -> Part:
    """The examples that a run is scored on."""
    return _parts(run, None, (), Silent(), device_named("auto"))[0]


def _parts(
    run: Run, data: Path | None, metrics: Sequence[str], reporter: Reporter, where: torch.device
) -> tuple[Part, Part | None]:
    """What is scored, and what was learned from where that is at hand or asked for."""
    tokens, seed = run.tokens(), run.recipe.learning.seed
    if data is None:
        corpus = corpus_of(run.recipe, tokens, seed=seed, reporter=reporter, device=where)
        run.check_data(corpus.fingerprints)
        return corpus.scored, corpus.train
    recipe = _from_here(run.recipe, data, {need for _, _, need in comparing_attention([("", m) for m in metrics])})
    part = part_of(seen(read_files(recipe, str(data)), recipe, reporter, where), recipe, tokens)
    if "seen_in_training" not in metrics:
        return part, None
    return part, corpus_of(run.recipe, tokens, seed=seed, reporter=reporter, device=where).train


def _from_here(recipe: Recipe, file: Path, needs: set[str]) -> Recipe:
    """The recipe for a file named on the command line: found from here, its columns those that it was trained on.

    Its pictures or films may be beside it, or where those of the training data are.
    """
    data = recipe.data
    columns: dict[str, Any] = {name: settings.column for name, settings in data.fields().items()}
    columns |= {key: getattr(data, key) for key, _ in TRUTHS.values()}
    places = [sample_folder(recipe.task)]
    if data.sample is not None:
        columns |= sample_columns(recipe)
    changes: dict[str, Any] = {"folder": ".", "sample": None, "train": str(file)}
    for name, settings in data.fields().items():
        update: dict[str, Any] = {"column": columns[name]}
        if isinstance(settings, MediaSettings):
            if data.sample is None:
                named = (settings.media,) if isinstance(settings.media, str) else settings.media
                places = [data.path(place) for place in named]
            update["media"] = tuple(str(place) for place in (file.parent, *places) if place.exists())
        changes[name] = settings.model_copy(update=update)
    changes |= {key: columns[key] if need in needs else None for need, (key, _) in TRUTHS.items()}
    return recipe.model_copy(update={"data": data.model_copy(update=changes)})
