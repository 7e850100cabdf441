"""`--resume` of what cannot be gone on with: one sentence each, at once, and nothing is changed."""

import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sixjars
from sixjars.errors import RunError
from sixjars.learning.checkpoints import load_tensors, save_tensors

from .conftest import contents

Tensors = dict[str, Tensor]
Change = Callable[[Tensors, dict[str, Any]], object]


FITS = "does not fit the recipe beside it: "
WRONG = "has a training state that cannot be right: "


def refusal(recipe: str, folder: Path) -> str:
    """Why a run is not gone on with; it may not change, and its weights can still be used."""
    before = contents(folder)
    with pytest.raises(RunError) as caught:
        sixjars.train(recipe, out=folder, resume=True)
    assert contents(folder) == before
    assert sixjars.load(folder).predict(["namaste"])[0].text
    told = str(caught.value)
    assert "\n" not in told
    assert len(told) < 500
    return told.removeprefix(str(folder / "checkpoints" / "last.safetensors") + " ")


@pytest.mark.parametrize("damage", ["cut", "noise", "another", "flipped"])
def test_a_damaged_file(damage: str, run_recipe: str, copy: Path) -> None:
    last = copy / "checkpoints" / "last.safetensors"
    content, told = last.read_bytes(), "is damaged: "
    contents = {
        "cut": content[: len(content) // 2],
        "noise": random.Random(0).randbytes(1000),
        "flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        "another": (copy / "model.safetensors").read_bytes(),
    }
    last.write_bytes(contents[damage])
    if damage == "another":
        told = f"{FITS}decoder.bridge.first.project.bias is (8,), but should be nothing."
    assert refusal(run_recipe, copy).startswith(told)


def changed(folder: Path, change: Change) -> None:
    """What a stranger may do to a saved state: its check sum is right."""
    last = folder / "checkpoints" / "last.safetensors"
    tensors, notes = load_tensors(last)
    change(tensors, notes)
    save_tensors(last, tensors, notes)


ZEROS = torch.zeros
TENSORS: list[tuple[str, Tensor | None, str]] = [
    ("optimizer.3.exp_avg_sq", None, f"{FITS}optimizer.3.exp_avg_sq is nothing, but should be ("),
    ("optimizer.0.exp_avg", ZEROS(()), f"{FITS}optimizer.0.exp_avg is (), but should be ("),
    ("optimizer.2.exp_avg", ZEROS(3, 5), f"{FITS}optimizer.2.exp_avg is (3, 5), but should be ("),
    ("optimizer.1.step", ZEROS(9), f"{FITS}optimizer.1.step is (9,), but should be ()."),
    (
        "optimizer.-1.exp_avg",
        ZEROS(3),
        f"{FITS}optimizer.-1.exp_avg is (3,), but should be nothing.",
    ),
    (
        "optimizer.0.momentum_buffer",
        ZEROS(3),
        f"{FITS}optimizer.0.momentum_buffer is (3,), but should be nothing.",
    ),
    (
        "optimizer.0.step",
        torch.tensor(math.nan),
        f"{WRONG}optimizer.0.step is nan, after 100 steps.",
    ),
    ("optimizer.0.step", torch.tensor(-3.0), f"{WRONG}optimizer.0.step is -3, after 100 steps."),
    (
        "model.decoder.output.bias",
        ZEROS(2),
        f"{FITS}model.decoder.output.bias is (2,), but should be (",
    ),
]


@pytest.mark.parametrize(("name", "tensor", "told"), TENSORS)
def test_tensors_that_do_not_fit(
    name: str, tensor: Tensor | None, told: str, run_recipe: str, copy: Path
) -> None:
    """One that is missing, or of another shape, or more than it needs, or no number."""

    def change(tensors: Tensors, notes: dict[str, Any]) -> None:
        tensors.pop(name, None)
        tensors |= {} if tensor is None else {name: tensor}

    changed(copy, change)
    assert refusal(run_recipe, copy).startswith(told)


def test_a_state_without_any_memory(run_recipe: str, copy: Path) -> None:
    def change(tensors: Tensors, notes: dict[str, Any]) -> None:
        for name in [name for name in tensors if name.startswith("optimizer.")]:
            del tensors[name]

    changed(copy, change)
    lacks = "optimizer.0.exp_avg is nothing, but should be ("
    assert refusal(run_recipe, copy).startswith(f"{FITS}{lacks}")


BELONGS = "does not belong to this recipe: it stands at step"
BEST = [[0.5, 1.5, 4]]
STATES: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"step": -1}, f"{WRONG}step is -1."),
    "negative length": ({"log_bytes": -80}, f"{WRONG}log_bytes is -80."),
    "text": ({"epoch": "25"}, f"{WRONG}epoch is '25'."),
    "nothing": ({"tokens": None}, f"{WRONG}tokens is None."),
    "no number": ({"loss": math.nan}, f"{WRONG}loss is nan."),
    "best is no number": ({"best": [[math.nan, 1.5, 4]]}, f"{WRONG}best.0.0 is nan."),
    "enormous": ({"halvings": 10**300}, f"{WRONG}halvings is 1"),
    "stale": ({"stale": 101}, f"{WRONG}its counts do not agree with 100 steps."),
    "far beyond the plan": (
        {"step": 10**9, "done_in_epoch": 10**9, "epoch": 0, "finished": False},
        f"{BELONGS} 1000000000, 1000000000 of epoch 1.",
    ),
    "beyond the end": (
        {"step": 104, "epoch": 26, "finished": False},
        f"{BELONGS} 104, 0 of epoch 27.",
    ),
    "a position outside its epoch": (
        {"step": 8, "epoch": 0, "done_in_epoch": 8, "best": BEST, "finished": False},
        f"{BELONGS} 8, 8 of epoch 1.",
    ),
    "updates and epochs differ": (
        {"step": 50, "epoch": 20, "best": BEST, "finished": False},
        f"{BELONGS} 50, 0 of epoch 21.",
    ),
    "not finished at the end": ({"finished": False}, f"{BELONGS} 100, 0 of epoch 26."),
    "finished too soon": ({"step": 8, "epoch": 2, "best": BEST}, f"{BELONGS} 8, 0 of epoch 3."),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", STATES)
