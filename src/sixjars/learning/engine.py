"""What stands behind an update: devices and processes, its batches, its optimizer, its schedule."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn, optim

from sixjars.flow.backend import Backend
from sixjars.flow.values import Batch
from sixjars.kernels.backends import Device, device_named, training_backend
from sixjars.loss import Objective, SealedBatch
from sixjars.recipe.sections import LearningSettings
from sixjars_runtime.errors import RecipeError

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger
    from lightning_fabric.plugins.precision import Precision

    from sixjars.learning.distributed import DistributedEngine

T = TypeVar("T")
Engine: TypeAlias = "OneDevice | DistributedEngine"


@final
class OneDevice:
    """One process on one device: what training uses of Fabric, whose import takes seconds."""

    world_size = 1
    global_rank = 0
    shares = False

    def __init__(self, device: torch.device, precision: str, loggers: "Sequence[Logger]") -> None:
        self.device = device
        self.precision = precision
        self.loggers = loggers

    def setup(
        self, objective: nn.Module, optimizer: optim.Optimizer
    ) -> tuple[nn.Module, optim.Optimizer]:
        """The objective on the device, and its optimizer."""
        return objective.to(self.device), optimizer

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which the model and the loss are computed."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def backward(self, loss: Tensor) -> None:
        """Add the gradients to those of the weights."""
        loss.backward()  # type: ignore[no-untyped-call]

    def clip_gradients(self, objective: nn.Module, _: optim.Optimizer, **limits: Any) -> None:
        """Scale the gradients down to a norm of at most `max_norm`."""
        nn.utils.clip_grad_norm_(objective.parameters(), **limits)

    def no_backward_sync(self, *_: Any, **__: Any) -> AbstractContextManager[None]:
        """Nothing to leave out: there is no other process."""
        return nullcontext()

    rank_zero_first = whole = no_backward_sync

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all processes, of which this is the only one."""
        return values

    def anywhere(self, *facts: bool) -> tuple[bool, ...]:
        """Each fact, true where it is in any process."""
        return facts

    def broadcast(self, value: T) -> T:
        """The value of the first process."""
        return value

    def barrier(self) -> None:
        """Wait for the other processes, of which there are none."""

    def log_dict(self, values: Mapping[str, float], step: int) -> None:
        """Give the values to every logger."""
        for logger in self.loggers:
            logger.log_metrics(metrics=dict(values), step=step)


def precision_on(device: str, precision: str) -> str:
    """The precision itself; `auto` is bf16 on a CUDA device that has it, otherwise 32 bits."""
    if precision != "auto":
        return precision
    has_bf16 = device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if has_bf16 else "32"


def fabric_for(
    *,
    device: Device,
    devices: int,
    precision: str,
    fsdp: bool = False,
    loggers: "Sequence[Logger]" = (),
) -> Engine:
    """The engine of training, launched; with several devices this process is one of as many."""
    where = device_named(device).type
    precision = precision_on(where, precision)
    if precision == "fp16" and where != "cuda":
        place = "a CPU" if where == "cpu" else "an Apple GPU"
        raise RecipeError(
            [f"learning.precision: fp16 needs a CUDA device; use bf16 or 32 on {place}."]
        )
    elastic = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    alone = devices == 1 and not elastic and not fsdp
    if alone and precision != "fp16":  # Fabric scales the loss of fp16
        return OneDevice(torch.empty(0, device=where).device, precision, loggers)
    from sixjars.learning.processes import launched

    return launched(where, devices, precision, fsdp=fsdp, loggers=loggers)


def together(fabric: Engine) -> AbstractContextManager[None]:
    """A context in which all processes end when one fails."""
    if isinstance(fabric, OneDevice):
        return nullcontext()
    from sixjars.learning.processes import all_or_none

    return all_or_none(fabric)


@final
@dataclass(frozen=True)
class BatchShare:
    """The rows of a batch that one process computes."""

    batch: Batch
    factor: Tensor | float
    """What its summed loss is multiplied by, so that the update has the mean over its tokens."""
    stands_in: bool = False
    """Whether this process has no rows of the batch, and these, with the factor 0, do not count."""


@final
@dataclass(frozen=True)
class UpdateBatches:
    """What one process computes of an update."""

    tokens: int
    """Of all processes."""
    shares: tuple[BatchShare, ...]
    """One of each batch; their gradients are added."""


@final
class Update:
    """An update and its loss, which a device may still be computing."""

    def __init__(self, step: int, tokens: int, loss: Tensor) -> None:
        self.step = step
        self.tokens = tokens
        self._loss = loss.to("cpu", non_blocking=loss.is_cuda)
        self._ready = torch.cuda.Event() if loss.is_cuda else None  # type: ignore[no-untyped-call]
        if self._ready is not None:
            self._ready.record()

    def loss(self) -> float:
        """The loss, summed over the tokens; waits for this update, not for later ones."""
        if self._ready is not None:
            self._ready.synchronize()
        return float(self._loss)


