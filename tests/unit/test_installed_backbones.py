"""Networks of other libraries, in whose place tiny ones with the same interface are used."""

import copy
import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from sixjars.model.backbones.backbone import MapShape, frozen_below
from sixjars.model.backbones.installed import InstalledBackbone
from sixjars.model.backbones.libraries import preprocessing_of
from sixjars.model.backbones.pretrained import fingerprint
from sixjars.model.visual import backbone_named, shape_of, usual_size_of

pytestmark = pytest.mark.usefixtures("in_64_bits")

MEAN = torch.tensor([0.4, 0.5, 0.6], dtype=torch.float64).view(3, 1, 1)
STD = torch.tensor([0.2, 0.25, 0.3], dtype=torch.float64).view(3, 1, 1)


class Oxford(nn.Module):
    """As VGG: convolutions and poolings in a row, then linear layers with dropout."""

    def __init__(self) -> None:
        super().__init__()
        first = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        second = [nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*first, *second)
        self.avgpool = nn.AdaptiveAvgPool2d(3)
        self.classifier = nn.Sequential(
            nn.Linear(54, 8), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 10)
        )

    def forward(self, pixels: Tensor) -> Any:
        return self.classifier(self.avgpool(self.features(pixels)).flatten(1))


class Residual(nn.Module):
    """As a residual network of timm whose classifier is a convolution of the one cell left."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.stage = nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1))
        self.outside = Added(self.stage)
        self.head = nn.Conv2d(4, 10, 1)

    def forward(self, pixels: Tensor) -> Any:
        return self.head(self.outside(self.stem(pixels)).mean((2, 3), keepdim=True)).flatten(1)


class Added(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, maps: Tensor) -> Any:
        return maps + self.inner(maps)


class Pooling(nn.Module):
    """As the models of transformers: no classifier, a pooler, and an output that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(3, 5, 2, stride=2)
        self.pooler = nn.AdaptiveAvgPool2d(1)

    def forward(self, pixel_values: Tensor) -> dict[str, Tensor]:
        maps = self.encoder(pixel_values)
        return {"last_hidden_state": maps, "pooler_output": self.pooler(maps)}


