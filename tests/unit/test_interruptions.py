"""A full disk, Ctrl-C, SIGTERM, a loss that is no number: a sentence, and nothing is lost."""

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors import safe_open

import sixjars
from sixjars.errors import Interrupted
from sixjars.learning import loop

Maker = Callable[..., Any]


def test_no_space_left(
    call: Any,
    copy: Path,
    recipe: Maker,
    run_recipe: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = recipe(learning={"save_seconds": 0})
    real, left = os.fsync, 8

    def full(number: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    monkeypatch.setattr(os, "fsync", full)
    said = call("train", name, "--out", tmp_path / "run")
    last = said.complaints
    assert said.code == 2
    assert len(last) == 1
    assert last[0].startswith("sixjars: no space left to write ")
    assert last[0].endswith("; what was saved before is still there.")
    monkeypatch.undo()
    assert not list((tmp_path / "run").rglob(".*.part"))
    assert call("train", name, "--out", tmp_path / "run", "--resume").code == 0
    whole = sixjars.train(name, out=tmp_path / "whole").folder
    for file in ("model.safetensors", "log.jsonl"):
        assert (tmp_path / "run" / file).read_bytes() == (whole / file).read_bytes()


def test_a_full_device(call: Any, run: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    told = "output: No space left on device; what was saved before is still there."
    assert call("predict", run, "a", "--output", "/dev/full").sentence == told


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_really_no_space_left(call: Any, recipe: Maker, small_disk: Path) -> None:
    said = call(
        "train", recipe(learning={"average": 50, "epochs": 30}), "--out", small_disk / "run"
    )
    last = said.complaints
    assert said.code == 2, said
    assert len(last) == 1
    assert last[0].startswith("sixjars: no space left to write ")
    assert call("predict", small_disk / "run", "namaste").code == 0


def test_a_folder_that_may_not_be_written(call: Any, recipe: Maker, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    said = call("train", recipe(), "--out", file / "run")
    assert said.sentence == f"{file / 'run' / 'run.json'} cannot be written: Not a directory."
    if os.geteuid() == 0:
        folder = Path("/proc/sixjars")  # where not even root may
        told = f"{folder / 'run.json'} cannot be written: No such file or directory."
        assert call("train", recipe(), "--out", folder).sentence == told
    else:
        folder = tmp_path / "locked"
        folder.mkdir(mode=0o555)
        told = f"{folder / 'run.json'} cannot be written: Permission denied."
        assert call("train", recipe(), "--out", folder).sentence == told


def test_a_loss_that_is_no_number(call: Any, recipe: Maker, tmp_path: Path) -> None:
    name = recipe(learning={"rate": 1e38, "optimizer": "sgd", "clip": None})
    said = call("train", name, "--out", tmp_path / "run")
    assert said.sentence == "the loss is no longer a number at step 2; try a lower learning.rate."
    said = call("train", name, "learning.validate_every=1", "--out", tmp_path / "run2")
    assert said.sentence == "the validation loss is no longer a number; try a lower learning.rate."
    assert not (tmp_path / "run2" / "model.safetensors").exists()


PHASES: dict[str, tuple[str, list[str], str]] = {
    "reading a recipe": ("sixjars.runs.train.read_recipe", ["train"], "stopped."),
    "reading data": (
        "sixjars.runs.train.splits_of",
        ["train"],
        "stopped before anything was kept in {out}; the same command begins again.",
    ),
    "training": (
        "sixjars.kernels.backends.output_loss",
        ["train"],
        "stopped at step 1 of 8; the same command with --resume goes on from there.",
    ),
    "scoring": (
        "sixjars.runs.train._finished",
        ["train"],
        "stopped; the same command with --resume goes on from what {out} holds.",
    ),
    "predicting": ("sixjars.runs.prediction.predictor.hypotheses_of", ["predict", "a"], "stopped."),
    "evaluating": ("sixjars.runs.evaluate.judged", ["evaluate"], "stopped."),
}


@pytest.mark.parametrize("sort", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("phase", PHASES)
def test_stopped_in_any_phase(
    phase: str, sort: str, server: Any, recipe: Maker, run: Path, tmp_path: Path
) -> None:
    place, (command, *more), message = PHASES[phase]
    out, name = tmp_path / "run", recipe()
    module = place.rpartition(".")[0]
    before = f"""
import os, signal, {module}
real = {place}
def stopped(*arguments, **more):
    os.kill(os.getpid(), signal.{sort})
    return real(*arguments, **more)
{place} = stopped
"""
    arguments = ["train", name, "--out", out] if command == "train" else [command, run, *more]
    said = server.run(*arguments, before=before)
    assert said.code == 130, said
    last = said.complaints
    assert last == [f"sixjars: {message.format(out=out)}"]
    assert (out / "recipe.yaml").exists() == ("--resume" in message)
    if "--resume" in message:
        assert server.run("train", name, "--out", out, "--resume").code == 0
        whole = sixjars.train(name, out=tmp_path / "whole").folder
        for file in ("model.safetensors", "log.jsonl", "scores.json"):
            assert (out / file).read_bytes() == (whole / file).read_bytes()


def test_a_stopped_file_of_answers_says_how_work_can_go_on(
    server: Any, run: Path, tmp_path: Path
) -> None:
    """The other way is tried: with a folder, the same command goes on."""
    before = """
import os, signal, sixjars.runs.prediction.predictor as place
real = place.hypotheses_of
def stopped(*arguments, **more):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*arguments, **more)
place.hypotheses_of = stopped
"""
    (tmp_path / "in.txt").write_text("ghar\nnadi\n")
    given = ["predict", run, "--input", tmp_path / "in.txt", "--output"]
    said = server.run(*given, tmp_path / "out.txt", before=before)
    assert said.code == 130
    assert said.complaints == [
        f"sixjars: stopped; {tmp_path / 'out.txt'} cannot be gone on with, but a folder can: "
        "--output FOLDER --part-rows 10000, and after a stop the same with --resume."
    ]
    parts = [*given, tmp_path / "out", "--part-rows", 10000]
    assert server.run(*parts, before=before).code == 130
    assert server.run(*parts, "--resume").code == 0
    assert len((tmp_path / "out" / "in.txt").read_text().splitlines()) == 2


def test_a_second_wish_does_not_wait(server: Any, recipe: Maker, tmp_path: Path) -> None:
    """An update that never ends is left by one more Ctrl-C."""
    before = """
import time
import sixjars.loss
sixjars.loss.token_loss = lambda *arguments, **more: [time.sleep(0.05) for _ in range(10_000)]
"""
    process = server.start("train", recipe(), "--out", tmp_path / "run", before=before)
    while not (tmp_path / "run" / "fields" / "target.json").exists():
        signal.sigtimedwait([], 0.01)
    signal.sigtimedwait([], 1.5)
    process.kill(signal.SIGINT)
    signal.sigtimedwait([], 1.2)
    process.kill(signal.SIGINT)
    said = process.wait()
    assert said.code == 130
    assert said.complaints == [
        f"sixjars: stopped; the same command with --resume goes on from what {tmp_path / 'run'} "
        "holds."
    ]


def test_a_second_wish_during_a_save_loses_nothing(
    server: Any, recipe: Maker, tmp_path: Path
) -> None:
    """The last state is still being written at the second Ctrl-C: it is waited for."""
    name = recipe(learning={"epochs": 4, "save_seconds": 1000, "validate_every": 1000})
    out = tmp_path / "run"
    before = """
import os, signal, time
from sixjars.learning import checkpoints, loop
loop.SAME_WISH = 0.05
update, write = loop.Trainer.update, checkpoints.write_tensors
def updated(self, load):
    if self.state.step == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return update(self, load)
def slow(path, *given):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    write(path, *given)
loop.Trainer.update, checkpoints.write_tensors = updated, slow
"""
    said = server.run("train", name, "--out", out, before=before)
    assert said.code == 130, said
    assert len(said.complaints) == 1
    assert saved_step(out) == 3
    assert server.run("train", name, "--out", out, "--resume").code == 0
    whole = sixjars.train(name, out=tmp_path / "whole").folder
    for file in ("model.safetensors", "log.jsonl", "scores.json"):
        assert (out / file).read_bytes() == (whole / file).read_bytes()


def saved_step(folder: Path) -> int:
    """Of the last state."""
    with safe_open(folder / "checkpoints" / "last.safetensors", framework="np") as file:
        return int(json.loads(file.metadata()["sixjars"])["state"]["step"])


@pytest.mark.parametrize(
    ("later", "ends"), [(0.5, False), (1.5, True)], ids=["an echo", "one more"]
)
def test_only_a_later_signal_ends_the_update(
    later: float, ends: bool, recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal and a launcher both send the first; within a second it is the same wish."""
    now, update = [100.0], loop.Trainer.update

    def twice(self: loop.Trainer, load: Any) -> Any:
        if self.state.step == 1:
            signal.raise_signal(signal.SIGINT)
            now[0] += later
            signal.raise_signal(signal.SIGTERM)
        return update(self, load)

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(loop.Trainer, "update", twice)
    with pytest.raises(Interrupted) as told:
        sixjars.train(recipe(), out=tmp_path / "run", device="cpu")
    assert str(told.value).startswith("stopped;" if ends else "stopped at step 2 of ")
    assert (tmp_path / "run" / "checkpoints" / "last.safetensors").exists() != ends


def test_what_cannot_be_built_leaves_no_run_behind(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    """The mended command runs at once, without --resume and without another folder."""
    few = [
        "learning.steps=1",
        "data.sample.size=32",
        "model.encoder.size=8",
        "model.decoder.size=8",
    ]
    arguments = ["train", "transliteration/sample_attention", *few, "--out", str(tmp_path / "run")]
    refused = call(*arguments, "model.bridge={kind: attention, score: dot}")
    assert refused.code == 2
    told = "score: dot needs equal hidden sizes of decoder and encoder, but they are 8 and 16."
    assert told in refused.err
    assert not (tmp_path / "run").exists()
    assert call(*arguments).code == 0
