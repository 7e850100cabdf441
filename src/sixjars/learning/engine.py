"""What training runs on: devices and processes, by Lightning Fabric."""

import logging
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

import torch

from sixjars.errors import Interrupted, LearningError, RecipeError, RunError, unknown
from sixjars.learning.heartbeat import GONE, Heartbeat, ending_with_the_first

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.loggers.logger import Logger

Device = Literal["auto", "cpu", "cuda", "mps"]
PRECISIONS: Mapping[str, Literal["32-true", "bf16-mixed", "16-mixed"]] = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "fp16": "16-mixed",
}
WITHOUT_FP16: Mapping[str, str] = {"cpu": "a CPU", "mps": "an Apple GPU"}
OF_A_BROKEN_LINE = ("gloo", "NCCL", "onnection", "Broken pipe")
"""One of these words is in what torch says when another process has gone."""


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


def _processes(devices: int) -> tuple[int, int]:
    """How many processes on this machine, and how many machines: as torchrun says, or as `--devices` asks."""
    if not torch.distributed.is_available() or not torch.distributed.is_torchelastic_launched():
        return devices, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    if devices not in {1, here}:
        fault = f"--devices is {devices}, but torchrun started {here} processes here; leave out --devices."
        raise RecipeError([fault], "the command line")
    return here, everywhere // here


@contextmanager
def all_or_none(fabric: "Fabric") -> Iterator[None]:
    """If one of several processes fails, all end: none waits for ever, none is left, and one tells why."""
    leads, patience, heartbeat = fabric.global_rank == 0, 0.0, None
    started: list[subprocess.Popen[bytes]] = getattr(fabric.strategy.launcher, "procs", [])
    children = list(started)
    started.clear()  # Fabric watches this list, and kills this process without a word when one of them ends badly
    try:
        if fabric.world_size > 1 and torch.distributed.is_initialized():
            heartbeat = Heartbeat(fabric, children)
        yield
        patience = 60.0
    except (Interrupted, LearningError) as error:  # all have agreed on it, so one tells
        raise (error if leads else SystemExit(error.exit_code)) from None
    except KeyboardInterrupt:
        raise (KeyboardInterrupt() if leads else SystemExit(Interrupted.exit_code)) from None
    except RuntimeError as error:
        if fabric.world_size == 1 or not any(word in str(error) for word in OF_A_BROKEN_LINE):
            raise
        tells = leads if heartbeat is None else heartbeat.tells()
        raise (RunError(GONE) if tells else SystemExit(RunError.exit_code)) from None
    finally:
        if heartbeat is not None:
            heartbeat.stop(done=patience > 0.0)
        _end(children, patience)


def _end(children: "list[subprocess.Popen[bytes]]", patience: float) -> None:
    """The processes that this one started. They write nothing, so nothing is lost when they are killed."""
    for child in children:
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
