"""The training loop: update, validate, save, and resume exactly where a run was stopped.

`Trainer.update` is gradient descent with backpropagation through time, all the way into the
encoder. The loss of an update is the sum over all its tokens, whatever batches and processes they
are spread over, divided by their number.
"""

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, final

import torch
from torch import Tensor

from sixjars.data.batches import Batches
from sixjars.data.flat import ahead
from sixjars.learning import captured
from sixjars.learning.checkpoints import Checkpoints, TrainingState, signals_to
from sixjars.learning.engine import (
    BatchShare,
    Engine,
    Update,
    UpdateBatches,
    Updater,
    learning_rate,
    seed_dropout,
)
from sixjars.learning.parameters import parameter_groups
from sixjars.loss import Objective
from sixjars.progress import Reporter
from sixjars.recipe.sections import LearningSettings
from sixjars_runtime.errors import Interrupted, LearningError, RunError

LOGGED = 10
"""Steps between two training losses that loggers get."""
SAME_WISH = 1.0
"""Seconds within which a second signal is an echo of the first: terminal and launcher send it."""


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
class TrainingReport:
    """The reporting of a training: the loss of each update, the scores of each validation.

    The loss of an update is reported after the next one was begun: reading it waits for the device,
    which has that one to compute by then.
    """

    def __init__(self, reporter: Reporter, fabric: Engine, checkpoints: Checkpoints) -> None:
        self.reporter = reporter
        self.fabric = fabric
        self.checkpoints = checkpoints
        self.pending: Update | None = None
        self.at = time.monotonic()  # when the update began whose loss is reported next

    def add(self, update: Update, state: TrainingState) -> None:
        """Report the update before this one, and keep this one."""
        self.flush(state)
        self.pending = update

    def flush(self, state: TrainingState) -> None:
        """Report the loss that is kept, if any, and add it to those of the state."""
        if self.pending is None:
            return
        update, self.pending = self.pending, None
        loss = update.loss()
        if not math.isfinite(loss):
            self.checkpoints.settle()
            raise LearningError(
                f"the loss is no longer a number at step {update.step}; try a lower learning.rate."
            )
        state.tokens += update.tokens
        state.loss += loss
        before, self.at = self.at, time.monotonic()
        mean, speed = loss / update.tokens, update.tokens / max(self.at - before, 1e-9)
        self.reporter.stepped(step=update.step, loss=mean, tokens_per_second=speed)
        if self.fabric.loggers and update.step % LOGGED == 0:
            self.fabric.log_dict({"step_loss": mean, "tokens_per_second": speed}, step=update.step)

    def validated(self, record: dict[str, float], *, is_best: bool) -> None:
        """Report the scores of a validation."""
        if self.fabric.loggers:
            logged = {name: value for name, value in record.items() if name != "step"}
            self.fabric.log_dict(logged, step=int(record["step"]))
        self.reporter.validated(record, is_best=is_best)


