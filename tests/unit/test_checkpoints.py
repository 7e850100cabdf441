"""Weights and states on disk: what goes in comes out, and no damage goes unseen."""

import errno
import json
import math
import os
import pickle
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn, optim

from sixjars.errors import RunError
from sixjars.learning.checkpoints import (
    load_tensors,
    load_weights,
    mean_weights,
    optimizer_memory,
    packed_optimizer,
    save_tensors,
    unpacked_optimizer,
    write_whole,
)

TENSORS = {
    "float": torch.tensor([[1.5, -2.0], [float("inf"), 0.25]]),
    "half": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
    "whole": torch.tensor([3, 4]),
    "single": torch.tensor(7.0),
    "nothing": torch.zeros(0, 3),
    "across": torch.arange(6.0).view(2, 3).T,
}


def test_tensors_come_back(tmp_path: Path) -> None:
    notes = {"step": 3, "scores": [0.1, 1e-300], "text": "नमस्ते"}
    save_tensors(tmp_path / "deep" / "a.safetensors", TENSORS, notes)
    tensors, found = load_tensors(tmp_path / "deep" / "a.safetensors")
    assert found == notes
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_tied_weights_come_back(tmp_path: Path) -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    save_tensors(tmp_path / "a", nn.Sequential(first, second).state_dict(), {})
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    load_weights(nn.Sequential(one, two), tmp_path / "a")
    assert torch.equal(one.weight, first.weight)
    assert torch.equal(two.weight, first.weight)


