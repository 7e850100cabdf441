"""`--resume`: a run that was killed at any moment ends bit for bit as the run that never was."""

import json
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import sixjars
from sixjars.errors import Interrupted

from .conftest import contents

LEARNING: dict[str, Any] = {
    "epochs": 3,
    "batch_examples": ...,
    "batch_tokens": 120,
    "accumulate": 2,
    "average": 2,
    "rate": 0.02,
    "save_seconds": 0,
}
DROPOUT = {"encoder": {"dropout": 0.2, "embedding": {"dropout": 0.2}}, "decoder": {"dropout": 0.2}}
PLATEAU: dict[str, Any] = {
    "schedule": "plateau",
    "plateau_patience": 0,
    "warmup": 16,
    "metric": "exact_match",
    "rate": 20.0,
}
"""The rate grows so far that the second epoch is worse on any machine."""
COSINE = {
    "schedule": "cosine",
    "validate_every": 3,
    "metric": "character_error_rate",
    "optimizer": "adamw",
}

# The process kills itself at its n-th visit of the disk, before or after it writes a file.
KILL_ITSELF = """
import os, pathlib, signal
left = {left}
def counting(function, after):
    def instead(*arguments):
        global left
        left -= 1
        if left == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return instead
os.fsync = counting(os.fsync, after=False)
pathlib.Path.replace = counting(pathlib.Path.replace, after=True)
"""


