"""What `train` says at its end: stopped early, or still improving when its updates were made."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import sixjars
from sixjars.progress import Reporter
from sixjars.runs.training.trend import still_improves

Recipe = Callable[..., str]


class Kept(Reporter):
    """Remembers why training ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def stopped(self, sentence: str) -> None:
        self.ends.append(sentence)


def ends_of(name: str, folder: Path, *overrides: str, resume: bool = False) -> list[str]:
    kept = Kept()
    sixjars.train(name, overrides, out=folder, resume=resume, reporter=kept)
    return kept.ends


def steps_of(folder: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]


def test_training_that_still_improved_says_so_and_how_to_go_on(
    recipe: Recipe, tmp_path: Path
) -> None:
    learning = {"epochs": ..., "steps": 15, "validate_every": 3, "metric": "loss", "rate": 0.03}
    name, folder = recipe(learning=learning), tmp_path / "r"
    said = ends_of(name, folder)
    assert said == [
        "it was still improving when it stopped, at step 15 of 15 (loss of the last validation is "
        "the best): "
        "`--resume learning.steps=30` continues."
    ]
    override = said[0].partition("--resume ")[2].partition("`")[0]
    ends_of(name, folder, override, resume=True)
    assert steps_of(folder) == [*range(3, 31, 3)]
    assert ends_of(name, folder, override, resume=True) == []  # is only scored again


def test_epochs_are_named_where_they_ended_it(recipe: Recipe, tmp_path: Path) -> None:
    [said] = ends_of(recipe(learning={"epochs": 4, "metric": "loss", "rate": 0.03}), tmp_path / "r")
    assert "`--resume learning.epochs=8` continues." in said


def test_patience_counts_validations_within_epochs(recipe: Recipe, tmp_path: Path) -> None:
    """Epochs are only the upper bound: with 4 updates each, training ends within the second."""
    learning = {
        "epochs": 50,
        "validate_every": 3,
        "patience": 1,
        "rate": 1e-12,
        "metric": "character_error_rate",
    }
    [said] = ends_of(recipe(learning=learning), tmp_path / "r")
    step = steps_of(tmp_path / "r")[-1]
    assert said == (
        f"stopped early at step {step} of 200: character_error_rate has not improved for 1 "
        "validation (learning.patience); the best weights are kept."
    )
    assert len(steps_of(tmp_path / "r")) < 40
    assert steps_of(tmp_path / "r")[-1] % 3 == 0
    log = (tmp_path / "r" / "log.jsonl").read_text().splitlines()
    scores = [(each["character_error_rate"], each["loss"]) for each in map(json.loads, log)]
    assert scores.index(min(scores)) == len(scores) - 2  # one validation was no better


def test_a_model_that_does_not_learn_is_not_said_to_improve(recipe: Recipe, tmp_path: Path) -> None:
    learning = {"epochs": 4, "rate": 1e-9, "metric": "loss"}
    assert ends_of(recipe(learning=learning), tmp_path / "r") == []


@pytest.mark.parametrize(
    ("scores", "improves"),
    [
        ((0.1, 0.2, 0.3), False),  # too few to tell
        ((0.1, 0.2, 0.3, 0.4), True),
        ((0.1, 0.2, 0.4, 0.3), False),  # the last is not the best
        ((0.5, 0.7, 0.9, 0.901), False),  # hardly better
        ((0.0, 0.0, 0.0, 0.0), True),  # says nothing yet; the loss below falls
        ((1.0, 1.0, 1.0, 1.0), False),  # cannot be better, though the loss falls
    ],
)
def test_when_scores_still_improve(scores: tuple[float, ...], improves: bool) -> None:
    history = [{"bleu": score, "loss": 5.0 - at} for at, score in enumerate(scores)]
    assert still_improves(history, "bleu", "higher") is improves
