"""Feature extractors: pixels as they are, or a frozen backbone that nobody else changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from sixjars.data.field import Equipment
from sixjars.data.fields.image import ImageField, ImageSettings
from sixjars.data.storage.cache import Examples, encoded
from sixjars.kernels.backends import device_named
from sixjars.model import visual
from sixjars.model.backbones import pretrained
from sixjars.model.backbones.pretrained import LARGEST, BackboneExtractor
from sixjars.model.visual import Pixels, VisualInput
from sixjars.runs.recipes import Blueprint, recipe_of

SIDE = 8
CPU = torch.device("cpu")


@final
class Halves(nn.Module):
    """A stand-in for a network: the mean of each quarter and of the whole, times a weight."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        colours = pixels.float() * self.scale
        return nn.functional.adaptive_avg_pool2d(colours, 2), colours.mean((2, 3))


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Installs the stand-in, with a weight."""

    def install(value: float) -> None:
        monkeypatch.setattr(visual, "backbone_named", lambda name, **_: Halves(value))

    return install


def frozen(
    *, cells: bool = True, layer: str | None = None, device: torch.device = CPU
) -> BackboneExtractor:
    return BackboneExtractor(
        SIDE, "efficientnet_lite0", layer, cells, device, visual.backbone_named
    )


def stored(extractor: BackboneExtractor | Pixels, cache: Path) -> Path:
    """Where the numbers of images are stored."""
    kit = Equipment((cache,), extractor, stored=True)
    store: Any = ImageField("image", ImageSettings()).equipped(kit).store
    folder: Path = store.folder
    return folder


def videos(*lengths: int) -> list[Tensor]:
    return [torch.randint(0, 256, (length, 3, SIDE, SIDE), dtype=torch.uint8) for length in lengths]


def test_pixels_are_handed_on() -> None:
    [frames] = videos(3)
    assert torch.equal(Pixels(SIDE)(frames), frames.flatten(1))
    assert (Pixels(SIDE).fingerprint, Pixels(SIDE).plan()) == (None, {})


@pytest.mark.parametrize("at_once", [1, 3, 99])
def test_features_are_those_of_the_backbone(
    at_once: int, scale: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many go in at once; maps first, then the vector, with all their digits."""
    scale(0.37)
    monkeypatch.setattr(pretrained, "AT_ONCE", at_once)
    [frames] = videos(8)
    maps, vector = Halves(0.37)(frames)
    found = frozen()(frames)
    assert torch.equal(found, torch.cat([maps.flatten(1), vector], 1))
    # the vector alone where nobody attends to cells
    assert torch.equal(frozen(cells=False)(frames), found[:, -3:])


def test_files_of_different_lengths_keep_their_own_features(scale: Callable[[float], None]) -> None:
    scale(1.0)
    own = ImageField("image", ImageSettings()).equipped(Equipment((), frozen()))
    given = videos(4, 1, 3)
    for frames, found in zip(given, own._numbers([one.numpy() for one in given]), strict=True):
        np.testing.assert_array_equal(found, frozen()(frames).numpy())


@pytest.mark.parametrize("kept", [True, False])
def test_only_features_that_are_kept_are_rounded_to_16_bits(
    kept: bool, scale: Callable[[float], None]
) -> None:
    """A rounded prediction would change with the last digits, which differ by machine."""
    scale(0.37)
    [frames] = videos(4)
    [found] = (
        ImageField("image", ImageSettings())
        .equipped(Equipment((), frozen(), kept))
        ._numbers([frames.numpy()])
    )
    exact = frozen()(frames).numpy()
    np.testing.assert_array_equal(found, exact.astype(np.float16) if kept else exact)
    assert found.dtype == (np.float16 if kept else np.float32)
    [pixels] = (
        ImageField("image", ImageSettings())
        .equipped(Equipment((), Pixels(SIDE), kept))
        ._numbers([frames.numpy()])
    )
    assert pixels.dtype == np.uint8


