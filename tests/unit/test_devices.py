"""Devices, precision, and how several processes end together."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sixjars.errors import Interrupted, LearningError, RecipeError, RunError
from sixjars.kernels.backends import device_named
from sixjars.learning.engine import fabric_for, precision_on
from sixjars.learning.processes import all_or_none

WITHOUT_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def test_devices_by_name() -> None:
    assert device_named("cpu") == torch.device("cpu")
    best = "mps" if torch.backends.mps.is_available() else "cpu"
    assert device_named("auto").type == ("cuda" if torch.cuda.is_available() else best)


@WITHOUT_CUDA
def test_cuda_where_there_is_none() -> None:
    with pytest.raises(RecipeError) as caught:
        device_named("cuda")
    told = "the command line: --device cuda was asked for, but torch sees no CUDA device here."
    assert str(caught.value) == told


def test_an_apple_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert [device_named(name).type for name in ("auto", "mps", "cpu")] == ["mps", "mps", "cpu"]
    with pytest.raises(RecipeError) as caught:
        fabric_for(device="auto", devices=2, precision="32")
    assert str(caught.value) == (
        "the command line: --devices is 2, but an Apple GPU (mps) trains in one process; "
        "leave it out, or use --device cpu."
    )
    told = r"fp16 needs a CUDA device; use bf16 or 32 on an Apple GPU\.$"
    with pytest.raises(RecipeError, match=told):
        fabric_for(device="mps", devices=1, precision="fp16")


def test_mps_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(RecipeError) as caught:
        device_named("mps")
    told = "the command line: --device mps was asked for, but torch sees no Apple GPU (mps) here."
    assert str(caught.value) == told


def test_fp16_needs_a_gpu() -> None:
    with pytest.raises(RecipeError) as caught:
        fabric_for(device="cpu", devices=1, precision="fp16")
    told = "this recipe: learning.precision: fp16 needs a CUDA device; use bf16 or 32 on a CPU."
    assert str(caught.value) == told


def test_more_gpus_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(RecipeError) as caught:
        fabric_for(device="cuda", devices=3, precision="32")
    told = "the command line: --devices 3 was asked for, but torch sees 1 CUDA devices here."
    assert str(caught.value) == told


def test_devices_against_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TORCHELASTIC_RUN_ID": "1",
        "LOCAL_WORLD_SIZE": "2",
        "WORLD_SIZE": "4",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RecipeError) as caught:
        fabric_for(device="cpu", devices=3, precision="32")
    assert str(caught.value) == (
        "the command line: --devices is 3, but torchrun started 2 processes here; leave out "
        "--devices."
    )


@pytest.mark.parametrize(("precision", "kind"), [("32", torch.float32), ("bf16", torch.bfloat16)])
def test_precision(precision: str, kind: torch.dtype, capfd: pytest.CaptureFixture[str]) -> None:
    fabric = fabric_for(device="cpu", devices=1, precision=precision)
    layer, _ = fabric.setup(torch.nn.Linear(2, 2), torch.optim.SGD([torch.ones(1)]))
    with fabric.autocast():
        assert layer(torch.ones(1, 2)).dtype == kind
    assert layer.weight.dtype == torch.float32
    assert (fabric.world_size, fabric.global_rank) == (1, 0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("device", "there", "found"),
    [("cuda", True, "bf16"), ("cuda", False, "32"), ("cpu", True, "32")],
)
def test_the_device_chooses_the_precision(
    device: str, *, there: bool, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: there)
    assert precision_on(device, "auto") == found
    assert precision_on(device, "fp16") == "fp16"


def fabric(*, rank: int, world: int, procs: list[Any] | None = None) -> Any:
    launcher = None if procs is None else SimpleNamespace(procs=procs)
    return SimpleNamespace(
        global_rank=rank, world_size=world, strategy=SimpleNamespace(launcher=launcher)
    )


def ended(error: BaseException, *, rank: int, world: int = 2) -> BaseException:
    with pytest.raises(BaseException) as caught, all_or_none(fabric(rank=rank, world=world)):  # noqa: PT011
        raise error
    return caught.value


def test_what_all_agree_on_is_told_by_one() -> None:
    for error in (
        Interrupted("stopped."),
        LearningError("the loss is no number."),
        KeyboardInterrupt(),
    ):
        assert type(ended(error, rank=0)) is type(error)
        follower = ended(error, rank=1)
        assert isinstance(follower, SystemExit)
        assert follower.code == getattr(error, "exit_code", 130)


def test_a_process_that_went_away() -> None:
    broken = RuntimeError(
        "[../third_party/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]"
    )
    found = ended(broken, rank=0)
    assert isinstance(found, RunError)
    told = "another process of this training has ended; go on from the last save with --resume."
    assert str(found) == told
    follower = ended(broken, rank=1)
    assert isinstance(follower, SystemExit)
    assert follower.code == 2
    assert ended(broken, rank=0, world=1) is broken
    mistake = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert ended(mistake, rank=0) is mistake
    assert ended(mistake, rank=1) is mistake


def child(seconds: float) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])


def test_no_child_is_left() -> None:
    procs = [child(60), child(60)]
    watched = list(procs)
    with pytest.raises(ValueError, match="ours"), all_or_none(fabric(rank=0, world=3, procs=procs)):
        raise ValueError("ours")
    assert [process.returncode for process in watched] == [-9, -9]
    assert procs == []  # so that whoever watches the list does not kill this process for it


def test_a_good_end_waits_for_the_children() -> None:
    procs = [child(0.1)]
    watched = list(procs)
    with all_or_none(fabric(rank=0, world=2, procs=procs)):
        pass
    assert [process.returncode for process in watched] == [0]
