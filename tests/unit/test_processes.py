"""Processes of one training end together: none waits for ever and none is left."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sixjars
from sixjars.learning import processes
from sixjars.learning.processes import GONE, Heartbeat

from .conftest import wait_for

DIES = """
import os
from sixjars.learning.loop import Trainer
before = Trainer.update
def update(self, load):
    if self.state.step == 3:
        os._exit(5)
    return before(self, load)
Trainer.update = update
"""
SILENCE = 3.0
SOON = f"""
from sixjars.learning import processes
processes.SILENCE, processes.TICK = {SILENCE}, 0.3
"""
LONG_VALIDATION = f"""
import time
from sixjars.learning.loop import Trainer
validate = Trainer._validate
def long(self):
    end = time.monotonic() + {2 * SILENCE}
    while self.leads and time.monotonic() < end:
        pass
    validate(self)
Trainer._validate = long
"""


def children_of(number: int) -> list[int]:
    return [
        int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()
    ]


def assert_gone(numbers: list[int], seconds: float = 10.0) -> None:
    """In time; a zombie that nobody has waited for yet counts as gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        states = [Path(f"/proc/{number}/stat") for number in numbers]
        if all(not path.exists() or path.read_text().split(") ")[1][0] == "Z" for path in states):
            return
        time.sleep(0.1)
    pytest.fail(f"still there: {numbers}")


