"""Two processes with a share of the weights each train and save the model of one process."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import sixjars
from sixjars.errors import RecipeError

from .conftest import wait_for

MODEL, LAST = "model.safetensors", "checkpoints/last.safetensors"
ADAM = {"optimizer": "adam", "rate": 0.001, "batch_examples": 7, "accumulate": 2}
KINDS: dict[str, dict[str, Any]] = {
    "Adam, with a limit of the gradients": ADAM,
    "plain gradient descent": {"optimizer": "sgd", "rate": 0.5, "clip": None, "average": 2},
    "parts with other rates, or frozen": {
        **ADAM,
        "rates": {"decoder": 3},
        "freeze": ["encoder.embedding"],
    },
    "step by step": {**ADAM, "fast": False},
}


def assert_same(folder: Path, other: Path) -> None:
    """Weights, and what the optimizer remembers; but for rounding in another order."""
    for file in (MODEL, LAST):
        found, wanted = load_file(folder / file), load_file(other / file)
        assert found.keys() == wanted.keys()
        for name, tensor in wanted.items():
            assert torch.allclose(found[name], tensor, atol=3e-5, rtol=3e-4), name


@pytest.mark.usefixtures("scored_baselines")
@pytest.mark.parametrize(
    "kind",
    [
        kind if at == 0 else pytest.param(kind, marks=pytest.mark.slow)
        for at, kind in enumerate(KINDS)
    ],
)
def test_shares_are_one_model(
    kind: str, two: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    name, out = recipe(data={"sample": {"size": 50}}, learning=KINDS[kind]), tmp_path / "two"
    sixjars.train(name, out=tmp_path / "one", device="cpu")
    first, second = (
        process.wait() for process in two(name, "--out", out, "--device", "cpu", "--fsdp")
    )
    assert (first.code, second.code) == (0, 0), (first, second)
    assert "cpu × 2 processes, each with a share of the weights, 32-bit" in first.err
    counted = sum(tensor.numel() for tensor in load_file(out / MODEL).values())
    assert f"parameters    {counted:,}" in first.err
    assert (second.out, second.err) == ("", "")
    assert_same(out, tmp_path / "one")
    told = [sixjars.load(each).predict(["namaste"])[0].text for each in (out, tmp_path / "one")]
    assert told[0] == told[1]
    assert {path.name for path in out.iterdir()} == {
        path.name for path in (tmp_path / "one").iterdir()
    }


@pytest.mark.slow
def test_shares_are_stopped_and_go_on(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """One process goes on with all weights, and two with their shares."""
    name, out = recipe(learning={**ADAM, "epochs": 3, "save_seconds": 0}), tmp_path / "stopped"
    sixjars.train(name, ["learning.epochs=4"], out=tmp_path / "whole", device="cpu")
    processes = two(name, "--out", out, "--device", "cpu", "--fsdp")
    wait_for(out / LAST)
    processes[1].kill(signal.SIGTERM)
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (130, 130), (first, second)
    assert first.complaints[0].startswith("sixjars: stopped at step ")
    sixjars.train(name, out=out, device="cpu", resume=True)
    more = ("learning.epochs=4", "--out", out, "--device", "cpu", "--resume", "--fsdp")
    first, second = (process.wait() for process in two(name, *more))
    assert (first.code, second.code) == (0, 0), (first, second)
    assert_same(out, tmp_path / "whole")


def test_fewer_bits_on_cpus(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """They are computed with: near those of 32 bits, but further than 32 bits round."""
    plain = {"optimizer": "sgd", "rate": 0.5, "epochs": 1}
    sixjars.train(recipe(learning={**plain, "precision": "32"}), out=tmp_path / "one", device="cpu")
    name = recipe(learning={**plain, "precision": "bf16"})
    first, second = (
        process.wait()
        for process in two(name, "--out", tmp_path / "two", "--device", "cpu", "--fsdp")
    )
    assert (first.code, second.code, second.err) == (0, 0, ""), (first, second)
    assert "cpu × 2 processes, each with a share of the weights, bfloat16" in first.err
    found, wanted = (load_file(tmp_path / each / MODEL) for each in ("two", "one"))
    assert 1e-4 < sum(float((found[name] - wanted[name]).norm()) for name in wanted) < 0.1


@pytest.mark.slow
def test_pictures(two: Any, tmp_path: Path) -> None:
    """Convolutions and their statistics, which all have; weights that no output depends on."""
    few = ["data.sample.size=30", "data.sample.valid=4", "data.sample.test=4", "data.image.size=16"]
    few += [
        "learning.epochs=1",
        "learning.batch_examples=7",
        "learning.optimizer=sgd",
        "learning.rate=0.1",
    ]
    name = "image_captioning/sample_attention"
    sixjars.train(name, few, out=tmp_path / "one", device="cpu")
    processes = two(name, *few, "--out", tmp_path / "two", "--device", "cpu", "--fsdp")
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert_same(tmp_path / "two", tmp_path / "one")


def test_one_process_has_nothing_to_divide(recipe: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        sixjars.train(recipe(), out=tmp_path / "run", device="cpu", fsdp=True)
    assert (
        "--fsdp divides the weights among processes, but there is one; say --devices 2, or leave "
        "it out." in str(caught.value)
    )
    assert not (tmp_path / "run").exists()
