"""Which machine parts to learn on: Lightning Fabric knows devices, precision and several processes."""

import logging
import warnings
from typing import TYPE_CHECKING, Literal

import torch

from sixjars.errors import RecipeError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Device = Literal["auto", "cpu", "cuda"]


def device_named(device: Device) -> torch.device:
    """The device that `--device` means on this machine."""
    if device == "cuda" and not torch.cuda.is_available():
        raise RecipeError(["--device cuda was asked for, but torch sees no CUDA device here."], "the command line")
    chosen = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    return torch.device(chosen)


def fabric_for(*, device: Device, devices: int, precision: str) -> "Fabric":
    """An engine, launched: with several devices this process becomes one of as many."""
    where = device_named(device).type
    if precision == "fp16" and where == "cpu":
        raise RecipeError(["learning.precision: fp16 needs a CUDA device; use bf16 or 32 on a CPU."])
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning_fabric import Fabric

        named: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
        if precision != "32":
            named = "bf16-mixed" if precision == "bf16" else "16-mixed"
        fabric = Fabric(accelerator=where, devices=devices, strategy="ddp" if devices > 1 else "auto", precision=named)
        fabric.launch()
    return fabric