def test_one_of_two_dies(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name, out = recipe(learning={"save_seconds": 0}), tmp_path / "run"
    first, second = (process.wait() for process in two(name, "--out", out, before=("", DIES)))
    assert second.code == 5
    told = "another process of this training has ended; go on from the last save with --resume."
    assert first.sentence == told
    sixjars.train(name, out=out, resume=True)  # with one process now
    assert sixjars.load(out).predict(["namaste"])


def test_the_first_of_two_dies(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(learning={"save_seconds": 0})
    first, second = (
        process.wait() for process in two(name, "--out", tmp_path / "run", before=(DIES, ""))
    )
    assert first.code == 5
    assert second.sentence == GONE


def test_a_fault_of_the_first_ends_both(two: Any, recipe: Callable[..., str], run: Path) -> None:
    first, second = (process.wait() for process in two(recipe(), "--out", run))
    assert "already holds a run" in first.sentence
    assert second.code != 0
    assert second.err in ("", f"sixjars: {GONE}\n")  # so early that it may not have heard why


def test_wild_numbers_are_told_once(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    name = recipe(learning={"rate": 1e38, "clip": None, "optimizer": "sgd"})
    first, second = (process.wait() for process in two(name, "--out", tmp_path / "run"))
    assert "no longer a number" in first.sentence
    assert second.code != 0
    assert second.err == ""


def test_the_option_starts_the_second(
    server: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    """`--devices 2`: it starts its child, trains, and no fault or kill leaves one behind."""
    name, out = recipe(learning={"epochs": 100_000, "save_seconds": 0}), tmp_path / "run"
    process = server.start("train", name, "--out", out, "--devices", 2)
    wait_for(out / "checkpoints" / "last.safetensors")
    children = children_of(process.number)
    assert len(children) == 1
    process.kill(signal.SIGINT)
    said = process.wait()
    assert said.code == 130, said
    told = said.complaints
    assert len(told) == 1, said
    assert told[0].startswith("sixjars: stopped at step ")
    assert_gone(children)


@pytest.mark.parametrize("whom", ["parent", "child"])
def test_a_kill_leaves_nobody(
    whom: str, server: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    name, out = recipe(learning={"epochs": 100_000, "save_seconds": 0}), tmp_path / "run"
    process = server.start("train", name, "--out", out, "--devices", 2)
    wait_for(out / "checkpoints" / "last.safetensors")
    children = children_of(process.number)
    os.kill(process.number if whom == "parent" else children[0], signal.SIGKILL)
    said = process.wait()
    assert said.code == (-9 if whom == "parent" else 2), said
    assert "Traceback" not in said.err
    assert_gone(children)


def endless(recipe: Callable[..., str]) -> str:
    return recipe(learning={"epochs": 100_000, "save_seconds": 0})


def saved(folder: Path) -> Path:
    return folder / "checkpoints" / "last.safetensors"


@pytest.mark.parametrize(
    "victim", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["the first", "the second"]
)
@pytest.mark.parametrize("sort", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_one_is_stopped_or_killed(
    victim: int,
    sort: signal.Signals,
    times: int,
    two: Any,
    recipe: Callable[..., str],
    tmp_path: Path,
) -> None:
    """The other one ends within the limit and tells, three times of three."""
    name = endless(recipe)
    pairs = [
        two(name, "--out", tmp_path / str(number), before=(SOON, SOON)) for number in range(times)
    ]
    for number, pair in enumerate(pairs):
        wait_for(saved(tmp_path / str(number)))
        pair[victim].kill(sort)
    begun = time.monotonic()
    for pair in pairs:
        said = pair[1 - victim].wait()
        assert said.code == 2, said
        told = said.complaints
        assert told == [f"sixjars: {GONE}"], said
    assert time.monotonic() - begun < SILENCE + 20  # on a machine with other work
    for pair in pairs:
        pair[victim].kill(signal.SIGKILL)
        pair[victim].wait()


@pytest.mark.slow
def test_the_first_is_killed_before_the_second_has_begun(
    server: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    """The second one would wait for a day to be connected."""
    name = endless(recipe)
    firsts = [
        server.start("train", name, "--out", tmp_path / str(n), "--devices", 2) for n in range(3)
    ]
    children = []
    for first in firsts:
        while not (found := children_of(first.number)):
            time.sleep(0.01)
        children += found
        first.kill(signal.SIGKILL)
        first.wait()
    assert len(children) == 3
    assert_gone(children, seconds=30)  # most of them to import torch


@pytest.mark.slow
def test_all_are_stopped_and_go_on(two: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """Ctrl-Z stops every process of a terminal: when they go on, none has been silent."""
    processes = two(endless(recipe), "--out", tmp_path / "run", before=(SOON, SOON))
    wait_for(saved(tmp_path / "run"))
    time.sleep(1.0)
    for sort, seconds in (
        (signal.SIGSTOP, 2 * SILENCE),
        (signal.SIGCONT, 1.5 * SILENCE),
        (signal.SIGTERM, 0.0),
    ):
        for process in processes:
            process.kill(sort)
        time.sleep(seconds)
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (130, 130), (first, second)
    assert "sixjars: stopped at step " in first.err


STOPS_SLOWLY = """
import os, signal, time
from sixjars.learning import checkpoints, loop
update, write = loop.Trainer.update, checkpoints.write_tensors
def updated(self, load):
    if self.state.step == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return update(self, load)
def slow(*given):
    time.sleep(1.5)
    write(*given)
loop.Trainer.update, checkpoints.write_tensors = updated, slow
"""
NOTES_AT_ITS_END = """
import atexit, pathlib
atexit.register(lambda: pathlib.Path({note!r}).write_text(str(pathlib.Path({state!r}).exists())))
"""


def test_none_ends_before_the_state_is_written(
    two: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    """The first one writes it, slowly; a second that ended would take the first with it."""
    name = recipe(learning={"epochs": 4, "save_seconds": 1000, "validate_every": 1000})
    out, note = tmp_path / "run", tmp_path / "note"
    ends = NOTES_AT_ITS_END.format(note=str(note), state=str(saved(out)))
    first, second = (
        process.wait() for process in two(name, "--out", out, before=(STOPS_SLOWLY, ends))
    )
    assert (first.code, second.code) == (130, 130), (first, second)
    assert [line.partition(" of ")[0] for line in first.complaints] == [
        "sixjars: stopped at step 3"
    ]
    assert second.err == ""
    assert note.read_text() == "True"


@pytest.mark.slow
def test_a_long_validation_is_no_silence(
    two: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    name = recipe(learning={"epochs": 1})
    processes = two(
        name, "--out", tmp_path / "run", before=(SOON + LONG_VALIDATION, SOON + LONG_VALIDATION)
    )
    first, second = (process.wait() for process in processes)
    assert (first.code, second.code) == (0, 0), (first, second)


def test_a_child_that_stays_is_killed() -> None:
    child = subprocess.Popen(["sleep", "100"])
    processes._ended([child], 0.1)
    assert child.returncode == -signal.SIGKILL


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whether this process would have ended; a fifth of a second is long here."""
    found = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda code: found.set())
    for name, seconds in {"SILENCE": 0.5, "TICK": 0.05, "GRACE": 0.2}.items():
        monkeypatch.setattr(processes, name, seconds)
    return found


def pair(children: Sequence["subprocess.Popen[bytes]"] = ()) -> tuple[Heartbeat, Heartbeat]:
    """The first process, which started some children, and the second, both in this one."""
    told: list[Any] = []

    def fabric(rank: int) -> Any:
        def broadcast(value: Any) -> Any:
            told.append(value)
            return told[0]

        strategy = SimpleNamespace(num_nodes=1)
        return SimpleNamespace(
            global_rank=rank, world_size=2, strategy=strategy, broadcast=broadcast
        )

    return Heartbeat(fabric(0), children), Heartbeat(fabric(1))


def test_who_is_done_may_be_silent(ended: threading.Event) -> None:
    first, second = pair()
    second.stop(done=True)
    assert not ended.wait(1.5)
    first.stop(done=True)


def test_who_leaves_without_a_word_is_gone(ended: threading.Event) -> None:
    first, second = pair()
    time.sleep(0.3)
    second.stop(done=False)
    assert ended.wait(5)
    first.stop(done=False)


def test_the_first_leaves_no_child_behind(ended: threading.Event) -> None:
    """One that is stopped would never end by itself."""
    child = subprocess.Popen(["sleep", "100"])
    child.send_signal(signal.SIGSTOP)
    first, second = pair([child])
    time.sleep(0.3)
    second.stop(done=False)
    assert ended.wait(5)
    first.stop(done=False)
    found = child.poll()
    child.kill()
    child.wait()
    assert found == -signal.SIGKILL


def test_a_stranger_on_the_line_changes_nothing(ended: threading.Event) -> None:
    first, second = pair()
    strangers = [socket.create_connection(first.address) for _ in range(3)]
    for stranger, hello in zip(strangers, (b"", b"x" * 20, b"!" * 100), strict=True):
        stranger.sendall(hello)
    assert not ended.wait(1.5)
    assert set(first.lines) == {1}
    for one in (first, second):
        one.stop(done=True)
    for stranger in strangers:
        stranger.close()
