"""Several recipes side by side, by the length of the input."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sixjars.errors import DataError, SixJarsError
from sixjars.evaluation.by_length import Bucket, scores_by_length
from sixjars.evaluation.metrics import metric_named, score
from sixjars.inspection.curves import draw_by_length
from sixjars.learning.devices import Device, device_named
from sixjars.learning.progress import Reporter
from sixjars.tasks.evaluating import scored_part
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.scoring import outcomes_of
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
    runs = [open_run(Path(name)) if Path(name).is_dir() else _trained(name, out, device, reporter) for name in named]
    names = short_names([run.folder.name for run in runs])
    contenders = tuple(_contender(name, run, metric, device) for name, run in zip(names, runs, strict=True))
    picture = out / "by_length.png"
    draw_by_length(picture, {found.name: found.buckets for found in contenders}, metric=metric)
    return Comparison(metric, contenders, picture)


def _trained(name: str, out: Path, device: Device, reporter: Callable[[], Reporter]) -> Run:
    folder = out / name.removesuffix(".yaml").replace("/", "-")
    if not (folder / "scores.json").is_file():
        train(name, out=folder, resume=(folder / "recipe.yaml").is_file(), device=device, reporter=reporter())
    return open_run(folder)


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the words that they all begin with.

    >>> short_names(["translation-long_initial", "translation-long_every_step"])
    ['initial', 'every_step']
    """
    ends = [at + 1 for at, letter in enumerate(names[0]) if letter in "-_/"]
    cut = max((end for end in ends if all(name.startswith(names[0][:end]) for name in names)), default=0)
    return [name[cut:] or name for name in names]


def _contender(name: str, run: Run, metric: str, device: Device) -> Contender:
    tokens = run.tokens()
    network = run.network(tokens).to(device_named(device))
    part = scored_part(run)
    settings = run.recipe.evaluation.model_copy(update={"group": False})
    outcomes = outcomes_of(network, part, settings, [metric])
    if "source" not in tokens:
        raise SixJarsError(f"{run.folder} is a {run.recipe.task} run; it has no input whose length could be compared.")
    lengths = [part.length("source", row) for row in range(len(part))]
    buckets = tuple(scores_by_length(outcomes, lengths, metric=metric, buckets=BUCKETS))
    parameters = sum(weight.numel() for weight in network.parameters())
    return Contender(name, parameters, score(outcomes, [metric])[0].value, buckets)
