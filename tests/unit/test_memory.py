"""What cannot fit into memory is refused before it is begun, in a sentence that says how much and what to lower."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sixjars_runtime

import sixjars
from sixjars.errors import DataError
from sixjars.flow import memory

SENTENCE = r"^this search needs about .* of memory for 2 x 4,000 rows, a vocabulary of \d+ and up to 12 steps, but 1 MB "


def write(path: Path, text: str) -> None:
    """A file in folders that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 1,000 kB of free memory, and a folder of control groups."""
    write(tmp_path / "meminfo", "MemTotal: 9000 kB\nMemAvailable:    1000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


def test_free_memory_is_that_of_the_machine_or_of_a_group(machine: Path) -> None:
    assert memory.free_memory() == 1_024_000
    write(machine / "groups/memory.max", "max\n")
    write(machine / "groups/memory.current", "5\n")
    assert memory.free_memory() == 1_024_000
    write(machine / "groups/memory.max", "500000\n")
    write(machine / "groups/memory.current", "450000\n")
    write(machine / "groups/memory.stat", "anon 3\ninactive_file 10000\n")
    assert memory.free_memory() == 60_000
    write(machine / "groups/memory/memory.limit_in_bytes", "40000\n")
    write(machine / "groups/memory/memory.usage_in_bytes", "30000\n")
    write(machine / "groups/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 9\n")
    assert memory.free_memory() == 10_009
    write(machine / "groups/memory/memory.usage_in_bytes", "90000\n")
    assert memory.free_memory() == 0


def test_where_nobody_says_nothing_is_refused(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "meminfo").unlink()
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.free_memory() is None
    memory.SearchSize(10**6, 10**6, 10**6, 10**6, 10**6, 10**6, beam=True).check(None)


@pytest.mark.parametrize("how", [{"search": "beam", "width": 4000}, {"search": "sample", "nbest": 4000}], ids=str)
@pytest.mark.parametrize("where", ["toolkit", "runtime"])
def test_a_search_that_does_not_fit(
    run: Path, exported: Path, how: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = sixjars.load(run, device="cpu") if where == "toolkit" else sixjars_runtime.load(exported)
    module = "sixjars.evaluation.search" if where == "toolkit" else "sixjars_runtime.model"
    asked: list[int] = []

    def free() -> int:
        asked.append(1)
        return 10**6

    monkeypatch.setattr(f"{module}.free_memory", free)
    error = DataError if where == "toolkit" else sixjars_runtime.SixJarsError
    with pytest.raises(error, match=SENTENCE):
        model.predict(["ghar", "namaste"], **how)
    assert asked == [1]
    assert model.predict(["ghar", "namaste"], search="beam", width=20)[0].text
    assert asked == [1]  # a search of few rows is never estimated


def test_an_estimate_is_of_the_order_of_what_is_taken(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch counts what it allocates: an estimate must neither refuse what would fit, nor be of no use."""
    from torch.profiler import ProfilerActivity, profile

    sizes: list[memory.SearchSize] = []
    monkeypatch.setattr(memory.SearchSize, "check", lambda size, free: sizes.append(size))
    predictor = sixjars.load(run, device="cpu")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        predictor.predict(["ghar", "namaste"], search="beam", width=2500)
    live = most = 0
    for event in profiled.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    [size] = sizes
    assert 0.4 * size.bytes < most < 20 * size.bytes
