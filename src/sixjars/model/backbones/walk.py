"""A walk through a network that somebody else wrote: which of its layers give maps, and which one vector.

Dims: N pictures, C channels, h and w cells, K numbers of the vector.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, unknown
from sixjars.model.backbones.backbone import near_the_top
from sixjars.model.backbones.libraries import first_line

PICTURES = 2
"""Shown on a walk: with one alone, a table of weights could be taken for what was made of it."""


@final
@dataclass(frozen=True)
class Stop:
    """One submodule, and what it gave."""

    path: str
    gives: tuple[int, ...]
    """The shape of its output."""
    reads: int
    """How many numbers of a picture a linear layer reads, or a convolution of one cell; 0 for other modules."""
    beside: bool
    """Whether its output is no map of its own: pooled, or the weights of an attention."""
    weighted: bool
    """Whether it has weights of its own."""

    @property
    def is_map(self) -> bool:
        """Whether it gives several cells of each square picture, as many across as down."""
        return self._of_pictures(4) and self.gives[2] == self.gives[3] > 1 and not self.beside

    @property
    def is_vector(self) -> bool:
        """Whether it gives one vector of each picture."""
        return self._of_pictures(2) or (self._of_pictures(4) and self.gives[2:] == (1, 1))

    def _of_pictures(self, dimensions: int) -> bool:
        return len(self.gives) == dimensions and self.gives[0] == PICTURES


@final
@dataclass(frozen=True)
class Walk:
    """All submodules of a network in the order in which they were done with blank pictures."""

    name: str
    stops: tuple[Stop, ...]
    channels_last: bool
    """Whether the network says that its maps are (N, h, w, C)."""

    @staticmethod
    def through(model: nn.Module, name: str, pixels: Tensor) -> "Walk":
        """Show `model` pixels of `PICTURES` blank pictures, (N, 3, H, W)."""
        stops: list[Stop] = []
        pooled: list[Tensor] = []

        def note(path: str, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if not isinstance(output, Tensor):
                return
            if "pool" in type(module).__name__.lower():
                pooled.append(output)
            weighted = next(module.parameters(recurse=False), None) is not None
            # A container hands on the very tensor of its last module, which may be a pooling.
            beside = any(output is one for one in pooled) or isinstance(module, nn.Softmax | nn.Dropout)
            stops.append(Stop(path, tuple(output.shape), _reads(module, inputs), beside, weighted))

        hooks = [
            module.register_forward_hook(lambda *seen, path=path: note(path, *seen))
            for path, module in model.named_modules()
            if path
        ]
        try:
            with torch.no_grad():
                model(pixels)
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            size = pixels.shape[-1]
            raise RecipeError([f"{name} cannot read pictures of {size}×{size} pixels: {first_line(error)}."]) from error
        finally:
            for hook in hooks:
                hook.remove()
        return Walk(name, tuple(stops), str(getattr(model, "output_fmt", "")).endswith("NHWC"))

    def checked(self, layer: str) -> Stop:
        """The layer of this name, which must give maps."""
        found = {stop.path: stop for stop in self.stops}
        if layer not in found:
            maps = [path for path, stop in found.items() if len(stop.gives) == 4]
            raise RecipeError([unknown(f"layer of {self.name}", layer, near_the_top(maps))])
        if len(found[layer].gives) != 4:
            gives = ("N", *found[layer].gives[1:])
            shape = ", ".join(map(str, gives))
            raise RecipeError([f"layer {layer!r} of {self.name} gives ({shape}), but maps (N, C, h, w) are needed."])
        return found[layer]

    def last_maps(self) -> Stop:
        """The last layer that gives maps, and not only the patches that a transformer begins with."""
        at = self._last_map()
        weighted = [where for where, stop in enumerate(self.stops) if stop.weighted]
        if at is None or self.channels_last or 2 * sum(where <= at for where in weighted) < len(weighted):
            raise RecipeError(
                [f"{self.name} gives no maps (N, C, h, w) at its end; take a convolutional network, or name a 'layer'."]
            )
        return self.stops[at]

    def vector(self, maps: Stop) -> Stop:
        """The last linear layer after the last maps; without one, what gives the last vector, or those maps."""
        at = self._last_map()
        start = self.stops.index(maps) if at is None else at
        after = self.stops[start:]
        linear = [stop for stop in after if stop.reads]
        flat = [stop for stop in after if stop.is_vector]
        return (linear or flat or [self.stops[start]])[-1]

    def _last_map(self) -> int | None:
        return max((at for at, stop in enumerate(self.stops) if stop.is_map), default=None)


def _reads(module: nn.Module, inputs: tuple[Any, ...]) -> int:
    shape = inputs[0].shape if inputs and isinstance(inputs[0], Tensor) else ()
    if isinstance(module, nn.Linear) and len(shape) == 2:
        return module.in_features
    if isinstance(module, nn.Conv2d) and shape[2:] == (1, 1):
        return module.in_channels
    return 0
