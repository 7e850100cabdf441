"""Resuming from a saved training state: all of it is checked before anything is changed."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn, optim

from sixjars.learning.checkpoints import (
    RunFiles,
    Tensors,
    TrainingState,
    check_shapes,
    load_tensors,
)
from sixjars_runtime.errors import RunError, shown

if TYPE_CHECKING:
    from sixjars.learning.engine import Updater

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


def resumed(files: RunFiles, network: nn.Module, updates: "Updater") -> TrainingState:
    """Load what `RunFiles.save` wrote and return where training stood; a misfit changes nothing."""
    optimizer, scaler = updates.optimizer, updates.scaler
    with updates.fabric.whole(change=True):
        weights = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        check_shapes(weights | optimizer_memory(optimizer), files.last)
        tensors, notes = load_tensors(files.last)
        try:
            state = state_of(notes["state"])
            scale = dict(notes["precision"])  # of the gradients, with fp16
            fits = scale.keys() == ({} if scaler is None else scaler.state_dict()).keys()
            finite = all(type(each) in (int, float) and each < math.inf for each in scale.values())
            if not fits or not finite:
                raise ValueError(f"precision is {shown(scale)}")
            memory = unpacked_optimizer(optimizer, tensors, updates=state.step)
        except (KeyError, TypeError, ValueError) as error:
            fault = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            what = f"{files.last} has a training state that cannot be right: {fault}."
            raise RunError(what) from None

        network.load_state_dict({name: tensors[f"model.{name}"] for name in network.state_dict()})
    optimizer.load_state_dict(memory)
    if scaler is not None:
        scaler.load_state_dict(scale)
    return state
