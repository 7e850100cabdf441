"""Weights and training states on disk: safetensors and JSON, never pickle, and never half a file.

The order makes a kill harmless: weights first, then the state that names them, then weights that no
state names are removed. A kill in between repeats the same work and writes the same bytes.
"""

import errno
import json
import math
import os
import signal
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, final

import torch
from pydantic import Field, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn, optim

from sixjars.progress import duration
from sixjars_runtime.errors import RunError

FILE: Final = "cost.json"
_LARGEST: Final = 1 << 20  # bytes


@final
@dataclass(frozen=True)
class TrainingPart:
    """One part of a training, from where it was begun or resumed to its end."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    device: Annotated[str, Field(max_length=200)]
    """`cpu`, or `cuda` with the name of the GPU."""
    processes: Annotated[int, Field(ge=1)] = 1

    @property
    def where(self) -> str:
        """The device, and the number of processes where there are several."""
        return self.device + (f" × {self.processes} processes" if self.processes > 1 else "")


@final
@dataclass(frozen=True)
class TrainingCost:
    """Wall time of training and validation, without reading the data and the final scores.

    >>> parts = TrainingPart(150.0, "cpu"), TrainingPart(9.0, "cuda (NVIDIA A100)", 2), TrainingPart(50.0, "cpu")
    >>> cost = TrainingCost(parts)
    >>> cost.seconds, cost.words
    (209.0, '3 min on cpu, cuda (NVIDIA A100) × 2 processes')
    """

    parts: tuple[TrainingPart, ...] = ()
    """One for each time that it was begun or resumed."""

    @property
    def seconds(self) -> float:
        """On all devices."""
        return sum(part.seconds for part in self.parts)

    @property
    def device(self) -> str:
        """Every device that was used."""
        return ", ".join(dict.fromkeys(part.where for part in self.parts))

    @property
    def words(self) -> str:
        """Time and devices for a person."""
        return f"{duration(self.seconds)} on {self.device}"


def read_cost(folder: Path) -> TrainingCost | None:
    """The cost that a run's folder holds; None where the file is missing or damaged."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        kind = TypeAdapter(list[TrainingPart])
        parts: Sequence[TrainingPart] = kind.validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return None
    return TrainingCost(tuple(parts)) if parts else None


if TYPE_CHECKING:
    from lightning_fabric.plugins.precision import Precision

Tensors = dict[str, Tensor]
Counter = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(ge=-math.inf)]


@contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Turn a failure to write a file of a run into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            fault = f"no space left to write {path}; what was saved before is still there."
            raise RunError(fault) from None
        raise RunError(f"{path} cannot be written: {error.strerror or error}.") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a kill at any moment leaves the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.part")  # the next write replaces one that is left
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


