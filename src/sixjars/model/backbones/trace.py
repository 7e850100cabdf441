"""Which layers of an installed network output maps, and which a vector.

Dims: N images, C channels, h and w cells, K numbers of the vector.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from sixjars.model.backbones.backbone import near_the_top
from sixjars_runtime.errors import RecipeError, first_line, unknown

BLANKS = 2
"""Images of a trace; with a single one, a table of weights could be taken for its features."""


@final
@dataclass(frozen=True)
class TracedLayer:
    """One submodule and its output."""

    path: str
    shape: tuple[int, ...]
    """The shape of its output."""
    inputs: int
    """The inputs of a linear layer or of a convolution of one cell; 0 for other modules."""
    beside: bool
    """Whether its output is no map of its own: pooled, or attention weights."""
    weighted: bool
    """Whether it has weights of its own."""

    @property
    def is_map(self) -> bool:
        """Whether it outputs several cells of each square image, as many across as down."""
        return self._of_images(4) and self.shape[2] == self.shape[3] > 1 and not self.beside

    @property
    def is_vector(self) -> bool:
        """Whether it outputs one vector of each image."""
        return self._of_images(2) or (self._of_images(4) and self.shape[2:] == (1, 1))

    def _of_images(self, dimensions: int) -> bool:
        return len(self.shape) == dimensions and self.shape[0] == BLANKS


@final
@dataclass(frozen=True)
class NetworkTrace:
    """All submodules of a network, in the order in which they finished."""

    name: str
    layers: tuple[TracedLayer, ...]
    channels_last: bool
    """Whether the network declares that its maps are (N, h, w, C)."""

    @staticmethod
    def of(model: nn.Module, name: str, pixels: Tensor) -> "NetworkTrace":
        """The trace of pixels of `BLANKS` blank images, (N, 3, H, W), through `model`."""
        layers: list[TracedLayer] = []
        pooled: list[Tensor] = []

        def note(path: str, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if not isinstance(output, Tensor):
                return
            if "pool" in type(module).__name__.lower():
                pooled.append(output)
            weighted = next(module.parameters(recurse=False), None) is not None
            # A container returns the very tensor of its last module, which may be a pooling.
            is_pooled = any(output is tensor for tensor in pooled)
            beside = is_pooled or isinstance(module, nn.Softmax | nn.Dropout)
            width = _inputs(module, inputs)
            layers.append(TracedLayer(path, tuple(output.shape), width, beside, weighted))

        hooks = [
            module.register_forward_hook(lambda *call, path=path: note(path, *call))
            for path, module in model.named_modules()
            if path
        ]
        try:
            with torch.no_grad():
                model(pixels)
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            size = pixels.shape[-1]
            fault = f"{name} cannot take images of {size}×{size} pixels: {first_line(error)}."
            raise RecipeError([fault]) from error
        finally:
            for hook in hooks:
                hook.remove()
        return NetworkTrace(
            name, tuple(layers), str(getattr(model, "output_fmt", "")).endswith("NHWC")
        )

    def checked(self, layer: str) -> TracedLayer:
        """The layer of this name, which must output maps."""
        layers = {each.path: each for each in self.layers}
        if layer not in layers:
            maps = [path for path, each in layers.items() if len(each.shape) == 4]
            raise RecipeError([unknown(f"layer of {self.name}", layer, near_the_top(maps))])
        if len(layers[layer].shape) != 4:
            shape = ", ".join(map(str, ("N", *layers[layer].shape[1:])))
            fault = f"outputs ({shape}), but maps (N, C, h, w) are needed."
            raise RecipeError([f"layer {layer!r} of {self.name} {fault}"])
        return layers[layer]

    def last_maps(self) -> TracedLayer:
        """The last layer that outputs maps, if they are more than a transformer's first patches."""
        at = self._last_map()
        weighted = [number for number, layer in enumerate(self.layers) if layer.weighted]
        is_early = at is None or 2 * sum(number <= at for number in weighted) < len(weighted)
        if at is None or is_early or self.channels_last:
            need = "take a convolutional network, or name a 'layer'."
            raise RecipeError([f"{self.name} has no maps (N, C, h, w) at its end; {need}"])
        return self.layers[at]

    def vector(self, maps: TracedLayer) -> TracedLayer:
        """The last linear layer after the last maps; otherwise the last vector, or those maps."""
        at = self._last_map()
        start = self.layers.index(maps) if at is None else at
        after = self.layers[start:]
        linear = [layer for layer in after if layer.inputs]
        flat = [layer for layer in after if layer.is_vector]
        return (linear or flat or [self.layers[start]])[-1]

    def _last_map(self) -> int | None:
        return max((at for at, layer in enumerate(self.layers) if layer.is_map), default=None)


def _inputs(module: nn.Module, inputs: tuple[Any, ...]) -> int:
    shape = inputs[0].shape if inputs and isinstance(inputs[0], Tensor) else ()
    if isinstance(module, nn.Linear) and len(shape) == 2:
        return module.in_features
    if isinstance(module, nn.Conv2d) and shape[2:] == (1, 1):
        return module.in_channels
    return 0
