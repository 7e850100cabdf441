"""How long a training will take, measured in a few updates in memory."""

import json
import random
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.starter import training_time as budget
from sixjars.starter.training_time import TrainingTime, budget_of, pace
from sixjars.starter.write import new

Call = Callable[..., Any]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def updates(clock: Clock, seconds: Iterator[float]) -> Generator[Any, None, None]:
    for each in seconds:
        clock.now += each
        yield type("Update", (), {"loss": lambda self: 1.0})()


def pairs(folder: Path, rows: int = 300) -> Path:
    draw, file = random.Random(0), folder / "pairs.tsv"
    words = [f"word{number}" for number in range(50)]
    lines = (
        " ".join(draw.choices(words, k=6)) + "\t" + " ".join(draw.choices(words, k=5))
        for _ in range(rows)
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_the_first_updates_are_not_counted() -> None:
    clock = Clock()
    assert pace(updates(clock, iter([1.0, 0.5, 0.5, *[0.02, 0.04] * 20])), clock) == pytest.approx(
        0.03
    )


def test_it_ends_in_time_however_slow_updates_are() -> None:
    clock = Clock()
    assert pace(updates(clock, iter([100.0] * 9)), clock) == 100.0
    assert clock.now == 200.0  # after one
    clock = Clock()
    assert pace(updates(clock, iter([1.0] * 999)), clock) == 1.0
    assert clock.now - 100.0 <= budget.LONGEST
    clock = Clock()
    pace(updates(clock, iter([0.001] * 999)), clock)
    assert clock.now - 100.0 == pytest.approx((budget.WARM + budget.ENOUGH) * 0.001)


def test_an_epoch_of_few_updates() -> None:
    clock = Clock()
    assert pace(updates(clock, iter([5.0, 1.0])), clock) == 1.0


def test_a_shorter_budget_costs_what_the_table_says() -> None:
    long = TrainingTime(12_000, 0.045, "2 CPU cores")
    assert long.sentences[1:] == [
        "It stops earlier when validation no longer improves.",
        "`learning.steps=3000` would take 2 min; on our benchmarks that costs about 1.4 points.",
    ]
    quick = TrainingTime(1_000, 0.002, "1 CPU core", trainings=6, stops=False)
    assert quick.sentences == [
        "6 trainings of up to 1,000 updates, about 12 s on this machine (2.0 ms each, 1 CPU core; validation not "
        "counted)."
    ]


def test_real_updates_of_a_starter_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SIXJARS_COMPILE", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(budget, "ENOUGH", 1)
    new("a.yaml", task="translation", data=pairs(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    found = budget_of("a.yaml", device="cpu")
    assert sorted(tmp_path.rglob("*")) == before
    assert found is not None
    assert found.updates == sixjars.read_recipe("a.yaml").learning.steps
    assert (found.trainings, found.stops, found.where[-8:]) == (1, True, "CPU core")
    assert 0 < found.seconds < 10


def test_some_rows_of_many_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plan is in epochs, they have the updates of all rows."""
    monkeypatch.setattr(budget, "ENOUGH", 1)
    new(tmp_path / "a.yaml", task="translation", data=pairs(tmp_path))
    recipe = sixjars.read_recipe(str(tmp_path / "a.yaml")).model_dump(mode="json")
    recipe["learning"] |= {"epochs": 4, "steps": None, "batch_tokens": None, "batch_examples": 10}
    (tmp_path / "b.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    whole = budget_of(tmp_path / "b.yaml", device="cpu")
    monkeypatch.setattr(budget, "MOST_CHARACTERS", 5_000)
    some = budget_of(tmp_path / "b.yaml", device="cpu")
    assert whole is not None
    assert some is not None
    assert whole.updates == pytest.approx(4 * 255 / 10, rel=0.1)
    assert some.updates == pytest.approx(whole.updates, rel=0.2)


def test_labels_that_take_turns_are_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tenth row has the same label; no estimate was shown."""
    monkeypatch.setattr(budget, "ENOUGH", 1)
    monkeypatch.setattr(budget, "MOST_CHARACTERS", 2_000)
    rows = "".join(f"a text of some words {number}\t{'ab'[number % 2]}\n" for number in range(800))
    (tmp_path / "rows.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    new(tmp_path / "a.yaml", task="document_classification", data=tmp_path / "rows.tsv")
    found = budget_of(tmp_path / "a.yaml", device="cpu")
    assert found is not None
    assert found.trainings == 6


def test_nothing_is_measured_where_that_would_not_be_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*given: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(budget, "_trainer", trained)
    new(tmp_path / "none.yaml", task="translation")
    assert budget_of(tmp_path / "none.yaml") is None  # there is no data
    new(tmp_path / "images.yaml", task="image_classification")
    assert budget_of(tmp_path / "images.yaml") is None
    new(tmp_path / "a.yaml", task="translation", data=pairs(tmp_path))
    monkeypatch.setattr(budget, "MOST_BYTES", 100)
    assert budget_of(tmp_path / "a.yaml") is None


def test_data_that_cannot_be_trained_on_is_for_train_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*given: Any) -> None:
        raise DataError("no.")

    def full(*given: Any) -> None:
        raise RuntimeError("CUDA out of memory.")

    new(tmp_path / "a.yaml", task="translation", data=pairs(tmp_path))
    for fails in (refuses, full):
        monkeypatch.setattr(budget, "_trainer", fails)
        assert budget_of(tmp_path / "a.yaml") is None


@pytest.mark.usefixtures("measured")
def test_new_says_it_after_what_it_wrote(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "ENOUGH", 1)
    given = ["--task", "translation", "--data", pairs(tmp_path)]
    said = call("new", tmp_path / "a.yaml", *given)
    lines = said.err.splitlines()
    at = lines.index(f"wrote {tmp_path / 'a.yaml'}; next: sixjars train {tmp_path / 'a.yaml'}")
    assert lines[at + 1].startswith("up to 2,600 updates, about ")
    assert lines[at + 2] == "It stops earlier when validation no longer improves."
    assert "updates" not in call("new", tmp_path / "b.yaml", *given, "--no-estimate").err
    assert "updates" not in call("new", tmp_path / "c.yaml", "--task", "translation").err
