"""Encoders as CUDA graphs: inputs of a shape that comes again are encoded by one launch.

To encode is hundreds of small kernels, which a GPU runs faster than Python launches them.
Validation sees the same batches again and again, and sorted inputs are often of one shape.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from threading import Lock
from typing import final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from sixjars.decoding.capture import CAPTURING, addresses
from sixjars.flow.values import Encoded, Padded
from sixjars.learning.captured import KernelGraph
from sixjars.model.build import Network
from sixjars_runtime.errors import LearningError

MOST = 64
"""Graphs of a network; inputs of other shapes are encoded without."""
LARGEST = 1 << 22
"""Bytes of inputs that a graph is made for: more, as images have, take longer than a launch."""


@final
class _EncoderGraph:
    """The graph for inputs of one shape. It holds tensors of its own."""

    def __init__(self, network: Network, inputs: Mapping[str, Padded], pool: object) -> None:
        buffers = {name: padded.mapped(Tensor.clone) for name, padded in inputs.items()}
        self.buffers = _tensors(buffers)
        network.encode(buffers)  # libraries allocate what they need at the first call of a thread
        self.graph = KernelGraph(lambda: network.encode(buffers), pool)

    def encoded(self, tensors: list[Tensor]) -> Encoded:
        torch._foreach_copy_(self.buffers, tensors)
        encoded = self.graph.replay()
        assert isinstance(encoded, Encoded)
        return encoded.mapped(Tensor.clone)


@final
class _EncoderGraphs:
    def __init__(self) -> None:
        self.lock = Lock()  # of all: they share their memory
        self.pool = torch.cuda.graph_pool_handle()
        self.weights: tuple[int, ...] = ()
        """The addresses of the weights: graphs of weights elsewhere would never be used again."""
        self.met: set[Hashable] = set()
        self.recorded: dict[Hashable, _EncoderGraph | None] = {}
        """Graphs by shape; nothing for one that could not be recorded."""

    def encoded(
        self, network: Network, inputs: Mapping[str, Padded], tensors: list[Tensor], key: Hashable
    ) -> Encoded:
        """Encode inputs, without a graph the first time: most shapes come once."""
        weights = addresses(network.encoder)
        if weights != self.weights:
            self.weights = weights
            self.met.clear()
            self.recorded.clear()
        if key not in self.recorded and key in self.met and len(self.recorded) < MOST:
            try:
                with CAPTURING:
                    self.recorded[key] = _EncoderGraph(network, inputs, self.pool)
            except LearningError:  # an encoder that reads from the device
                self.recorded[key] = None
        self.met.add(key)
        graph = self.recorded.get(key)
        return network.encode(inputs) if graph is None else graph.encoded(tensors)


GRAPHS: WeakKeyDictionary[Network, _EncoderGraphs] = WeakKeyDictionary()


def captured(network: Network) -> Callable[[Mapping[str, Padded]], Encoded]:
    """`network.encode`, by graphs."""
    return partial(encoded_captured, network)


def encoded_captured(network: Network, inputs: Mapping[str, Padded]) -> Encoded:
    """Call `network.encode` by a graph, or plainly while another thread uses those of the network.

    Texts in segments are packed into rectangles of many shapes, so they are encoded without.
    """
    tensors = _tensors(inputs)
    packed = any(padded.segments is not None for padded in inputs.values())
    if packed or sum(tensor.nbytes for tensor in tensors) > LARGEST:
        return network.encode(inputs)
    shapes = (*inputs, *((tensor.shape, tensor.dtype) for tensor in tensors))
    key = (shapes, torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
    with CAPTURING:
        graphs = GRAPHS.setdefault(network, _EncoderGraphs())
    if not graphs.lock.acquire(blocking=False):
        return network.encode(inputs)
    try:
        return graphs.encoded(network, inputs, tensors, key)
    finally:
        graphs.lock.release()


def _tensors(inputs: Mapping[str, Padded]) -> list[Tensor]:
    return [tensor for padded in inputs.values() for tensor in padded.tensors()]
