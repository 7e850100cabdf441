"""Scoring a run after it was trained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sixjars.data.samples import SAMPLES
from sixjars.errors import RecipeError
from sixjars.evaluation.metrics import Score
from sixjars.learning.devices import Device, device_named
from sixjars.recipe import Recipe
from sixjars.tasks.corpus import Part, corpus_of, part_of, read_files, text_fields
from sixjars.tasks.reading import lacking_for_links, metric_faults, needing_links
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.scoring import scores_of
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

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        told = {score.name: asdict(score) for score in self.scores}
        return {"data": self.where, "examples": self.examples, "skipped": self.skipped, "scores": told}


def evaluated(
    folder: Path, *, data: Path | None = None, metrics: Sequence[str] | None = None, device: Device = "auto"
) -> Evaluation:
    """The scores of a run, on the part its recipe keeps for that or on another file with the same columns."""
    run, where = open_run(folder), device_named(device)
    named = list(metrics) if metrics else metrics_of(run.recipe)
    _check(run, named)
    network = run.network(run.tokens()).to(where)
    part = scored_part(run, data, named)
    scores = tuple(scores_of(network, part, run.recipe.evaluation, named))
    return Evaluation(scores, scores[0].count, part.skipped, part.where)


def _check(run: Run, metrics: Sequence[str]) -> None:
    """Refuse what this run cannot be measured by, before anything is computed."""
    faults = metric_faults([("--metrics", name) for name in metrics])
    lacks = lacking_for_links(TASKS[run.recipe.task], run.recipe.data, run.recipe.model)
    faults += [
        f"--metrics: {name} {lack}" for _, name in needing_links([("", name) for name in metrics]) for lack in lacks
    ]
    if faults:
        raise RecipeError(faults, "the command line")


def scored_part(run: Run, data: Path | None = None, metrics: Sequence[str] = ()) -> Part:
    """The examples that a run is scored on."""
    tokens = run.tokens()
    if data is None:
        corpus = corpus_of(run.recipe, tokens, seed=run.recipe.learning.seed)
        run.check_data(corpus.fingerprints)
        return corpus.scored
    aligned = bool(needing_links([("", name) for name in metrics]))
    return part_of(read_files(_from_here(run.recipe, aligned=aligned), str(data)), tokens, text_fields(run.recipe))


def _from_here(recipe: Recipe, *, aligned: bool) -> Recipe:
    """The recipe for a file named on the command line: found from here, its columns those that it was trained on."""
    settings = recipe.data
    changes: dict[str, Any] = {"folder": "."}
    if settings.sample is not None:
        sample = SAMPLES[recipe.task]
        changes["target"] = settings.target.model_copy(update={"column": sample.target})
        if settings.source is not None:
            changes["source"] = settings.source.model_copy(update={"column": sample.source})
        changes["alignment"] = sample.alignment
    if not aligned:
        changes["alignment"] = None
    return recipe.model_copy(update={"data": settings.model_copy(update=changes)})