def test_the_same_bytes_for_the_same_tensors(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", TENSORS, {"b": 1, "a": 2})
    save_tensors(tmp_path / "b", dict(reversed(TENSORS.items())), {"b": 1, "a": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_flipped_bit_is_seen(tmp_path: Path) -> None:
    """Unless it hits one of the few letters that say that there is a check sum."""
    path = tmp_path / "a"
    save_tensors(path, TENSORS, {"step": 3})
    content, chance = path.read_bytes(), random.Random(0)
    labels = {
        at + n
        for word in (b"__metadata__", b"sixjars", b"sum")
        for n in range(len(word))
        if (at := content.find(word)) > 0
    }
    unseen = set()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            load_tensors(path)
        except RunError:
            continue
        unseen.add(at)
    assert len(content) > 500
    assert unseen <= labels


@pytest.mark.parametrize("size", [0, 1, 7, 8, 50, -1])
def test_a_file_cut_short(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_tensors(path, TENSORS, {})
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(RunError, match=r"/a is damaged: .*\.$"):
        load_tensors(path)


def test_noise_and_folders_and_nothing(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(random.Random(0).randbytes(5000))
    with pytest.raises(RunError, match=r"noise is damaged: "):
        load_tensors(tmp_path / "noise")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match=r"folder is damaged: "):
        load_tensors(tmp_path / "folder")
    with pytest.raises(RunError, match=r"nothing does not exist\.$"):
        load_tensors(tmp_path / "nothing")


class Bomb:
    """Unpickled, it runs a command."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.call, (["touch", str(self.path)],)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    torch.save({"weight": Bomb(touched)}, tmp_path / "zipped")
    (tmp_path / "plain").write_bytes(pickle.dumps(Bomb(touched)))
    for name in ("zipped", "plain"):
        with pytest.raises(RunError, match="is damaged"):
            load_tensors(tmp_path / name)
    assert not touched.exists()


def test_notes_that_nest_too_deep(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "a", metadata={"sixjars": "[" * 100_000})
    with pytest.raises(RunError, match="is damaged"):
        load_tensors(tmp_path / "a")
    save_file({"a": torch.zeros(1)}, tmp_path / "b", metadata={"sixjars": "5"})
    with pytest.raises(RunError, match="is damaged"):
        load_tensors(tmp_path / "b")


def test_weights_of_another_network(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_tensors(path, nn.Linear(2, 3).state_dict(), {})
    fits = f"{path} does not fit the recipe beside it: "
    for network, message in (
        (nn.Linear(4, 3), "weight is (3, 2), but should be (3, 4)."),
        (nn.Linear(2, 3, bias=False), "bias is (3,), but should be nothing."),
        (nn.Sequential(nn.Linear(2, 3)), "0.bias is nothing, but should be (3,)."),
    ):
        with pytest.raises(RunError) as caught:
            load_weights(network, path)
        assert str(caught.value) == fits + message


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite(tmp_path: Path, number: float) -> None:
    """A label was predicted with them, and a score of NaN beside it."""
    path, network = tmp_path / "a", nn.Linear(2, 3)
    with torch.no_grad():
        network.bias[1] = number
    save_tensors(path, network.state_dict(), {})
    with pytest.raises(RunError) as caught:
        load_weights(nn.Linear(2, 3), path)
    assert str(caught.value) == f"{path} is damaged: the numbers of bias are not all finite."


def test_shapes_are_compared_before_anything_is_read(tmp_path: Path) -> None:
    """A file of 64 GB, all of it a hole: more than there is memory for."""
    path, count = tmp_path / "a", 2**34
    header = json.dumps(
        {"weight": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}
    ).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * count)
    with pytest.raises(RunError, match=r"bias is nothing, but should be \(3,\)\.$"):
        load_weights(nn.Linear(2, 3), path)


def test_mean_of_checkpoints(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        paths.append(tmp_path / str(number))
        save_tensors(
            paths[-1],
            {"w": torch.full((2,), number**2), "f": torch.full((2,), float(number**2))},
            {},
        )
    mean = mean_weights(paths)
    assert torch.equal(mean["f"], torch.full((2,), 5 / 3))
    assert torch.equal(mean["w"], torch.zeros(2, dtype=torch.long))
    assert torch.equal(load_tensors(paths[0])[0]["f"], torch.zeros(2))  # the files stay as they are


OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "adam": lambda weights: optim.Adam(weights, lr=0.1),
    "adamw": lambda weights: optim.AdamW(weights, lr=0.1),
    "sgd": lambda weights: optim.SGD(weights, lr=0.1),
    "momentum": lambda weights: optim.SGD(weights, lr=0.1, momentum=0.9),
    "adadelta": lambda weights: optim.Adadelta(weights, lr=0.1),
}


def stepped(network: nn.Module, optimizer: optim.Optimizer, times: int) -> None:
    for _ in range(times):
        optimizer.zero_grad()
        network(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_goes_on_as_if_nothing_was(kind: str, tmp_path: Path) -> None:
    whole, first, second = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)
    first.load_state_dict(whole.state_dict())
    stepped(whole, OPTIMIZERS[kind](whole.parameters()), 7)
    before = OPTIMIZERS[kind](first.parameters())
    stepped(first, before, 4)
    save_tensors(tmp_path / "a", {**packed_optimizer(before), "other": torch.zeros(1)}, {})
    second.load_state_dict(first.state_dict())
    after = OPTIMIZERS[kind](second.parameters())
    after.load_state_dict(unpacked_optimizer(after, load_tensors(tmp_path / "a")[0], updates=4))
    stepped(second, after, 3)
    assert torch.equal(second.weight, whole.weight)
    assert torch.equal(second.bias, whole.bias)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_what_an_optimizer_remembers_is_known_before(kind: str) -> None:
    network = nn.Linear(3, 2)
    optimizer = OPTIMIZERS[kind](network.parameters())
    before = {name: tensor.shape for name, tensor in optimizer_memory(optimizer).items()}
    stepped(network, optimizer, 1)
    assert {name: tensor.shape for name, tensor in packed_optimizer(optimizer).items()} == before


@pytest.mark.parametrize("count", [-1.0, 5.0, float("nan"), float("inf")])
def test_an_optimizer_that_counted_other_updates(count: float) -> None:
    network = nn.Linear(3, 2)
    optimizer = optim.Adam(network.parameters())
    stepped(network, optimizer, 4)
    packed = packed_optimizer(optimizer)
    optimizer.load_state_dict(unpacked_optimizer(optimizer, packed, updates=4))
    with pytest.raises(ValueError, match=f"^optimizer.1.step is {count:g}, after 4 steps$"):
        unpacked_optimizer(
            optimizer, {**packed, "optimizer.1.step": torch.tensor(count)}, updates=4
        )


def test_a_write_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    write_whole(path, b"old")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError) as caught:
        write_whole(path, b"new")
    told = f"no space left to write {path}; what was saved before is still there."
    assert str(caught.value) == told
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"old"
    monkeypatch.undo()
    (tmp_path / ".a.part").write_bytes(b"what a kill left")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    told = r"file/a cannot be written: (File exists|Not a directory)\.$"
    with pytest.raises(RunError, match=told):
        write_whole(tmp_path / "file" / "a", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match=r"folder cannot be written: Is a directory\.$"):
        write_whole(tmp_path / "folder", b"")