def copied(tensors: Mapping[str, Tensor]) -> Tensors:
    """The values of tensors now, in the memory of the host."""
    cpu = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
    return {name: tensor.contiguous() for name, tensor in cpu.items()}


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Write tensors, and a few notes in JSON, into one file with a check sum."""
    write_tensors(path, copied(tensors), notes)


def write_tensors(path: Path, tensors: Tensors, notes: Mapping[str, Any]) -> None:
    """As `save_tensors`, with tensors on the host that do not change."""
    kept = {**notes, "sum": _sum(tensors, notes)}
    write_whole(path, to_bytes(tensors, metadata={"sixjars": json.dumps(kept)}))


@contextmanager
def _opened(path: Path, framework: Literal["pt", "np"]) -> Iterator[Any]:
    """A file of tensors; turn whatever is wrong with it into one sentence."""
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except FileNotFoundError:
        raise RunError(f"{path} does not exist.") from None
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged: {error}.") from None


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """The tensors and notes that `save_tensors` wrote."""
    with _opened(path, "pt") as file:
        notes = dict(json.loads((file.metadata() or {}).get("sixjars", "{}")))
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        if "sum" in notes and notes.pop("sum") != _sum(tensors, notes):
            raise ValueError("its check sum is wrong")
    return tensors, notes


def _sum(tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> int:
    """CRC-32 over every name, shape, byte and note."""
    total = zlib.crc32(json.dumps(notes).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def check_shapes(expected: Mapping[str, Tensor], path: Path) -> None:
    """Refuse a file with tensors of other names or shapes, reading its header alone."""
    with _opened(path, "np") as file:  # maps the file without taking memory for it
        saved = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    shapes = {name: tuple(tensor.shape) for name, tensor in expected.items()}
    for name in sorted({*shapes, *saved}):
        here, there = shapes.get(name, "nothing"), saved.get(name, "nothing")
        if here != there:
            raise RunError(
                f"{path} does not fit the recipe beside it: {name} is {there}, "
                f"but should be {here}."
            )


def saved_shapes(path: Path) -> list[tuple[int, ...]]:
    """The shapes of saved tensors, from the header of the file."""
    with _opened(path, "np") as file:
        return [tuple(file.get_slice(name).get_shape()) for name in file.keys()]


def load_weights(network: nn.Module, path: Path) -> None:
    """Load saved weights into a network of the same shapes; refuse any that is not finite."""
    check_shapes(network.state_dict(), path)
    network.load_state_dict(load_tensors(path)[0])
    for name, weight in network.named_parameters():
        if not weight.is_floating_point() or not weight.numel():
            continue
        if not torch.stack(torch.aminmax(weight)).isfinite().all():
            raise RunError(f"{path} is damaged: the numbers of {name} are not all finite.")


def mean_weights(paths: list[Path]) -> Tensors:
    """The mean of several checkpoints, weight by weight; whole numbers come from the first."""
    total, _ = load_tensors(paths[0])
    for path in paths[1:]:
        for name, tensor in load_tensors(path)[0].items():
            if tensor.is_floating_point():
                total[name] += tensor
    return {
        name: tensor / len(paths) if tensor.is_floating_point() else tensor
        for name, tensor in total.items()
    }


def packed_optimizer(optimizer: optim.Optimizer) -> Tensors:
    """The state of an optimizer as named tensors; its settings are in the recipe."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{name}": value
        for number, memory in state.items()
        for name, value in memory.items()
        if isinstance(value, Tensor)
    }


