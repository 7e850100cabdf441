"""Backbones in runs: a frozen one is not saved, one that learns may do so from a layer on."""

from pathlib import Path
from typing import Any, final

import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor, nn

import sixjars
from sixjars.errors import RecipeError, RunError
from sixjars.model.backbones.backbone import Backbone, MapShape
from sixjars.runs.data.splits import splits_of
from sixjars.runs.evaluate import evaluate
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.samples import sample_folder

FRAMES = 4
FIELDS = {
    "image_captioning": {"image": {"size": 16}},
    "video_captioning": {"video": {"size": 16, "frames": FRAMES}},
}


def write(folder: Path, task: str, backbone: dict[str, Any], bridge: str = "attention") -> str:
    """A recipe for captions of images or videos, as a file."""
    encoder: dict[str, Any] = {"backbone": backbone}
    if task == "video_captioning":
        encoder |= {"reads": "both" if bridge == "attention" else "frames", "size": 8}
    values = {
        "task": task,
        "data": {"sample": {"size": 40, "valid": 8, "test": 12}, **FIELDS[task]},
        "model": {"encoder": encoder, "bridge": {"kind": bridge}, "decoder": {"size": 8}},
        "learning": {"epochs": 2, "batch_examples": 16, "rate": 0.01},
        "evaluation": {"search": {"max_length": 6}, "metrics": ["exact_match"]},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(values))
    return str(folder / "recipe.yaml")


def files(task: str, count: int = 3) -> list[str]:
    return [str(path) for path in sorted(sample_folder(task).iterdir()) if path.is_file()][:count]


@final
class Corners(Backbone):
    """In place of a pretrained network: the mean colour of quarters and whole, times a weight."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.usual_size, self.shape = 16, MapShape(3, 2, 2, 3)
        self.scale = nn.Parameter(torch.tensor(scale))

    @classmethod
    def size_of(cls, name: str) -> int:
        return 16

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        colours = pixels.float() * self.scale
        return nn.functional.adaptive_avg_pool2d(colours, 2), colours.mean((2, 3))


def install(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    monkeypatch.setattr("sixjars.model.visual.backbone_named", lambda name, **_: Corners(scale))
    monkeypatch.setattr("sixjars.model.visual.shape_of", lambda name, **_: MapShape(3, 2, 2, 3))


@pytest.mark.parametrize("task", FIELDS)
@pytest.mark.parametrize("bridge", ["attention", "every_step"])
def test_a_frozen_backbone(
    task: str, bridge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not saved in the run; other weights in its place are refused wherever it is used."""
    install(monkeypatch, 0.01)
    recipe, out = write(tmp_path, task, {"name": "efficientnet_lite0"}, bridge), tmp_path / "run"
    sixjars.train(recipe, out=out)
    assert not [name for name in load_file(out / "model.safetensors") if "scale" in name]
    found = sixjars.load(out).predict(files(task))
    positions = (FRAMES if task == "video_captioning" else 4) if bridge == "attention" else 0
    assert all(len(row) == positions for row in found[0].weights)
    install(monkeypatch, 0.02)
    sentence = (
        f"the backbone of the {task.split('_')[0]} has other weights than when {out} was trained. "
    )
    for use in (
        sixjars.load,
        evaluate,
        lambda folder: sixjars.train(recipe, out=folder, resume=True),
    ):
        with pytest.raises(RunError) as error:
            use(out)
        assert (
            str(error.value) == sentence + "Install the version that run.json names, or train anew."
        )


@pytest.mark.parametrize("task", FIELDS)
def test_its_cells_are_kept_only_for_attention(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, 0.01)
    name = task.split("_")[0]
    kept = {}
    for bridge in ("attention", "every_step"):
        recipe = read_recipe(write(tmp_path, task, {"name": "efficientnet_lite0"}, bridge))
        splits = splits_of(Blueprint.of(recipe))
        kept[bridge] = splits.train.batches().collate(torch.arange(5)).inputs[name].values
    assert kept["attention"].shape[-1] == 3 * 2 * 2 + 3
    assert torch.equal(kept["every_step"], kept["attention"][..., -3:])


def test_one_that_learns_from_a_layer_on(tmp_path: Path) -> None:
    """What lies below stays as it began, whatever is trained; the rest moves."""
    backbone = {"name": "small", "widths": [4, 6], "frozen": False, "train_from": "blocks.1"}
    recipe = write(tmp_path, "image_captioning", backbone)
    weights = {}
    for steps in (1, 4):
        out = tmp_path / f"after-{steps}"
        sixjars.train(recipe, [f"learning.steps={steps}"], out=out)
        weights[steps] = load_file(out / "model.safetensors")
        assert sixjars.load(out).predict(files("image_captioning"))
    names = [
        name for name in weights[1] if name.startswith("encoder.backbone.") and "places" not in name
    ]
    still = {name for name in names if torch.equal(weights[1][name], weights[4][name])}
    assert still == {name for name in names if ".blocks.0." in name} != set()
    assert still != set(names)


def test_a_layer_that_is_not_there_leaves_no_run(tmp_path: Path) -> None:
    recipe = write(
        tmp_path,
        "image_captioning",
        {"name": "small", "widths": [4, 6], "frozen": False, "train_from": "blok.1"},
    )
    told = r"layer of the backbone 'blok\.1' is unknown\. Did you mean 'blocks"
    with pytest.raises(RecipeError, match=told):
        sixjars.train(recipe, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_layer_to_train_from_needs_a_backbone_that_learns(tmp_path: Path) -> None:
    recipe = write(
        tmp_path, "image_captioning", {"name": "efficientnet_lite0", "train_from": "block9"}
    )
    told = r"backbone\.train_from: says where fine-tuning begins, so .*frozen must be"
    with pytest.raises(RecipeError, match=told):
        read_recipe(recipe)
