"""What networks of other libraries cannot do is refused with one sentence."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.error import URLError

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sixjars.errors import RecipeError
from sixjars.model.backbones.backbone import frozen_below
from sixjars.model.backbones.libraries import preprocessing_of
from sixjars.model.visual import backbone_named, shape_of, usual_size_of


class Plain(nn.Module):
    """Maps, one cell, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.fc = nn.Linear(4, 5)

    def forward(self, pixels: Tensor) -> Any:
        if pixels.shape[-1] < 3:
            raise ValueError("Too small.\nToo few pixels.")
        return self.fc(self.features(pixels).mean((2, 3)))


class Patches(nn.Module):
    """As a vision transformer: one convolution at the beginning, then only vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 4, stride=4)
        self.layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))

    def forward(self, pixels: Tensor) -> Any:
        return self.layers(self.patches(pixels).flatten(2).transpose(1, 2)).mean(1)


class Sideways(nn.Module):
    """As some networks of timm, which say that their maps are (N, h, w, C)."""

    output_fmt = "NHWC"

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)

    def forward(self, pixels: Tensor) -> Any:
        return self.body(pixels).permute(0, 2, 3, 1)


class Windows(nn.Module):
    """The only square maps are attention weights and a table that depends on no image."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self.weights = nn.Softmax(-1)
        self.fc = nn.Linear(8, 2)

    def forward(self, pixels: Tensor) -> Any:
        return self.fc((self.table(pixels) + self.weights(pixels))[:, 0, 0])


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 1, 8, 8))

    def forward(self, pixels: Tensor) -> Any:
        return self.bias


def unreachable() -> nn.Module:
    raise URLError("no route to host")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    preprocessing_of.cache_clear()
    yield
    preprocessing_of.cache_clear()


@pytest.fixture
def vision(monkeypatch: pytest.MonkeyPatch) -> None:
    networks: dict[str, Callable[[], nn.Module]] = {
        "resnet50": Plain,
        "vit_b_16": Patches,
        "sideways": Sideways,
        "windows": Windows,
        "far": unreachable,
    }

    def transforms() -> Callable[[Tensor], Tensor]:
        return lambda image: F.interpolate(image[None].float(), size=(8, 8))[0]

    models: Any = ModuleType("torchvision.models")
    models.list_models = lambda module: list(networks)
    models.get_model_weights = lambda name: SimpleNamespace(
        DEFAULT=SimpleNamespace(transforms=transforms)
    )
    models.get_model = lambda name, weights: networks[name]()
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


NO_MAPS = "has no maps (N, C, h, w) at its end; take a convolutional network, or name a 'layer'."


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"name": "resnet5"},
            "torchvision has no network 'resnet5'. Did you mean 'resnet50'? It has 5 others.",
        ),
        ({"name": ""}, "torchvision has no network ''. It has 5 others."),
        (
            {"name": "resnet50", "layer": "feature"},
            "layer of torchvision/resnet50 'feature' is unknown. Did you mean 'features'? "
            "Known: features, features.0, features.1.",
        ),
        (
            {"name": "resnet50", "layer": "fc"},
            "layer 'fc' of torchvision/resnet50 outputs (N, 5), but maps (N, C, h, w) are needed.",
        ),
        (
            {"name": "resnet50", "size": 2},
            "torchvision/resnet50 cannot take images of 2×2 pixels: Too small.",
        ),
        ({"name": "vit_b_16"}, f"torchvision/vit_b_16 {NO_MAPS}"),
        ({"name": "sideways"}, f"torchvision/sideways {NO_MAPS}"),
        ({"name": "windows"}, f"torchvision/windows {NO_MAPS}"),
        ({"name": "far"}, "torchvision/far cannot be loaded: <urlopen error no route to host>."),
    ],
)
def test_what_a_library_cannot_do(settings: dict[str, Any], sentence: str) -> None:
    for make in (backbone_named, shape_of):
        with pytest.raises(RecipeError) as caught:
            make(**settings | {"name": "torchvision/" + settings["name"]})
        assert str(caught.value) == f"this recipe: {sentence}"


@pytest.mark.usefixtures("vision")
def test_a_transformer_has_maps_in_a_layer_that_is_named() -> None:
    maps, vector = backbone_named("torchvision/vit_b_16", layer="patches")(torch.zeros(3, 3, 8, 8))
    assert (tuple(maps.shape), tuple(vector.shape)) == ((3, 4, 2, 2), (3, 4))


@pytest.mark.usefixtures("vision")
def test_layers_to_freeze_have_the_names_of_the_library() -> None:
    with pytest.raises(RecipeError) as caught:
        frozen_below(backbone_named("torchvision/resnet50"), "layer4")
    assert str(caught.value) == (
        "this recipe: layer of the backbone 'layer4' is unknown. Known: fc, features, features.0, "
        "features.1."
    )


@pytest.mark.parametrize("library", ["torchvision", "timm", "transformers"])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for make in (backbone_named, usual_size_of, shape_of):
        with pytest.raises(RecipeError) as caught:
            make(f"{library}/resnet50")
        told = f"this recipe: {library} is not installed. Run: pip install {library}"
        assert str(caught.value) == told


def test_a_library_that_needs_another_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "timm.py").write_text("import torchvision.transforms\n")
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RecipeError) as caught:
        usual_size_of("timm/resnet50")
    told = "this recipe: torchvision is not installed. Run: pip install torchvision"
    assert str(caught.value) == told


def test_a_library_made_for_another_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(
        "raise RuntimeError('operator nms does not exist\\nmore')\n"
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RecipeError) as caught:
        usual_size_of("torchvision/resnet50")
    assert str(caught.value) == (
        "this recipe: torchvision cannot be used with this torch (operator nms does not exist). "
        "Run: pip install --upgrade torch torchvision"
    )


def test_a_folder_that_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str, *, trust_remote_code: bool) -> None:
        raise OSError(f"{name} is not a model.\nLong advice." if not trust_remote_code else "")

    transformers: Any = ModuleType("transformers")
    transformers.AutoImageProcessor = SimpleNamespace(from_pretrained=nowhere)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    with pytest.raises(RecipeError) as caught:
        backbone_named("transformers/some/where")
    assert str(caught.value) == (
        "this recipe: the preprocessing of transformers/some/where cannot be loaded: some/where "
        "is not a model."
    )


def test_an_unknown_network_of_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    timm: Any = ModuleType("timm")
    timm.list_models = lambda: ["resnet50", "vgg16"]
    monkeypatch.setitem(sys.modules, "timm", timm)
    with pytest.raises(RecipeError) as caught:
        usual_size_of("timm/resnt50.a1")
    told = "this recipe: timm has no network 'resnt50'. Did you mean 'resnet50'? It has 2 others."
    assert str(caught.value) == told
