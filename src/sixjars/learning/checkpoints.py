"""Weights and training states on disk: safetensors and JSON, never pickle, and never half a file.

The order is what makes a kill harmless: weights first, then the state that knows of them, then the weights that no
state needs any more are removed. A kill in between repeats the same work and writes the same bytes.
"""

import errno
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn, optim

from sixjars.errors import RunError

if TYPE_CHECKING:
    from lightning_fabric.plugins.precision import Precision

Tensors = dict[str, Tensor]


@contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Trouble with the disk while a file is written becomes one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise RunError(f"no space left to write {path}; what was saved before is still there.") from None
        raise RunError(f"{path} cannot be written: {error.strerror or error}.") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a kill at any moment leaves the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.part")  # what a kill leaves of it, the next write takes over
    try:
        with disk_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
    except RunError:
        with suppress(OSError):
            unfinished.unlink()
        raise


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Tensors, and a few notes that JSON can hold, in one file with a check sum."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    kept = {**notes, "sum": _sum(ready, notes)}
    write_whole(path, to_bytes(ready, metadata={"sixjars": json.dumps(kept)}))


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """What `save_tensors` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = dict(json.loads((file.metadata() or {}).get("sixjars", "{}")))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if "sum" in notes and notes.pop("sum") != _sum(tensors, notes):
            raise ValueError("its check sum is wrong")
    except FileNotFoundError:
        raise RunError(f"{path} does not exist.") from None
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}.") from None
    return tensors, notes


def _sum(tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> int:
    """CRC-32 over every name, shape, byte and note."""
    total = zlib.crc32(json.dumps(notes).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def check_shapes(network: nn.Module, path: Path) -> None:
    """Refuse saved weights of other shapes, by the header of the file alone; the network may be without memory."""
    try:
        with safe_open(path, framework="pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}.") from None
    _compare({name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}, shapes, path)


def load_weights(network: nn.Module, path: Path) -> None:
    """Put saved weights into a network of the same shape."""
    put_weights(network, load_tensors(path)[0], path)


Shapes = Mapping[str, tuple[int, ...]]


def _compare(wanted: Shapes, found: Shapes, path: Path) -> None:
    for name in sorted({*wanted, *found}):
        here, there = (shapes.get(name, "nothing") for shapes in (wanted, found))
        if here != there:
            raise RunError(f"{path} does not fit the recipe beside it: {name} is {there}, but should be {here}.")


def put_weights(network: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put weights that came from a file into a network of the same shape."""
    wanted, found = (
        {name: tuple(tensor.shape) for name, tensor in some.items()} for some in (network.state_dict(), tensors)
    )
    _compare(wanted, found, path)
    network.load_state_dict(tensors)


def mean_weights(paths: list[Path]) -> Tensors:
    """The mean of several checkpoints, weight by weight; whole numbers come from the first."""
    total, _ = load_tensors(paths[0])
    for path in paths[1:]:
        for name, tensor in load_tensors(path)[0].items():
            if tensor.is_floating_point():
                total[name] += tensor
    return {name: tensor / len(paths) if tensor.is_floating_point() else tensor for name, tensor in total.items()}


