"""Bulk prediction on Ray Data, where Ray is installed (`make scale`): a worker is killed, every row is there once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="make scale installs it")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROWS = int(os.environ.get("SIXJARS_SCALE_ROWS", "60_000"))
PART = ROWS // 30
WORDS = ("namaste", "ghar", "kamal", "nadi", "phal", "rat", "din")


def descendants(parent: int) -> list[int]:
    """All processes that come from one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int(
                    (folder / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:  # it has ended
                continue
    found = [parent]
    for one in found:
        found += [child for child, own in parents.items() if own == one]
    return found[1:]


def workers_of(parent: int) -> list[int]:
    """Those that have a run in memory."""
    named = []
    for number in descendants(parent):
        try:
            if "PartWorker" in Path(f"/proc/{number}/cmdline").read_text():
                named.append(number)
        except OSError:
            continue
    return named


def answers(out: Path) -> list[list[str]]:
    parts = sorted(out.glob("in-*.tsv"))
    return [line.split("\t") for part in parts for line in part.read_text().splitlines()[1:]]


def test_a_killed_worker_loses_nothing_and_doubles_nothing(run: Path, tmp_path: Path) -> None:
    """Then the whole work is killed, and goes on; the answers are those of one process."""
    path, out, whole = tmp_path / "in.tsv", tmp_path / "out", tmp_path / "whole.tsv"
    path.write_text("id\troman\n" + "".join(f"{at}\t{WORDS[at % 7]}\n" for at in range(ROWS)))
    program: list[str | Path] = [
        sys.executable,
        "-m",
        "sixjars",
        "predict",
        run,
        "--input",
        path,
        "--device",
        "cpu",
        "--output",
    ]
    on_ray = [*program, out, "--part-rows", str(PART), "--engine", "ray", "--workers", "2"]
    work = subprocess.Popen(on_ray, stderr=subprocess.PIPE, text=True)
    while len(list(out.glob("in-*"))) < 2:
        assert work.poll() is None, work.communicate()[1]
        time.sleep(0.2)
    victims = workers_of(work.pid)
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    while len(list(out.glob("in-*"))) < 8:
        assert work.poll() is None, work.communicate()[1]
        time.sleep(0.2)
    work.terminate()
    work.communicate()
    there = {part.name: part.stat().st_mtime_ns for part in out.glob("in-*.tsv")}
    assert 8 <= len(there) < 30
    again = subprocess.run([*on_ray, "--resume"], stderr=subprocess.PIPE, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{len(there)} of 30 parts are there already" in again.stderr
    assert (
        f"rows answered: {ROWS - len(there) * PART:,}; files written: {30 - len(there)}; in {out}"
        in again.stderr
    )
    assert {name: (out / name).stat().st_mtime_ns for name in there} == there
    assert sorted(one.name for one in out.iterdir() if one.name.startswith(".")) == []
    found = answers(out)
    assert [row[0] for row in found] == [str(at) for at in range(ROWS)]
    subprocess.run([*program, whole], check=True)
    assert found == [line.split("\t") for line in whole.read_text().splitlines()[1:]]


def test_a_cluster_that_is_not_there(run: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.txt", tmp_path / "out"
    path.write_text("ghar\n" * 10)
    program: list[str | Path] = [
        sys.executable,
        "-m",
        "sixjars",
        "predict",
        run,
        "--input",
        path,
        "--output",
        out,
        "--engine",
        "ray",
    ]
    said = subprocess.run(
        [*program, "--ray-address", "127.0.0.1:1"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert said.returncode == 2
    assert said.stderr.splitlines()[-1] == (
        "sixjars: the Ray cluster at 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused."
    )
