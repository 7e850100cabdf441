"""The store with company: processes that are killed, and processes that write at the same time."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from sixjars.data.storage.features import FeatureStore

from .conftest import wait_for

KEYS = [f"video {number}" for number in range(60)]

WORK = """
import os, sys, time
from pathlib import Path
import numpy as np
from sixjars.data.storage.features import FeatureStore

folder, name, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
kept = FeatureStore(folder / "store", {"layer": 1})
missing = kept.missing([f"video {number}" for number in range(60)])
(folder / name).touch()
while not (folder / "go").exists():
    time.sleep(0.001)
whole, calls = os.fsync, 0
def stuck(file):
    global calls
    calls += 1
    if calls == steps:
        (folder / "stuck").touch()
        time.sleep(60)
    whole(file)
os.fsync = stuck
for start in range(0, len(missing), 5):
    keys = missing[start : start + 5]
    numbers = [int(key.split()[1]) for key in keys]
    kept.add(keys, [np.full((1 + number % 4, 1000), number, dtype=np.float16) for number in numbers])
print(len(missing))
"""


def work(folder: Path, name: str, *, stuck_at: int = 0) -> "subprocess.Popen[str]":
    """Another process that adds what is missing; at one write it stops half-way."""
    given = [sys.executable, "-c", WORK, str(folder), name, str(stuck_at)]
    return subprocess.Popen(given, stdout=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]") -> int:
    """How many records it found missing."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(said)


def check_all(kept: FeatureStore) -> None:
    assert kept.missing(KEYS) == []
    for number, key in enumerate(KEYS):
        np.testing.assert_array_equal(
            kept.take(key), np.full((1 + number % 4, 1000), number, dtype=np.float16)
        )


def test_killed_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    left = 60
    for name in ("first", "second"):
        process = work(tmp_path, name, stuck_at=5)
        wait_for(tmp_path / "stuck")
        process.kill()
        process.communicate()
        (tmp_path / "stuck").unlink()
        left -= 15  # the plan and three shards were whole, the fourth was not
        assert len(FeatureStore(tmp_path / "store", {"layer": 1}).missing(KEYS)) == left
    assert finished(work(tmp_path, "third")) == left
    kept = FeatureStore(tmp_path / "store", {"layer": 1})
    check_all(kept)
    assert list(kept.folder.glob(".making-*")) == []  # what the dead left was removed
    old, new = (kept.folder / f".making-{name}" for name in ("old", "new"))  # of other machines
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    FeatureStore(tmp_path / "store", {"layer": 1}).add(
        ["more"], [np.zeros((1, 1000), dtype=np.float16)]
    )
    assert list(kept.folder.glob(".making-*")) == [new]  # someone may still be at work there
    check_all(kept)


def test_two_at_once(tmp_path: Path) -> None:
    both = [work(tmp_path, name) for name in ("one", "two")]
    for name in ("one", "two"):
        wait_for(tmp_path / name)
    kept = FeatureStore(tmp_path / "store", {"layer": 1})
    assert kept.missing(KEYS) == KEYS
    (tmp_path / "go").touch()
    assert [finished(process) for process in both] == [60, 60]
    check_all(kept)
    check_all(FeatureStore(tmp_path / "store", {"layer": 1}))
    # a shard for each five keys, and the plan
    assert len(list(kept.folder.iterdir())) == 60 // 5 + 1


def test_what_others_add_is_found(tmp_path: Path) -> None:
    one, two = (FeatureStore(tmp_path, {}) for _ in range(2))
    assert two.missing(["a", "b"]) == ["a", "b"]
    one.add(["a"], [np.array([[1, 2]], dtype=np.uint8)])
    assert two.missing(["a", "b"]) == ["b"]
    # the same once more takes the place of the first
    one.add(["a"], [np.array([[1, 2]], dtype=np.uint8)])
    two.add(["a", "b"], [np.array([[number, 2]], dtype=np.uint8) for number in (1, 3)])
    assert two.take("a").tolist() == [[1, 2]]
    assert [one.take(key).tolist() for key in "ba"] == [[[3, 2]], [[1, 2]]]
