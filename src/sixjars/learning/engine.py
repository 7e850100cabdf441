"""What training runs on, devices and processes by Lightning Fabric; its optimizer and schedule; and one update.

What an update learns from is prepared by a thread while the device computes the one before it.
"""

import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final, get_args

import torch
from torch import Tensor, nn, optim

from sixjars.errors import RecipeError, unknown
from sixjars.flow.values import Batch
from sixjars.learning.heartbeat import all_or_none, ending_with_the_first
from sixjars.loss import Objective, Sealed
from sixjars.model.recurrent import Recurrent
from sixjars.recipe.sections import LearningSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.loggers.logger import Logger

    from sixjars.learning.captured import Captured

Device = Literal["auto", "cpu", "cuda", "mps"]
PRECISIONS: Mapping[str, Literal["32-true", "bf16-mixed", "16-mixed"]] = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "fp16": "16-mixed",
}
WITHOUT_FP16: Mapping[str, str] = {"cpu": "a CPU", "mps": "an Apple GPU"}


def device_named(device: Device) -> torch.device:
    """The device that `--device` means on this machine."""
    if device not in get_args(Device):
        raise RecipeError([unknown("device", device, get_args(Device))], "the command line")
    asked: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "cpu": lambda: True,
    }
    found = next((name for name, is_there in asked.items() if device in (name, "auto") and is_there()), None)
    if found is None:
        missing = "CUDA device" if device == "cuda" else "Apple GPU (mps)"
        raise RecipeError([f"--device {device} was asked for, but torch sees no {missing} here."], "the command line")
    return torch.device(found)


def fabric_for(*, device: Device, devices: int, precision: str, loggers: "Sequence[Logger]" = ()) -> "Fabric":
    """An engine, launched: with several devices this process becomes one of as many."""
    where = device_named(device).type
    if precision == "fp16" and where != "cuda":
        raise RecipeError([f"learning.precision: fp16 needs a CUDA device; use bf16 or 32 on {WITHOUT_FP16[where]}."])
    here, machines = _processes(devices)
    if where == "cuda" and here > torch.cuda.device_count():
        fault = f"--devices {here} was asked for, but torch sees {torch.cuda.device_count()} CUDA devices here."
        raise RecipeError([fault], "the command line")
    if where == "mps" and here * machines > 1:
        fault = f"--devices is {here}, but an Apple GPU (mps) trains in one process; leave it out, or use --device cpu."
        raise RecipeError([fault], "the command line")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning_fabric import Fabric
        from lightning_fabric.strategies.ddp import DDPStrategy

        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # its import sets its own level
        several = here * machines > 1
        fabric = Fabric(
            accelerator=where,
            devices=here,
            num_nodes=machines,
            strategy=DDPStrategy(timeout=timedelta(days=1)) if several else "auto",
            precision=PRECISIONS[precision],
            loggers=list(loggers),
        )
        with ending_with_the_first() if several else nullcontext():
            fabric.launch()
    return fabric


def together(fabric: "Fabric") -> AbstractContextManager[None]:
    """All processes end when one fails; where there is one, there is nothing to do."""
    return all_or_none(fabric) if fabric.world_size > 1 else nullcontext()


def _processes(devices: int) -> tuple[int, int]:
    """How many processes on this machine, and how many machines: as torchrun says, or as `--devices` asks."""
    if not torch.distributed.is_available() or not torch.distributed.is_torchelastic_launched():
        return devices, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    if devices not in {1, here}:
        fault = f"--devices is {devices}, but torchrun started {here} processes here; leave out --devices."
        raise RecipeError([fault], "the command line")
    return here, everywhere // here


T = TypeVar("T")
R = TypeVar("R")


@final
@dataclass(frozen=True)
class Load:
    """What one update of one process learns from."""

    tokens: int
    """Of all processes."""
    batches: tuple[Batch, ...]
    """Of this one; their gradients are added."""
    counts: tuple[float, ...]
    """1 for each batch that counts. A process without a row of its own takes part with one that does not: 0."""


@final
class Update:
    """An update that was made, and its loss, which a device may still be computing."""

    def __init__(self, step: int, tokens: int, loss: Tensor) -> None:
        self.step = step
        self.tokens = tokens
        self._loss = loss.to("cpu", non_blocking=loss.is_cuda)
        self._ready: torch.cuda.Event | None = None
        if loss.is_cuda:
            self._ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._ready.record()

    def loss(self) -> float:
        """Summed over the tokens. Waits for the device to finish this update, not what it was given since."""
        if self._ready is not None:
            self._ready.synchronize()
        return float(self._loss)


