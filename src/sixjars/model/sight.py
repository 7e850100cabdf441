"""How encoders see frames: through a backbone that learns, or in features that one computed beforehand.

Dims: B batch, F frames, N numbers of a frame (or all frames), C channels, H and W cells, K numbers of the vector,
      X all numbers of the maps.
"""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn

from sixjars.flow import Padded
from sixjars.model.backbones import SMALL, backbone_named, frozen_below, shape_of
from sixjars.model.backbones.small import WIDTHS
from sixjars.recipe.ranges import Positive


def learns(name: str, *, tuned: bool | str) -> bool:
    """Whether a backbone's weights change in training; then pixels go in, else features made once."""
    return bool(tuned) or name == SMALL


@final
class Sight(nn.Module):
    """a_1..a_S, v = CNN(I): the cells of a convolution layer, and the vector of a late layer.

    A backbone that learns is part of the network and is given pixels, N = 3 · size · size. One that does not is not
    part of it: what it says of each frame is computed once, kept, and given as N = C·h·w + K numbers; without `cells`,
    where nobody looks at them, as K. With `tuned` the pretrained weights learn too, from the named layer on if it is a
    name; the small backbone always learns.

    >>> sight = Sight(pixels=16, name="small", widths=(4, 8))
    >>> pixels = Padded(torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 1, dtype=torch.bool))
    >>> [tuple(seen.shape) for seen in sight(pixels)]
    [(2, 1, 8, 4, 4), (2, 1, 128)]
    """

    def __init__(
        self,
        *,
        pixels: int,
        cells: bool = True,
        pretrained: bool = True,
        name: str = SMALL,
        layer: str | None = None,
        tuned: bool | str = False,
        widths: tuple[Positive, ...] = WIDTHS,
    ) -> None:
        super().__init__()
        self.pixels = pixels
        self.shape = shape_of(name, layer=layer, size=pixels, widths=widths)
        if not cells and not learns(name, tuned=tuned):
            self.shape = replace(self.shape, height=0, width=0)
        self.backbone: nn.Module | None = None
        if learns(name, tuned=tuned):
            backbone = backbone_named(name, layer=layer, size=pixels, widths=widths, pretrained=pretrained)
            if isinstance(tuned, str):
                frozen_below(backbone, tuned)
            self.backbone = backbone
        self.name = name

    def forward(self, frames: Padded) -> tuple[Tensor, Tensor]:
        """Maps (B, F, C, h, w) and vectors (B, F, K), both zero where a frame is padding."""
        rows, length = frames.mask.shape
        shape = self.shape
        if self.backbone is None:
            values_BFN = frames.values.to(torch.get_default_dtype())
            maps_BFX, vector_BFK = torch.split(values_BFN, [shape.numbers - shape.vector, shape.vector], dim=-1)
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
        shape, how = self.shape, "learns" if self.backbone is not None else "computed once, does not learn"
        vector = f"a vector of {shape.vector} ({self.name}, {how})"
        if shape.height == 0:
            return [f"v = CNN(I): {vector}"]
        return [f"a_1..a_S, v = CNN(I): {shape.height}×{shape.width} cells of {shape.channels} numbers, {vector}"]
