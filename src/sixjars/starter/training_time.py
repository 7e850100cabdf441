"""The time that the training of a recipe takes on this machine, measured in a few real updates.

They are made in memory, on rows of the recipe's own data; nothing is written, no run is begun.
"""

import math
import random
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import pyarrow
import pyarrow.compute
import torch

from sixjars.data.dataset import Dataset
from sixjars.data.fields import FIELDS
from sixjars.data.storage.cache import Examples
from sixjars.kernels.backends import Device
from sixjars.learning.engine import Update, backend_of_training, fabric_for
from sixjars.learning.loop import Trainer, TrainingHooks
from sixjars.progress import Reporter, duration, listening, number_of
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.splits import Splits, raw_examples
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.train import trainer_of
from sixjars.runs.training.network import fresh_network
from sixjars_runtime.errors import SixJarsError, memory_is_short

QUARTER_COSTS: Final = 1.4
"""Points that training for a quarter of the planned updates costs: the mean over the rows of
`benchmarks/results/starters.yaml`. Most lose nothing, and a few up to 8 points."""
WARM: Final = 3
"""First updates that are not counted: kernels are loaded and memory is taken."""
ENOUGH: Final = 40
"""Updates after which the mean is known well enough; or after so many seconds, if they are slow."""
SECONDS: Final = 4.0
LONGEST: Final = 6.0
"""Seconds after which measuring ends, however few updates there are."""
MOST_BYTES: Final = 100_000_000
"""Bytes of files; larger ones would take too long to be read for an estimate alone."""
WORTH_SAVING: Final = 60.0
"""Seconds of a training below which nobody needs a shorter one."""
MOST_CHARACTERS: Final = 2_000_000
"""Characters of texts that are tokenized for the estimate, of rows from all over the data."""
Clock = Callable[[], float]


@final
@dataclass(frozen=True)
class TrainingTime:
    """The updates and seconds of the training of a recipe.

    >>> budget = TrainingTime(12_000, 0.045, "2 CPU cores")
    >>> budget.sentences[0].partition(" (")[0]
    'up to 12,000 updates, about 9 min on this machine'
    >>> budget.sentences[2]
    '`learning.steps=3000` would take 2 min; on our benchmarks that costs about 1.4 points.'
    """

    updates: int
    """At most."""
    seconds: float
    """Seconds of one update."""
    where: str
    """The device that computed them."""
    trainings: int = 1
    """Several in a cross-validation."""
    stops: bool = True
    """Whether training ends when validation no longer improves."""

    @property
    def sentences(self) -> list[str]:
        """How long training takes, what ends it sooner, and what a shorter budget would take."""
        models = f"{self.trainings} trainings of " if self.trainings > 1 else ""
        whole = (
            f"{models}up to {self.updates:,} updates, about {self._time(self.updates)} on this "
            f"machine ({_each(self.seconds)} each, {self.where}; validation not counted)."
        )
        stops = "It stops earlier when validation no longer improves." if self.stops else ""
        return [sentence for sentence in (whole, stops, self._shorter()) if sentence]

    def _shorter(self) -> str:
        """A quarter of the updates, where that saves minutes."""
        quarter = self.updates // 4
        if self.seconds * self.trainings * self.updates < WORTH_SAVING:
            return ""
        costs = f"; on our benchmarks that costs about {QUARTER_COSTS:g} points"
        return f"`learning.steps={quarter}` would take {self._time(quarter)}{costs}."

    def _time(self, updates: int) -> str:
        return duration(self.seconds * self.trainings * updates)


def _each(seconds: float) -> str:
    """A time between milliseconds and seconds.

    >>> _each(0.0004), _each(0.0449), _each(2.5)
    ('0.4 ms', '45 ms', '2.5 s')
    """
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms"


