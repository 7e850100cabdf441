"""Networks of torchvision, timm and transformers, and the preprocessing of each.

Dims: C channels, H and W pixels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, final

import torch
from torch import Tensor, nn

from sixjars_runtime.errors import RecipeError, first_line, hint

AS_PRETRAINED: Mapping[str, Mapping[str, bool]] = {
    name: {"aux_logits": False, "transform_input": True, "init_weights": False}
    for name in ("googlenet", "inception_v3")
}
"""Settings that these networks of torchvision need without weights, to be built as with them."""
BLANK = 512
"""The pixels of each side of the images that show the effect of a preprocessing."""
FAILURES = (ImportError, OSError, RuntimeError, ValueError)
"""Errors of the libraries: a file cannot be fetched or does not fit, or a library is missing."""


@final
@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of a network: gain · pixel + shift for each channel, after a resize."""

    size: int
    """The pixels of each side."""
    gain: tuple[float, ...]
    shift: tuple[float, ...]
    blue_first: bool = False
    """Whether the channels are blue, green, red."""

    @staticmethod
    def found_by(process: Callable[[Tensor], Tensor]) -> "Preprocessing":
        """The effect of `process` on an image (3, H, W), by a black, a white and a red one."""
        colours = [[0, 0, 0], [255, 255, 255], [255, 0, 0]]
        pixels = torch.tensor(colours, dtype=torch.uint8, device="cpu").view(3, 3, 1, 1)
        outputs = [process(image.expand(3, BLANK, BLANK).contiguous()) for image in pixels]
        size = outputs[0].shape[-1]
        black_C, white_C, red_C = (image[:, size // 2, size // 2].double() for image in outputs)
        gain_C = (white_C - black_C) / 255.0
        blue_first = bool((red_C - black_C).abs()[0] < (red_C - black_C).abs()[2])
        return Preprocessing(size, tuple(gain_C.tolist()), tuple(black_C.tolist()), blue_first)


def _library(name: str) -> ModuleType:
    """A module of a library, or a sentence that says how to install it."""
    library = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:  # of the library, or of one that it needs
        missing = (error.name or library).partition(".")[0]
        raise RecipeError([f"{missing} is not installed. Run: pip install {missing}"]) from None
    except (ImportError, RuntimeError) as error:  # its compiled code does not fit this torch
        fault = f"{library} cannot be used with this torch ({first_line(error)})."
        remedy = f"Run: pip install --upgrade torch {library}"
        raise RecipeError([f"{fault} {remedy}"]) from None


def _known(library: str, name: str, names: list[str]) -> None:
    """Refuse a name that the library does not have; there are too many to list them all."""
    if name not in names:
        fault = f"{library} has no network {name!r}.{hint(name, names)} It has {len(names)} others."
        raise RecipeError([fault])


def _torchvision(name: str) -> Preprocessing:
    models = _library("torchvision.models")
    _known("torchvision", name, models.list_models(module=models))
    return Preprocessing.found_by(models.get_model_weights(name).DEFAULT.transforms())


def _timm(name: str) -> Preprocessing:
    timm = _library("timm")
    _known("timm", name.partition(".")[0], timm.list_models())
    settings = timm.get_pretrained_cfg(name)
    gain = tuple(1 / (255 * std) for std in settings.std)
    shift = tuple(-mean / std for mean, std in zip(settings.mean, settings.std, strict=True))
    return Preprocessing(settings.input_size[-1], gain, shift)


def _transformers(name: str) -> Preprocessing:
    kind = _library("transformers").AutoImageProcessor
    processor = kind.from_pretrained(name, trust_remote_code=False)

    def process(image: Tensor) -> Tensor:
        outputs = processor(images=image.permute(1, 2, 0).numpy(), return_tensors="pt")
        pixels: Tensor = outputs["pixel_values"][0]
        return pixels

    return Preprocessing.found_by(process)


def _torchvision_network(name: str, *, pretrained: bool) -> Any:
    models = _library("torchvision.models")
    if pretrained:
        return models.get_model(name, weights=models.get_model_weights(name).DEFAULT)
    return models.get_model(name, weights=None, **AS_PRETRAINED.get(name, {}))


def _timm_network(name: str, *, pretrained: bool) -> Any:
    return _library("timm").create_model(name, pretrained=pretrained)


def _transformers_network(name: str, *, pretrained: bool) -> Any:
    transformers = _library("transformers")
    if pretrained:
        return transformers.AutoModel.from_pretrained(name, trust_remote_code=False)
    configuration = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    return transformers.AutoModel.from_config(configuration, trust_remote_code=False)


LIBRARIES: Mapping[str, tuple[Callable[[str], Preprocessing], Callable[..., Any]]] = {
    "torchvision": (_torchvision, _torchvision_network),
    "timm": (_timm, _timm_network),
    "transformers": (_transformers, _transformers_network),
}
"""The preprocessing of each library's networks, and the function that builds them."""


@cache
def preprocessing_of(name: str) -> Preprocessing:
    """The preprocessing of the network LIBRARY/NAME, without loading its weights."""
    library, _, model = name.partition("/")
    try:
        return LIBRARIES[library][0](model)
    except FAILURES as error:
        fault = f"the preprocessing of {name} cannot be loaded: {first_line(error)}."
        raise RecipeError([fault]) from error


def network_named(name: str, *, pretrained: bool) -> nn.Module:
    """The network LIBRARY/NAME in evaluation mode, with its weights or with random ones."""
    library, _, model = name.partition("/")
    try:
        network = LIBRARIES[library][1](model, pretrained=pretrained)
    except FAILURES as error:
        raise RecipeError([f"{name} cannot be loaded: {first_line(error)}."]) from error
    assert isinstance(network, nn.Module)
    return network.eval()
