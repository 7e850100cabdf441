"""What a training took is kept in the run's folder: over all parts, on every device, and not where it is not known."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import sixjars
from sixjars.errors import Interrupted
from sixjars.learning.cost import FILE, Part, TrainingCost, device_name, read_cost
from sixjars.learning.loop import Trainer
from tests.unit.conftest import Tired

Maker = Callable[..., str]


def test_seconds_add_up_over_resumed_parts(recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, out, update = recipe(learning={"epochs": 3}), tmp_path / "run", Trainer._update

    def slow(self: Trainer, load: Any) -> Any:
        time.sleep(0.02)
        return update(self, load)

    monkeypatch.setattr(Trainer, "_update", slow)
    begun = time.monotonic()
    with pytest.raises(Interrupted):
        sixjars.train(name, out=out, device="cpu", reporter=Tired(5))
    first = read_cost(out)
    assert first is not None
    assert [(part.device, part.processes) for part in first.parts] == [("cpu", 1)]
    assert 0.1 <= first.seconds <= time.monotonic() - begun
    begun = time.monotonic()
    run = sixjars.train(name, out=out, device="cpu", resume=True)
    cost = run.cost
    assert cost is not None
    assert len(cost.parts) == 1
    left = run.history[-1]["step"] - 6  # the update after the wish was made
    assert left > 1
    assert first.seconds + 0.02 * left <= cost.seconds <= first.seconds + time.monotonic() - begun


def test_a_run_that_did_not_note_it_stays_without(recipe: Maker, tmp_path: Path) -> None:
    """It opens, is resumed and compared; seconds of its last part alone would be wrong."""
    name, out = recipe(learning={"epochs": 3}), tmp_path / "run"
    with pytest.raises(Interrupted):
        sixjars.train(name, out=out, device="cpu", reporter=Tired(3))
    (out / FILE).unlink()
    run = sixjars.train(name, out=out, device="cpu", resume=True)
    assert run.cost is None
    assert not (out / FILE).exists()
    found = sixjars.compare([run, run], out=tmp_path / "t.md", device="cpu").contenders[0].cost
    assert found is not None
    assert (found.seconds, found.trained_on) == (None, "")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "[1]", "x" * 99_999),
        '[{"seconds": -1, "device": "cpu"}]',
        '[{"seconds": NaN, "device": "cpu"}]',
        '[{"seconds": 1, "device": "cpu", "processes": 0}]',
        json.dumps([{"seconds": 1, "device": "x" * 999}]),
    ],
)
def test_a_damaged_file_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_cost(tmp_path) is None


def test_other_devices_are_parts_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = TrainingCost().plus(Part(60.0, "cpu")).plus(Part(50.0, "cpu", 2)).plus(Part(10.5, "cpu"))
    assert cost.parts == (Part(70.5, "cpu"), Part(50.0, "cpu", 2))
    assert cost.words == "2 min on cpu, cpu × 2 processes"
    (tmp_path / FILE).write_bytes(cost.to_json())
    assert read_cost(tmp_path) == cost
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert device_name(torch.device("cuda", 0)) == "cuda (NVIDIA H200)"