def budget_of(
    file: str | Path,
    outside: AllowedCode = NOTHING,
    *,
    device: Device = "auto",
    clock: Clock = time.perf_counter,
) -> TrainingTime | None:
    """The updates and seconds of the training of a recipe file.

    None where they cannot be measured in a few seconds: the data is not there, its files are very
    large, features of images would have to be computed first, or training would fail.
    """
    recipe = read_recipe(str(file), (), outside)
    if not _is_quick(recipe):
        return None
    try:
        with listening(Reporter()):  # `train` tells what there is to tell of the data
            trainer, every = _trainer(recipe, outside, device)
            seconds = pace(trainer.rehearsed(), clock)
    except SixJarsError:
        return None
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        return None
    learning = recipe.learning
    return TrainingTime(
        learning.updates(every * trainer.per_epoch),
        seconds,
        _where(trainer.fabric.device),
        trainings=1 if learning.folds is None else learning.folds + 1,
        stops=learning.patience is not None,
    )


def _is_quick(recipe: Recipe) -> bool:
    """Whether the data can be read in a second or two, and its features need not be computed."""
    data = recipe.data
    if any(FIELDS[field.kind].is_media for field in data.fields.values() if field.kind in FIELDS):
        return False
    files: list[str] = []
    for part in data.training_files:
        files += part.file.values() if isinstance(part.file, dict) else [part.file]
    paths = [data.path(name) for name in files]
    if not paths or not all(map(Path.is_file, paths)):
        return False
    return sum(path.stat().st_size for path in paths) <= MOST_BYTES


def _trainer(recipe: Recipe, outside: AllowedCode, device: Device) -> tuple[Trainer, int]:
    """A trainer in memory for a sample of the rows, and of how many rows each of it stands for."""
    blueprint = Blueprint.of(recipe, outside)
    examples = raw_examples(recipe, blueprint.fields)
    every = max(1, math.ceil(_characters(examples["train"]) / MOST_CHARACTERS))
    skip = recipe.data.on_bad_row == "skip"
    rows = {}
    for name in ("train", "valid"):
        rows[name] = replace(examples[name], table=_some(examples[name].table, every))
    fields = blueprint.fields.learned(blueprint.fields.admit(rows["train"], skip=skip))
    train, valid = (
        Dataset.in_memory(fields.admit(split, skip=skip), fields) for split in rows.values()
    )
    splits = Splits(train, valid, None, fields)
    # Nothing is scored or saved, so that these are not used.
    hooks = TrainingHooks(Path(), dict, "lower", Reporter())
    fabric = fabric_for(device=device, devices=1, precision=recipe.learning.precision)
    network = fresh_network(blueprint, splits, backend_of_training(fabric, recipe.learning))
    return trainer_of(network, splits, recipe, hooks, fabric), every


def _characters(examples: Examples) -> int:
    columns = [column for column in examples.table.columns if pyarrow.types.is_string(column.type)]
    lengths = map(pyarrow.compute.utf8_length, columns)
    return sum(pyarrow.compute.sum(length).as_py() or 0 for length in lengths)


def _some(table: Any, every: int) -> Any:
    """One row of so many, drawn: labels may take turns, and every tenth row then have one."""
    if every == 1:
        return table
    count = math.ceil(len(table) / every)
    return table.take(pyarrow.array(sorted(random.Random(0).sample(range(len(table)), count))))


def pace(updates: Generator[Update, None, None], clock: Clock = time.perf_counter) -> float:
    """Mean seconds of an update, without the first ones where there are others."""
    ends = [clock()]
    with closing(updates):
        for update in updates:
            update.loss()  # waits for the device
            ends.append(clock())
            taken = ends[-1] - ends[0]
            is_known = taken > SECONDS and len(ends) > WARM + 3
            if is_known or taken > LONGEST or len(ends) > WARM + ENOUGH:
                break
    warm = min(WARM, len(ends) - 2)
    return (ends[-1] - ends[warm]) / (len(ends) - 1 - warm)


def _where(device: torch.device) -> str:
    """The name of the device for a person."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return number_of(torch.get_num_threads(), "CPU core") if device.type == "cpu" else device.type
