"""Parameter search beside other files, other searches and other processes: nothing of anybody else's is touched."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import RunError
from sixjars.tuning.search_space import space_of
from sixjars.tuning.study import FILE, Study, StudyPurpose, alone

Maker = Callable[..., Any]
RATE = "learning.rate=log(1e-3,1e-1)"


@pytest.mark.parametrize("name", ["trials/001/patient.csv", "trials.csv", "best.yaml", "tune.png"])
def test_files_of_others_stay(recipe: Maker, tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "s" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(RunError) as caught:
        sixjars.tune(recipe(), [RATE], trials=1, out=tmp_path / "s", device="cpu")
    there = tmp_path / "s" / name.partition("/")[0]
    assert (
        str(caught.value)
        == f"{there} is there already, and not of a search; choose another folder with --out."
    )
    assert theirs.read_text() == "theirs"
    assert not (tmp_path / "s" / FILE).exists()


def test_only_folders_of_stopped_trials_are_removed(tmp_path: Path) -> None:
    space, aim = space_of([RATE]), StudyPurpose("", {}, "loss", "lower", 0)
    first = Study(tmp_path, aim, space, trials=2).ask()
    assert first is not None
    for number in ("001", "002"):
        (tmp_path / "trials" / number).mkdir(parents=True)
    study = Study(tmp_path, aim, space, trials=2)
    again = study.ask()
    assert again is not None
    assert (again.number, again.folder.exists()) == (1, False)
    for _ in range(2):  # the refusal does not make the folder the study's own
        with pytest.raises(RunError) as caught:
            study.ask()
        there = tmp_path / "trials" / "002"
        assert (
            str(caught.value)
            == f"{there} is not of this search; move it away, or choose another folder with --out."
        )
        assert there.is_dir()


def test_one_search_at_a_time_in_a_folder(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl")
    file, out = recipe(learning={"steps": 1, "metric": "loss"}), tmp_path / "s"
    with alone(out / FILE), pytest.raises(RunError) as caught:
        sixjars.tune(file, [RATE], trials=1, out=out, device="cpu", resume=True)
    told = f"another search is at work in {out}; wait for its end, or choose another folder with --out."
    assert str(caught.value) == told
    sixjars.tune(file, [RATE], trials=1, out=out, device="cpu", resume=True)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with alone(out / FILE), alone(out / FILE):
        pass


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(*given: Any) -> None:
        raise OSError(38, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    with alone(tmp_path / FILE), alone(tmp_path / FILE):
        pass


BUSY = """
import os, pathlib, sys, time
from sixjars.tuning import trial_process
def try_order(*given):
    pathlib.Path({at!r}).write_text(str(os.getpid()))
    time.sleep(120)
trial_process.try_order = try_order
trial_process.main()
"""


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
        return (
            ") Z " not in Path(f"/proc/{number}/stat").read_text()
        )  # ended, but nobody has asked how
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="reads /proc")
def test_trials_end_with_the_search_that_is_killed(
    server: Any, recipe: Maker, tmp_path: Path
) -> None:
    """Also in the middle of an epoch."""
    at = tmp_path / "pid"
    child = [sys.executable, "-c", BUSY.format(at=str(at))]
    before = f"from sixjars.tuning import trial_process; trial_process.ONE_OF = {child!r}"
    space = ["learning.rate=[0.1,0.01]", "--jobs", 2, "--trials", 2]
    process = server.start(
        "tune", recipe(), *space, "--out", tmp_path / "s", "--device", "cpu", before=before
    )
    until = time.monotonic() + 100
    while not (at.is_file() and at.read_text()):
        assert is_running(process.number), process.err.read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    busy = int(at.read_text())
    assert is_running(busy)
    process.kill(signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 20
    while is_running(busy):
        assert time.monotonic() < until
        time.sleep(0.1)
