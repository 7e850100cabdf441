"""The learning loop: update, validate, save; and go on exactly where a kill left it.

Gradient descent with backpropagation through time, all the way into the encoder. The loss of an update is the sum
over all its tokens, whatever batches and processes they are spread over, divided by their number.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal, final

import numpy as np
import torch
from torch import Tensor

from sixjars.data.batches import Batches
from sixjars.errors import Interrupted, LearningError, RunError
from sixjars.learning.journal import Journal
from sixjars.learning.optimizers import Schedule, optimizer_for
from sixjars.learning.progress import Reporter
from sixjars.learning.saving import Saves
from sixjars.learning.updates import Load, Update, ahead
from sixjars.loss.objective import Objective
from sixjars.recipe.jars import LearningSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric


SAME_WISH = 1.0
"""Seconds within which a second signal is an echo of the first: a terminal and a launcher both send it."""


def seed_of(seed: int, step: int, rank: int) -> int:
    """The seed of one update in one process: its dropout depends on nothing that came before.

    >>> seed_of(0, 1, 0) == seed_of(0, 1, 0) != seed_of(0, 1, 1)
    True
    """
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> np.uint64(1))


@final
@dataclass(frozen=True)
class Surroundings:
    """What the loop needs and does not know: where to save, how to score, whom to tell."""

    folder: Path
    """The run's folder."""
    validate: Callable[[], dict[str, float]]
    """Scores of the network as it is now; has `loss`."""
    better: Literal["higher", "lower"]
    """Which way the chosen metric is good."""
    reporter: Reporter


