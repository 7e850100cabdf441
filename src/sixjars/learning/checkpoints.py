"""Weights and training states on disk: safetensors and JSON, never pickle, and never half a file."""

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn, optim

from sixjars.errors import RunError

Tensors = dict[str, Tensor]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a kill at any moment leaves the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise RunError(f"no space left to write {path}; what was saved before is still there.") from None
        raise RunError(f"{path} cannot be written: {os.strerror(error.errno or 0)}.") from None


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Tensors, and a few notes that JSON can hold, in one file."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_whole(path, to_bytes(ready, metadata={"sixjars": json.dumps(notes)}))


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """What `save_tensors` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = json.loads((file.metadata() or {}).get("sixjars", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, notes
    except FileNotFoundError:
        raise RunError(f"{path} does not exist.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}.") from None


def load_weights(network: nn.Module, path: Path) -> None:
    """Put saved weights into a network of the same shape."""
    tensors, _ = load_tensors(path)
    wanted = network.state_dict()
    wrong = sorted(
        set(wanted) ^ set(tensors)
        | {name for name in set(wanted) & set(tensors) if wanted[name].shape != tensors[name].shape}
    )
    if wrong:
        raise RunError(f"{path} does not fit the recipe beside it: {wrong[0]} is missing, new or of another shape.")
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
    """Back from `packed_optimizer`."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def packed_randomness() -> Tensors:
    """The state of torch's random generators."""
    states = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["random.cuda"] = torch.cuda.get_rng_state()
    return states


def unpack_randomness(tensors: Mapping[str, Tensor]) -> None:
    """Back from `packed_randomness`."""
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
