"""Two machines train one model, each with its own torchrun; here two groups of processes."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import sixjars
from sixjars.learning.processes import GONE

from .conftest import free_port
from .test_distributed import SGD, assert_close

pytestmark = pytest.mark.slow
OURS = "from sixjars.cli import main\nmain()"
DIES = """
import os, signal
from sixjars.learning.loop import Trainer
before = Trainer.update
def update(self, load):
    if self.state.step == 25 and os.environ["RANK"] == "{rank}":
        os.kill(os.getpid(), signal.SIGKILL)
    return before(self, load)
Trainer.update = update
"""
Machines = Callable[..., "list[subprocess.Popen[str]]"]


@pytest.fixture
def machines(warm_python: str) -> Machines:
    """Starts torchrun on two machines; `before` is code that each process runs first."""

    def start(*arguments: object, each: int = 1, before: str = "") -> list[subprocess.Popen[str]]:
        torchrun = [
            warm_python,
            "-m",
            "torch.distributed.run",
            "--nnodes",
            "2",
            "--nproc-per-node",
            str(each),
        ]
        torchrun += ["--master-addr", "127.0.0.1", "--master-port", free_port()]
        program = ["--no-python", warm_python, "-c", before + OURS, "train", *map(str, arguments)]
        return [
            subprocess.Popen(
                [*torchrun, "--node-rank", rank, *program],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in ("0", "1")
        ]

    return start


def test_two_machines_match_one_process(
    machines: Machines, recipe: Callable[..., str], tmp_path: Path
) -> None:
    """Two processes on each; the first of all tells and writes."""
    name = recipe(
        data={"sample": {"size": 50}}, learning={**SGD, "batch_examples": 7, "accumulate": 2}
    )
    sixjars.train(name, out=tmp_path / "one", device="cpu")
    both = machines(name, "--out", tmp_path / "four", "--device", "cpu", each=2)
    (out, err), (silent, _) = (one.communicate(timeout=200) for one in both)
    assert [one.returncode for one in both] == [0, 0], err
    assert "× 4 processes" in err
    assert out.count("character_error_rate ") == 1
    assert silent == ""
    assert_close(tmp_path / "four", tmp_path / "one")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_machine_is_lost_and_the_work_goes_on_with_others(
    rank: int, machines: Machines, recipe: Callable[..., str], tmp_path: Path
) -> None:
    """Within 30 seconds the other one ends with a sentence; then one, two or four go on."""
    learning = {
        **SGD,
        "rate": 0.1,
        "batch_examples": 7,
        "epochs": 5,
        "save_seconds": 0,
        "validate_every": 10,
    }
    name, out = recipe(data={"sample": {"size": 50}}, learning=learning), tmp_path / "lost"
    sixjars.train(name, out=tmp_path / "one", device="cpu")
    both = machines(name, "--out", out, "--device", "cpu", before=DIES.format(rank=rank))
    lost, other = both[rank], both[1 - rank]
    lost.communicate(timeout=200)
    begun = time.monotonic()
    said = other.communicate(timeout=30)[1]
    assert time.monotonic() - begun < 30
    assert (lost.returncode != 0, other.returncode != 0) == (True, True)
    assert said.count(f"sixjars: {GONE}") == 1
    steps = [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()]
    assert steps == [10, 20]
    if rank == 0:
        sixjars.train(name, out=out, device="cpu", resume=True)
    else:
        again = machines(name, "--out", out, "--device", "cpu", "--resume", "--fsdp", each=2)
        err = again[0].communicate(timeout=200)[1]
        again[1].communicate(timeout=60)
        assert [one.returncode for one in again] == [0, 0], err
    assert_close(out, tmp_path / "one")
    ours, whole = (
        (folder / "log.jsonl").read_text().splitlines() for folder in (out, tmp_path / "one")
    )
    assert [json.loads(line)["step"] for line in ours] == [
        json.loads(line)["step"] for line in whole
    ]
