"""How encoders receive images and frames: through a backbone that learns, or as features that one computed once.

Dims: B batch, F frames, N numbers of a frame (or all frames), C channels, H and W pixels or cells, K numbers of the
      vector, X all numbers of the maps (or frames of several files).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from itertools import chain
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, unknown
from sixjars.flow.limits import Size
from sixjars.flow.values import Padded
from sixjars.model.backbones import efficientnet, small
from sixjars.model.backbones.backbone import Backbone, MapShape, frozen_below
from sixjars.model.backbones.efficientnet import EfficientNetLite0
from sixjars.model.backbones.installed import InstalledBackbone
from sixjars.model.backbones.libraries import LIBRARIES, preprocessing_of
from sixjars.model.backbones.small import WIDTHS, SmallBackbone

SMALL = "small"
"""The one that comes without weights and always learns."""
EFFICIENTNET = "efficientnet_lite0"
"""The one whose weights are a package of their own."""
KNOWN = (SMALL, EFFICIENTNET, *(f"{library}/NAME" for library in LIBRARIES))


def backbone_named(
    name: str,
    *,
    layer: str | None = None,
    size: int | None = None,
    widths: tuple[int, ...] = WIDTHS,
    pretrained: bool = True,
) -> Backbone:
    """The backbone of this name: `small`, `efficientnet_lite0`, or a network of an installed library.

    `layer` is where the maps come from, `size` the pixels of each side of the pictures; absent, they are the usual
    ones. `widths` belongs to `small` alone. With `pretrained=False` all weights are random.

    >>> backbone_named("small", size=32, widths=(8, 16)).equations()
    ['r_1..r_S, v = CNN(I): 8×8 cells of 16 numbers, and a vector of 128']
    """
    _known(name)
    if name == SMALL:
        if layer is not None:
            raise RecipeError([f"'layer' is {layer!r}, but the small backbone has only its last maps; remove it."])
        return SmallBackbone(size=size or small.SIZE, widths=tuple(widths))
    if tuple(widths) != WIDTHS:
        raise RecipeError([f"'widths' belongs to the small backbone, but the backbone is {name}; remove it."])
    if name == EFFICIENTNET:
        wanted = layer or efficientnet.LAYER
        return EfficientNetLite0(layer=wanted, size=size or efficientnet.SIZE, pretrained=pretrained)
    return InstalledBackbone(name, layer=layer, size=size, pretrained=pretrained)


def usual_size_of(name: str) -> int:
    """Pixels of each side that a backbone was made for; its weights are not loaded for that.

    >>> usual_size_of("efficientnet_lite0")
    224
    """
    _known(name)
    if name in (SMALL, EFFICIENTNET):
        return small.SIZE if name == SMALL else efficientnet.SIZE
    return preprocessing_of(name).size


def shape_of(
    name: str, *, layer: str | None = None, size: int | None = None, widths: tuple[int, ...] = WIDTHS
) -> MapShape:
    """What a backbone makes of one picture; its weights are not loaded for that.

    >>> shape_of("efficientnet_lite0")
    MapShape(channels=112, height=14, width=14, vector=1280)
    """
    return _shape(name, layer, size, tuple(widths))


@cache
def _shape(name: str, layer: str | None, size: int | None, widths: tuple[int, ...]) -> MapShape:
    pixels = size or usual_size_of(name)  # a preprocessing must be read where there are real numbers
    build = partial(backbone_named, name, layer=layer, size=pixels, widths=widths, pretrained=False)
    if name not in (SMALL, EFFICIENTNET):  # those two are made sooner than torch's device without memory is
        try:
            with torch.device("meta"):
                return build().shape
        except RecipeError as error:
            if error.__cause__ is None:
                raise
    # Also where a library complained: some networks need real numbers while they are built.
    with torch.random.fork_rng(devices=[]):
        return build().shape


def _known(name: str) -> None:
    library, slash, _ = name.partition("/")
    if name not in (SMALL, EFFICIENTNET) and not (slash and library in LIBRARIES):
        raise RecipeError([unknown("backbone", name, KNOWN)])


AT_ONCE = 32
"""Frames in one batch of a backbone."""
LARGEST = 65504.0
"""Of a 16-bit number."""


def fingerprint(backbone: Backbone) -> str:
    """A number over all weights and buffers, which is another one when any of them is (SHA-256)."""
    digest = sha256()
    for name, tensor in chain(backbone.named_parameters(), backbone.named_buffers()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def learns(name: str, *, frozen: bool) -> bool:
    """Whether a backbone's weights change in training; then pixels go in, else features made once."""
    return not frozen or name == SMALL


