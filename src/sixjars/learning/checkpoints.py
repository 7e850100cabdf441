"""Training states on disk, and the weights of the best of them.

The order is what makes a kill harmless: weights first, then the state that knows of them, then the weights that no
state needs any more are removed. A kill in between repeats the same work and writes the same bytes.
"""

import json
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import torch
from pydantic import Field, TypeAdapter, ValidationError
from torch import Tensor, nn, optim

from sixjars.errors import RunError, disk_faults, shown
from sixjars.learning.weights import (
    Tensors,
    check_shapes,
    copied,
    load_tensors,
    mean_weights,
    save_tensors,
    write_tensors,
)

if TYPE_CHECKING:
    from lightning_fabric.plugins.precision import Precision

Counter = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(ge=-math.inf)]


MEMORY: Mapping[type[optim.Optimizer], tuple[str, ...]] = {
    optim.Adam: ("step", "exp_avg", "exp_avg_sq"),
    optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
    optim.Adadelta: ("step", "square_avg", "acc_delta"),
    optim.SGD: ("momentum_buffer",),
}
"""What each optimizer remembers of every weight; SGD only with momentum."""


def optimizer_memory(optimizer: optim.Optimizer) -> Tensors:
    """The names of what an optimizer remembers after an update, each with a tensor of its shape."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    names = next(names for kind, names in MEMORY.items() if isinstance(optimizer, kind))
    if not optimizer.defaults.get("momentum", 1):
        names = ()
    return {
        f"optimizer.{number}.{name}": torch.zeros(()) if name == "step" else weight
        for number, weight in enumerate(weights)
        for name in names
    }


def packed_optimizer(optimizer: optim.Optimizer) -> Tensors:
    """An optimizer's memory, flat; its settings are in the recipe."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{name}": value
        for number, memory in state.items()
        for name, value in memory.items()
        if isinstance(value, Tensor)
    }


