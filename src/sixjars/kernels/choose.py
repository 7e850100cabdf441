"""Chooses the backend of a training or a prediction, once, from device and precision."""

from importlib.util import find_spec

import torch
from torch import nn

from sixjars.flow.backend import Backend
from sixjars.kernels.backends import CompiledBackend, TorchBackend, TritonBackend
from sixjars.kernels.compiling import hindrance, load_kernels
from sixjars.kernels.products import Precision, check_precision
from sixjars.model.build import Network
from sixjars.model.reference import REFERENCE


def training_backend(device: str, precision: str, *, fast: bool, graphs: bool) -> Backend:
    """The backend of a training on such a device; `graphs` if its steps are CUDA graphs."""
    if not fast:
        return REFERENCE
    if device == "cuda":
        # Without graphs a GPU waits for Python; torch's own recurrence is a single call.
        if find_spec("triton") is None:
            return TorchBackend(unrolls_stacks=graphs)
        return TritonBackend(unrolls_stacks=graphs)
    if device != "cpu":
        return TorchBackend(unrolls_stacks=False)
    library = hindrance(precision) or load_kernels(build=True)
    if isinstance(library, str):
        return TorchBackend(note=f"; no compiled kernels: {library}")
    return CompiledBackend(library, note="; compiled kernels")


def prediction_backend(device: str) -> Backend:
    """The backend of predictions; kernels are used that are compiled already."""
    if device == "cuda" and find_spec("triton") is not None:
        return TritonBackend()
    library = load_kernels(build=False) if device == "cpu" else ""
    return TorchBackend() if isinstance(library, str) else CompiledBackend(library)


def compile_ahead(device: str) -> None:
    """Compile the kernels for what will predict for long: a server, a folder of files."""
    if device == "cpu":
        load_kernels(build=True)


def in_precision(network: Network, precision: Precision) -> Network:
    """The network itself, which now predicts in that precision, but trains and saves as before.

    Of an encoder only the recurrences change; the other layers run once for each source.
    """
    device = network.device.type
    check_precision(device, precision)
    if device == "cuda" and precision == "bf16":
        network.decoder.to(torch.bfloat16)
    if device == "cpu":
        stacks = [each for each in network.encoder.modules() if isinstance(each, nn.RNNBase)]
        network.backend.pack([*network.decoder.modules(), *stacks], precision)
    return network
