"""One trial of a parameter search: a training that may stop at any validation, without test set."""

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, final

from sixjars.data.tables.memory import MEMORY, given_tables
from sixjars.kernels.backends import Device
from sixjars.learning.engine import fabric_for
from sixjars.progress import Reporter, listening
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.files import values_of
from sixjars.runs.folder.run_folder import RunFolder
from sixjars.runs.recipes import recipe_of
from sixjars.runs.train import fit
from sixjars_runtime.errors import (
    TOO_LARGE,
    Interrupted,
    LearningError,
    MissingExtra,
    SixJarsError,
    memory_is_short,
)

KEPT: Final = {"recipe.yaml", "log.jsonl"}
"""The files of a trial that stay; weights would fill the disk, and can be trained again."""
State = Literal["complete", "pruned", "failed"]
KeepGoing = Callable[[float], bool]
"""Takes the score of a validation; returns whether the trial goes on."""


@final
@dataclass(frozen=True)
class TrialSettings:
    """A trial to train, in plain values that another process can read."""

    recipe: str
    """YAML, every default filled in."""
    folder: str
    """A folder that is not there yet."""
    device: Device
    start: str | None = None
    """The run whose weights it starts from."""
    allow: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class TrialEnd:
    """The end of a trial."""

    state: State
    why: str = ""
    """The error of a trial that failed."""
    epochs: float = 0.0


@final
@dataclass(frozen=True)
class TrialObjects:
    """Objects of this process alone: a user's classes and tables, and the reporter of steps."""

    components: tuple[Any, ...] = ()
    tables: Mapping[str, Any] | None = None
    reporter: Reporter = field(default_factory=Reporter)
    what: str = ""
    """The name of the steps for the reporter."""
    notes: bool = False
    """Whether the reporter is also given the notes on the data."""

    def arguments(self, start: Path | None, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Arguments of `sixjars.train` for a person to fill in; empty where a command would do."""
        if not self.tables and not self.components:
            return ()
        splits = ", ".join(f"{name.removeprefix(MEMORY)!r}: TABLE" for name in self.tables or ())
        names = [getattr(each, "__name__", None) or each.name for each in self.components]
        texts = {
            "data": f"{{{splits}}}" if splits else "",
            "components": f"[{', '.join(names)}]" if names else "",
            "from_run": "" if start is None else repr(str(start)),
            "allow": repr([*packages]) if packages else "",
        }
        return tuple(f"{name}={text}" for name, text in texts.items() if text)


@final
class TrialPruned(Exception):
    """Raised to end a training early, because others were better by then."""


@final
class TrialReporter(Reporter):
    """Ends a training where its scores are too low; shows its steps and nothing else."""

    def __init__(self, metric: str, goes_on: KeepGoing, memory: TrialObjects) -> None:
        self.metric = metric
        self.goes_on = goes_on
        self.memory = memory
        self.total = 0
        self.epochs = 0.0

    def note(self, sentence: str) -> None:
        """Pass on notes on the data, which all trials share, where they are wanted."""
        if self.memory.notes:
            self.memory.reporter.note(sentence)

    def begin(self, *, step: int, total: int) -> None:
        """Remember how many steps there are."""
        self.total = total

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """Show the step."""
        if step < self.total:
            self.memory.reporter.preparing(self.memory.what, done=step, total=self.total)

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """Hand the score over, and end the training if it is too low."""
        self.epochs = record["epoch"]
        if not math.isfinite(record[self.metric]):
            reason = "on the validation set is not a number; try a lower learning.rate."
            raise LearningError(f"{self.metric} {reason}")
        if not self.goes_on(record[self.metric]) and record["step"] < self.total:
            raise TrialPruned


def try_order(order: TrialSettings, goes_on: KeepGoing, memory: TrialObjects) -> TrialEnd:
    """Train as ordered, and return the end; an error with a sentence is an end like any other."""
    outside = AllowedCode(order.allow, memory.components)
    recipe = recipe_of(values_of(order.recipe, "recipe"), "recipe", outside)
    folder = Path(order.folder)
    watching = TrialReporter(recipe.learning.metric or "loss", goes_on, memory)

    def train() -> None:
        fabric = fabric_for(device=order.device, devices=1, precision=recipe.learning.precision)
        start = Path(order.start) if order.start is not None else None
        with given_tables(memory.tables or {}), listening(watching):
            run = RunFolder(folder, recipe, outside)
            fit(run, resume=False, start=start, fabric=fabric, reporter=watching)

    try:
        return ended(train, lambda: watching.epochs)
    finally:
        memory.reporter.end()
        _sweep(folder, KEPT)


def ended(train: Callable[[], None], epochs: Callable[[], float]) -> TrialEnd:
    """The end of a training; an error with a sentence is an end like any other, Ctrl-C is not."""
    try:
        train()
    except TrialPruned:
        return TrialEnd("pruned", epochs=epochs())
    except (Interrupted, MissingExtra):
        raise
    except SixJarsError as error:
        return TrialEnd("failed", str(error), epochs())
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        return TrialEnd("failed", TOO_LARGE, epochs())
    return TrialEnd("complete", epochs=epochs())


def _sweep(folder: Path, kept: Iterable[str]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in kept:
            path.unlink(missing_ok=True)
