"""The interface of every backbone, and the freezing of its first layers.

Dims: N images, C channels, H and W pixels or cells, K numbers of the vector.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from sixjars_runtime.errors import RecipeError, unknown


@final
@dataclass(frozen=True)
class MapShape:
    """The sizes of a backbone's output for one image: maps of cells, and one vector."""

    channels: int
    """C, the numbers of each cell."""
    height: int
    """Rows of cells."""
    width: int
    """Columns of cells."""
    vector: int
    """K, the numbers of the vector."""


class Backbone(nn.Module, ABC):
    """A convolutional network from pixels to maps to attend to and one vector, the lecture's fc7.

    A row never depends on the other rows of its batch, and is the same in training and prediction.
    """

    letters: ClassVar[Mapping[str, str]] = {"": "CNN"}
    is_pretrained: ClassVar[bool] = True
    """Whether it has pretrained weights, so that it can be frozen; otherwise it always learns."""
    usual_size: int
    """The pixels of each side."""
    shape: MapShape

    @classmethod
    @abstractmethod
    def size_of(cls, name: str) -> int:
        """The pixels of each side that this backbone was made for; no weights are loaded."""

    @classmethod
    def shape_made_by(cls, make: Callable[[], "Backbone"]) -> MapShape:
        """The shape of the backbone that `make` builds; the random generator stays as it is."""
        with torch.random.fork_rng(devices=[]):
            return make().shape

    @abstractmethod
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) of values 0..255 to maps (N, C, h, w) and a vector (N, K)."""


def frozen_below(backbone: Backbone, name: str) -> None:
    """Freeze the weights before the first submodule whose name starts with `name`.

    The order is that of `named_modules()`, in which these networks also compute.
    """
    modules = [(inner_name(path), module) for path, module in backbone.named_modules()]
    below = list(takewhile(lambda named: not name or not named[0].startswith(name), modules))
    if len(below) == len(modules):
        known = near_the_top([path for path, _ in modules])
        raise RecipeError([unknown("layer of the backbone", name, known)])
    for _, module in below:
        for weights in module.parameters(recurse=False):
            weights.requires_grad_(requires_grad=False)


def inner_name(path: str) -> str:
    """A submodule's name in the network's own library, without the `model` that holds it here."""
    return "" if path == "model" else path.removeprefix("model.")


def near_the_top(paths: list[str]) -> list[str]:
    """The names that are short enough to be listed for a person.

    >>> near_the_top(["", "layer4", "layer4.2", "layer4.2.conv1"])
    ['layer4', 'layer4.2']
    """
    return [path for path in paths if path and path.count(".") < 2]
