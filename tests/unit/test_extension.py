"""Going on beyond the end of a run, and `--resume` where there is none yet."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.errors import Interrupted, RunError

from .conftest import contents
from .trained import assert_same

Recipe = Callable[..., str]


def test_an_extended_run_is_as_if_trained_so_long_at_once(recipe: Recipe, tmp_path: Path) -> None:
    name = recipe(learning={"average": 2})
    sixjars.train(name, out=tmp_path / "short")
    sixjars.train(name, ["learning.epochs=5"], out=tmp_path / "short", resume=True)
    sixjars.train(name, ["learning.epochs=5"], out=tmp_path / "long")
    names = ("model.safetensors", "log.jsonl", "recipe.yaml", "scores.json")
    last = "checkpoints/last.safetensors"
    assert_same(tmp_path / "short", tmp_path / "long", *names, last)
    facts = json.loads((tmp_path / "short" / "run.json").read_text())
    assert facts["extended"] == [{"learning.epochs": 2}]


def test_a_run_that_steps_ended_goes_on_in_the_middle_of_its_epoch(
    recipe: Recipe, tmp_path: Path
) -> None:
    name = recipe()
    sixjars.train(name, ["learning.steps=3"], out=tmp_path / "short")
    sixjars.train(name, ["learning.steps=7"], out=tmp_path / "short", resume=True)
    log = (tmp_path / "short" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [3, 4, 7]


def test_without_a_change_not_a_byte_changes(recipe: Recipe, tmp_path: Path) -> None:
    name, folder = recipe(), tmp_path / "run"
    sixjars.train(name, out=folder)
    before = contents(folder)
    sixjars.train(name, out=folder, resume=True)
    assert contents(folder) == before


def test_the_same_command_serves_an_extension_that_was_stopped(
    recipe: Recipe, tmp_path: Path, tired: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder, longer = recipe(), tmp_path / "run", ["learning.epochs=5"]
    sixjars.train(name, out=folder)

    def killed(trainer: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # after the new end was noted, before anything was saved
        patch.setattr("sixjars.learning.loop.Trainer.run", killed)
        with pytest.raises(Interrupted):
            sixjars.train(name, longer, out=folder, resume=True)
    with pytest.raises(Interrupted):
        sixjars.train(name, longer, out=folder, resume=True, reporter=tired(2))
    sixjars.train(name, longer, out=folder, resume=True)
    sixjars.train(name, longer, out=tmp_path / "long")
    assert_same(folder, tmp_path / "long", "model.safetensors")


def test_what_may_change_and_what_may_not(call: Any, recipe: Recipe, tmp_path: Path) -> None:
    name, folder = recipe(learning={"patience": 1, "rate": 1e-9, "epochs": 9}), tmp_path / "run"
    sixjars.train(name, ["learning.metric=character_error_rate"], out=folder)
    arguments = ["train", name, "learning.metric=character_error_rate", "--out", folder, "--resume"]
    changes = ("learning.epochs=12", "evaluation.search.max_length=5", "learning.save_seconds=9")
    said = call(*arguments, *changes)
    assert said.complaints == [
        f"note: {folder} goes on with changes: learning.epochs was 9 and is 12; "
        "learning.save_seconds was 60.0 and is 9.0; "
        "evaluation.search.max_length was 12 and is 5.",
        "note: nothing is left to train; raise learning.epochs, or learning.patience where it "
        "stopped early.",
    ]
    kept = yaml.safe_load((folder / "recipe.yaml").read_text())
    assert (kept["learning"]["epochs"], kept["evaluation"]["search"]["max_length"]) == (12, 5)
    told = f"{folder} was begun with another recipe: learning.rate was 1e-09 and is 0.5. Resume with the same one; "
    told += f"{folder}/recipe.yaml is what it was begun with, overrides included."
    assert call(*arguments, "learning.epochs=12", "learning.rate=0.5").sentence == told
    assert call(*arguments, "learning.patience=3", "learning.epochs=3").code == 0


def test_a_run_is_not_shortened(recipe: Recipe, tmp_path: Path) -> None:
    name, folder = recipe(), tmp_path / "run"
    sixjars.train(name, out=folder)
    before = (folder / "recipe.yaml").read_bytes()
    with pytest.raises(RunError) as caught:
        sixjars.train(name, ["learning.epochs=1"], out=folder, resume=True)
    assert str(caught.value) == (
        f"{folder} has made 8 updates already, but learning.epochs and learning.steps now allow 4; "
        "a run can be extended, not shortened."
    )
    assert (folder / "recipe.yaml").read_bytes() == before


def test_resume_begins_a_run_where_there_is_none(call: Any, recipe: Recipe, tmp_path: Path) -> None:
    name = recipe()
    said = call("train", name, "--out", tmp_path / "run", "--resume")
    assert said.code == 0
    told = f"note: there is no run in {tmp_path / 'run'} to resume yet, so one is begun."
    assert said.err.splitlines()[0] == told
    sixjars.train(name, out=tmp_path / "plain")
    assert_same(tmp_path / "run", tmp_path / "plain", "model.safetensors")