def tensors(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def assert_equal_runs(folder: Path, whole: Path) -> None:
    found, wanted = contents(folder), contents(whole)
    assert found.keys() == wanted.keys()
    # no two take equally long
    assert {name for name in wanted if found[name] != wanted[name]} <= {
        "cost.json",
        "baselines.json",
    }


@pytest.fixture
def train(recipe: Callable[..., str], server: Any) -> Callable[..., Any]:
    """Starts training of one recipe into a folder."""
    name = recipe(learning={**LEARNING, **PLATEAU}, model=DROPOUT)

    def start(folder: Path, *more: str, before: str = "") -> Any:
        return server.start("train", name, *more, "--out", folder, before=before)

    return start


_WHOLE: list[Path] = []


@pytest.fixture
def whole(train: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that was never killed, made once; tests copy it if they want to break it."""
    if not _WHOLE:
        folder = tmp_path_factory.mktemp("whole") / "run"
        said = train(folder).wait()
        assert said.code == 0, said
        _WHOLE.append(folder)
    return _WHOLE[0]


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """The same, to break."""
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def test_the_whole_run_uses_what_is_tested(whole: Path) -> None:
    log = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert len(log) == 3
    assert log[2]["rate"] == PLATEAU["rate"] / 2  # the schedule halved
    assert len(list(whole.glob("checkpoints/best-*.safetensors"))) == 2
    first, second = (tensors(path) for path in whole.glob("checkpoints/best-*.safetensors"))
    mean = tensors(whole / "model.safetensors")
    assert all(torch.allclose(mean[name], (first[name] + second[name]) / 2) for name in mean)
    assert any(not torch.equal(mean[name], first[name]) for name in mean)


def test_killed_at_the_disk_again_and_again(
    train: Callable[..., Any], whole: Path, tmp_path: Path
) -> None:
    folder, killed, often = tmp_path / "killed", 0, random.Random(1)
    while True:
        more = ["--resume"] if (folder / "recipe.yaml").exists() else []
        said = train(folder, *more, before=KILL_ITSELF.format(left=often.randint(2, 9))).wait()
        if said.code == 0:
            break
        assert said.code == -signal.SIGKILL, said
        assert "Traceback" not in said.err
        killed += 1
    assert killed > 5
    assert_equal_runs(folder, whole)


def test_killed_at_any_time(train: Callable[..., Any], whole: Path, tmp_path: Path) -> None:
    folder, killed, when = tmp_path / "killed", 0, random.Random(2)
    for _ in range(6):
        process = train(folder, *(["--resume"] if (folder / "recipe.yaml").exists() else []))
        time.sleep(when.uniform(0.05, 0.45))
        process.kill(signal.SIGKILL)
        killed += process.wait().code == -signal.SIGKILL
    assert killed > 0
    said = train(folder, *(["--resume"] if (folder / "recipe.yaml").exists() else [])).wait()
    assert said.code == 0, said
    assert_equal_runs(folder, whole)


@pytest.mark.parametrize("sort", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop(
    sort: signal.Signals, train: Callable[..., Any], whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "stopped"
    process = train(folder)
    while not (folder / "checkpoints" / "last.safetensors").exists():
        time.sleep(0.005)
    process.kill(sort)
    said = process.wait()
    assert said.code == 130, said
    told = said.complaints
    assert len(told) == 1, said
    assert told[0].startswith("sixjars: stopped at step ")
    assert told[0].endswith("; the same command with --resume goes on from there.")
    assert said.out == ""
    resumed = train(folder, "--resume").wait()
    assert resumed.code == 0
    assert len(re.findall(r"note: resumes at step \d+ of \d+, epoch \d+\.\n", resumed.err)) == 1
    assert_equal_runs(folder, whole)


def test_resume_of_a_finished_run_changes_nothing(
    train: Callable[..., Any], copy: Path, whole: Path
) -> None:
    said = train(copy, "--resume").wait()
    assert said.code == 0
    assert "character_error_rate" in said.out
    step = json.loads((whole / "log.jsonl").read_text().splitlines()[-1])["step"]
    told = f"note: the training of {copy} has ended already (at step {step} of {step}), so it is only scored again.\n"
    assert said.err.count(told) == 1
    assert_equal_runs(copy, whole)


@pytest.mark.parametrize(
    ("lost", "lines"),
    [
        (["checkpoints", "model.safetensors"], 3),
        (["checkpoints", "fields", "model.safetensors"], 0),
        (["checkpoints"], 1),
        (["checkpoints"], 0),
    ],
    ids=["no weights", "no vocabulary", "weights", "weights, and resumed once"],
)
def test_killed_before_the_first_save(
    lost: list[str], lines: int, train: Callable[..., Any], copy: Path, whole: Path
) -> None:
    """The log may have a line, and the best weights be there: both come before the state."""
    for name in [*lost, "scores.json"]:
        shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()
    log = (copy / "log.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "log.jsonl").write_bytes(b"".join(log[:lines]))
    said = train(copy, "--resume").wait()
    assert said.code == 0, said
    told = f"note: {copy} was stopped before its first save, so training starts at its beginning.\n"
    assert told in said.err
    assert_equal_runs(copy, whole)


def test_killed_between_the_last_save_and_the_mean(
    train: Callable[..., Any], copy: Path, whole: Path
) -> None:
    best = next(copy.glob("checkpoints/best-*.safetensors"))
    shutil.copy(best, copy / "model.safetensors")
    shutil.copy(best, best.with_name("best-99.safetensors"))
    (copy / "scores.json").unlink()
    assert train(copy, "--resume").wait().code == 0
    assert_equal_runs(copy, whole)


@pytest.mark.parametrize(
    "learning",
    [
        COSINE,
        pytest.param(
            {
                "optimizer": "sgd",
                "momentum": 0.9,
                "schedule": "inverse_sqrt",
                "warmup": 3,
                "patience": 1,
            },
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"optimizer": "adadelta", "precision": "bf16", "clip": None}, marks=pytest.mark.slow
        ),
    ],
    ids=["cosine", "sgd", "adadelta"],
)
def test_stopped_every_second_update(
    learning: dict[str, Any], recipe: Callable[..., str], tired: Any, tmp_path: Path
) -> None:
    name = recipe(learning={**LEARNING, **learning, "save_seconds": 1000}, model=DROPOUT)
    sixjars.train(name, out=tmp_path / "whole")
    for attempt in range(100):
        try:
            sixjars.train(name, out=tmp_path / "stopped", resume=attempt > 0, reporter=tired(2))
        except Interrupted:
            continue
        break
    assert attempt > 3
    assert_equal_runs(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.parametrize("left", [0, 100, -30], ids=["empty", "cut", "cut in a line"])
def test_a_log_that_was_cut(left: int, train: Callable[..., Any], copy: Path) -> None:
    """It is not needed to go on; what is left of it stays, whole lines only."""
    log = copy / "log.jsonl"
    lines = log.read_bytes()[:left].splitlines(keepends=True)
    log.write_bytes(log.read_bytes()[:left])
    assert train(copy, "--resume").wait().code == 0
    assert log.read_bytes() == b"".join(line for line in lines if line.endswith(b"\n"))


def test_training_in_a_thread(recipe: Callable[..., str], tmp_path: Path) -> None:
    """Where no signals can be minded, as in a notebook's worker."""
    with ThreadPoolExecutor() as pool:
        trained = pool.submit(sixjars.train, recipe(), out=tmp_path / "run").result()
    assert trained.scores[0].name == "character_error_rate"
