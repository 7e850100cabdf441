"""Weights and training states on disk: safetensors and JSON, never pickle, and never half a file.

The order makes a kill harmless: weights first, then the state that names them, then weights that no
state names are removed. A kill in between repeats the same work and writes the same bytes.
"""

import errno
import json
import math
import os
import signal
import time
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
from sixjars_runtime.errors import RunError, shown

if TYPE_CHECKING:
    from sixjars.learning.engine import Updater

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
    saved = saved_shapes(path)
    shapes = {name: tuple(tensor.shape) for name, tensor in expected.items()}
    for name in sorted({*shapes, *saved}):
        here, there = shapes.get(name, "nothing"), saved.get(name, "nothing")
        if here != there:
            raise RunError(
                f"{path} does not fit the recipe beside it: {name} is {there}, "
                f"but should be {here}."
            )


def saved_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of saved tensors, from the header of the file."""
    with _opened(path, "np") as file:  # maps the file without taking memory for it
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}


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


MEMORY: Mapping[type[optim.Optimizer], tuple[str, ...]] = {
    optim.Adam: ("step", "exp_avg", "exp_avg_sq"),
    optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
    optim.Adadelta: ("step", "square_avg", "acc_delta"),
    optim.SGD: ("momentum_buffer",),
}
"""The state that each optimizer has for every weight; SGD only with momentum."""


def optimizer_memory(optimizer: optim.Optimizer) -> Tensors:
    """The names of an optimizer's state after an update, each with a tensor of its shape."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    names = next(names for kind, names in MEMORY.items() if isinstance(optimizer, kind))
    if not optimizer.defaults.get("momentum", 1):
        names = ()
    return {
        f"optimizer.{number}.{name}": torch.zeros(()) if name == "step" else weight
        for number, weight in enumerate(weights)
        for name in names
    }


def unpacked_optimizer(
    optimizer: optim.Optimizer, tensors: Mapping[str, Tensor], *, updates: int
) -> dict[str, Any]:
    """The optimizer's state from `packed_optimizer`; ValueError where its step counts are wrong."""
    state: dict[int, dict[str, Tensor]] = {}
    for full, like in optimizer_memory(optimizer).items():
        _, number, name = full.split(".")
        if name == "step" and not 0 <= float(tensors[full]) <= updates:
            raise ValueError(f"{full} is {float(tensors[full]):g}, after {updates} steps")
        # Laid out as the weight is, which a fused update relies on.
        tensor = tensors[full] if name == "step" else torch.empty_like(like).copy_(tensors[full])
        state.setdefault(int(number), {})[name] = tensor
    return {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}


@final
@dataclass
class TrainingState:
    """Where a training stands: the counters of its run; with the weights and the recipe they determine what comes next."""

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

    def advance(self, epoch_length: int) -> None:
        """Count an update of an epoch with so many."""
        self.step += 1
        self.done_in_epoch += 1
        if self.done_in_epoch == epoch_length:
            self.epoch += 1
            self.done_in_epoch = 0

    def take_loss(self) -> float:
        """The mean training loss since the last validation; from now on it is that of what comes."""
        mean = self.loss / max(self.tokens, 1)
        self.loss, self.tokens = 0.0, 0
        return mean

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


def state_of(values: Any) -> TrainingState:
    """The state that `asdict` wrote; ValueError where it cannot be right."""
    if not isinstance(values, dict) or values.keys() != asdict(TrainingState()).keys():
        raise ValueError(f"state is {shown(values)}")
    try:
        state = TypeAdapter(TrainingState).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))} is {shown(first['input'])}") from None
    counts = [state.epoch, state.done_in_epoch, state.stale, state.halvings, state.since_halving]
    latest = max(counts + [step for _, _, step in state.best])
    if latest > state.step or (state.finished and not state.best):
        raise ValueError(f"its counts do not agree with {state.step} steps")
    return state


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and value < math.inf


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

    def later(self, write: Callable[..., None], *arguments: Any) -> None:
        """Write a file after those before it."""
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


