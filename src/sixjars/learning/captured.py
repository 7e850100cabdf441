"""Training steps as CUDA graphs: the kernels of a batch are recorded once, then launched together.

A small recurrent model launches thousands of kernels of a few microseconds, faster than Python can.
Graphs need tensors of fixed shape at fixed addresses, so batches are padded to a few shapes.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, final

import torch
from torch import Tensor

from sixjars.flow.limits import padded_size
from sixjars.flow.values import Batch, Padded
from sixjars.learning.engine import BatchShare, Updater
from sixjars_runtime.errors import LearningError

ROWS = 16
"""The rows of batches that are counted in tokens are padded to a multiple of this."""
MOST = 256
"""The number of graphs that are kept; batches of other shapes are computed without."""
FREE = 0.25
"""The share of the device's memory that is left to everything outside of graphs."""

UNRECORDED = (
    "a training step of this model cannot be recorded as a CUDA graph ({}); "
    "learning.fast=false trains without."
)

Shape = tuple[tuple[int, ...], ...]
Learn = Callable[[Batch, Tensor | float], Tensor]


def rung(width: int) -> int:
    """The width that a width is padded to; 0 and 1, of targets such as labels, stay.

    >>> [rung(width) for width in (0, 1, 2, 30, 33, 65, 300)]
    [0, 1, 4, 32, 40, 80, 320]
    """
    return width if width <= 1 else padded_size(width, least=4, parts=4)


def widened(batch: Batch, *, rows: bool) -> Batch:
    """The batch with its widths, and if `rows` its number of rows, padded to one of a few.

    The additions are masked, so they have no influence. Texts in segments stay as they are: they
    have been padded when their segments were packed.
    """
    count = len(batch.numbers)
    packed = any(padded.segments is not None for padded in batch.inputs.values())
    extra = -count % ROWS if rows and not packed else 0
    inputs = {name: _padded(padded, extra) for name, padded in batch.inputs.items()}
    target = _padded(batch.target, extra)
    alignment = batch.alignment
    if alignment is not None:
        source = next(iter(inputs.values()))
        alignment = _grown(alignment, (count + extra, target.mask.shape[1], source.mask.shape[1]))
    return Batch(inputs, target, _grown(batch.numbers, (count + extra,)), alignment)


def _padded(padded: Padded, extra: int) -> Padded:
    if padded.segments is not None:
        return padded
    shape = len(padded.mask) + extra, rung(padded.mask.shape[1])
    copied = None if padded.copy_ids is None else _grown(padded.copy_ids, shape)
    values = _grown(padded.values, (*shape, *padded.values.shape[2:]))
    return replace(padded, values=values, mask=_grown(padded.mask, shape), copy_ids=copied)


def _grown(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The values with zeros added at the end of every dimension."""
    if values.shape == shape:
        return values
    grown = values.new_zeros(shape)
    grown[tuple(slice(size) for size in values.shape)] = values
    return grown


def has_room() -> bool:
    """Whether there is memory for another graph, which keeps that of its step for itself."""
    for _ in range(2):
        free, total = torch.cuda.mem_get_info()
        if free >= FREE * total:
            return True
        torch.cuda.empty_cache()  # that of tensors that are gone
    return False


@final
class KernelGraph:
    """The kernels that a function launches, recorded; `replay` launches them again."""

    def __init__(self, function: Callable[[], Any], pool: Any) -> None:
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # `torch.cuda.graph` would collect all garbage first, and stop the thread of the batches.
        with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self.made = function()
            except RuntimeError as error:
                with suppress(RuntimeError):
                    self.graph.capture_end()
                raise LearningError(UNRECORDED.format(str(error).partition("\n")[0])) from error
            self.graph.capture_end()

    def replay(self) -> Any:
        """Launch the kernels; return the function's result, computed again."""
        self.graph.replay()
        return self.made


@final
class GradientGraph:
    """The graph of batches of one shape: from their inputs to the gradients of the weights."""

    def __init__(self, learn: Learn, batch: Batch, pool: Any) -> None:
        self.batch = batch
        self.places = batch.tensors()
        self.factor = torch.ones((), device=self.places[0].device)
        self.graph = KernelGraph(lambda: learn(self.batch, self.factor), pool)

    def learned(self, batch: Batch, factor: Tensor | float) -> Tensor:
        """The loss of another batch of the same shape."""
        for place, tensor in zip(self.places, batch.tensors(), strict=True):
            place.copy_(tensor, non_blocking=True)
        self.factor.fill_(factor)
        loss: Tensor = self.graph.replay()
        return loss


@final
class TrainingGraphs:
    """The steps of an update as graphs: what an `Updater` does, recorded, and launched again.

    Each shape of batches has a graph with both passes, recorded when it is met for the second time;
    one more graph has the clipping and the step. Both leave the gradients where they are.
    """

    def __init__(self, plain: Updater) -> None:
        self.plain = plain
        self.batches, self.schedule = plain.batches, plain.schedule
        self.pool = torch.cuda.graph_pool_handle()
        self.met: set[Shape] = set()
        self.recorded: dict[Shape, GradientGraph] = {}
        self.is_full = False
        """Whether the device has no room for more graphs; other shapes are computed without."""
        self.update: KernelGraph | None = None
        self.updates = 0

    def ready(self, batch: Batch) -> Batch:
        """A batch of one of a few shapes, still on the CPU."""
        return self.plain.ready(widened(batch, rows=self.plain.pads_rows))

    def forward(self, share: BatchShare) -> tuple[Tensor, Tensor]:
        """The loss of a batch from the CPU, twice; its gradients are added to the weights' own."""
        graph = self._graph(share.batch)
        loss = (self._learn if graph is None else graph.learned)(share.batch, share.factor)
        return loss, loss

    def backward(self, loss: Tensor) -> None:
        """Nothing: the graph of the forward pass goes on with this one."""

    def clip(self) -> None:
        """Nothing: the graph of the step begins with it."""

    def step(self) -> None:
        """Clip, and step; the first two create the optimizer's state, so they have no graph."""
        self.updates += 1
        if self.updates <= 2:
            self._step()
            return
        if self.update is None:
            self.update = KernelGraph(self._step, self.pool)
        self.update.replay()

    def _step(self) -> None:
        self.plain.clip()
        self.plain.step()

    def _learn(self, batch: Batch, factor: Tensor | float) -> Tensor:
        """Add the gradients of a batch, times a factor, to the weights' own; return its loss."""
        loss, plain = self.plain.forward(BatchShare(batch, factor))
        self.plain.backward(loss)
        return plain

    def _graph(self, batch: Batch) -> GradientGraph | None:
        """The graph of a batch's shape, which is recorded first where it is time to."""
        shape = tuple(tuple(tensor.shape) for tensor in batch.tensors())
        # The first time compiles kernels, and the first update shows which weights learn.
        is_due = shape in self.met and self.updates > 0 and shape not in self.recorded
        self.met.add(shape)
        if is_due and not self.is_full:
            self.is_full = len(self.recorded) >= MOST or not has_room()
            if not self.is_full:
                self._record(shape, batch)
        return self.recorded.get(shape)

    def _record(self, shape: Shape, batch: Batch) -> None:
        """Record the graph of a shape, if there is room for it."""
        on_device = batch.to(torch.device("cuda", torch.cuda.current_device()))
        try:
            self.recorded[shape] = GradientGraph(self._learn, on_device, self.pool)
        except LearningError as error:
            self.is_full = isinstance(error.__cause__, torch.OutOfMemoryError)
            if not self.is_full:
                raise