class Picky(nn.Module):
    """Needs a real number while it is built."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, int(torch.ones(()).item()) + 1, 3)

    def forward(self, pixels: Tensor) -> Any:
        return self.body(pixels)


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    preprocessing_of.cache_clear()
    yield
    preprocessing_of.cache_clear()


@pytest.fixture
def built() -> list[tuple[str, dict[str, Any]]]:
    """The calls of a library."""
    return []


@pytest.fixture
def vision(monkeypatch: pytest.MonkeyPatch, built: list[tuple[str, dict[str, Any]]]) -> ModuleType:
    """A torchvision of a few networks."""
    networks: dict[str, Callable[[], nn.Module]] = {
        "vgg16": Oxford,
        "googlenet": Oxford,
        "picky": Picky,
    }

    def transforms() -> Callable[[Tensor], Tensor]:
        return lambda image: (
            (F.interpolate(image[None].double(), size=(12, 12))[0] / 255 - MEAN) / STD
        )

    def get_model(name: str, **settings: Any) -> nn.Module:
        built.append((name, settings))
        return networks[name]()

    models = ModuleType("torchvision.models")
    weights = SimpleNamespace(DEFAULT=SimpleNamespace(transforms=transforms))
    vars(models).update(
        list_models=lambda module: list(networks) if module is models else [],
        get_model_weights=lambda name: weights,
        get_model=get_model,
        weights=weights,
    )
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return models


def pixels(rows: int = 3, size: int = 12) -> Tensor:
    return torch.randint(0, 256, (rows, 3, size, size), dtype=torch.uint8)


def network(backbone: Any, kind: type[nn.Module]) -> Any:
    assert isinstance(backbone, InstalledBackbone)
    assert isinstance(backbone.model, kind)
    return backbone.model


@pytest.mark.usefixtures("vision")
def test_vgg_gives_its_last_maps_before_pooling_and_fc7() -> None:
    backbone = backbone_named("torchvision/vgg16").train()
    inner, images = network(backbone, Oxford), pixels()
    ready = (images / 255 - MEAN) / STD
    maps, vector = backbone(images)
    early, late = inner.features[0], inner.features[3]
    half = F.max_pool2d(F.conv2d(ready, early.weight, early.bias, padding=1).relu(), 2)
    wanted = F.conv2d(half, late.weight, late.bias, padding=1).relu()
    torch.testing.assert_close(maps, wanted)
    flat = F.adaptive_avg_pool2d(F.max_pool2d(wanted, 2), 3).flatten(1)
    torch.testing.assert_close(vector, F.linear(flat, *inner.classifier[0].parameters()).relu())
    assert backbone.shape == shape_of("torchvision/vgg16") == MapShape(6, 6, 6, 8)
    assert backbone.usual_size == usual_size_of("torchvision/vgg16") == 12
    assert not any("classifier.3" in name for name, _ in backbone.named_parameters())


@pytest.mark.usefixtures("vision")
def test_a_named_layer_is_not_overwritten_by_what_comes_after_it() -> None:
    before = backbone_named("torchvision/vgg16", layer="features.3")
    after = backbone_named("torchvision/vgg16", layer="features.4", pretrained=False)
    after.load_state_dict(before.state_dict())
    images = pixels()
    assert before(images)[0].min() < 0
    assert torch.equal(before(images)[0].relu(), after(images)[0])
    assert torch.equal(before(images)[1], after(images)[1])
    assert shape_of("torchvision/vgg16", layer="features.0", size=20) == MapShape(4, 20, 20, 8)


def test_weights_are_the_default_ones_unless_none_are_wanted(
    vision: ModuleType, built: list[tuple[str, dict[str, Any]]]
) -> None:
    backbone_named("torchvision/vgg16")
    backbone_named("torchvision/googlenet", pretrained=False)
    assert built == [
        ("vgg16", {"weights": vision.weights.DEFAULT}),
        (
            "googlenet",
            {"weights": None, "aux_logits": False, "transform_input": True, "init_weights": False},
        ),
    ]


@pytest.mark.usefixtures("vision")
def test_a_network_that_needs_real_numbers_has_a_shape_and_leaves_the_random_ones_alone() -> None:
    random = torch.get_rng_state()
    assert shape_of("torchvision/picky", size=12) == MapShape(2, 10, 10, 2)
    assert torch.equal(random, torch.get_rng_state())
    maps, vector = backbone_named("torchvision/picky")(pixels())
    torch.testing.assert_close(vector, maps.mean((2, 3)))


@pytest.mark.usefixtures("vision")
def test_layers_have_the_names_of_the_library_and_copies_work() -> None:
    backbone = backbone_named("torchvision/vgg16")
    twin = copy.deepcopy(backbone)
    frozen_below(backbone, "features.3")
    frozen = [name for name, weight in backbone.named_parameters() if not weight.requires_grad]
    assert frozen == ["model.features.0.weight", "model.features.0.bias"]
    images = pixels()
    assert all(map(torch.equal, backbone(images), twin(images)))
    assert fingerprint(backbone) == fingerprint(twin)
    twin.get_buffer("shift").add_(1)
    assert fingerprint(backbone) != fingerprint(twin)


@pytest.mark.usefixtures("vision")
def test_two_threads_never_mix() -> None:
    backbone = backbone_named("torchvision/vgg16")
    batches = [pixels(), pixels()]
    wanted = [backbone(images) for images in batches]
    meeting = Barrier(2, timeout=30)

    def meet(*_: Any) -> None:
        meeting.wait()

    # between the maps and the vector
    network(backbone, Oxford).features[5].register_forward_hook(meet)
    got: dict[int, tuple[Tensor, Tensor]] = {}

    def compute(at: int) -> None:
        got[at] = backbone(batches[at])

    threads = [Thread(target=compute, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in (0, 1):
        for one, other in zip(got[at], wanted[at], strict=True):
            torch.testing.assert_close(one, other)


def test_timm_with_a_residual_and_a_convolution_as_classifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = SimpleNamespace(
        input_size=(3, 16, 16), mean=MEAN.flatten().tolist(), std=STD.flatten().tolist()
    )
    timm: Any = ModuleType("timm")
    timm.list_models = lambda: ["resnet50", "resnet51"]
    timm.get_pretrained_cfg = {"resnet50.tag": settings, "resnet51": settings}.__getitem__
    timm.create_model = lambda name, pretrained: Residual()
    monkeypatch.setitem(sys.modules, "timm", timm)
    backbone = backbone_named("timm/resnet50.tag").train()
    inner, images = network(backbone, Residual), pixels(4, 16)
    maps, vector = backbone(images)
    stem = F.conv2d(
        (images / 255 - MEAN) / STD, inner.stem.weight, inner.stem.bias, stride=2, padding=1
    )
    # of a fresh batch norm
    wanted = stem + F.conv2d(stem / 1.00001**0.5, *inner.stage[1].parameters())
    torch.testing.assert_close(maps, wanted)
    torch.testing.assert_close(vector, wanted.mean((2, 3)))
    assert backbone.shape == shape_of("timm/resnet50.tag") == MapShape(4, 8, 8, 4)
    assert int(inner.stage[0].num_batches_tracked) == 0


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transformers whose processor puts blue first, and which takes folders."""

    def there(name: str, *, trust_remote_code: bool) -> str:
        assert trust_remote_code is False
        return name

    def processor(name: str, *, trust_remote_code: bool) -> Callable[..., dict[str, Tensor]]:
        assert there(name, trust_remote_code=trust_remote_code)

        def process(images: Any, return_tensors: str) -> dict[str, Tensor]:
            batch = torch.from_numpy(images).permute(2, 0, 1)[None]
            assert return_tensors == "pt"
            return {
                "pixel_values": (F.interpolate(batch.double(), size=(10, 10)).flip(1) / 255 - MEAN)
                / STD
            }

        return process

    def model(name: str, *, trust_remote_code: bool) -> nn.Module:
        assert there(name, trust_remote_code=trust_remote_code)
        return Pooling()

    library: Any = ModuleType("transformers")
    library.AutoImageProcessor = SimpleNamespace(from_pretrained=processor)
    library.AutoConfig = SimpleNamespace(from_pretrained=there)
    library.AutoModel = SimpleNamespace(from_pretrained=model, from_config=model)
    monkeypatch.setitem(sys.modules, "transformers", library)


@pytest.mark.usefixtures("hub")
def test_transformers_with_a_pooler_and_blue_first() -> None:
    backbone = backbone_named("transformers/some/folder")
    inner, images = network(backbone, Pooling), pixels(2, 10)
    maps, vector = backbone(images)
    wanted = inner((images[:, [2, 1, 0]] / 255 - MEAN) / STD)
    torch.testing.assert_close(maps, wanted["last_hidden_state"])
    torch.testing.assert_close(vector, wanted["pooler_output"][:, :, 0, 0])
    assert shape_of("transformers/some/folder") == MapShape(5, 5, 5, 5)