def packed_optimizer(optimizer: optim.Optimizer) -> Tensors:
    """An optimizer's memory, flat; its settings are in the recipe."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{index}.{name}": value
        for index, memory in state.items()
        for name, value in memory.items()
        if isinstance(value, Tensor)
    }


def unpack_optimizer(optimizer: optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Back from `packed_optimizer`; ValueError where it is the memory of another optimizer or network."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            if int(index) >= len(weights) or tuple(tensor.shape) not in ((), tuple(weights[int(index)].shape)):
                raise ValueError(f"{name} has shape {tuple(tensor.shape)}")
            state.setdefault(int(index), {})[key] = tensor
    needed = MEMORY.get(type(optimizer).__name__, frozenset()) if state else frozenset()
    for number in range(len(weights) if needed else 0):
        if needed - set(state.get(number, {})):
            raise ValueError(f"the optimizer's memory of weight {number} is not there")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


MEMORY: Mapping[str, frozenset[str]] = {
    "Adam": frozenset({"step", "exp_avg", "exp_avg_sq"}),
    "AdamW": frozenset({"step", "exp_avg", "exp_avg_sq"}),
    "Adadelta": frozenset({"step", "square_avg", "acc_delta"}),
}
"""What each optimizer remembers of every weight."""


@final
@dataclass
class TrainingState:
    """Counters of a run. Everything that influences what comes next is here, in the weights or in the recipe."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    """Whole passes over the data made."""
    done_in_epoch: int = 0
    """Updates made in this pass."""
    loss: float = 0.0
    """Summed over the tokens since the last validation."""
    tokens: int = 0
    """Seen since the last validation."""
    best: list[tuple[float, int]] = field(default_factory=list)
    """Scores of the best checkpoints and the updates they were made at, best first."""
    stale: int = 0
    """Validations since the last improvement."""
    halvings: int = 0
    """How often plateau has halved the rate."""
    since_halving: int = 0
    """Validations without improvement that plateau has counted."""
    log_bytes: int = 0
    """How much of the log belongs to this state; what comes after is of a future that was lost."""
    finished: bool = False
    """Whether training came to its own end."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "TrainingState":
        """Back from `to_json`; ValueError where a number cannot be right."""
        state = cls(**{**values, "best": [(float(score), int(step)) for score, step in values["best"]]})
        for name, default in asdict(cls()).items():
            value = getattr(state, name)
            if type(value) is not type(default) and not (name == "loss" and isinstance(value, int)):
                raise ValueError(f"{name} is {value!r}")
            if isinstance(value, int | float) and not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value!r}")
        return state

    def score(self, value: float, *, better: str, keep: int) -> bool:
        """Enter a validation score; whether it is the best so far. At most `keep` are remembered."""
        sign = 1.0 if better == "lower" else -1.0
        is_best = not self.best or sign * value < sign * self.best[0][0]
        self.best = sorted([*self.best, (value, self.step)], key=lambda entry: sign * entry[0])[:keep]
        self.stale = 0 if is_best else self.stale + 1
        self.since_halving = 0 if is_best else self.since_halving + 1
        return is_best


@final
class Log:
    """The run's log: one JSON object a line, one line a validation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, size: int) -> None:
        """Forget all after the first `size` bytes, and half a line."""
        if self.path.exists():
            with disk_faults(self.path), self.path.open("r+b") as file:
                whole = file.read(size).rpartition(b"\n")
                file.truncate(len(whole[0] + whole[1]))

    def add(self, record: Mapping[str, float]) -> int:
        """Write a line; returns the log's size after it."""
        with disk_faults(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            return file.tell()


@final
class RunFiles:
    """The files of one run that training writes; only one process of a run may write them."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "model.safetensors"
        self.last = folder / "checkpoints" / "last.safetensors"
        self.log = Log(folder / "log.jsonl")

    def best(self, step: int) -> Path:
        """The weights of update `step`, kept because they are among the best."""
        return self.last.with_name(f"best-{step}.safetensors")

    def keep_best(self, network: nn.Module, state: TrainingState, *, is_best: bool, average: int) -> None:
        """The weights as they are, if they are the best so far or among those to be averaged."""
        weights = network.state_dict()
        if average > 1 and state.step in {step for _, step in state.best}:
            save_tensors(self.best(state.step), weights, {})
        if is_best:
            save_tensors(self.model, weights, {"step": state.step})

    def save(
        self, network: nn.Module, optimizer: optim.Optimizer, state: TrainingState, precision: "Precision"
    ) -> None:
        """The whole state, down to the optimizer's memory."""
        tensors = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= packed_optimizer(optimizer)
        notes = {"state": state.to_json(), "precision": precision.state_dict()}
        save_tensors(self.last, tensors, notes)
        self.sweep(state)

    def sweep(self, state: TrainingState) -> None:
        """Remove the weights that are no longer among the best, and what a kill left unfinished."""
        kept = {self.best(step) for _, step in state.best}
        left = {*self.last.parent.glob("best-*.safetensors"), *self.last.parent.glob(".*.part")}
        for path in left - kept:
            path.unlink(missing_ok=True)

    def load(self, network: nn.Module, optimizer: optim.Optimizer, precision: "Precision") -> TrainingState:
        """Back from `save`; returns where training stood."""
        tensors, notes = load_tensors(self.last)
        weights = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        put_weights(network, weights, self.last)
        try:
            state = TrainingState.from_json(notes["state"])
            unpack_optimizer(optimizer, tensors)
            if notes["precision"]:
                precision.load_state_dict(notes["precision"])
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise RunError(f"{self.last} does not belong to this recipe: {error!r}.") from None
        return state

    def average(self, state: TrainingState) -> None:
        """The final weights: the mean of the best."""
        steps = [step for _, step in state.best]
        notes: dict[str, Any] = {"mean of": steps}
        mean = mean_weights([self.best(step) for step in steps])
        save_tensors(self.model, mean, notes)
