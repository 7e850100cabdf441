"""Two processes train one model, and it is the model that one process trains on the same batches."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import sixjars

BATCHES: dict[str, dict[str, Any]] = {
    "odd batches, the last of one row": {"batch_examples": 7},
    "the same, two for each update": {"batch_examples": 7, "accumulate": 2},
    "by tokens": {"batch_examples": ..., "batch_tokens": 90, "accumulate": 3, "optimizer": "sgd", "rate": 0.5},
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
DIES = """
import os
from sixjars.learning.loop import Trainer
before = Trainer._update
def update(self, group):
    if self.journal.step == 3:
        os._exit(5)
    return before(self, group)
Trainer._update = update
"""


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture
def two(server: Any) -> Callable[..., list[Any]]:
    """Starts two processes of one training."""

    def start(*arguments: object, before: tuple[str, str] = ("", "")) -> list[Any]:
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "NODE_RANK": "0", "WORLD_SIZE": "2"}
        return [
            server.start("train", *arguments, "--devices", 2, before=code, env={**env, "LOCAL_RANK": str(rank)})
            for rank, code in enumerate(before)
        ]

    return start


def children_of(number: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


def assert_gone(numbers: list[int]) -> None:
    """Within a few seconds; a zombie that nobody has waited for yet counts as gone."""
    for _ in range(100):
        states = [Path(f"/proc/{number}/stat") for number in numbers]
        if all(not path.exists() or path.read_text().split(") ")[1][0] == "Z" for path in states):
            return
        time.sleep(0.1)
    pytest.fail(f"still there: {numbers}")


def wait_for(path: Path) -> None:
    for _ in range(6000):
        if path.exists():
            return
        time.sleep(0.005)
    pytest.fail(f"{path} never came")


def assert_close(folder: Path, other: Path) -> None:
    found, wanted = (load_file(each / "model.safetensors") for each in (folder, other))
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.allclose(found[name], tensor, atol=1e-5, rtol=1e-4), name


@pytest.mark.parametrize("kind", BATCHES)
def test_two_match_one(kind: str, two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(data={"sample": {"size": 50}}, learning=BATCHES[kind])
    sixjars.train(name, out=tmp_path / "one")
    processes = two(name, "--out", tmp_path / "two", before=("", WRITES_NOTHING.format(folder=str(tmp_path / "two"))))
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert (second.out, second.err) == ("", "")
    assert len(first.err.splitlines()) == 2  # a line for each validation and none from anybody else
    assert "character_error_rate" in first.out
    assert_close(tmp_path / "two", tmp_path / "one")
    begun = load_file(tmp_path / "one" / "model.safetensors")
    sixjars.train(name, ["learning.rate=1e-9"], out=tmp_path / "begun")
    still = load_file(tmp_path / "begun" / "model.safetensors")
    assert max(float((begun[key] - still[key]).abs().max()) for key in begun) > 1e-3  # it did learn
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in (tmp_path / "one").iterdir()}


def test_a_language_model(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """Every weight takes part, also where there is no encoder."""
    model = {"encoder": {"size": ..., "embedding": ...}, "bridge": {"kind": "initial", "size": ...}}
    data = {"source": ..., "target": {"tokens": "words"}}
    name = recipe(task="language_model", data=data, model=model, evaluation={"metrics": ["perplexity"]})
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
    told = [line for line in first.err.splitlines() if not line.startswith("epoch")]
    assert len(told) == 1
    assert told[0].startswith("sixjars: stopped at update ")
    assert second.err == ""
    assert [process.wait().code for process in two(name, "--out", tmp_path / "stopped", "--resume")] == [0, 0]
    for file in ("model.safetensors", "log.jsonl", "checkpoints/last.safetensors"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_one_of_two_dies(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name, out = recipe(learning={"save_seconds": 0}), tmp_path / "run"
    first, second = (process.wait() for process in two(name, "--out", out, before=("", DIES)))
    assert second.code == 5
    assert first.sentence == "another process of this training has ended; go on from the last save with --resume."
    sixjars.train(name, out=out, resume=True)  # with one process now
    assert sixjars.load(out).predict(["namaste"])


def test_the_first_of_two_dies(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(learning={"save_seconds": 0})
    first, second = (process.wait() for process in two(name, "--out", tmp_path / "run", before=(DIES, "")))
    assert first.code == 5
    assert second.code != 0
    assert second.err == ""


def test_a_fault_of_the_first_ends_both(two: Any, recipe: Callable[..., str], run: Path) -> None:
    first, second = (process.wait() for process in two(recipe(), "--out", run))
    assert "already holds a run" in first.sentence
    assert second.code != 0
    assert second.err == ""


def test_wild_numbers_are_told_once(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(learning={"rate": 1e38, "clip": None, "optimizer": "sgd"})
    first, second = (process.wait() for process in two(name, "--out", tmp_path / "run"))
    assert "no longer a number" in first.sentence
    assert second.code != 0
    assert second.err == ""


def test_the_option_starts_the_second(server: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """`--devices 2`, all of it: it starts its child, trains, and neither a fault nor a kill leaves one behind."""
    name, out = recipe(learning={"epochs": 100_000, "save_seconds": 0}), tmp_path / "run"
    process = server.start("train", name, "--out", out, "--devices", 2)
    wait_for(out / "checkpoints" / "last.safetensors")
    children = children_of(process.number)
    assert len(children) == 1
    process.kill(signal.SIGINT)
    said = process.wait()
    assert said.code == 130, said
    told = [line for line in said.err.splitlines() if not line.startswith("epoch")]
    assert len(told) == 1, said
    assert told[0].startswith("sixjars: stopped at update ")
    assert_gone(children)


@pytest.mark.parametrize("whom", ["parent", "child"])
def test_a_kill_leaves_nobody(whom: str, server: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name, out = recipe(learning={"epochs": 100_000, "save_seconds": 0}), tmp_path / "run"
    process = server.start("train", name, "--out", out, "--devices", 2)
    wait_for(out / "checkpoints" / "last.safetensors")
    children = children_of(process.number)
    os.kill(process.number if whom == "parent" else children[0], signal.SIGKILL)
    said = process.wait()
    assert said.code == (-9 if whom == "parent" else 2), said
    assert "Traceback" not in said.err
    assert_gone(children)


def test_torchrun(recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(data={"sample": {"size": 50}}, learning={"batch_examples": 7, "accumulate": 2})
    sixjars.train(name, out=tmp_path / "one")
    torchrun = [str(Path(sys.executable).with_name("torchrun")), "--nproc-per-node", "2"]
    here = ["--master-addr", "127.0.0.1", "--master-port", free_port()]
    command = [*torchrun, *here, "-m", "sixjars", "train", name, "--out", str(tmp_path / "two")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("character_error_rate ") == 1
    assert_close(tmp_path / "two", tmp_path / "one")


@pytest.mark.parametrize("bridge", ["initial", "attention", "pooling"])
def test_pictures(bridge: str, two: Any, tmp_path: Path) -> None:
    """Also where some weights are heard by nobody: of cells that no bridge looks at, of a summary that none hears."""
    values = {
        "task": "image_captioning",
        "data": {"sample": {"size": 30, "valid": 4, "test": 4}, "image": {"size": 16}},
        "model": {"encoder": {"backbone": {"widths": [4, 6]}}, "bridge": {"kind": bridge}, "decoder": {"size": 8}},
        "learning": {"epochs": 2, "batch_examples": 7, "accumulate": 2, "optimizer": "sgd", "rate": 0.5},
        "evaluation": {"search": {"max_length": 4}, "metrics": ["exact_match"]},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(values))
    sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "one")
    first, second = (process.wait() for process in two(tmp_path / "recipe.yaml", "--out", tmp_path / "two"))
    assert (first.code, second.code) == (0, 0), (first, second)
    assert len(first.err.splitlines()) == 2
    assert second.err == ""
    assert_close(tmp_path / "two", tmp_path / "one")
