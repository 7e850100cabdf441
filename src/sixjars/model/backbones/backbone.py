"""The contract of every backbone, and how its first layers are frozen.

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
    """How many numbers a backbone computes for one image: maps of cells, and one vector."""

    channels: int
    """C, the numbers of each cell."""
    height: int
    """Rows of cells."""
    width: int
    """Columns of cells."""
    vector: int
    """K, the numbers of the vector."""


class Backbone(nn.Module, ABC):
    """A convolutional network that turns pixels into maps to attend to and one vector, the lecture's fc7.

    A row never depends on the other rows of its batch, and it is the same in training and in use.
    """

    letters: ClassVar[Mapping[str, str]] = {"": "CNN"}
    is_pretrained: ClassVar[bool] = True
    """Whether there are pretrained weights, so that it can be frozen; without any it always learns."""
    usual_size: int
    """Pixels of each side."""
    shape: MapShape

    @classmethod
    @abstractmethod
    def size_of(cls, name: str) -> int:
        """Pixels of each side that the backbone of this name was made for; its weights are not loaded for that."""

    @classmethod
    def shape_made_by(cls, make: Callable[[], "Backbone"]) -> MapShape:
        """The shape of the backbone that `make` builds; the random numbers of others stay as they are."""
        with torch.random.fork_rng(devices=[]):
            return make().shape

    @abstractmethod
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) of values 0..255, of any dtype, to maps (N, C, h, w) and a vector (N, K)."""


def frozen_below(backbone: Backbone, name: str) -> None:
    """Freeze all that comes before the first submodule whose name starts with `name`.

    Order is that of `named_modules()`, which in the networks meant here is the order of computing.
    """
    modules = [(inner_name(path), module) for path, module in backbone.named_modules()]
    below = list(takewhile(lambda named: not name or not named[0].startswith(name), modules))
    if len(below) == len(modules):
        raise RecipeError(
            [unknown("layer of the backbone", name, near_the_top([path for path, _ in modules]))]
        )
    for _, module in below:
        for weights in module.parameters(recurse=False):
            weights.requires_grad_(requires_grad=False)


def inner_name(path: str) -> str:
    """A submodule's name as the network's own library has it: without the `model` that holds it here."""
    return "" if path == "model" else path.removeprefix("model.")


def near_the_top(paths: list[str]) -> list[str]:
    """The names among these that are short enough to be listed for a person.

    >>> near_the_top(["", "layer4", "layer4.2", "layer4.2.conv1"])
    ['layer4', 'layer4.2']
    """
    return [path for path in paths if path and path.count(".") < 2]
