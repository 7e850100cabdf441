"""A network of torchvision, timm or transformers as a backbone.

Dims: N images, C channels, H and W pixels or cells, K numbers of the vector.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from sixjars.model.backbones.backbone import Backbone, MapShape
from sixjars.model.backbones.libraries import network_named, preprocessing_of
from sixjars.model.backbones.trace import BLANKS, NetworkTrace
from sixjars_runtime.errors import RecipeError

KEPT: ContextVar[dict[str, Tensor] | None] = ContextVar("KEPT", default=None)
"""The outputs of the chosen layers in this pass and this thread, never kept on a module."""


@final
class InstalledBackbone(Backbone):
    """A convolutional network of a library: the maps of a layer, the input of the classifier.

    `layer` names any submodule that outputs (N, C, h, w), such as `features.29` of
    torchvision/vgg16; by default the last one with more than one cell that is not a pooling. The
    vector is the input of the last linear layer (fc7 of VGG), and that layer is left out; without
    one it is the last vector that is computed after the maps.

    It is always in evaluation mode: no dropout, and its own statistics for normalisation.
    """

    gain: Tensor
    shift: Tensor

    def __init__(
        self,
        name: str,
        *,
        layer: str | None = None,
        size: int | None = None,
        pretrained: bool = True,
    ) -> None:
        super().__init__()
        preprocessing = preprocessing_of(name)
        self.usual_size = size or preprocessing.size
        self.blue_first = preprocessing.blue_first
        self.register_buffer("gain", torch.tensor(preprocessing.gain).view(-1, 1, 1))
        self.register_buffer("shift", torch.tensor(preprocessing.shift).view(-1, 1, 1))
        self.model = network_named(name, pretrained=pretrained)
        blank_NCHW = torch.zeros(BLANKS, 3, self.usual_size, self.usual_size)
        trace = NetworkTrace.of(self.model, name, self._ready(blank_NCHW))
        maps = trace.last_maps() if layer is None else trace.checked(layer)
        vector = trace.vector(maps)
        if vector.inputs:
            self.model.set_submodule(vector.path, nn.Identity())
        self.model.get_submodule(maps.path).register_forward_hook(partial(_keep, "maps"))
        self.model.get_submodule(vector.path).register_forward_hook(partial(_keep, "vector"))
        _, channels, height, width = maps.shape
        self.shape = MapShape(channels, height, width, vector.inputs or vector.shape[1])

    @classmethod
    def size_of(cls, name: str) -> int:
        """The size of images after the library's own preprocessing."""
        return preprocessing_of(name).size

    @classmethod
    def shape_made_by(cls, make: Callable[[], Backbone]) -> MapShape:
        """The shape, without memory for the weights, unless the library needs real numbers."""
        try:
            with torch.device("meta"):
                return make().shape
        except RecipeError as error:
            if error.__cause__ is None:
                raise
        return super().shape_made_by(make)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) to maps (N, C, h, w) and a vector (N, K)."""
        kept: dict[str, Tensor] = {}
        before = KEPT.set(kept)
        try:
            self.model(self._ready(pixels))
        finally:
            KEPT.reset(before)
        vector = kept["vector"]
        vector_NK = vector.mean((2, 3)) if vector.dim() == 4 else vector
        return kept["maps"].to(self.gain.dtype).contiguous(), vector_NK.to(self.gain.dtype)

    def _ready(self, pixels: Tensor) -> Tensor:
        """The pixels as the network needs them."""
        colours_NCHW = pixels.flip(1) if self.blue_first else pixels
        return colours_NCHW.to(self.gain.dtype) * self.gain + self.shift

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002 - as torch has it
        """Stay in evaluation mode, whatever the caller sets."""
        return super().train(mode=False)


def _keep(what: str, _module: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> None:
    kept = KEPT.get()
    if kept is not None:
        kept[what] = output.clone()  # the next module may write into it
