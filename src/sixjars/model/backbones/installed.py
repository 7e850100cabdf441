"""A network of torchvision, timm or transformers as a backbone.

Dims: N pictures, C channels, H and W pixels or cells, K numbers of the vector.
"""

from contextvars import ContextVar
from functools import partial
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from sixjars.model.backbones.backbone import Backbone, MapShape
from sixjars.model.backbones.libraries import network_named, preprocessing_of
from sixjars.model.backbones.walk import PICTURES, Walk

KEPT: ContextVar[dict[str, Tensor] | None] = ContextVar("KEPT", default=None)
"""What the layers of interest gave in the pass under way: of this thread alone, and never on a module."""


@final
class InstalledBackbone(Backbone):
    """Any convolutional network of the user's libraries: the maps of a layer, and what its classifier reads.

    `layer` names any submodule that gives (N, C, h, w), such as `features.29` of torchvision/vgg16; when it is absent,
    the last one with more than one cell that is not a pooling. The vector is what the last linear layer reads (fc7 of
    VGG), and that layer is left out; a network without one gives the last vector that it computes after the maps.

    It is always in evaluation mode: no dropout, and normalisation by the numbers that it came with.
    """

    gain: Tensor
    shift: Tensor

    def __init__(
        self, name: str, *, layer: str | None = None, size: int | None = None, pretrained: bool = True
    ) -> None:
        super().__init__()
        wants = preprocessing_of(name)
        self.usual_size = size or wants.size
        self.blue_first = wants.blue_first
        self.register_buffer("gain", torch.tensor(wants.gain).view(-1, 1, 1))
        self.register_buffer("shift", torch.tensor(wants.shift).view(-1, 1, 1))
        self.model = network_named(name, pretrained=pretrained)
        blank_NCHW = torch.zeros(PICTURES, 3, self.usual_size, self.usual_size)
        walk = Walk.through(self.model, name, self._ready(blank_NCHW))
        maps = walk.last_maps() if layer is None else walk.checked(layer)
        vector = walk.vector(maps)
        if vector.reads:
            self.model.set_submodule(vector.path, nn.Identity())
        self.model.get_submodule(maps.path).register_forward_hook(partial(_keep, "maps"))
        self.model.get_submodule(vector.path).register_forward_hook(partial(_keep, "vector"))
        _, channels, height, width = maps.gives
        self.shape = MapShape(channels, height, width, vector.reads or vector.gives[1])

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
        return kept["maps"].float().contiguous(), vector_NK.float()

    def _ready(self, pixels: Tensor) -> Tensor:
        """As the network wants them."""
        colours_NCHW = pixels.flip(1) if self.blue_first else pixels
        return colours_NCHW.float() * self.gain + self.shift

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002 - as torch has it
        """Always evaluation mode, whatever is asked for."""
        return super().train(mode=False)


def _keep(what: str, _module: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> None:
    kept = KEPT.get()
    if kept is not None:
        kept[what] = output.clone()  # the next module may write into it
