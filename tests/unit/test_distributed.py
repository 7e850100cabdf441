"""Two processes train one model: the one that a single process trains on the same batches."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import sixjars
from sixjars.runs.folder.baseline_scores import read_entries

from .conftest import wait_for

BASELINES = "without a network, on the same examples:"
# Plain gradient descent: Adam makes the same step of any gradient, a large one of mere rounding.
SGD = {"optimizer": "sgd", "rate": 0.5}
BATCHES: dict[str, dict[str, Any]] = {
    "odd batches, the last of one row": {**SGD, "batch_examples": 7, "clip": None},
    "the same, two for each update": {**SGD, "batch_examples": 7, "accumulate": 2},
    "by tokens": {**SGD, "batch_examples": ..., "batch_tokens": 90, "accumulate": 3, "clip": None},
}
WRITES_NOTHING = """
import sys
def watch(event, arguments):
    changes = ("open", "os.rename", "os.mkdir", "os.remove", "os.truncate")
    if event in changes and str(arguments[0]).startswith({folder!r}):
        if event != "open" or set(str(arguments[1])) & set("wax+"):
            raise RuntimeError(f"process 1: {{event}} {{arguments}}")
sys.addaudithook(watch)
"""


def assert_close(folder: Path, other: Path) -> None:
    """Ten times what rounding makes of it: gradients are added in another order at each update."""
    found, wanted = (load_file(each / "model.safetensors") for each in (folder, other))
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.allclose(found[name], tensor, atol=3e-5, rtol=3e-4), name


def baselines_of(folder: Path) -> list[tuple[str, list[float]]]:
    """What a run keeps of its baselines, without the seconds that they took."""
    [entry] = read_entries(folder)
    return [
        (baseline.name, [score.value for score in baseline.scores]) for baseline in entry.baselines
    ]


@pytest.mark.usefixtures("scored_baselines")
@pytest.mark.parametrize("kind", BATCHES)
def test_two_match_one(kind: str, two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(data={"sample": {"size": 50}}, learning=BATCHES[kind])
    sixjars.train(name, out=tmp_path / "one")
    processes = two(
        name,
        "--out",
        tmp_path / "two",
        before=("", WRITES_NOTHING.format(folder=str(tmp_path / "two"))),
    )
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert (second.out, second.err) == ("", "")
    # a line for each validation and none from anybody else
    assert sum(line.startswith("epoch ") for line in first.err.splitlines()) == 2
    assert "character_error_rate" in first.out
    assert first.out.count(BASELINES) == 1
    assert baselines_of(tmp_path / "two") == baselines_of(tmp_path / "one") != []
    assert_close(tmp_path / "two", tmp_path / "one")
    begun = load_file(tmp_path / "one" / "model.safetensors")
    sixjars.train(name, ["learning.rate=1e-9"], out=tmp_path / "begun", baselines=False)
    still = load_file(tmp_path / "begun" / "model.safetensors")
    assert max(float((begun[key] - still[key]).abs().max()) for key in begun) > 1e-3  # it did learn
    assert {path.name for path in (tmp_path / "two").iterdir()} == {
        path.name for path in (tmp_path / "one").iterdir()
    }


def test_a_language_model(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """Every weight takes part, also where there is no encoder."""
    model = {"encoder": {"size": ..., "embedding": ...}, "bridge": {"kind": "initial", "size": ...}}
    data = {"source": ..., "target": {"tokens": "words"}}
    metrics = {"metrics": ["perplexity"]}
    name = recipe(task="language_model", data=data, model=model, learning=SGD, evaluation=metrics)
    sixjars.train(name, out=tmp_path / "one")
    assert [process.wait().code for process in two(name, "--out", tmp_path / "two")] == [0, 0]
    assert_close(tmp_path / "two", tmp_path / "one")


def test_two_are_stopped_and_go_on(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """Dropout included: bit for bit as the two that never were stopped."""
    learning = {"epochs": 4, "batch_examples": 7, "save_seconds": 0, "average": 2}
    name = recipe(learning=learning, model={"encoder": {"dropout": 0.3}})
    assert [process.wait().code for process in two(name, "--out", tmp_path / "whole")] == [0, 0]
    processes = two(name, "--out", tmp_path / "stopped")
    wait_for(tmp_path / "stopped" / "checkpoints" / "last.safetensors")
    processes[0].kill(signal.SIGTERM)  # one of them is enough
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (130, 130), (first, second)
    told = first.complaints
    assert len(told) == 1
    assert told[0].startswith("sixjars: stopped at step ")
    assert second.err == ""
    assert [
        process.wait().code for process in two(name, "--out", tmp_path / "stopped", "--resume")
    ] == [0, 0]
    for file in ("model.safetensors", "log.jsonl", "checkpoints/last.safetensors"):
        assert (tmp_path / "stopped" / file).read_bytes() == (
            tmp_path / "whole" / file
        ).read_bytes()


def test_torchrun(recipe: Callable[..., str], tmp_path: Path, warm_python: str) -> None:
    name = recipe(
        data={"sample": {"size": 50}}, learning={**SGD, "batch_examples": 7, "accumulate": 2}
    )
    sixjars.train(name, out=tmp_path / "one")
    torchrun = [
        warm_python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--no-python",
    ]
    command = [
        *torchrun,
        warm_python,
        "-m",
        "sixjars",
        "train",
        name,
        "--out",
        str(tmp_path / "two"),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert len(re.findall(r"^ *character_error_rate +\d", said.stdout, re.MULTILINE)) == 1
    assert said.stdout.count(BASELINES) == 1
    assert_close(tmp_path / "two", tmp_path / "one")


@pytest.mark.parametrize("bridge", ["initial", "attention", "pooling"])
def test_images(bridge: str, two: Any, tmp_path: Path) -> None:
    """Also where no output depends on some weights: unused cells, a summary that none reads."""
    values = {
        "task": "image_captioning",
        "data": {"sample": {"size": 30, "valid": 4, "test": 4}, "image": {"size": 16}},
        "model": {
            "encoder": {"backbone": {"widths": [4, 6]}},
            "bridge": {"kind": bridge},
            "decoder": {"size": 8},
        },
        "learning": {"epochs": 2, "batch_examples": 7, "accumulate": 2, **SGD},
        "evaluation": {"search": {"max_length": 4}, "metrics": ["exact_match"]},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(values))
    sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "one")
    first, second = (
        process.wait() for process in two(tmp_path / "recipe.yaml", "--out", tmp_path / "two")
    )
    assert (first.code, second.code) == (0, 0), (first, second)
    assert sum(line.startswith("epoch ") for line in first.err.splitlines()) == 2
    assert second.err == ""
    assert_close(tmp_path / "two", tmp_path / "one")
