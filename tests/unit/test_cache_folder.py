"""The cache folder: where it is, what it holds; it neither grows without end nor loses ours."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sixjars.data.storage import cache, pruning
from sixjars.data.storage.cache import Examples, cache_folder, cached, made_whole, set_aside, sweep
from sixjars.data.storage.features import FeatureStore
from sixjars.data.storage.pruning import MAKING_HERE, contents, prune
from sixjars.errors import DataError

HOUR = 3600.0


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, where nothing says how large it may be."""
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path))
    monkeypatch.delenv("SIXJARS_CACHE_GB", raising=False)
    return tmp_path


def laid(path: Path, *, size: int = 1000, hours: float = 0.0) -> Path:
    """A file of so many bytes that was used so many hours ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - hours * HOUR,) * 2)
    return path


def entry(place: Path, letter: str, *, hours: float = 0.0) -> Path:
    """Encoded data of 3000 bytes; its index alone is touched when it is used."""
    folder = place / (letter * 64)
    laid(folder / "texts.arrow", hours=99)
    laid(folder / "0.ids", hours=98)
    return laid(folder / "index.json", hours=hours).parent


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("SIXJARS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/someone/.cache/sixjars")
    monkeypatch.setenv("XDG_CACHE_HOME", "/big")
    assert cache_folder() == Path("/big/sixjars")
    monkeypatch.setenv("SIXJARS_CACHE", "~/fast")
    assert cache_folder() == Path("/home/someone/fast")


def test_what_it_holds(place: Path) -> None:
    assert (contents(place).folder, contents(place).files, contents(place).size) == (place, 0, 0)
    entry(place, "a")
    laid(place / "frames" / "plan" / "one.safetensors", size=500)
    laid(place / "contents.sqlite", size=40)
    laid(place / "samples" / "1.0" / "image_captioning" / "a_red_ball.png", size=7)
    laid(place / "thesis.txt", size=10**6)
    assert (contents(place).files, contents(place).size) == (6, 3547)


def test_what_was_not_used_for_longest_goes_first_and_whole(place: Path) -> None:
    old, new = entry(place, "a", hours=9), entry(place, "b", hours=1)
    shard = laid(place / "frames" / "plan" / "one.safetensors", size=2000, hours=5)
    assert prune(place, 6000 / 1e9).size == 5000
    assert (old.exists(), new.exists(), shard.exists()) == (False, True, True)
    assert prune(place, 4000 / 1e9).size == 3000
    assert (new.exists(), shard.exists()) == (True, False)
    assert sorted(path.name for path in new.iterdir()) == ["0.ids", "index.json", "texts.arrow"]


def test_whatever_is_used_again_counts_as_new(place: Path) -> None:
    """Encoded data and features; the first of each is old and used again, the second is not."""
    texts = [Examples.of({"source": [text]}, where="a test") for text in "ab"]
    plans = [{"number": 1}, {"number": 2}]
    for some in texts:
        cached(some, {}, folder=place)
    for plan in plans:
        FeatureStore(place / "frames", plan).add(["cat"], [np.ones((1, 2))])
    for path in place.rglob("*"):
        os.utime(path, (time.time() - 9 * HOUR,) * 2)
    cached(texts[0], {}, folder=place)
    assert FeatureStore(place / "frames", plans[0]).missing(["cat"]) == []
    prune(
        place,
        sum(entry.size for entry in pruning._entries(place) if entry.used > time.time() - HOUR)
        / 1e9,
    )
    assert FeatureStore(place / "frames", plans[0]).missing(["cat"]) == []
    assert FeatureStore(place / "frames", plans[1]).missing(["cat"]) == ["cat"]
    [left] = [path for path in place.iterdir() if len(path.name) == 64]
    cached(texts[0], {}, folder=place)
    assert [path for path in place.iterdir() if len(path.name) == 64] == [left]


def test_synthetic_files_go_last(place: Path) -> None:
    """Nobody notes when they are read, and a run may be about to."""
    drawn = laid(place / "samples" / "1.0" / "image_captioning" / "a_red_ball.png", hours=999)
    new = entry(place, "b")
    prune(place, 2000 / 1e9)
    assert (new.exists(), drawn.exists()) == (False, True)
    assert prune(place, 0).files == 0
    assert not drawn.exists()


def test_nothing_is_removed_that_is_not_ours(place: Path) -> None:
    """Somebody may have chosen her home for the cache."""
    others = [
        laid(place / "thesis.txt"),
        laid(place / "frames" / "notes.txt"),
        laid(place / "photos" / "cat.png"),
        laid(place / ("a" * 63) / "index.json"),
        laid(place / ".making-x" / "texts.arrow"),
        laid(place / ".aside-1-contents.sqlite" / "mine.txt"),
    ]
    entry(place, "c")
    assert prune(place, 0).size == 0
    assert all(path.exists() for path in others)
    assert not (place / ("c" * 64)).exists()


def test_nothing_is_left_that_nobody_uses(place: Path, call: Any) -> None:
    """Also what a killed process had begun, and plans of features that are gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    mine, dead = (f"{MAKING_HERE}{number}-" for number in (os.getpid(), process.pid))
    ours = [
        laid(place / folder / f"{mine}x" / "texts.arrow") for folder in ("", "frames/" + "d" * 32)
    ]
    left = [
        laid(place / folder / f"{dead}x" / "texts.arrow") for folder in ("", "frames/" + "a" * 32)
    ]
    left += [laid(place / f".making-x{at}" / "texts.arrow", hours=25 * at) for at in (0, 1)]
    os.utime(left[-1].parent, (time.time() - 25 * HOUR,) * 2)
    laid(place / "frames" / ("a" * 32) / "plan.json")
    used = laid(place / "frames" / ("d" * 32) / "plan.json")
    entry(place, "b")
    assert call("cache", "--prune", "0").code == 0
    # the third may be of another machine
    assert [path.exists() for path in left] == [False, False, True, False]
    assert not (place / "frames" / ("a" * 32)).exists()
    assert all(path.exists() for path in (*ours, used))


