"""A small convolutional network without pretrained weights.

Dims: N images, C channels, H and W pixels or cells, K numbers of the vector.
"""

from math import gcd
from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, ShapeError
from sixjars.model.backbones.backbone import Backbone, MapShape

WIDTHS = (16, 32, 64)
"""Channels after each halving of the image."""
SIZE = 64
"""Pixels of each side where a recipe gives none."""
BLOCKS = 20
"""Most halvings; few images have a side of 2^20 pixels."""
GROUPS = 8
"""Most groups of channels that are normalised together."""


@final
class SmallBackbone(Backbone):
    """For each width: a ← relu(GroupNorm(W * a + b)) at every second cell, then a ← relu(GroupNorm(W' * a + b')).

    At the end v = relu(LayerNorm(V [a_1, …, a_S] + b_v)).

    The convolutions are also given coordinates: two channels with x and y from -1 to 1 (Liu et al. 2018,
    https://arxiv.org/abs/1807.03247), so that "left of" can be learned from few images. Channels are normalised in
    groups (Wu & He 2018, https://arxiv.org/abs/1803.08494), never over the batch.

    >>> maps, vector = SmallBackbone()(torch.zeros(2, 3, 64, 64, dtype=torch.uint8))
    >>> tuple(maps.shape), tuple(vector.shape)
    ((2, 64, 8, 8), (2, 128))
    """

    is_pretrained = False
    places: Tensor

    def __init__(self, *, size: int = SIZE, widths: tuple[int, ...] = WIDTHS, vector: int = 128) -> None:
        super().__init__()
        if not 1 <= len(widths) <= BLOCKS:
            raise RecipeError([f"'widths' has {len(widths)} numbers, but the small backbone has 1 to {BLOCKS} blocks."])
        self.usual_size = size
        side = torch.linspace(-1.0, 1.0, size)
        self.register_buffer("places", torch.stack(torch.meshgrid(side, side, indexing="xy")), persistent=False)
        self.blocks = nn.Sequential(*map(_halving, (3 + 2, *widths), widths))
        cells = size
        for _ in widths:
            cells = (cells + 1) // 2
        self.vector = nn.Linear(widths[-1] * cells * cells, vector)  # V, b_v
        self.even = nn.LayerNorm(vector)  # else every unit may become 0 in the first updates, and stay so
        self.shape = MapShape(widths[-1], cells, cells, vector)

    @classmethod
    def size_of(cls, name: str) -> int:
        """Any size would do."""
        return SIZE

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) to maps (N, C, h, w) and a vector (N, K)."""
        size, dtype = self.usual_size, self.places.dtype
        if tuple(pixels.shape[1:]) != (3, size, size):
            raise ShapeError(f"pixels are {tuple(pixels.shape)}, but must be (N, 3, {size}, {size}).")
        colours_NCHW = pixels.to(dtype) / 127.5 - 1.0
        places_NCHW = self.places.expand(pixels.shape[0], -1, -1, -1)
        maps_NCHW = self.blocks(torch.cat([colours_NCHW, places_NCHW], dim=1)).to(dtype)
        return maps_NCHW, torch.relu(self.even(self.vector(maps_NCHW.flatten(1)))).to(dtype)


def _halving(inputs: int, outputs: int) -> nn.Module:
    """Two convolutions, the first at every second cell, so that each block doubles the field of view of a cell."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, stride=2, padding=1),  # W, b
        nn.GroupNorm(gcd(GROUPS, outputs), outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, kernel_size=5, padding=2),  # W', b'
        nn.GroupNorm(gcd(GROUPS, outputs), outputs),
        nn.ReLU(),
    )
