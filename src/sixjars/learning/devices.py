"""Which machine parts to learn on: Lightning Fabric knows devices, precision and several processes."""

import logging
import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import torch

from sixjars.errors import Interrupted, LearningError, RecipeError, RunError

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

Device = Literal["auto", "cpu", "cuda"]
OF_A_BROKEN_LINE = ("gloo", "NCCL", "onnection", "Broken pipe")
"""One of these words is in what torch says when another process has gone."""


def device_named(device: Device) -> torch.device:
    """The device that `--device` means on this machine."""
    if device == "cuda" and not torch.cuda.is_available():
        raise RecipeError(["--device cuda was asked for, but torch sees no CUDA device here."], "the command line")
    chosen = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    return torch.device(chosen)


def fabric_for(*, device: Device, devices: int, precision: str, unheard: bool = False) -> "Fabric":
    """An engine, launched: with several devices this process becomes one of as many.

    `unheard` says that some weights may be heard by nobody (the cells of a picture, where a bridge tells its vector
    alone); several processes must know that.
    """
    where = device_named(device).type
    if precision == "fp16" and where == "cpu":
        raise RecipeError(["learning.precision: fp16 needs a CUDA device; use bf16 or 32 on a CPU."])
    here, machines = _processes(devices)
    if where == "cuda" and here > torch.cuda.device_count():
        fault = f"--devices {here} was asked for, but torch sees {torch.cuda.device_count()} CUDA devices here."
        raise RecipeError([fault], "the command line")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning_fabric import Fabric

        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # its import sets its own level
        named: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
        if precision != "32":
            named = "bf16-mixed" if precision == "bf16" else "16-mixed"
        strategy = _together(unheard=unheard) if here * machines > 1 else "auto"
        fabric = Fabric(accelerator=where, devices=here, num_nodes=machines, strategy=strategy, precision=named)
        fabric.launch()
    return fabric


def _together(*, unheard: bool) -> "DDPStrategy":
    """Several processes, one model; while one of them validates, the others wait as long as it takes."""
    from lightning_fabric.strategies.ddp import DDPStrategy

    return DDPStrategy(timeout=timedelta(days=1), find_unused_parameters=unheard)


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
    leads, patience = fabric.global_rank == 0, 0.0
    try:
        yield
        patience = 60.0
    except (Interrupted, LearningError) as error:  # all have agreed on it, so one tells
        raise (error if leads else SystemExit(error.exit_code)) from None
    except KeyboardInterrupt:
        raise (KeyboardInterrupt() if leads else SystemExit(Interrupted.exit_code)) from None
    except RuntimeError as error:
        if fabric.world_size == 1 or not any(word in str(error) for word in OF_A_BROKEN_LINE):
            raise
        told = RunError("another process of this training has ended; go on from the last save with --resume.")
        raise (told if leads else SystemExit(told.exit_code)) from None
    finally:
        _end(getattr(fabric.strategy.launcher, "procs", []), patience)


def _end(children: "list[subprocess.Popen[bytes]]", patience: float) -> None:
    """The processes that this one started. They write nothing, so nothing is lost when they are killed."""
    ours = list(children)
    children.clear()  # Fabric watches this list, and kills this process too when one of them ends badly
    for child in ours:
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