@final
@dataclass
class TrainingState:
    """The counters of a run; with the weights and the recipe they determine what comes next."""

    step: Counter = 0
    """Updates made."""
    epoch: Counter = 0
    """Complete passes over the data."""
    done_in_epoch: Counter = 0
    """Updates made in this pass."""
    loss: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The training loss, summed over the tokens since the last validation."""
    tokens: Counter = 0
    """Tokens since the last validation."""
    best: list[tuple[Number, Number, Counter]] = field(default_factory=list)
    """Score, loss and update of the best checkpoints, the best first."""
    stale: Counter = 0
    """Validations since the last improvement."""
    halvings: Counter = 0
    """How often plateau has halved the rate."""
    since_halving: Counter = 0
    """Validations without improvement that plateau has counted."""
    log_bytes: Counter = 0
    """The size of the log at this state; the rest was written by updates that are lost."""
    finished: bool = False
    """Whether training came to its own end."""

    def score(self, value: float, loss: float, *, better: str, keep: int) -> bool:
        """Add a validation to the `keep` best; return whether it is the best so far.

        Equal scores are ordered by the loss.
        """
        sign = 1.0 if better == "lower" else -1.0
        before = self.best[:1]
        scores = [*self.best, (value, loss, self.step)]
        self.best = sorted(scores, key=lambda score: (sign * score[0], score[1]))[:keep]
        is_best = self.best[:1] != before
        self.stale = 0 if is_best else self.stale + 1
        self.since_halving = 0 if is_best else self.since_halving + 1
        return is_best


@final
class RunFiles:
    """The files of a run that training writes; only one process of a run may write them.

    A thread writes them, one after the other, while training goes on.
    """

    def __init__(self, folder: Path) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        self.waiting: list[Future[None]] = []
        self.failed = False
        self.model = folder / "model.safetensors"
        self.last = folder / "checkpoints" / "last.safetensors"
        self.log = folder / "log.jsonl"

    def best(self, step: int) -> Path:
        """The file with the weights of update `step`, which are among the best."""
        return self.last.with_name(f"best-{step}.safetensors")

    def cut_log(self, size: int) -> None:
        """Cut the log after its first `size` bytes, and at the end of a line."""
        if self.log.exists():
            with disk_faults(self.log), self.log.open("r+b") as file:
                whole = file.read(min(size, self.log.stat().st_size)).rpartition(b"\n")
                file.truncate(len(whole[0] + whole[1]))

    def add_to_log(self, record: Mapping[str, float]) -> int:
        """Write the JSON of a validation as a line; return the size of the log."""
        with disk_faults(self.log), self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            return file.tell()

    def keep_best(
        self, network: nn.Module, state: TrainingState, *, is_best: bool, average: int
    ) -> None:
        """Save the weights if they are the best so far, or among those to be averaged."""
        among = average > 1 and state.step in {step for _, _, step in state.best}
        weights = copied(network.state_dict()) if is_best or among else {}
        if among:
            self._later(write_tensors, self.best(state.step), weights, {})
        if is_best:
            self._later(write_tensors, self.model, weights, {"step": state.step})

    def keep_cost(self, parts: Sequence[TrainingPart]) -> None:
        """Save the cost of training so far; before `save`, so that no state is without it."""
        content = json.dumps([asdict(part) for part in parts]).encode()
        self._later(write_whole, self.log.with_name(FILE), content)

    def save(
        self, network: nn.Module, memory: Tensors, state: TrainingState, scaler: "Precision | None"
    ) -> None:
        """Save the whole state, with that of the optimizer."""
        weights = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        notes = {"state": asdict(state), "precision": {} if scaler is None else scaler.state_dict()}
        self._later(write_tensors, self.last, copied(weights | memory), notes)
        self._later(self.sweep, replace(state, best=[*state.best]))

    def _later(self, write: Callable[..., None], *arguments: Any) -> None:
        self.done(but=3)  # waiting files take memory
        self.waiting.append(self.thread.submit(self._in_order, write, *arguments))

    def _in_order(self, write: Callable[..., None], *arguments: Any) -> None:
        """Write, unless an earlier file could not be written: a state may name its weights."""
        if self.failed:
            return
        self.failed = True
        write(*arguments)
        self.failed = False

    def done(self, but: int = 0) -> None:
        """Wait until at most `but` files are left to write; raise the first fault of the disk."""
        if but == 0:
            wait(self.waiting)
        while self.waiting and (len(self.waiting) > but or self.waiting[0].done()):
            self.waiting.pop(0).result()

    def sweep(self, state: TrainingState) -> None:
        """Remove weights that are no longer among the best, and unfinished files."""
        kept = {self.best(step) for _, _, step in state.best}
        left = {*self.last.parent.glob("best-*.safetensors"), *self.last.parent.glob(".*.part")}
        for path in left - kept:
            path.unlink(missing_ok=True)

    def average(self, network: nn.Module, state: TrainingState) -> None:
        """Save the mean of the best weights as the final ones."""
        steps = [step for _, _, step in state.best]
        paths = [self.best(step) for step in steps]
        for path in paths:
            check_shapes(network.state_dict(), path)
        save_tensors(self.model, mean_weights(paths), {"mean of": steps})


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM by a handler meanwhile; has no effect outside the main thread."""
    numbers = signal.SIGINT, signal.SIGTERM
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # not the main thread
        before = {}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM that come meanwhile to the end."""
    asked: list[int] = []
    try:
        with signals_to(lambda number, frame: asked.append(number)):
            yield
    finally:
        if asked:
            signal.raise_signal(asked[0])
