"""What a training took is kept in the run's folder: over all parts, on every device."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import Interrupted
from sixjars.learning.checkpoints import FILE, TrainingCost, TrainingPart, read_cost
from sixjars.learning.loop import Trainer
from tests.unit.conftest import Tired

Maker = Callable[..., str]


def test_seconds_add_up_over_resumed_parts(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out, update = recipe(learning={"epochs": 3}), tmp_path / "run", Trainer.update

    def slow(self: Trainer, load: Any) -> Any:
        time.sleep(0.02)
        return update(self, load)

    monkeypatch.setattr(Trainer, "update", slow)
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
    assert [part.device for part in cost.parts] == ["cpu", "cpu"]
    assert cost.device == "cpu"
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
        *("", "{}", "[]", "[1]", "x" * 1_100_000),
        '[{"seconds": -1, "device": "cpu"}]',
        '[{"seconds": NaN, "device": "cpu"}]',
        '[{"seconds": 1, "device": "cpu", "processes": 0}]',
        json.dumps([{"seconds": 1, "device": "x" * 999}]),
    ],
)
def test_a_damaged_file_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_cost(tmp_path) is None


def test_every_device_is_named_once(tmp_path: Path) -> None:
    parts = [TrainingPart(60.0, "cpu"), TrainingPart(50.0, "cpu", 2), TrainingPart(10.5, "cpu")]
    (tmp_path / FILE).write_text(json.dumps([asdict(part) for part in parts]))
    cost = read_cost(tmp_path)
    assert cost == TrainingCost(tuple(parts))
    assert cost is not None
    assert (cost.seconds, cost.words) == (120.5, "2 min on cpu, cpu × 2 processes")