@final
class Learner:
    """One run of learning."""

    def __init__(
        self,
        objective: Objective,
        batches: Batches,
        settings: LearningSettings,
        around: Surroundings,
        fabric: "Fabric",
    ) -> None:
        self.network = objective.network
        self.batches = batches
        self.settings = settings
        self.around = around
        self.fabric = fabric
        self.journal = Journal()
        self.saves = Saves(around.folder)
        trained = [weight for weight in objective.parameters() if weight.requires_grad]
        self.objective, self.optimizer = fabric.setup(objective, optimizer_for(trained, settings))
        self.per_epoch = batches.updates_per_epoch(settings.accumulate)
        self.total = min(settings.steps or self.per_epoch * settings.epochs, self.per_epoch * settings.epochs)
        self.schedule = Schedule(settings, total=self.total)
        self.untold: Update | None = None
        self.asked_at: float | None = None
        self.told_at = self.saved_at = time.monotonic()

    def resume(self) -> None:
        """Take up the last saved state; where none was saved yet, begin at the beginning."""
        if self.saves.last.is_file():
            self.journal = self.saves.load(self.network, self.optimizer, self.fabric.strategy.precision)

    def run(self) -> None:
        """Learn until the end, early stopping or Ctrl-C."""
        if self.leads:
            self.saves.log.cut(self.journal.log_bytes)
        self.around.reporter.begin(step=self.journal.step, total=self.total)
        try:
            with self._minding_signals():
                while not self.journal.finished:
                    self._one_epoch()
        finally:
            self.around.reporter.end()
        self._finish()

    def _one_epoch(self) -> None:
        journal = self.journal
        plan = self.batches.plan(epoch=journal.epoch, accumulate=self.settings.accumulate)
        self.told_at = time.monotonic()
        for load in ahead(self._load, plan[journal.done_in_epoch :]):
            loss = self._update(load)
            journal.step, journal.done_in_epoch = journal.step + 1, journal.done_in_epoch + 1
            self._tell()
            self.untold = Update(journal.step, load.tokens, loss)
            if journal.done_in_epoch == len(plan):
                journal.epoch, journal.done_in_epoch = journal.epoch + 1, 0
            self._after_update()
            if journal.finished:
                return

    def _tell(self) -> None:
        """Take in and report the loss of the update before this one.

        Asking for a loss waits for the device, so it is asked for when the device has the next update to work on.
        """
        if self.untold is None:
            return
        update, self.untold = self.untold, None
        loss = update.loss()
        if not math.isfinite(loss):
            raise LearningError(f"the loss is no longer a number at update {update.step}; try a lower learning.rate.")
        self.journal.tokens, self.journal.loss = self.journal.tokens + update.tokens, self.journal.loss + loss
        before, self.told_at = self.told_at, time.monotonic()
        speed = update.tokens / max(self.told_at - before, 1e-9)
        self.around.reporter.stepped(step=update.step, loss=loss / update.tokens, tokens_per_second=speed)

    def _load(self, group: list[Tensor]) -> Load:
        """What one update learns from, ready to be moved to the device."""
        tokens = max(sum(self.batches.target_tokens(rows) for rows in group), 1)  # labels may all be unlisted
        rank, world = self.fabric.global_rank, self.fabric.world_size
        mine = [self.batches.share(rows, rank=rank, world=world) for rows in group]
        batches = [self.batches.collate(own if len(own) else rows[:1]) for own, rows in zip(mine, group, strict=True)]
        if self.fabric.device.type == "cuda":
            batches = [batch.mapped(Tensor.pin_memory) for batch in batches]
        return Load(tokens, tuple(batches), tuple(float(len(own) > 0) for own in mine))

    def _update(self, load: Load) -> Tensor:
        """One step of the optimizer; the summed loss of all processes, still on the device."""
        share = self.fabric.world_size / load.tokens
        self._sow(seed_of(self.settings.seed, self.journal.step, self.fabric.global_rank))
        loss = torch.zeros((), device=self.fabric.device)
        for number, (batch, counts) in enumerate(zip(load.batches, load.counts, strict=True), start=1):
            with self.fabric.no_backward_sync(self.objective, enabled=number < len(load.batches)):
                total, plain = self.objective(batch.to(self.fabric.device).tensors())
                self.fabric.backward(total * share * counts)
            loss += plain.detach() * counts
        if self.settings.clip is not None:
            self.fabric.clip_gradients(
                self.objective, self.optimizer, max_norm=self.settings.clip, error_if_nonfinite=False
            )
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = self.schedule.rate(self.journal.step + 1, halvings=self.journal.halvings)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return self._summed(loss)

    def _sow(self, seed: int) -> None:
        """Seed the chance that this process uses; `torch.manual_seed` also seeds every kind of device there is not."""
        torch.default_generator.manual_seed(seed)
        if self.fabric.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _summed(self, loss: Tensor) -> Tensor:
        """Over all processes."""
        summed = self.fabric.all_reduce(loss, reduce_op="sum") if self.fabric.world_size > 1 else loss
        assert isinstance(summed, Tensor)
        return summed

    def _after_update(self) -> None:
        journal, every = self.journal, self.settings.validate_every
        at_end = journal.step >= self.total
        validates = at_end or (journal.done_in_epoch == 0 if every is None else journal.step % every == 0)
        if validates:
            self._tell()
            self._validate()
            self.told_at = time.monotonic()
            journal.finished = at_end or (
                self.settings.patience is not None and journal.stale >= self.settings.patience
            )
        stop, due = self._agreed(
            self.asked_at is not None, time.monotonic() - self.saved_at > self.settings.save_seconds
        )
        if validates or stop or due:
            self._tell()
            self._save()
        if stop and not journal.finished:
            raise Interrupted(
                f"stopped at update {journal.step} of {self.total}; the same command with --resume goes on from there."
            )

    def _validate(self) -> None:
        scores: dict[str, float] = self.around.validate() if self.leads else {}
        scores = self.fabric.broadcast(scores)
        journal = self.journal
        is_best = journal.score(scores[self.settings.metric], better=self.around.better, keep=self.settings.average)
        if self.settings.schedule == "plateau" and journal.since_halving > self.settings.plateau_patience:
            journal.halvings, journal.since_halving = journal.halvings + 1, 0
        record = {
            "epoch": journal.step / self.per_epoch,
            "step": journal.step,
            "rate": self.optimizer.param_groups[0]["lr"],
            "train_loss": journal.loss / max(journal.tokens, 1),
            **scores,
        }
        journal.loss, journal.tokens = 0.0, 0
        if self.leads:
            journal.log_bytes = self.saves.log.add(record)
            self.saves.keep_best(self.network, journal, is_best=is_best, average=self.settings.average)
        self.around.reporter.validated(record, is_best=is_best)

    def _save(self) -> None:
        self.saved_at = time.monotonic()
        if self.leads:
            self.saves.save(self.network, self.optimizer, self.journal, self.fabric.strategy.precision)

    def _finish(self) -> None:
        if self.leads:
            self.saves.sweep(self.journal)  # a kill may have come before the last time
            if self.settings.average > 1:
                self.saves.average(self.journal)
            if not self.saves.model.is_file():
                raise RunError(
                    f"{self.saves.model} is gone, and only training from the start would bring it back; "
                    "begin a new run with another --out."
                )
        self.fabric.barrier()

    def _agreed(self, stop: bool, due: bool) -> tuple[bool, bool]:  # noqa: FBT001
        """What any process wants, all do."""
        if self.fabric.world_size == 1:
            return stop, due
        wishes = torch.tensor([float(stop), float(due)], device=self.fabric.device)
        agreed = self.fabric.all_reduce(wishes, reduce_op="max")
        assert isinstance(agreed, Tensor)
        return bool(agreed[0]), bool(agreed[1])

    @property
    def leads(self) -> bool:
        """Whether this process writes and talks; of several, one does."""
        return self.fabric.global_rank == 0

    @contextmanager
    def _minding_signals(self) -> Iterator[None]:
        """The first Ctrl-C (or SIGTERM) waits for the end of the update; one more, later, does not."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked_at is None:
                self.asked_at = time.monotonic()
            elif time.monotonic() - self.asked_at > SAME_WISH:
                raise KeyboardInterrupt

        try:
            before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: whoever owns it minds its signals
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
