"""Several recipes side by side, by the length of the input."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sixjars.errors import DataError
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import Outcome, metric_named, score
from sixjars.inspection.curves import draw_by_length
from sixjars.learning.devices import Device, device_named
from sixjars.learning.progress import Reporter
from sixjars.tasks.evaluating import scored_part
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.runs import Run, open_run, resume_run
from sixjars.tasks.scoring import outcomes_of
from sixjars.tasks.table import TASKS
from sixjars.tasks.training import train

BUCKETS = 5


@final
@dataclass(frozen=True)
class Contender:
    """One model of a comparison."""

    name: str
    parameters: int
    overall: float
    buckets: tuple[Bucket, ...]


@final
@dataclass(frozen=True)
class Comparison:
    """All of them, on the same metric."""

    metric: str
    contenders: tuple[Contender, ...]
    picture: Path

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {**asdict(self), "picture": str(self.picture)}


def compared(
    named: Sequence[str], *, out: Path, metric: str, device: Device, reporter: Callable[[], Reporter]
) -> Comparison:
    """Train what is a recipe (unless `out` has it trained already), load what is a run, score all by length."""
    metric_named(metric)
    if len(named) < 2:
        raise DataError("compare needs two recipes or runs, or more.")
    for name in named:
        task = (open_run(Path(name)).recipe if Path(name).is_dir() else read_recipe(name)).task
        if TASKS[task].inputs != ("source",):
            raise DataError(f"{name} is a {task} model; it reads no text whose length could be compared.")
    runs = [open_run(Path(name)) if Path(name).is_dir() else _trained(name, out, device, reporter) for name in named]
    judged = [_judged(run, metric, device) for run in runs]
    lengths = [length for one in judged for length in one.lengths]
    edges = edges_of(lengths, buckets=BUCKETS)
    contenders = tuple(
        Contender(
            name,
            one.parameters,
            score(one.outcomes, [metric])[0].value,
            tuple(scores_by_length(one.outcomes, one.lengths, metric=metric, edges=edges)),
        )
        for name, one in zip(short_names(_names(named, runs)), judged, strict=True)
    )
    picture = out / "by_length.png"
    draw_by_length(picture, {found.name: found.buckets for found in contenders}, metric=metric)
    return Comparison(metric, contenders, picture)


def _names(named: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The folders' names; as they were given where two are the same."""
    folders = [run.folder.name for run in runs]
    return folders if len(set(folders)) == len(folders) else list(named)


def _trained(name: str, out: Path, device: Device, reporter: Callable[[], Reporter]) -> Run:
    folder = out / name.removesuffix(".yaml").replace("/", "-")
    begun = (folder / "recipe.yaml").is_file()
    if begun:
        resume_run(folder, read_recipe(name))  # refuses one that was trained by an older recipe
    if not (folder / "scores.json").is_file():
        train(name, out=folder, resume=begun, device=device, reporter=reporter())
    return open_run(folder)


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the words that they all begin with.

    >>> short_names(["translation-long_initial", "translation-long_every_step"])
    ['initial', 'every_step']
    """
    ends = [at + 1 for at, letter in enumerate(names[0]) if letter in "-_/"]
    cut = max((end for end in ends if all(name.startswith(names[0][:end]) for name in names)), default=0)
    return [name[cut:] or name for name in names]


@final
@dataclass(frozen=True)
class _Judged:
    """What one model said, and how long each input was, in words (characters for a model of characters)."""

    outcomes: list[Outcome]
    lengths: list[int]
    parameters: int


def _judged(run: Run, metric: str, device: Device) -> _Judged:
    tokens = run.tokens()
    network = run.network(tokens).to(device_named(device))
    part = scored_part(run)
    settings = run.recipe.evaluation.model_copy(update={"group": False})
    outcomes = outcomes_of(network, part, settings, [metric])
    lengths = [part.text("source").words_of(given["source"])[-1] + 1 for given in part.inputs]
    return _Judged(outcomes, lengths, sum(weight.numel() for weight in network.parameters()))