@final
class Trainer:
    """One run of training: its `state`, its `report` and its `checkpoints`, around `update`."""

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
        trained: list[Any] = [each for each in self.network.parameters() if each.requires_grad]
        if settings.rates:
            trained = parameter_groups(self.network, settings.rates)
        self.updates = Updater(objective, trained, settings, fabric)
        self.steps: Updater | captured.TrainingGraphs = self.updates
        if not self.updates.why:
            self.steps = captured.TrainingGraphs(self.updates)
            batches.have_few_shapes()
        self.state = TrainingState()
        self.checkpoints = Checkpoints(hooks.folder, self.network, self.updates)
        self.report = TrainingReport(hooks.reporter, fabric, self.checkpoints)
        self.per_epoch = batches.updates_per_epoch(settings.accumulate)
        self.total = settings.updates(self.per_epoch)
        self.rate = settings.rate
        self.asked_at: float | None = None
        self.paused = False

    def update(self, load: UpdateBatches) -> Tensor:
        """Make one update of the weights; return its loss, summed over all its N tokens.

        g = ∂/∂θ (1/N) Σ_n L_n, scaled down to the norm that `learning.clip` allows; then θ moves
        against g by a step of the optimizer, at the rate of the schedule. Each line below is a few
        calls of torch in `Updater`, or a CUDA graph of them in `TrainingGraphs`.
        """
        steps, state, settings = self.steps, self.state, self.settings
        seed_dropout(self.fabric.device, settings.seed, state.step, self.fabric.global_rank)
        total = torch.zeros((), device=self.fabric.device)
        for batch in steps.batches(load):  # one, unless learning.accumulate says more
            loss, plain = steps.forward(batch)  # the network's output, and from it the loss
            steps.backward(loss)
            total += plain
            del loss  # and with it all that its backward pass has needed
        steps.clip()
        number, halvings = state.step + 1, state.halvings
        self.rate = learning_rate(settings, number, total=self.total, halvings=halvings)
        steps.schedule(self.rate)
        steps.step()
        return self.fabric.summed(total)

    def run(self) -> None:
        """Train until the end, early stopping, a pause or Ctrl-C."""
        self.checkpoints.begin(self.state)
        self.hooks.reporter.begin(step=self.state.step, total=self.total)
        try:
            with signals_to(self._ask):
                try:
                    while not (self.state.finished or self.paused):
                        self._one_epoch()
                finally:
                    # Here, for an echo of the signal would end the process.
                    self.checkpoints.files.done()
        finally:
            self.hooks.reporter.end()
        self.checkpoints.finish(self.state)

    def _one_epoch(self) -> None:
        state = self.state
        plan = self.batches.plan(epoch=state.epoch, accumulate=self.settings.accumulate)
        self.report.at = time.monotonic()
        for load in ahead(self._load, plan[state.done_in_epoch :]):
            loss = self.update(load)
            state.advance(len(plan))
            self.report.add(Update(state.step, load.tokens, loss), state)
            self._after_update()
            if state.finished or self.paused:
                return

    def rehearsed(self) -> Generator[Update, None, None]:
        """Make updates of the first epoch, one for each `next`, to measure what they take.

        None is counted, reported, scored or saved. Afterwards the network is of no use.
        """
        plan = self.batches.plan(epoch=0, accumulate=self.settings.accumulate)
        for load in ahead(self._load, plan):
            yield Update(1, load.tokens, self.update(load))

    def _load(self, group: list[Tensor]) -> UpdateBatches:
        """The batches of one update, ready to be moved to the device."""
        rank, world = self.fabric.global_rank, self.fabric.world_size
        # At least 1: all labels of a batch may be outside the list.
        tokens = max(sum(self.batches.target_tokens(rows) for rows in group), 1)
        shares = []
        for rows in group:
            share = self.batches.share(rows, rank=rank, world=world)
            has_rows = len(share) > 0
            batch = self.steps.ready(self.batches.collate(share if has_rows else rows[:1]))
            factor = world / tokens if has_rows else 0.0
            shares.append(BatchShare(batch, factor, stands_in=not has_rows))
        return UpdateBatches(tokens, tuple(shares))

    def _after_update(self) -> None:
        """Validate, save and stop, where it is time to."""
        state, every = self.state, self.settings.validate_every
        self.paused = self.hooks.enough()
        on_schedule = state.done_in_epoch == 0 if every is None else state.step % every == 0
        validates = on_schedule or self.paused or state.step >= self.total
        if validates:
            self.report.flush(state)
            with self.fabric.whole():
                self._validate()
            self.report.at = time.monotonic()
            state.finished = self._ends()
        stop, due = self.fabric.anywhere(self.asked_at is not None, self.checkpoints.is_due)
        if validates or stop or due:
            self.report.flush(state)
            self.checkpoints.save(state)
        if stop and not state.finished:
            self.checkpoints.settle()
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
            "train_loss": state.take_loss(),
            **scores,
        }
        self.checkpoints.validated(record, state, is_best=is_best)
        self.report.validated(record, is_best=is_best)

    def _ends(self) -> bool:
        """Whether all updates are made, or validation has not improved for long enough."""
        patience = self.settings.patience
        stalled = patience is not None and self.state.stale >= patience
        return self.state.step >= self.total or stalled

    def resume(self, *, extended: bool = False) -> None:
        """Load the last saved state; where none was saved yet, start at the beginning.

        Where the recipe now trains longer (`extended`), a finished run continues to the new end.
        """
        state = self.checkpoints.load()
        if state is None:
            return
        self.state = state
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
                f"{self.checkpoints.files.last} does not belong to this recipe: it stands at "
                f"{place}."
            )

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Delay the first Ctrl-C (or SIGTERM) to the end of the update; a later one is not."""
        if self.asked_at is None:
            self.asked_at = time.monotonic()
        elif time.monotonic() - self.asked_at > SAME_WISH:
            raise KeyboardInterrupt

    @property
    def leads(self) -> bool:
        """Whether this process writes and reports; of several, one does."""
        return self.fabric.global_rank == 0

    @property
    def validations(self) -> int:
        """How many there have been."""
        return self.state.step // (self.settings.validate_every or self.per_epoch)