@final
class Checkpoints:
    """The saving of a training: its log, its best weights, the state to resume from, and its cost.

    All processes call it; the first one writes.
    """

    def __init__(self, folder: Path, network: nn.Module, updates: "Updater") -> None:
        self.folder = folder
        self.files = RunFiles(folder)
        self.network = network
        self.updates = updates
        self.settings = updates.settings
        self.fabric = updates.fabric
        self.leads = self.fabric.global_rank == 0
        self.cost: TrainingCost | None = TrainingCost()
        self.begun_at = self.saved_at = time.monotonic()

    def load(self) -> TrainingState | None:
        """Resume what `save` wrote, if there is anything; a misfit changes nothing."""
        path, optimizer, scaler = self.files.last, self.updates.optimizer, self.updates.scaler
        if not path.is_file():
            return None
        with self.fabric.whole(change=True):
            weights = self.network.state_dict()
            named = {f"model.{name}": tensor for name, tensor in weights.items()}
            check_shapes(named | optimizer_memory(optimizer), path)
            tensors, notes = load_tensors(path)
            try:
                state = state_of(notes["state"])
                scale = dict(notes["precision"])  # of the gradients, with fp16
                fits = scale.keys() == ({} if scaler is None else scaler.state_dict()).keys()
                if not fits or not all(map(_is_finite, scale.values())):
                    raise ValueError(f"precision is {shown(scale)}")
                memory = unpacked_optimizer(optimizer, tensors, updates=state.step)
            except (KeyError, TypeError, ValueError) as error:
                fault = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                what = f"{path} has a training state that cannot be right: {fault}."
                raise RunError(what) from None

            self.network.load_state_dict({name: tensors[f"model.{name}"] for name in weights})
        optimizer.load_state_dict(memory)
        if scaler is not None:
            scaler.load_state_dict(scale)
        self.cost = read_cost(self.folder)  # None stays None: the first part is not known
        return state

    def begin(self, state: TrainingState) -> None:
        """Go on with the log from this state; the time counts from now on."""
        if self.leads:
            self.files.cut_log(state.log_bytes)
        self.begun_at = time.monotonic()

    def validated(
        self, record: Mapping[str, float], state: TrainingState, *, is_best: bool
    ) -> None:
        """Log a validation; save the weights if they are the best, or among those to be averaged."""
        if not self.leads:
            return
        state.log_bytes = self.files.add_to_log(record)
        among = self.settings.average > 1 and state.step in {step for _, _, step in state.best}
        weights = copied(self.network.state_dict()) if is_best or among else {}
        if among:
            self.files.later(write_tensors, self.files.best(state.step), weights, {})
        if is_best:
            self.files.later(write_tensors, self.files.model, weights, {"step": state.step})

    @property
    def is_due(self) -> bool:
        """Whether the last save is as long ago as the recipe allows."""
        return time.monotonic() - self.saved_at > self.settings.save_seconds

    def save(self, state: TrainingState) -> None:
        """Save the state, with that of the optimizer, and what training has cost so far."""
        self.saved_at = time.monotonic()
        memory = packed_optimizer(self.updates.optimizer)  # all processes, for each has a share
        scaler = self.updates.scaler
        notes = {"state": asdict(state), "precision": {} if scaler is None else scaler.state_dict()}
        with self.fabric.whole():
            if not self.leads:
                return
            if self.cost is not None:  # first, so that no state is without it
                parts = [*self.cost.parts, self._part()]
                content = json.dumps([asdict(part) for part in parts]).encode()
                self.files.later(write_whole, self.folder / FILE, content)
            weights = {f"model.{name}": each for name, each in self.network.state_dict().items()}
            self.files.later(write_tensors, self.files.last, copied(weights | memory), notes)
            self.files.later(self.files.sweep, replace(state, best=[*state.best]))

    def _part(self) -> TrainingPart:
        device, seconds = self.fabric.device, round(self.saved_at - self.begun_at, 3)
        is_cuda = device.type == "cuda"
        name = f"cuda ({torch.cuda.get_device_name(device)})" if is_cuda else device.type
        return TrainingPart(seconds, name, self.fabric.world_size)

    def settle(self) -> None:
        """Wait until all is on the disk, in every process: the end of one ends the others."""
        if self.leads:
            self.files.done()
        self.fabric.barrier()

    def finish(self, state: TrainingState) -> None:
        """Leave the final weights: the best, or the mean of the best ones."""
        with self.fabric.whole():
            if self.leads:
                self.files.sweep(state)  # a kill may have come before the last time
                if self.settings.average > 1:
                    self._average([step for _, _, step in state.best])
                if not self.files.model.is_file():
                    raise RunError(
                        f"{self.files.model} is gone, and only training from the start would "
                        "bring it back; begin a new run with another --out."
                    )
            self.fabric.barrier()

    def _average(self, steps: list[int]) -> None:
        paths = [self.files.best(step) for step in steps]
        for path in paths:
            check_shapes(self.network.state_dict(), path)
        save_tensors(self.files.model, mean_weights(paths), {"mean of": steps})


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