@final
class VisualInput(nn.Module):
    """r_1..r_S, v = CNN(I): the cells of a convolution layer, and the vector of a late layer.

    A backbone that learns is part of the network and is given pixels, N = 3 · size · size. A frozen one is not: its
    features of each frame are computed once, stored, and given as N = C·h·w + K numbers; without `cells`, where nobody
    attends to them, as K. With `frozen: false` the pretrained weights are fine-tuned, from the layer `train_from` on if
    it is given; the small backbone always learns.

    >>> visual = VisualInput(pixels=16, name="small", widths=(4, 8))
    >>> pixels = Padded(torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 1, dtype=torch.bool))
    >>> [tuple(output.shape) for output in visual(pixels)]
    [(2, 1, 8, 4, 4), (2, 1, 128)]
    """

    given: ClassVar[tuple[str, ...]] = ("pixels", "cells", "pretrained")
    """Parameters that come from the data and the bridge."""

    def __init__(  # noqa: PLR0913 - the first three are given, the others are keys of a recipe
        self,
        *,
        pixels: int,
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
        self.shape = shape_of(name, layer=layer, size=pixels, widths=widths)
        if not cells and not learns(name, frozen=frozen):
            self.shape = replace(self.shape, height=0, width=0)
        self.backbone: Backbone | None = None
        if learns(name, frozen=frozen):
            self.backbone = backbone_named(name, layer=layer, size=pixels, widths=widths, pretrained=pretrained)
            if train_from is not None:
                frozen_below(self.backbone, train_from)
        self.name = name

    def forward(self, frames: Padded) -> tuple[Tensor, Tensor]:
        """Maps (B, F, C, h, w) and vectors (B, F, K), both zero where a frame is padding."""
        rows, length = frames.mask.shape
        shape = self.shape
        if self.backbone is None:
            values_BFN = frames.values.to(torch.get_default_dtype())
            maps_BFX, vector_BFK = torch.split(values_BFN, [values_BFN.shape[-1] - shape.vector, shape.vector], dim=-1)
            maps_BFCHW = maps_BFX.view(rows, length, shape.channels, shape.height, shape.width)
        else:
            pixels_NCHW = frames.values.reshape(rows * length, 3, self.pixels, self.pixels)
            maps_NCHW, vector_NK = self.backbone(pixels_NCHW)
            maps_BFCHW = maps_NCHW.view(rows, length, shape.channels, shape.height, shape.width)
            vector_BFK = vector_NK.view(rows, length, shape.vector)
        real_BF1 = frames.mask.unsqueeze(-1)
        return maps_BFCHW * real_BF1[..., None, None], vector_BFK * real_BF1

    def equations(self) -> list[str]:
        """What the numbers are."""
        shape, how = self.shape, "learned" if self.backbone is not None else "frozen, computed once"
        vector = f"a vector of {shape.vector} ({self.name}, {how})"
        if shape.height == 0:
            return [f"v = CNN(I): {vector}"]
        return [f"r_1..r_S, v = CNN(I): {shape.height}×{shape.width} cells of {shape.channels} numbers, {vector}"]

    @classmethod
    def section_misfits(cls, section: Mapping[str, Any], where: str, field: Any) -> list[str]:
        """Only weights that are fine-tuned can be fine-tuned from a layer on."""
        if section["train_from"] is None or not section["frozen"]:
            return []
        return [f"{where}.train_from: says where fine-tuning begins, so {where}.frozen must be false."]

    @classmethod
    def extractor(
        cls, section: Mapping[str, Any], *, pixels: int | None, cells: bool, device: torch.device
    ) -> "Pixels | Features":
        """What turns the pixels of a field's files into the numbers that this input reads."""
        size = pixels or usual_size_of(section["name"])
        if learns(section["name"], frozen=section["frozen"]):
            return Pixels(size)
        return Features(size, section["name"], section["layer"], cells, device)


@final
@dataclass(frozen=True)
class Pixels:
    """A feature extractor that hands on the pixels themselves, for a backbone that learns."""

    pixels: int
    """Of each side."""
    cells: bool = True
    fingerprint: None = None
    """No weights are used."""
    name: str = "pixels"

    def plan(self) -> dict[str, Any]:
        """All that the numbers depend on, besides the pixels."""
        return {}

    def __call__(self, pixels: Tensor) -> Tensor:
        """(X, 3, H, W) to (X, N)."""
        return pixels.flatten(1)


@final
@dataclass(frozen=True)
class Features:
    """A feature extractor with a frozen backbone, which is loaded when it is first needed."""

    pixels: int
    """Of each side."""
    name: str
    layer: str | None
    cells: bool
    """Whether the cells of a frame are wanted, or its vector alone."""
    device: torch.device

    @cached_property
    def backbone(self) -> Backbone:
        """In evaluation mode, on its device; nobody else uses this one."""
        return backbone_named(self.name, layer=self.layer, size=self.pixels).eval().to(self.device)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the weights."""
        return fingerprint(self.backbone)

    def plan(self) -> dict[str, Any]:
        """All that the numbers depend on, besides the pixels."""
        kept = {"layer": self.layer} if self.cells else {"vector": "alone"}
        return {"backbone": self.name, "weights": self.fingerprint, **kept}

    def __call__(self, pixels: Tensor) -> Tensor:
        """(X, 3, H, W) to (X, N), 16-bit, on the CPU."""
        return torch.cat([self._features(some) for some in torch.split(pixels, AT_ONCE)])

    def _features(self, pixels: Tensor) -> Tensor:
        with torch.inference_mode():
            maps_XCHW, vector_XK = self.backbone(pixels.to(self.device))
            both_XN = torch.cat([maps_XCHW.flatten(1), vector_XK], dim=1) if self.cells else vector_XK
        return both_XN.clamp(-LARGEST, LARGEST).half().cpu()