def unpack_optimizer(optimizer: optim.Optimizer, tensors: Mapping[str, Tensor], *, updates: int) -> None:
    """Back from `packed_optimizer`, after so many updates; ValueError where an optimizer has counted others."""
    state: dict[int, dict[str, Tensor]] = {}
    for full in optimizer_memory(optimizer):
        _, number, name = full.split(".")
        if name == "step" and not 0 <= float(tensors[full]) <= updates:
            raise ValueError(f"{full} is {float(tensors[full]):g}, after {updates} steps")
        state.setdefault(int(number), {})[name] = tensors[full]
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@final
@dataclass
class TrainingState:
    """Counters of a run. Everything that influences what comes next is here, in the weights or in the recipe."""

    step: Counter = 0
    """Updates made."""
    epoch: Counter = 0
    """Whole passes over the data made."""
    done_in_epoch: Counter = 0
    """Updates made in this pass."""
    loss: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Summed over the tokens since the last validation."""
    tokens: Counter = 0
    """Seen since the last validation."""
    best: list[tuple[Number, Number, Counter]] = field(default_factory=list)
    """Scores of the best checkpoints, their losses and the updates they were made at, best first."""
    stale: Counter = 0
    """Validations since the last improvement."""
    halvings: Counter = 0
    """How often plateau has halved the rate."""
    since_halving: Counter = 0
    """Validations without improvement that plateau has counted."""
    log_bytes: Counter = 0
    """How much of the log belongs to this state; what comes after is of a future that was lost."""
    finished: bool = False
    """Whether training came to its own end."""

    @classmethod
    def from_json(cls, values: Any) -> "TrainingState":
        """Back from `asdict`; ValueError where something cannot be right, whoever wrote it."""
        if not isinstance(values, dict) or values.keys() != asdict(cls()).keys():
            raise ValueError(f"state is {shown(values)}")
        try:
            state = TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))} is {shown(first['input'])}") from None
        counts = [state.epoch, state.done_in_epoch, state.stale, state.halvings, state.since_halving]
        if max(counts + [step for _, _, step in state.best]) > state.step or (state.finished and not state.best):
            raise ValueError(f"its counts do not agree with {state.step} steps")
        return state

    def score(self, value: float, loss: float, *, better: str, keep: int) -> bool:
        """Enter a validation; whether it is the best so far, of equal scores by the loss. `keep` are remembered."""
        sign = 1.0 if better == "lower" else -1.0
        entry, before = (value, loss, self.step), self.best[:1]
        self.best = sorted([*self.best, entry], key=lambda one: (sign * one[0], one[1]))[:keep]
        is_best = self.best[:1] != before
        self.stale, self.since_halving = (0, 0) if is_best else (self.stale + 1, self.since_halving + 1)
        return is_best


@final
class RunFiles:
    """The files of one run that training writes; only one process of a run may write them.

    A thread writes weights, one file after the other, while training goes on.
    """

    def __init__(self, folder: Path) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        self.waiting: list[Future[None]] = []
        self.model = folder / "model.safetensors"
        self.last = folder / "checkpoints" / "last.safetensors"
        self.log = folder / "log.jsonl"

    def best(self, step: int) -> Path:
        """The weights of update `step`, kept because they are among the best."""
        return self.last.with_name(f"best-{step}.safetensors")

    def cut_log(self, size: int) -> None:
        """Forget all of the log after the first `size` bytes, and half a line."""
        if self.log.exists():
            with disk_faults(self.log), self.log.open("r+b") as file:
                whole = file.read(min(size, self.log.stat().st_size)).rpartition(b"\n")
                file.truncate(len(whole[0] + whole[1]))

    def add_to_log(self, record: Mapping[str, float]) -> int:
        """Write a line, a JSON object for each validation; returns the log's size after it."""
        with disk_faults(self.log), self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            return file.tell()

    def keep_best(self, network: nn.Module, state: TrainingState, *, is_best: bool, average: int) -> None:
        """The weights as they are, if they are the best so far or among those to be averaged."""
        among = average > 1 and state.step in {step for _, _, step in state.best}
        weights = copied(network.state_dict()) if is_best or among else {}
        if among:
            self._later(write_tensors, self.best(state.step), weights, {})
        if is_best:
            self._later(write_tensors, self.model, weights, {"step": state.step})

    def save(
        self, network: nn.Module, optimizer: optim.Optimizer, state: TrainingState, scaler: "Precision | None"
    ) -> None:
        """The whole state, down to the optimizer's memory."""
        tensors = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= packed_optimizer(optimizer)
        notes = {"state": asdict(state), "precision": {} if scaler is None else scaler.state_dict()}
        self._later(write_tensors, self.last, copied(tensors), notes)
        self._later(self.sweep, replace(state, best=[*state.best]))

    def _later(self, write: Callable[..., None], *given: Any) -> None:
        self.done(but=3)  # what waits takes memory
        self.waiting.append(self.thread.submit(write, *given))

    def done(self, but: int = 0) -> None:
        """Wait until all is written, but so many; a fault of the disk is raised here."""
        while len(self.waiting) > but:
            self.waiting.pop(0).result()

    def sweep(self, state: TrainingState) -> None:
        """Remove the weights that are no longer among the best, and what a kill left unfinished."""
        kept = {self.best(step) for _, _, step in state.best}
        left = {*self.last.parent.glob("best-*.safetensors"), *self.last.parent.glob(".*.part")}
        for path in left - kept:
            path.unlink(missing_ok=True)

    def load(self, network: nn.Module, optimizer: optim.Optimizer, scaler: "Precision | None") -> TrainingState:
        """Back from `save`; returns where training stood. Nothing is changed by a file that does not fit."""
        weights = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        check_shapes(weights | optimizer_memory(optimizer), self.last)
        tensors, notes = load_tensors(self.last)
        try:
            state = TrainingState.from_json(notes["state"])
            scale = dict(notes["precision"])  # of the gradients, with fp16
            fits = scale.keys() == ({} if scaler is None else scaler.state_dict()).keys()
            if not fits or not all(type(value) in (int, float) and value < math.inf for value in scale.values()):
                raise ValueError(f"precision is {shown(scale)}")
            unpack_optimizer(optimizer, tensors, updates=state.step)
        except (KeyError, TypeError, ValueError) as error:
            fault = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise RunError(f"{self.last} has a training state that cannot be right: {fault}.") from None
        if scaler is not None:
            scaler.load_state_dict(scale)
        network.load_state_dict({name: tensors[f"model.{name}"] for name in network.state_dict()})
        return state

    def average(self, network: nn.Module, state: TrainingState) -> None:
        """The final weights: the mean of the best."""
        steps = [step for _, _, step in state.best]
        for step in steps:
            check_shapes(network.state_dict(), self.best(step))
        save_tensors(self.model, mean_weights([self.best(step) for step in steps]), {"mean of": steps})
