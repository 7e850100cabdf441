"""Weights on disk: safetensors with a few notes and a check sum, never pickle, and never half a file."""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from sixjars.errors import RunError, disk_faults

Tensors = dict[str, Tensor]


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


def copied(tensors: Mapping[str, Tensor]) -> Tensors:
    """As they are now, in the memory of the host, whatever happens to them afterwards."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Tensors, and a few notes that JSON can hold, in one file with a check sum."""
    write_tensors(path, copied(tensors), notes)


def write_tensors(path: Path, tensors: Tensors, notes: Mapping[str, Any]) -> None:
    """As `save_tensors`, of tensors that are on the host and stay as they are."""
    kept = {**notes, "sum": _sum(tensors, notes)}
    write_whole(path, to_bytes(tensors, metadata={"sixjars": json.dumps(kept)}))


@contextmanager
def _opened(path: Path, framework: Literal["pt", "np"]) -> Iterator[Any]:
    """A file of tensors; whatever is wrong with it becomes one sentence."""
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except FileNotFoundError:
        raise RunError(f"{path} does not exist.") from None
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged: {error}.") from None


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """What `save_tensors` wrote."""
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


def check_shapes(wanted: Mapping[str, Tensor], path: Path) -> None:
    """Refuse saved tensors of other names or shapes, by the header of the file alone; `wanted` may have no memory."""
    with _opened(path, "np") as file:  # maps the file without taking memory for it
        found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    for name in sorted({*wanted, *found}):
        here, there = tuple(wanted[name].shape) if name in wanted else "nothing", found.get(name, "nothing")
        if here != there:
            raise RunError(f"{path} does not fit the recipe beside it: {name} is {there}, but should be {here}.")


def load_weights(network: nn.Module, path: Path) -> None:
    """Put saved weights into a network of the same shape."""
    check_shapes(network.state_dict(), path)
    network.load_state_dict(load_tensors(path)[0])


def mean_weights(paths: list[Path]) -> Tensors:
    """The mean of several checkpoints, weight by weight; whole numbers come from the first."""
    total, _ = load_tensors(paths[0])
    for path in paths[1:]:
        for name, tensor in load_tensors(path)[0].items():
            if tensor.is_floating_point():
                total[name] += tensor
    return {name: tensor / len(paths) if tensor.is_floating_point() else tensor for name, tensor in total.items()}
