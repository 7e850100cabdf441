"""One update: the loss over all its tokens, and batches made while another is computed."""

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import nn, optim

import sixjars
from sixjars.data.flat import ahead
from sixjars.errors import DataError
from sixjars.progress import Reporter


def test_the_next_is_made_while_the_present_one_is_used() -> None:
    made = {number: threading.Event() for number in range(3)}

    def make(number: int) -> int:
        made[number].set()
        return number

    got = ahead(make, range(3))
    assert next(got) == 0
    assert made[1].wait(5)
    assert not made[2].is_set()
    assert list(got) == [1, 2]


def test_what_goes_wrong_is_told_in_its_turn() -> None:
    def make(number: int) -> int:
        if number == 1:
            raise DataError("the second is damaged.")
        return number

    got = ahead(make, [0, 1, 2])
    assert next(got) == 0
    with pytest.raises(DataError, match="the second is damaged"):
        next(got)


def test_nothing_of_nothing() -> None:
    assert list(ahead(str, [])) == []


def test_an_update_is_the_same_however_its_rows_are_cut_into_batches(
    recipe: Callable[..., str], tmp_path: Path
) -> None:
    """The loss is that of a token, on average over all batches; no mean of means."""
    learning = {"epochs": 1, "optimizer": "sgd", "rate": 1.0, "clip": None}
    cuts: dict[str, dict[str, float]] = {
        "whole": {"batch_examples": 64},
        "cut": {"batch_examples": 5, "accumulate": 100},
        "untouched": {"batch_examples": 64, "rate": 1e-9},
    }
    weights, losses = {}, {}
    for name, cut in cuts.items():
        made = sixjars.train(recipe(learning={**learning, **cut}), out=tmp_path / name)
        weights[name] = load_file(made.folder / "model.safetensors")
        losses[name] = made.history[-1]["train_loss"]
    assert losses["cut"] == pytest.approx(losses["whole"], rel=1e-5)
    moved = 0.0
    for name, whole in weights["whole"].items():
        moved = max(moved, float((whole - weights["untouched"][name]).abs().max()))
        # A sum of 64 rows in another order: some 64 roundings of 6e-8, of numbers around 1.
        assert float((whole - weights["cut"][name]).abs().max()) < 4e-6, name
    assert moved > 1e-2


def test_an_update_moves_no_further_than_its_clipped_gradient(
    recipe: Callable[..., str], tmp_path: Path
) -> None:
    """One step of plain gradient descent at the rate 1: as long as the norm of the gradient."""
    learning = {"steps": 1, "epochs": None, "optimizer": "sgd", "momentum": 0.0}
    kept = {}
    for name, rate in (("before", 1e-30), ("after", 1.0)):
        settings = {**learning, "rate": rate, "clip": 0.01, "schedule": "constant", "warmup": 0}
        folder = sixjars.train(recipe(learning=settings), out=tmp_path / name).folder
        kept[name] = load_file(folder / "model.safetensors")
    moves = [
        (kept["after"][name] - before).square().sum() for name, before in kept["before"].items()
    ]
    assert math.sqrt(sum(moves)) == pytest.approx(0.01, rel=1e-3)


def test_the_logged_loss_is_that_since_the_last_validation(
    recipe: Callable[..., str], tmp_path: Path
) -> None:
    losses: list[float] = []

    class Noting(Reporter):
        def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
            losses.append(loss)

    run = sixjars.train(recipe(learning=EIGHT), out=tmp_path / "run", reporter=Noting())
    assert len(losses) == 8
    assert [record["train_loss"] for record in run.history] == pytest.approx(losses)


def logged(recipe: str, out: Path) -> list[dict[str, float]]:
    lines = (sixjars.train(recipe, out=out).folder / "log.jsonl").read_text().splitlines()
    assert len(lines) == 8
    return [json.loads(line) for line in lines]


EIGHT: dict[str, Any] = {"epochs": 2, "validate_every": 1}


def test_every_update_has_its_own_rate(recipe: Callable[..., str], tmp_path: Path) -> None:
    """Warm-up begins with the first update, and the cosine ends at 0 with the last."""
    learning = {**EIGHT, "rate": 0.01, "schedule": "cosine", "warmup": 3}
    found = [record["rate"] for record in logged(recipe(learning=learning), tmp_path / "run")]
    assert found[:3] == pytest.approx([0.01 / 3, 0.02 / 3, 0.01])
    assert found[2:] == pytest.approx(
        [0.005 * (1 + math.cos(math.pi * step / 5)) for step in range(6)]
    )


def test_without_learning_nothing_improves(recipe: Callable[..., str], tmp_path: Path) -> None:
    """Plateau halves the rate as torch does, and each loss is that of its own updates."""
    learning = {
        **EIGHT,
        "rate": 1e-30,
        "optimizer": "sgd",
        "schedule": "plateau",
        "plateau_patience": 2,
    }
    found = logged(recipe(learning=learning), tmp_path / "run")
    optimizer = optim.SGD([nn.Parameter()], lr=1e-30)
    theirs = optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=2, threshold=0.0, eps=0.0
    )
    wanted = []
    for record in found:
        wanted.append(optimizer.param_groups[0]["lr"])
        theirs.step(record["loss"])
    assert [record["rate"] for record in found] == wanted
    assert wanted[-1] < 1e-30
    losses = [record["train_loss"] for record in found]
    assert max(losses) < 1.2 * min(losses)  # batches differ; a sum over two would be twice as much
