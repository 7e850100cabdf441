"""Scoring a run after it was trained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sixjars.evaluation.metrics import Score
from sixjars.learning.devices import Device, device_named
from sixjars.tasks.corpus import Part, corpus_of, part_of, read_files, text_fields
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.scoring import scores_of
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
    run = open_run(folder)
    tokens = run.tokens()
    network = run.network(tokens).to(device_named(device))
    part = scored_part(run, data)
    named = list(metrics) if metrics else metrics_of(run.recipe)
    scores = tuple(scores_of(network, part, run.recipe.evaluation, named))
    return Evaluation(scores, scores[0].count, part.skipped, part.where)


def scored_part(run: Run, data: Path | None = None) -> Part:
    """The examples that a run is scored on."""
    tokens = run.tokens()
    if data is None:
        return corpus_of(run.recipe, tokens, seed=run.recipe.learning.seed).scored
    here = run.recipe.model_copy(update={"data": run.recipe.data.model_copy(update={"folder": "."})})
    return part_of(read_files(here, str(data)), tokens, text_fields(run.recipe))
