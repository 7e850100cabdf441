"""The training loop: update, validate, save, and resume exactly where a run was stopped.

Gradient descent with backpropagation through time, all the way into the encoder. The loss of an
update is the sum over all its tokens, whatever batches and processes they are spread over, divided
by their number.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from sixjars.data.batches import Batches
from sixjars.data.flat import ahead
from sixjars.learning.checkpoints import (
    RunFiles,
    TrainingCost,
    TrainingPart,
    TrainingState,
    packed_optimizer,
    read_cost,
    signals_to,
)
from sixjars.learning.engine import Engine, OneDevice, Update, UpdateBatches, Updater, learning_rate
from sixjars.learning.parameters import parameter_groups
from sixjars.loss import Objective
from sixjars.progress import Reporter
from sixjars.recipe.sections import LearningSettings
from sixjars_runtime.errors import Interrupted, LearningError, RunError

LOGGED = 10
"""Steps between two training losses that loggers get."""
SAME_WISH = 1.0
"""Seconds within which a second signal is an echo of the first: terminal and launcher send it."""


def seed_of(seed: int, step: int, rank: int) -> int:
    """The seed of one update in one process: its dropout depends on nothing that came before.

    >>> len({seed_of(seed, step, rank) for seed in (0, 1) for step in (0, 1) for rank in (0, 1)})
    8
    """
    sequence = np.random.SeedSequence([seed, step, rank])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


@final
@dataclass(frozen=True)
class TrainingHooks:
    """What the loop does not know itself: where to save, how to score, whom to report to."""

    folder: Path
    """The run's folder."""
    validate: Callable[[], dict[str, float]]
    """Scores of the network as it is now; has `loss`."""
    better: Literal["higher", "lower"]
    """Which way the chosen metric is good."""
    reporter: Reporter
    enough: Callable[[], bool] = lambda: False
    """Asked after each update: whether to validate, save and pause; only with one process."""