def ahead(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `make` makes of each item, in order; a thread makes one while the one before it is used.

    Whatever `make` raises is raised here, when its turn comes.

    >>> list(ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        waiting: Future[R] | None = None
        for item in items:
            made, waiting = waiting, thread.submit(make, item)
            if made is not None:
                yield made.result()
        if waiting is not None:
            yield waiting.result()


def optimizer_for(
    parameters: Iterable[Any], settings: LearningSettings, *, on: str = "cpu", captured: bool = False
) -> optim.Optimizer:
    """The update rule that the recipe names, for parameters or groups of them, on a kind of device.

    `captured` if a CUDA graph makes it.
    """
    kinds = {"adam": optim.Adam, "adamw": optim.AdamW, "sgd": optim.SGD, "adadelta": optim.Adadelta}
    more: dict[str, Any] = {"momentum": settings.momentum} if settings.optimizer == "sgd" else {}
    rate: float | Tensor = settings.rate
    if captured:
        more, rate = more | {"fused": True, "capturable": True}, torch.tensor(settings.rate, device="cuda")
    elif on == "cpu" and settings.optimizer in {"adam", "adamw"}:
        more["fused"] = True  # all in one pass over the numbers
    kind: Callable[..., optim.Optimizer] = kinds[settings.optimizer]
    made = kind(parameters, lr=rate, weight_decay=settings.weight_decay, **more)
    for group in made.param_groups if captured else ():  # or all would share one tensor, whatever their factors
        group["lr"] = group["lr"].clone()
    return made


def uncaptured(fabric: "Fabric", settings: LearningSettings) -> str:
    """Why training steps are not CUDA graphs here; nothing where they are."""
    if fabric.device.type != "cuda":
        return "no CUDA device"
    if not settings.fast:
        return "learning.fast is false"
    if fabric.world_size > 1:
        return "several processes"
    if settings.precision == "fp16":
        return "with fp16 an update waits for its gradients"
    return "" if settings.optimizer in {"adam", "adamw"} else f"the optimizer is {settings.optimizer}"


@final
class Updates:
    """Makes updates: on CUDA as graphs, where nothing stands in the way."""

    def __init__(
        self, objective: Objective, parameters: list[Any], settings: LearningSettings, fabric: "Fabric"
    ) -> None:
        self.settings = settings
        self.fabric = fabric
        self.captured: Captured | None = None
        self.why = uncaptured(fabric, settings)
        objective.fast = settings.fast
        for module in objective.modules():
            if isinstance(module, Recurrent):
                module.fast = settings.fast
                # Without graphs a GPU waits for Python, and torch has a whole recurrence without attention as one call.
                module.by_hand = settings.fast and (fabric.device.type == "cpu" or not self.why)
        # Rows that are added have no influence, except on the statistics of a batch.
        normalizes = any(isinstance(module, nn.modules.batchnorm._NormBase) for module in objective.modules())
        generates = objective.network.decoder.searches  # where any number of labels may be right, none is one of them
        self.pads_rows = settings.batch_tokens is not None and generates and not normalizes
        optimizer = optimizer_for(parameters, settings, on=fabric.device.type, captured=not self.why)
        self.objective, self.optimizer = fabric.setup(objective, optimizer)
        if not self.why:
            from sixjars.learning import captured

            self.captured = captured.Captured(self.learn, self.apply)

    def graphs(self) -> str:
        """Whether steps are graphs, to be told behind the path; nothing where there is no CUDA device."""
        if self.fabric.device.type != "cuda":
            return ""
        return f"; no CUDA graphs: {self.why}" if self.why else "; steps as CUDA graphs"

    def ready(self, batch: Batch) -> Batch:
        """A batch as the device wants it, still on the CPU."""
        if self.fabric.device.type != "cuda":
            return batch
        if self.captured is not None:
            batch = self.captured.widened(batch, rows=self.pads_rows)
        return batch.mapped(Tensor.pin_memory)

    def made(self, load: Load, rate: float) -> Tensor:
        """One step of the optimizer; the summed loss of this process, still on the device."""
        share = self.fabric.world_size / load.tokens
        loss = torch.zeros((), device=self.fabric.device)
        for number, (batch, counts) in enumerate(zip(load.batches, load.counts, strict=True), start=1):
            if self.captured is not None:
                loss += self.captured.learned(batch, share * counts) * counts
                continue
            with self.fabric.no_backward_sync(self.objective, enabled=number < len(load.batches)):
                loss += self.learn(batch.to(self.fabric.device), share * counts) * counts
        for group in self.optimizer.param_groups:
            own = rate * group.get("factor", 1.0)
            group["lr"] = group["lr"].fill_(own) if isinstance(group["lr"], Tensor) else own
        if self.captured is None:
            self.apply()
        else:
            self.captured.applied()
        return loss

    def learn(self, batch: Batch, factor: Tensor | float) -> Tensor:
        """Add the gradients of a batch, times a factor, to those of the weights; its plain loss."""
        total, plain = self.objective(Sealed(batch))
        self.fabric.backward(total * factor)
        loss: Tensor = plain.detach()
        return loss

    def apply(self) -> None:
        """An update of the gradients, which are zero after it."""
        if self.settings.clip is not None:
            self.fabric.clip_gradients(
                self.objective, self.optimizer, max_norm=self.settings.clip, error_if_nonfinite=False
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.captured is None)


def learning_rate(settings: LearningSettings, step: int, *, total: int, halvings: int = 0) -> float:
    """The rate of update number `step` of `total`, counted from 1, after so many halvings by plateau.

    After a linear warm-up: constant; rate √(warmup / step) (Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762, section 5.3); half a cosine down to 0 at the last update; or, for plateau,
    halved each time validation has stalled.

    >>> settings = LearningSettings(rate=1.0, warmup=4, schedule="inverse_sqrt")
    >>> [learning_rate(settings, step, total=100) for step in (1, 2, 4, 16)]
    [0.25, 0.5, 1.0, 0.5]
    """
    warmup = settings.warmup
    if step < warmup:
        return settings.rate * step / warmup
    match settings.schedule:
        case "inverse_sqrt":
            factor = math.sqrt(max(warmup, 1) / step)
        case "cosine":
            done = (step - warmup) / max(total - warmup, 1)
            factor = 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
        case "plateau":
            factor = 0.5**halvings
        case "constant":
            factor = 1.0
    return settings.rate * factor
