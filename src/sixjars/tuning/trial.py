"""One trial of a parameter search: a training that may be stopped at any validation; it never sees the test set."""

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, final

from sixjars.data.tables.memory import MEMORY, given_tables
from sixjars.learning.engine import Device, fabric_for
from sixjars.progress import Reporter, listening
from sixjars.recipe.files import values_of
from sixjars.recipe.outside import Outside
from sixjars.runs.folder import RunFolder
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
"""What stays of a trial; weights would fill the disk, and the best recipe can be trained again."""
State = Literal["complete", "pruned", "failed"]
Told = Callable[[float], bool]
"""Takes the score of a validation; says whether the trial goes on."""


@final
@dataclass(frozen=True)
class Order:
    """What a trial trains, in plain values, so that another process can be told."""

    recipe: str
    """YAML, everything filled in."""
    folder: str
    """Which is not there yet."""
    device: Device
    start: str | None = None
    """The run whose weights it starts from."""
    allow: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class End:
    """How a trial ended."""

    state: State
    why: str = ""
    """The sentence of what failed."""
    epochs: float = 0.0


@final
@dataclass(frozen=True)
class Memory:
    """What only this process has: classes of a user's, tables, and whoever is told of the steps."""

    components: tuple[Any, ...] = ()
    tables: Mapping[str, Any] | None = None
    reporter: Reporter = field(default_factory=Reporter)
    what: str = ""
    """What the reporter is told that these are the steps of."""
    notes: bool = False
    """Whether it is told what there is to say about the data."""

    def arguments(self, start: Path | None, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `sixjars.train` for a person to fill in; nothing where a command would do."""
        if not self.tables and not self.components:
            return ()
        splits = ", ".join(f"{name.removeprefix(MEMORY)!r}: TABLE" for name in self.tables or ())
        names = ", ".join(getattr(one, "__name__", None) or one.name for one in self.components)
        given = {
            "data": f"{{{splits}}}" if splits else "",
            "components": f"[{names}]" if names else "",
        }
        given |= {
            "from_run": "" if start is None else repr(str(start)),
            "allow": repr([*packages]) if packages else "",
        }
        return tuple(f"{name}={text}" for name, text in given.items() if text)


@final
class Pruned(Exception):
    """A training is given up: others were better by then."""


@final
class Watching(Reporter):
    """Asks after each validation whether to go on; shows the steps, and nothing else that a training would tell."""

    def __init__(self, metric: str, told: Told, memory: Memory) -> None:
        self.metric, self.told, self.memory = metric, told, memory
        self.total, self.epochs = 0, 0.0

    def note(self, sentence: str) -> None:
        """About the data, which all trials share: once is enough."""
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
        """Hand the score over; end the training when that is the answer."""
        self.epochs = record["epoch"]
        if not math.isfinite(record[self.metric]):
            raise LearningError(
                f"{self.metric} on the validation set is not a number; try a lower learning.rate."
            )
        if not self.told(record[self.metric]) and record["step"] < self.total:
            raise Pruned


def try_order(order: Order, told: Told, memory: Memory) -> End:
    """Train what is ordered; whatever fails with a sentence is an end like any other."""
    outside = Outside(order.allow, memory.components)
    recipe = recipe_of(values_of(order.recipe, "recipe"), "recipe", outside)
    folder = Path(order.folder)
    watching = Watching(recipe.learning.metric or "loss", told, memory)

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


def ended(train: Callable[[], None], epochs: Callable[[], float]) -> End:
    """How a training ended; whatever fails with a sentence is an end like any other, but not Ctrl-C."""
    try:
        train()
    except Pruned:
        return End("pruned", epochs=epochs())
    except (Interrupted, MissingExtra):
        raise
    except SixJarsError as error:
        return End("failed", str(error), epochs())
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        return End("failed", TOO_LARGE, epochs())
    return End("complete", epochs=epochs())


def _sweep(folder: Path, kept: Iterable[str]) -> None:
    """Remove what does not stay."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in kept:
            path.unlink(missing_ok=True)