def optimizer_for(
    parameters: Iterable[Any],
    settings: LearningSettings,
    *,
    on: str = "cpu",
    captured: bool = False,
) -> optim.Optimizer:
    """The update rule that the recipe names, for parameters or groups of them, on a kind of device.

    `captured` if a CUDA graph makes it.
    """
    kinds = {"adam": optim.Adam, "adamw": optim.AdamW, "sgd": optim.SGD, "adadelta": optim.Adadelta}
    options: dict[str, Any] = {}
    if settings.optimizer == "sgd":
        options["momentum"] = settings.momentum
    if settings.is_adam:
        options["eps"] = settings.epsilon
    rate: float | Tensor = settings.rate
    if captured:
        options |= {"fused": True, "capturable": True}
        rate = torch.tensor(settings.rate, device="cuda")
    elif on == "cpu" and settings.is_adam:
        options["fused"] = True  # one pass over the weights
    kind: Callable[..., optim.Optimizer] = kinds[settings.optimizer]
    optimizer = kind(parameters, lr=rate, weight_decay=settings.weight_decay, **options)
    if captured:  # groups would share one tensor, whatever their factors
        for group in optimizer.param_groups:
            group["lr"] = group["lr"].clone()
    return optimizer


def uncaptured(fabric: Engine, settings: LearningSettings) -> str:
    """Why training steps are no CUDA graphs here; '' where they are."""
    if fabric.device.type != "cuda":
        return "no CUDA device"
    if not settings.fast:
        return "learning.fast is false"
    if fabric.world_size > 1:
        return "several processes"
    if settings.precision == "fp16":
        return "with fp16 an update waits for its gradients"
    return "" if settings.is_adam else f"the optimizer is {settings.optimizer}"


def backend_of_training(fabric: Engine, settings: LearningSettings) -> Backend:
    """The backend of a training, which its network is built with."""
    graphs = not uncaptured(fabric, settings)
    options = {"fast": settings.fast, "graphs": graphs}
    return training_backend(fabric.device.type, settings.precision, **options)


@final
class Updater:
    """The steps of an update, as plain calls of torch."""

    def __init__(
        self,
        objective: Objective,
        parameters: list[Any],
        settings: LearningSettings,
        fabric: Engine,
    ) -> None:
        self.settings = settings
        self.fabric = fabric
        self.why = uncaptured(fabric, settings)
        self.note = objective.network.backend.note
        # Added rows have no influence, except on batch statistics and on the choice of labels.
        batch_norm = nn.modules.batchnorm._NormBase
        normalizes = any(isinstance(module, batch_norm) for module in objective.modules())
        generates = objective.network.decoder.searches
        self.pads_rows = settings.batch_tokens is not None and generates and not normalizes
        device = fabric.device.type
        optimizer = optimizer_for(parameters, settings, on=device, captured=not self.why)
        setup: Any = fabric.setup(objective, optimizer)
        self.objective, self.optimizer = setup

    @property
    def scaler(self) -> "Precision | None":
        """Fabric's loss scaler, which has a state with fp16; None on one device."""
        return None if isinstance(self.fabric, OneDevice) else self.fabric.strategy.precision

    def means(self) -> str:
        """Whether graphs or compiled kernels are in use, to be printed behind the path."""
        if self.fabric.device.type != "cuda":
            return self.note
        return f"; no CUDA graphs: {self.why}" if self.why else "; steps as CUDA graphs"

    def ready(self, batch: Batch) -> Batch:
        """A batch prepared for the device, still on the CPU."""
        return batch.mapped(Tensor.pin_memory) if self.fabric.device.type == "cuda" else batch

    def batches(self, load: UpdateBatches) -> Iterator[BatchShare]:
        """Each batch of an update; several processes add up their gradients after the last one."""
        for number, share in enumerate(load.shares, start=1):
            is_last = number == len(load.shares)
            with self.fabric.no_backward_sync(self.objective, enabled=not is_last):
                yield share

    def forward(self, share: BatchShare) -> tuple[Tensor, Tensor]:
        """The loss of a batch that is minimized, and its plain -Σ log P."""
        with self.fabric.autocast():
            total, plain = self.objective(SealedBatch(share.batch.to(self.fabric.device)))
        plain = torch.zeros_like(plain) if share.stands_in else plain.detach()
        return total * share.factor, plain

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the loss to those of the weights."""
        self.fabric.backward(loss)

    def clip(self) -> None:
        """Scale the gradients down to the norm that the recipe allows."""
        if self.settings.clip is not None:
            limits: dict[str, Any] = {"max_norm": self.settings.clip, "error_if_nonfinite": False}
            self.fabric.clip_gradients(self.objective, self.optimizer, **limits)

    def schedule(self, rate: float) -> None:
        """Let the next step have this rate, times the factors of `learning.rates`."""
        for group in self.optimizer.param_groups:
            scaled = rate * group.get("factor", 1.0)
            group["lr"] = group["lr"].fill_(scaled) if isinstance(group["lr"], Tensor) else scaled

    def step(self) -> None:
        """Move the weights by their gradients, and clear these."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=bool(self.why))  # a graph needs their places


def seed_dropout(device: torch.device, *numbers: int) -> int:
    """Seed the generators by numbers, so that dropout depends on nothing else; return the seed.

    >>> seeds = {seed_dropout(torch.device("cpu"), *numbers) for numbers in np.ndindex(2, 2, 2)}
    >>> len(seeds)
    8
    """
    sequence = np.random.SeedSequence(numbers)
    seed = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
    torch.default_generator.manual_seed(seed)  # `torch.manual_seed` also visits absent devices
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(seed)
    return seed


def learning_rate(settings: LearningSettings, step: int, *, total: int, halvings: int = 0) -> float:
    """The rate of update number `step` of `total`, counted from 1, after so many halvings.

    After a linear warm-up: constant; rate √(warmup / step) (Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762, section 5.3); half a cosine down to 0 at the last update; or,
    for plateau, halved each time validation has stalled.

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