def test_the_command_tells_how_much_there_is_and_makes_it_less(place: Path, call: Any) -> None:
    old, new = (
        laid(place / (letter * 64) / "0.ids", size=30_000_000, hours=hours)
        for letter, hours in (("a", 9), ("b", 1))
    )
    assert call("cache").out.replace("\n", "") == f"{place}: 2 files, 0.06 GB"
    assert (old.exists(), new.exists()) == (True, True)
    assert call("cache", "--prune", "0.05").out.replace("\n", "") == f"{place}: 1 files, 0.03 GB"
    assert (old.exists(), new.exists()) == (False, True)
    assert call("cache", "--prune", "0").out.replace("\n", "") == f"{place}: 0 files, 0.00 GB"
    assert call("cache", "--prune", "-1").sentence.startswith("Invalid value for '--prune': ")


def test_a_limit_that_is_no_number_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry(place, "a")
    for told in ("20GB", "-1", "nan"):
        monkeypatch.setenv("SIXJARS_CACHE_GB", told)
        with pytest.raises(DataError) as caught:
            prune(place)
        sentence = f"SIXJARS_CACHE_GB must be a number of gigabytes, but is {told!r}."
        assert str(caught.value) == sentence
    monkeypatch.setenv("SIXJARS_CACHE_GB", "0.000002")
    assert prune(place).size == 0


def test_it_is_pruned_once_an_hour(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIXJARS_CACHE_GB", "0")
    old, stamp = entry(place, "a"), place / ".pruned"
    sweep(place)  # the first time only notes when
    for minutes in (1, 30, 59):  # however often it is used meanwhile
        before = time.time() - minutes * 60
        os.utime(stamp, (before, before))
        sweep(place)
        assert old.exists()
        assert stamp.stat().st_mtime == pytest.approx(before, abs=1)
    os.utime(stamp, (time.time() - HOUR - 1,) * 2)
    sweep(place)
    assert not old.exists()


def test_sweeping_needs_no_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "never" / "made"))
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_process_made_meanwhile_stays(place: Path) -> None:
    for old in (False, True):
        path = place / "entry"
        if old:
            laid(path / "damaged")
        with made_whole(path) as made:
            made.mkdir()
            (made / "mine").touch()
        assert [one.name for one in path.iterdir()] == ["mine"]
    with pytest.MonkeyPatch.context() as patch, made_whole(path) as made:
        made.mkdir()
        # the other one's came after the old one left
        patch.setattr(Path, "rename", lambda *_: None)
    assert [one.name for one in path.iterdir()] == ["mine"]
    assert [one.name for one in place.iterdir()] == ["entry"]


def test_other_trouble_is_not_taken_for_company(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="Input/output error"), made_whole(place / "file") as made:
        made.touch()


def test_setting_aside(place: Path) -> None:
    file, folder = laid(place / "file"), place / "folder"
    folder.mkdir()
    for wanted, is_folder in (
        (file, False),
        (folder, True),
        (place / "nothing", False),
        (place / "nothing", True),
    ):
        set_aside(wanted, folder=is_folder)
    assert sorted(one.name for one in place.iterdir()) == ["file", "folder"]
    set_aside(file, folder=True)
    set_aside(folder)
    assert [one.name.startswith(cache.ASIDE) for one in place.iterdir()] == [True, True]
