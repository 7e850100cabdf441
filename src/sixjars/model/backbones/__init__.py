"""Backbones: networks that turn pixels into maps of cells and one vector; this table is the whole registry."""

from functools import cache, partial

import torch

from sixjars.errors import RecipeError, unknown
from sixjars.model.backbones import efficientnet, small
from sixjars.model.backbones.backbone import Backbone as Backbone
from sixjars.model.backbones.backbone import MapShape as MapShape
from sixjars.model.backbones.backbone import fingerprint as fingerprint
from sixjars.model.backbones.backbone import frozen_below as frozen_below
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
    ['a_1..a_S, v = CNN(I): 8×8 cells of 16 numbers, and a vector of 128']
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
