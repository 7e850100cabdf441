"""Images and frames as inputs: through a backbone that learns, or as features computed once.

The small backbone, which has no pretrained weights, is here too.

Dims: B batch, F frames, N numbers of a frame (or all frames, or images), C channels, H and W pixels
      or cells, K numbers of the vector, S cells or regions of an image, X all numbers of the maps
      (or frames of several files).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from math import gcd
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from sixjars.flow.features import FeatureShape
from sixjars.flow.limits import Size
from sixjars.flow.values import Layout, Padded
from sixjars.model.backbones.backbone import Backbone, MapShape, frozen_below
from sixjars.model.backbones.installed import InstalledBackbone
from sixjars.model.backbones.libraries import LIBRARIES
from sixjars.model.backbones.pretrained import BackboneExtractor, EfficientNetLite0
from sixjars_runtime.errors import RecipeError, ShapeError, unknown

WIDTHS = (16, 32, 64)
"""Channels after each halving of the image."""
SIZE = 64
"""The pixels of each side where a recipe gives none."""
BLOCKS = 20
"""The most halvings; few images have a side of 2^20 pixels."""
GROUPS = 8
"""The most groups of channels that are normalised together."""
SMALL = "small"
"""The default backbone."""


@final
class SmallBackbone(Backbone):
    """a ← relu(GroupNorm(W * a + b)), a ← relu(GroupNorm(W' * a + b')) for each width.

    The first convolution is at every second cell. At the end v = relu(LayerNorm(V [a_1, …, a_S] +
    b_v)).

    The convolutions are also given coordinates: two channels with x and y from -1 to 1 (Liu et al.
    2018, https://arxiv.org/abs/1807.03247), so that "left of" can be learned from few images.
    Channels are normalised in groups (Wu & He 2018, https://arxiv.org/abs/1803.08494), never over
    the batch.

    >>> maps, vector = SmallBackbone()(torch.zeros(2, 3, 64, 64, dtype=torch.uint8))
    >>> tuple(maps.shape), tuple(vector.shape)
    ((2, 64, 8, 8), (2, 128))
    """

    is_pretrained = False
    places: Tensor

    def __init__(
        self, *, size: int = SIZE, widths: tuple[int, ...] = WIDTHS, vector: int = 128
    ) -> None:
        super().__init__()
        if not 1 <= len(widths) <= BLOCKS:
            fits = f"the small backbone has 1 to {BLOCKS} blocks"
            raise RecipeError([f"'widths' has {len(widths)} numbers, but {fits}."])
        self.usual_size = size
        side = torch.linspace(-1.0, 1.0, size)
        places = torch.stack(torch.meshgrid(side, side, indexing="xy"))
        self.register_buffer("places", places, persistent=False)
        self.blocks = nn.Sequential(*map(_halving, (3 + 2, *widths), widths))
        cells = size
        for _ in widths:
            cells = (cells + 1) // 2
        self.vector = nn.Linear(widths[-1] * cells * cells, vector)  # V, b_v
        # Without it every unit may become 0 in the first updates, and stay so.
        self.even = nn.LayerNorm(vector)
        self.shape = MapShape(widths[-1], cells, cells, vector)

    @classmethod
    def size_of(cls, name: str) -> int:
        """The default size; the network can be made for any."""
        return SIZE

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) to maps (N, C, h, w) and a vector (N, K)."""
        size = self.usual_size
        dtype = self.places.dtype
        if tuple(pixels.shape[1:]) != (3, size, size):
            shape = tuple(pixels.shape)
            raise ShapeError(f"pixels are {shape}, but must be (N, 3, {size}, {size}).")
        colours_NCHW = pixels.to(dtype) / 127.5 - 1.0
        places_NCHW = self.places.expand(pixels.shape[0], -1, -1, -1)
        maps_NCHW = self.blocks(torch.cat([colours_NCHW, places_NCHW], dim=1)).to(dtype)
        return maps_NCHW, torch.relu(self.even(self.vector(maps_NCHW.flatten(1)))).to(dtype)


def _halving(inputs: int, outputs: int) -> nn.Module:
    """Two convolutions, the first with stride 2, which doubles the field of view of a cell."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, stride=2, padding=1),  # W, b
        nn.GroupNorm(gcd(GROUPS, outputs), outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, kernel_size=5, padding=2),  # W', b'
        nn.GroupNorm(gcd(GROUPS, outputs), outputs),
        nn.ReLU(),
    )


BACKBONES: Mapping[str, type[Backbone]] = {
    SMALL: SmallBackbone,
    "efficientnet_lite0": EfficientNetLite0,
}
"""The backbones of this package; all others are networks of installed libraries."""


def backbone_class(name: str) -> type[Backbone]:
    """The class of the backbone of this name."""
    if name in BACKBONES:
        return BACKBONES[name]
    if "/" in name and name.partition("/")[0] in LIBRARIES:
        return InstalledBackbone
    known = [*BACKBONES, *(f"{library}/NAME" for library in LIBRARIES)]
    raise RecipeError([unknown("backbone", name, known)])


def backbone_named(
    name: str,
    *,
    layer: str | None = None,
    size: int | None = None,
    widths: tuple[int, ...] = WIDTHS,
    pretrained: bool = True,
) -> Backbone:
    """The backbone of this name: `small`, `efficientnet_lite0`, or one of an installed library.

    `layer` is the source of the maps, `size` the pixels of each side of the images, both by default
    the backbone's own. `widths` belongs to `small` alone. With `pretrained=False` all weights are
    random.

    >>> backbone_named("small", size=32, widths=(8, 16)).shape
    MapShape(channels=16, height=8, width=8, vector=128)
    """
    kind = backbone_class(name)
    known = signature(kind).parameters
    settings: dict[str, Any] = {"name": name, "layer": layer, "size": size, "widths": widths}
    for key, default in {"layer": None, "widths": WIDTHS}.items():
        if key not in known and settings[key] != default:
            raise RecipeError([f"{key!r} is no setting of the backbone {name}; remove it."])
    settings["pretrained"] = pretrained
    settings = {key: value for key, value in settings.items() if value is not None and key in known}
    return kind(**settings)


def usual_size_of(name: str) -> int:
    """The pixels of each side that a backbone was made for; its weights are not loaded.

    >>> usual_size_of("efficientnet_lite0")
    224
    """
    return backbone_class(name).size_of(name)


@cache
def shape_of(
    name: str,
    *,
    layer: str | None = None,
    size: int | None = None,
    widths: tuple[int, ...] = WIDTHS,
) -> MapShape:
    """The shape of the features of an image; the weights of the backbone are not loaded.

    >>> shape_of("efficientnet_lite0")
    MapShape(channels=112, height=14, width=14, vector=1280)
    """
    pixels = size or usual_size_of(name)  # outside `make`: that must read real numbers
    make = partial(backbone_named, name, layer=layer, size=pixels, widths=widths, pretrained=False)
    return backbone_class(name).shape_made_by(make)


def learns(name: str, *, frozen: bool) -> bool:
    """Whether a backbone's weights change in training; its inputs are then pixels, not features."""
    return not frozen or not backbone_class(name).is_pretrained


@final
class VisualInput(nn.Module):
    """r_1..r_S, v = CNN(I): the cells of a convolution layer, and the vector of a late layer.

    A backbone that learns is part of the network and receives pixels, N = 3 · size · size. A frozen
    one is not: its features of each frame are computed once, stored, and given as N = C·h·w + K
    numbers; without `cells`, where nothing attends to them, as K. With `frozen: false` the
    pretrained weights are fine-tuned, from the layer `train_from` on if it is given; the small
    backbone always learns. Where the data has `features`, there is no backbone: r_1..r_S are given,
    N = C numbers each, and v is their mean.

    >>> visual = VisualInput(pixels=16, name="small", widths=(4, 8))
    >>> values = torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8)
    >>> pixels = Padded(values, torch.ones(2, 1, dtype=torch.bool))
    >>> [tuple(output.shape) for output in visual(pixels)]
    [(2, 1, 8, 4, 4), (2, 1, 128)]
    """

    given: ClassVar[tuple[str, ...]] = ("pixels", "feature_shape", "cells", "pretrained")
    """Parameters that come from the data and the bridge."""

    def __init__(  # noqa: PLR0913 - the first four are given, the others are keys of a recipe
        self,
        *,
        pixels: int,
        feature_shape: FeatureShape | None = None,
        cells: bool = True,
        pretrained: bool = True,
        name: str = SMALL,
        layer: str | None = None,
        frozen: bool = True,
        train_from: str | None = None,
        widths: tuple[Size, ...] = WIDTHS,
    ) -> None:
        super().__init__()
        self.pixels = pixels
        self.name = name
        self.features = feature_shape
        self.backbone: Backbone | None = None
        if feature_shape is not None:
            self.shape = MapShape(feature_shape.channels, 0, 0, feature_shape.channels)
            return
        self.shape = shape_of(name, layer=layer, size=pixels, widths=widths)
        self.how = "frozen, computed once"
        if learns(name, frozen=frozen):
            self.backbone = backbone_named(
                name, layer=layer, size=pixels, widths=widths, pretrained=pretrained
            )
            self.how = "fine-tuned" if self.backbone.is_pretrained else "learned"
            if train_from is not None:
                frozen_below(self.backbone, train_from)
                self.how += f" from {train_from} on"
        elif not cells:
            self.shape = replace(self.shape, height=0, width=0)

    def forward(self, frames: Padded) -> tuple[Tensor, Tensor]:
        """Maps (B, F, C, h, w) and vectors (B, F, K), both zero where a frame is padding."""
        shape = self.shape
        real_BF1 = frames.mask.unsqueeze(-1)
        if self.backbone is None:
            values_BFN = frames.values.to(torch.get_default_dtype())
            cells = values_BFN.shape[-1] - shape.vector
            maps, vector = torch.split(values_BFN, [cells, shape.vector], dim=-1)
        else:
            maps, vector = self.backbone(frames.values.reshape(-1, 3, self.pixels, self.pixels))
        maps_BFCHW = maps.reshape(*frames.mask.shape, shape.channels, shape.height, shape.width)
        vector_BFK = vector.reshape(*frames.mask.shape, shape.vector)
        return maps_BFCHW * real_BF1[..., None, None], vector_BFK * real_BF1

    def regions(self, image: Padded) -> tuple[Tensor, Tensor, Tensor]:
        """The vectors of an image (B, S, C), cells row by row; which of them are real; v (B, K)."""
        if self.features is None:
            maps_BFCHW, vector_BFK = self(image)
            cells_BSC = maps_BFCHW[:, 0].flatten(2).transpose(1, 2)
            mask_BS = torch.ones(cells_BSC.shape[:2], dtype=torch.bool, device=cells_BSC.device)
            return cells_BSC, mask_BS, vector_BFK[:, 0]
        _, given_BSC = self(image)
        count_B1 = image.mask.sum(1, keepdim=True).clamp(min=1)
        return given_BSC, image.mask, given_BSC.sum(1) / count_B1

    @property
    def layout(self) -> Layout:
        """The arrangement of an image's vectors."""
        if self.features is None:
            return Layout("grid", (self.shape.height, self.shape.width))
        return Layout("grid", self.features.grid) if self.features.grid else Layout("regions")

    @property
    def attendable(self) -> bool:
        """Whether an image has several vectors."""
        return self.shape.height > 0 if self.features is None else bool(self.features.positions)

    def equations(self, at: str = "") -> list[str]:
        """The features and their sizes; `at` is the index of a frame, where there are several."""
        shape = self.shape
        if self.features is not None:
            numbers = f"{shape.channels} numbers each (features given by the data)"
            return [f"v{at}: {numbers}"] if at else [f"r_1..r_S: {numbers}", "v = (1 / S) Σ_j r_j"]
        maps = cells = ""
        if shape.height:
            maps = f"r{at}, " if at else "r_1..r_S, "
            cells = f"{shape.height}×{shape.width} cells of {shape.channels} numbers, "
        vector = f"a vector of {shape.vector} ({self.name}, {self.how})"
        return [f"{maps}v{at} = CNN(I{at}): {cells}{vector}"]

    @classmethod
    def section_misfits(cls, section: Mapping[str, Any], where: str, field: Any) -> list[str]:
        """Report settings of a backbone that is not needed, and `train_from` of a frozen one."""
        if "feature_shape" in field.fact_names:
            usual = {key: each.default for key, each in signature(cls).parameters.items()}
            wrong = [key for key, value in section.items() if value != usual[key]]
            why = f"data.{field.name} gives features, so no backbone computes them; remove it."
            return [f"{where}.{wrong[0]}: {why}"] if wrong else []
        if section["train_from"] is None or not section["frozen"]:
            return []
        fault = f"says where fine-tuning begins, so {where}.frozen must be false."
        return [f"{where}.train_from: {fault}"]

    @classmethod
    def extractor(
        cls, section: Mapping[str, Any], *, pixels: int | None, cells: bool, device: torch.device
    ) -> "Pixels | BackboneExtractor":
        """The extractor that makes this input's numbers from the pixels of a field's files."""
        size = pixels or usual_size_of(section["name"])
        if learns(section["name"], frozen=section["frozen"]):
            return Pixels(size)
        return BackboneExtractor(
            size, section["name"], section["layer"], cells, device, backbone_named
        )


@final
@dataclass(frozen=True)
class Pixels:
    """A feature extractor that returns the pixels themselves, for a backbone that learns."""

    pixels: int
    cells: bool = True
    fingerprint: None = None
    vector: int = 0
    name: str = "pixels"

    def plan(self) -> dict[str, Any]:
        """Nothing: the numbers depend on the pixels alone."""
        return {}

    def __call__(self, pixels: Tensor) -> Tensor:
        """The pixels, (X, 3, H, W) -> (X, N)."""
        return pixels.flatten(1)