@final
class Trainer:
    """One run of training."""

    def __init__(
        self,
        objective: Objective,
        batches: Batches,
        settings: LearningSettings,
        hooks: TrainingHooks,
        fabric: Engine,
    ) -> None:
        self.network = objective.network
        self.batches = batches
        self.settings = settings
        self.hooks = hooks
        self.fabric = fabric
        self.state = TrainingState()
        self.files = RunFiles(hooks.folder)
        trained: list[Any] = [each for each in self.network.parameters() if each.requires_grad]
        if settings.rates:
            trained = parameter_groups(self.network, settings.rates)
        self.updates = Updater(objective, trained, settings, fabric)
        if self.updates.captured is not None:
            batches.have_few_shapes()
        self.per_epoch = batches.updates_per_epoch(settings.accumulate)
        self.total = settings.updates(self.per_epoch)
        self.rate = settings.rate
        self.pending: Update | None = None
        self.asked_at: float | None = None
        self.paused = False
        self.cost: TrainingCost | None = TrainingCost()
        self.begun_at = self.reported_at = self.saved_at = time.monotonic()

    @property
    def validations(self) -> int:
        """How many there have been."""
        return self.state.step // (self.settings.validate_every or self.per_epoch)

    def resume(self, *, extended: bool = False) -> None:
        """Load the last saved state; where none was saved yet, start at the beginning.

        Where the recipe now trains longer (`extended`), a finished run continues to the new end.
        """
        if not self.files.last.is_file():
            return
        from sixjars.learning.resuming import resumed

        self.state = state = resumed(self.files, self.network, self.updates)
        self.cost = read_cost(self.hooks.folder)  # None stays None: the first part is not known
        if extended:
            if self.total < state.step or (self.total == state.step and not state.finished):
                raise RunError(
                    f"{self.hooks.folder} has made {state.step} updates already, but "
                    f"learning.epochs and learning.steps now allow {self.total}; "
                    "a run can be extended, not shortened."
                )
            state.finished = self._ends()
        here = state.epoch * self.per_epoch + state.done_in_epoch
        fits = state.step == here <= self.total and state.done_in_epoch < self.per_epoch
        if not fits or state.finished != self._ends():
            place = f"step {state.step}, {state.done_in_epoch} of epoch {state.epoch + 1}"
            raise RunError(
                f"{self.files.last} does not belong to this recipe: it stands at {place}."
            )

    def _ends(self) -> bool:
        """Whether all updates are made, or validation has not improved for long enough."""
        patience = self.settings.patience
        stalled = patience is not None and self.state.stale >= patience
        return self.state.step >= self.total or stalled

    def run(self) -> None:
        """Train until the end, early stopping, a pause or Ctrl-C."""
        if self.leads:
            self.files.cut_log(self.state.log_bytes)
        self.begun_at = time.monotonic()
        self.hooks.reporter.begin(step=self.state.step, total=self.total)
        try:
            with self._minding_signals():
                try:
                    while not (self.state.finished or self.paused):
                        self._one_epoch()
                finally:
                    self.files.done()  # here, for an echo of the signal would end the process
        finally:
            self.hooks.reporter.end()
        with self.fabric.whole():
            self._finish()

    def _one_epoch(self) -> None:
        state = self.state
        plan = self.batches.plan(epoch=state.epoch, accumulate=self.settings.accumulate)
        self.reported_at = time.monotonic()
        for load in ahead(self._load, plan[state.done_in_epoch :]):
            loss = self._update(load)
            state.step += 1
            state.done_in_epoch += 1
            self._report()
            self.pending = Update(state.step, load.tokens, loss)
            if state.done_in_epoch == len(plan):
                state.epoch += 1
                state.done_in_epoch = 0
            self._after_update()
            if state.finished or self.paused:
                return

    def rehearsed(self) -> Generator[Update, None, None]:
        """Make updates of the first epoch, one for each `next`, to measure what they take.

        None is counted, reported, scored or saved. Afterwards the network is of no use.
        """
        plan = self.batches.plan(epoch=0, accumulate=self.settings.accumulate)
        for load in ahead(self._load, plan):
            yield Update(1, load.tokens, self._update(load))

    def _report(self) -> None:
        """Report the loss of the update before this one.

        Reading a loss waits for the device, which has the next update to compute by now.
        """
        if self.pending is None:
            return
        update = self.pending
        self.pending = None
        loss = update.loss()
        if not math.isfinite(loss):
            self._settle()
            raise LearningError(
                f"the loss is no longer a number at step {update.step}; try a lower learning.rate."
            )
        self.state.tokens += update.tokens
        self.state.loss += loss
        before, self.reported_at = self.reported_at, time.monotonic()
        mean = loss / update.tokens
        speed = update.tokens / max(self.reported_at - before, 1e-9)
        self.hooks.reporter.stepped(step=update.step, loss=mean, tokens_per_second=speed)
        if self.fabric.loggers and update.step % LOGGED == 0:
            self.fabric.log_dict({"step_loss": mean, "tokens_per_second": speed}, step=update.step)

    def _load(self, group: list[Tensor]) -> UpdateBatches:
        """The batches of one update, ready to be moved to the device."""
        tokens = sum(self.batches.target_tokens(rows) for rows in group)
        rank, world = self.fabric.global_rank, self.fabric.world_size
        batches, counts = [], []
        for rows in group:
            share = self.batches.share(rows, rank=rank, world=world)
            counts.append(float(len(share) > 0))
            batch = self.batches.collate(share if len(share) else rows[:1])
            batches.append(self.updates.ready(batch))
        # At least 1: all labels of a batch may be outside the list.
        return UpdateBatches(max(tokens, 1), tuple(batches), tuple(counts))

    def _update(self, load: UpdateBatches) -> Tensor:
        """Make one update; return the summed loss of all processes, still on the device."""
        self._seed(seed_of(self.settings.seed, self.state.step, self.fabric.global_rank))
        step, halvings = self.state.step + 1, self.state.halvings
        self.rate = learning_rate(self.settings, step, total=self.total, halvings=halvings)
        return self._reduced(self.updates.made(load, self.rate), "sum")

    def _seed(self, seed: int) -> None:
        """Seed the generators in use; `torch.manual_seed` also visits devices that are absent."""
        torch.default_generator.manual_seed(seed)
        if self.fabric.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        elif self.fabric.device.type == "mps":
            torch.mps.manual_seed(seed)

    def _reduced(self, values: Tensor, operation: str) -> Tensor:
        """The sum or maximum over all processes."""
        if isinstance(self.fabric, OneDevice) or self.fabric.world_size == 1:
            return values
        reduced = self.fabric.all_reduce(values, reduce_op=operation)
        assert isinstance(reduced, Tensor)
        return reduced

    def _after_update(self) -> None:
        state, every = self.state, self.settings.validate_every
        self.paused = self.hooks.enough()
        on_schedule = state.done_in_epoch == 0 if every is None else state.step % every == 0
        validates = on_schedule or self.paused or state.step >= self.total
        if validates:
            self._report()
            with self.fabric.whole():
                self._validate()
            self.reported_at = time.monotonic()
            state.finished = self._ends()
        due = time.monotonic() - self.saved_at > self.settings.save_seconds
        stop, due = self._agreed(self.asked_at is not None, due)
        if validates or stop or due:
            self._report()
            self._save()
        if stop and not state.finished:
            self._settle()
            raise Interrupted(
                f"stopped at step {state.step} of {self.total}; "
                "the same command with --resume goes on from there."
            )

    def _validate(self) -> None:
        settings, state = self.settings, self.state
        scores: dict[str, float] = self.hooks.validate() if self.leads else {}
        scores = self.fabric.broadcast(scores)
        value, loss = scores[settings.metric or "loss"], scores["loss"]
        is_best = state.score(value, loss, better=self.hooks.better, keep=settings.average)
        if settings.schedule == "plateau" and state.since_halving > settings.plateau_patience:
            state.halvings += 1
            state.since_halving = 0
        record = {
            "epoch": state.step / self.per_epoch,
            "step": state.step,
            "rate": self.rate,
            "train_loss": state.loss / max(state.tokens, 1),
            **scores,
        }
        state.loss = 0.0
        state.tokens = 0
        if self.leads:
            state.log_bytes = self.files.add_to_log(record)
            self.files.keep_best(self.network, state, is_best=is_best, average=settings.average)
        if self.fabric.loggers:
            logged = {name: value for name, value in record.items() if name != "step"}
            self.fabric.log_dict(logged, step=state.step)
        self.hooks.reporter.validated(record, is_best=is_best)

    def _save(self) -> None:
        self.saved_at = time.monotonic()
        memory = packed_optimizer(self.updates.optimizer)  # all processes, for each has a share
        if self.leads and self.cost is not None:
            device, seconds = self.fabric.device, round(self.saved_at - self.begun_at, 3)
            name = device.type
            if name == "cuda":
                name = f"cuda ({torch.cuda.get_device_name(device)})"
            self.files.keep_cost(
                [*self.cost.parts, TrainingPart(seconds, name, self.fabric.world_size)]
            )
        with self.fabric.whole():
            if self.leads:
                self.files.save(self.network, memory, self.state, self.updates.scaler)

    def _settle(self) -> None:
        """Wait until all is on the disk, in every process: the end of one ends the others."""
        if self.leads:
            self.files.done()
        self.fabric.barrier()

    def _finish(self) -> None:
        if self.leads:
            self.files.sweep(self.state)  # a kill may have come before the last time
            if self.settings.average > 1:
                self.files.average(self.network, self.state)
            if not self.files.model.is_file():
                raise RunError(
                    f"{self.files.model} is gone, and only training from the start would bring it "
                    "back; begin a new run with another --out."
                )
        self.fabric.barrier()

    def _agreed(self, stop: bool, due: bool) -> tuple[bool, bool]:  # noqa: FBT001
        """Both values, true in all processes where they are in any."""
        if self.fabric.world_size == 1:  # reading a tensor would wait for the device every time
            return stop, due
        flags = torch.tensor([float(stop), float(due)], device=self.fabric.device)
        agreed = self._reduced(flags, "max")
        return bool(agreed[0]), bool(agreed[1])

    @property
    def leads(self) -> bool:
        """Whether this process writes and reports; of several, one does."""
        return self.fabric.global_rank == 0

    @contextmanager
    def _minding_signals(self) -> Iterator[None]:
        """Delay the first Ctrl-C (or SIGTERM) to the end of the update; a later one is not."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked_at is None:
                self.asked_at = time.monotonic()
            elif time.monotonic() - self.asked_at > SAME_WISH:
                raise KeyboardInterrupt

        with signals_to(ask):
            yield