def test_features_of_files(tmp_path: Path, scale: Callable[[float], None]) -> None:
    scale(0.37)
    Image.new("RGB", (20, 10), "orange").save(tmp_path / "orange.png")
    own = ImageField("image", ImageSettings()).equipped(Equipment((tmp_path,), frozen()))
    examples = own.admit(Examples.of({"image": ["orange.png"]}, where="a test"), skip=False)
    found = own.column(encoded(examples, {})).padded(np.array([0])).values[0, 0]
    colour = torch.tensor([255.0, 165.0, 0.0]) * 0.37
    # an image of one colour is that colour everywhere
    wanted = torch.cat([colour.repeat_interleave(4), colour])
    torch.testing.assert_close(found.float(), wanted, rtol=2e-3, atol=1e-3)


def test_features_too_large_for_16_bits_stay_numbers(scale: Callable[[float], None]) -> None:
    scale(1e9)
    assert frozen()(torch.full((1, 3, SIDE, SIDE), 255, dtype=torch.uint8)).max() == LARGEST


def test_which_cells_are_taken_matters_only_where_they_are(
    tmp_path: Path, scale: Callable[[float], None]
) -> None:
    """One store holds the vectors, whatever layer the cells come from; pixels have no cells."""
    scale(0.5)

    def place(*, cells: bool, layer: str | None = None) -> Path:
        return stored(frozen(cells=cells, layer=layer), tmp_path)

    assert len({place(cells=True), place(cells=True, layer="head"), place(cells=False)}) == 3
    assert place(cells=False, layer="head") == place(cells=False)
    assert stored(Pixels(SIDE, cells=False), tmp_path) == stored(Pixels(SIDE), tmp_path)


def test_other_weights_are_another_store(tmp_path: Path, scale: Callable[[float], None]) -> None:
    scale(0.5)
    first, again = frozen(), frozen()
    assert first.fingerprint == again.fingerprint
    assert stored(first, tmp_path) == stored(again, tmp_path)
    scale(0.51)
    other = frozen()
    assert other.fingerprint != first.fingerprint
    assert stored(other, tmp_path) != stored(first, tmp_path)


def test_two_extractors_do_not_move_each_other_s_backbone(scale: Callable[[float], None]) -> None:
    """`meta` stands for a second device: what is there has no numbers."""
    scale(0.5)
    here, elsewhere = frozen(), frozen(device=torch.device("meta"))
    before = here(videos(1)[0])
    assert next(elsewhere.backbone.parameters()).device.type == "meta"
    assert next(here.backbone.parameters()).device.type == "cpu"
    assert here.backbone is not elsewhere.backbone
    assert not here.backbone.training
    assert here(torch.zeros(1, 3, SIDE, SIDE, dtype=torch.uint8)).shape == before.shape


def test_a_recipe_says_which_extractor_is_used() -> None:
    small: dict[str, Any] = {"name": "small", "layer": None, "frozen": True}
    made = VisualInput.extractor(small, pixels=None, cells=False, device=CPU)
    assert (type(made), made.pixels) == (Pixels, 64)
    pretrained = small | {"name": "efficientnet_lite0"}
    made = VisualInput.extractor(pretrained, pixels=SIDE, cells=False, device=CPU)
    assert (type(made), made.pixels, made.cells) == (BackboneExtractor, SIDE, False)
    assert VisualInput.extractor(pretrained, pixels=None, cells=True, device=CPU).pixels == 224
    assert (
        type(
            VisualInput.extractor(
                pretrained | {"frozen": False}, pixels=SIDE, cells=True, device=CPU
            )
        )
        is Pixels
    )


def test_a_chosen_device_is_the_only_one_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`--device cpu` on a machine with CUDA: a frozen backbone stays on the processor."""

    def asked(*_: object) -> bool:
        raise AssertionError("somebody asked for CUDA")

    for name in ("is_available", "device_count", "current_device"):
        monkeypatch.setattr(torch.cuda, name, asked)
    data = {"train": "rows.jsonl", "folder": str(tmp_path), "image": {"size": 32}, "target": {}}
    model = {"encoder": {"backbone": {"name": "efficientnet_lite0"}}}
    recipe = recipe_of({"task": "image_captioning", "data": data, "model": model}, "a test")
    device = device_named("cpu")
    extractor = Blueprint.of(recipe, device=device).fields.inputs["image"].equipment.extractor
    assert isinstance(extractor, BackboneExtractor)
    assert extractor.device == device == CPU
    assert next(extractor.backbone.parameters()).device == CPU
    assert extractor(torch.zeros(1, 3, 32, 32, dtype=torch.uint8)).device == CPU