def test_states_that_cannot_be_right(kind: str, run_recipe: str, copy: Path) -> None:
    """Through `sixjars.train(resume=True)`, which may neither hang nor begin anew."""
    changes, told = STATES[kind]

    def change(tensors: Tensors, notes: dict[str, Any]) -> None:
        state = notes["state"]
        assert (state["step"], state["epoch"], state["finished"]) == (100, 25, True)
        notes["state"] |= changes
        for name in [name for name in tensors if name.endswith(".step")]:
            tensors[name] = torch.tensor(float(min(100, max(0, notes["state"]["step"]))))

    changed(copy, change)
    assert refusal(run_recipe, copy).startswith(told)


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ({"precision": {}}, f"{WRONG}'state' is missing."),
        ({"precision": {}, "state": {}}, f"{WRONG}state is {{}}."),
        ({"precision": {}, "state": [1, 2]}, f"{WRONG}state is [1, 2]."),
        ({"state": None}, f"{WRONG}'precision' is missing."),
        ({"state": None, "precision": {"scale": "x"}}, f"{WRONG}precision is {{'scale': 'x'}}."),
    ],
)
def test_notes_that_are_not_those_of_training(
    notes: dict[str, Any], told: str, run_recipe: str, copy: Path
) -> None:
    def change(tensors: Tensors, found: dict[str, Any]) -> None:
        kept = found["state"]
        found.clear()
        found.update({key: kept if value is None else value for key, value in notes.items()})

    changed(copy, change)
    assert refusal(run_recipe, copy).startswith(told)


def test_best_weights_of_another_network(recipe: Callable[..., str], tmp_path: Path) -> None:
    """They are read at the end, when their mean is made."""
    name, folder = recipe(learning={"average": 2}), tmp_path / "run"
    sixjars.train(name, out=folder)
    best = min(folder.glob("checkpoints/best-*.safetensors"))
    tensors, _ = load_tensors(best)
    save_tensors(best, {**tensors, "decoder.output.bias": torch.zeros(2)}, {})
    told = rf"^{best} {FITS}decoder.output.bias is \(2,\), but should be \("
    with pytest.raises(RunError, match=told):
        sixjars.train(name, out=folder, resume=True)
    best.unlink()
    with pytest.raises(RunError, match=rf"^{best} does not exist\.$"):
        sixjars.train(name, out=folder, resume=True)


