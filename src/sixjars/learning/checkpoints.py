"""Weights and training states on disk: safetensors and JSON, never pickle, and never half a file."""

import errno
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn, optim

from sixjars.errors import RunError

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


def load_weights(network: nn.Module, path: Path) -> None:
    """Put saved weights into a network of the same shape."""
    put_weights(network, load_tensors(path)[0], path)


def put_weights(network: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put weights that came from a file into a network of the same shape."""
    wanted = network.state_dict()
    for name in sorted({*wanted, *tensors}):
        here, there = (tuple(found[name].shape) if name in found else "nothing" for found in (wanted, tensors))
        if here != there:
            raise RunError(f"{path} does not fit the recipe beside it: {name} is {there}, but should be {here}.")
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
