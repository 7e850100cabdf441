"""What every backbone promises, and what can be asked of any of them.

Dims: N pictures, C channels, H and W pixels or cells, K numbers of the vector.
"""

from abc import abstractmethod
from dataclasses import dataclass
from itertools import takewhile
from typing import final

from torch import Tensor

from sixjars.errors import RecipeError, unknown
from sixjars.flow.contracts import Component


@final
@dataclass(frozen=True)
class MapShape:
    """How many numbers a backbone makes of one picture: maps of cells, and one vector.

    >>> MapShape(channels=512, height=14, width=14, vector=4096).numbers
    104448
    """

    channels: int
    """C, the numbers of each cell."""
    height: int
    """Rows of cells."""
    width: int
    """Columns of cells."""
    vector: int
    """K, the numbers of the vector."""

    @property
    def numbers(self) -> int:
        """Of the maps and the vector together, C·h·w + K."""
        return self.channels * self.height * self.width + self.vector


class Backbone(Component):
    """A convolutional network that turns pixels into maps to attend over and one vector, the lecture's fc7.

    A row never depends on the other rows of its batch, and it is the same in training and in use.
    """

    letters = {"": "CNN"}
    usual_size: int
    """Pixels of each side that it was made for."""
    shape: MapShape
    """What it makes of a picture of the usual size."""

    @abstractmethod
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) of values 0..255, of any dtype, to maps (N, C, h, w) and a vector (N, K), float32."""

    def equations(self) -> list[str]:
        """The line of the lecture, with the sizes."""
        shape = self.shape
        cells = f"{shape.height}×{shape.width} cells of {shape.channels} numbers"
        return [f"r_1..r_S, v = CNN(I): {cells}, and a vector of {shape.vector}"]


def frozen_below(backbone: Backbone, name: str) -> None:
    """What comes before the first submodule whose name starts with `name` stops learning.

    Order is that of `named_modules()`, which in the networks meant here is the order of computing.
    """
    modules = [(inner_name(path), module) for path, module in backbone.named_modules()]
    below = list(takewhile(lambda named: not name or not named[0].startswith(name), modules))
    if len(below) == len(modules):
        raise RecipeError([unknown("part of the backbone", name, near_the_top([path for path, _ in modules]))])
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