def test_resume_with_another_recipe_is_refused(call: Any, run_recipe: str, run: Path) -> None:
    before = contents(run)
    same = f"Resume with the same one; {run}/recipe.yaml is what it was begun with, overrides included."
    resumed = ("train", run_recipe, "--out", run, "--resume")
    said = call(*resumed, "learning.rate=0.5", "model.encoder.cell=lstm")
    assert said.sentence == (
        f"{run} was begun with another recipe: model.encoder.cell was 'gru' and is 'lstm'; "
        f"learning.rate was 0.03 and is 0.5. {same}"
    )
    told = f"{run} was begun with another recipe: learning.seed was 0 and is 5. {same}"
    assert call(*resumed, "--seed", 5).sentence == told
    assert contents(run) == before


def test_a_run_is_never_overwritten(call: Any, run_recipe: str, run: Path) -> None:
    before = contents(run)
    told = f"{run} already holds a run. Go on with --resume, or choose another folder with --out."
    assert call("train", run_recipe, "--out", run).sentence == told
    assert contents(run) == before


@pytest.mark.parametrize(
    "lost", [["checkpoints"], ["checkpoints", "scores.json"], ["checkpoints", "log.jsonl"]]
)
def test_a_trained_model_without_a_state_is_not_overwritten(
    lost: list[str], run_recipe: str, copy: Path
) -> None:
    for name in lost:
        shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()
    assert refusal(run_recipe, copy) == (
        f"{copy} holds a trained model (model.safetensors), but no training state to resume from "
        "(checkpoints/last.safetensors). Choose another folder with --out; to fine-tune this "
        "model, also say "
        f"--from {copy}."
    )


@pytest.mark.parametrize(
    "kept", ["model.safetensors", "checkpoints/last.safetensors", "log.jsonl", "scores.json"]
)
@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_what_is_left_of_a_run_is_not_overwritten(
    more: list[str], kept: str, call: Any, run_recipe: str, run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "left"
    (folder / kept).parent.mkdir(parents=True)
    shutil.copy(run / kept, folder / kept)
    before = contents(folder)
    said = call("train", run_recipe, "--out", folder, *more)
    assert said.sentence == (
        f"{folder} holds {kept} of a run, but no recipe.yaml, so it is neither resumed nor "
        "overwritten. "
        "Bring recipe.yaml back, or choose another folder with --out."
    )
    assert "there is no run" not in said.err
    assert contents(folder) == before


def test_data_that_changed_is_refused(call: Any, tmp_path: Path) -> None:
    """A set held out of a changed file would hold what was trained on."""
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"word{n}\twort{n}\n" for n in range(40)), encoding="utf-8")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "task: translation\ndata: "
        f"{{train: {pairs}, source: {{column: 1}}, target: {{column: 2}}}}\n"
        "model: {encoder: {size: 4}, decoder: {size: 4}}\nlearning: {steps: 1}\n",
        encoding="utf-8",
    )
    arguments = ["train", recipe, "--out", tmp_path / "run"]
    assert call(*arguments).code == 0
    assert call("evaluate", tmp_path / "run").code == 0
    pairs.write_text("".join(f"word{n}\twort{n}\n" for n in range(30)), encoding="utf-8")
    told = f"the data of {tmp_path / 'run'} has changed since it was begun (the training set). Bring it back as it was"
    assert call(*arguments, "--resume").sentence.startswith(told)
    assert call("evaluate", tmp_path / "run").sentence.startswith(told)
    assert call("evaluate", tmp_path / "run", "--data", pairs).code == 0
    (tmp_path / "run" / "run.json").write_text('{"format": 2}', encoding="utf-8")
    line = "is missing or damaged, so its data cannot be checked."
    assert call("evaluate", tmp_path / "run").sentence.endswith(line)
    (tmp_path / "run" / "run.json").unlink()
    line = "is missing or damaged, so its data cannot be checked."
    assert call("evaluate", tmp_path / "run").sentence.endswith(line)


def test_a_run_that_was_killed_before_its_first_state_begins_again(
    recipe: Callable[..., str], tmp_path: Path
) -> None:
    """Its first weights are written already, and one line of the log before them."""
    name, folder = recipe(), tmp_path / "run"
    sixjars.train(name, out=folder)
    whole, log = contents(folder), folder / "log.jsonl"
    shutil.rmtree(folder / "checkpoints")
    (folder / "scores.json").unlink()
    log.write_text(log.read_text().splitlines()[0] + "\n")
    sixjars.train(name, out=folder, resume=True)
    after = contents(folder)
    assert all(after[file] == whole[file] for file in ("model.safetensors", "log.jsonl"))
