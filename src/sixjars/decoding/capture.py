"""Steps of search as CUDA graphs: a step is many small kernels, and to launch them one by one takes longer than to run.

Dims: B sources, N rows of each, R = B * N rows open in search, S source positions, P segments of a row.

A graph has fixed shapes and addresses. So a few are kept for each model, with sources padded to lengths that come
again, and what is to be searched is copied into the tensors that a graph reads. All else is as it is without graphs.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.decoding.problem import Advance, Column, Part, Problem, Running, filled, walked
from sixjars.flow.contracts import Generator
from sixjars.flow.limits import padded_size
from sixjars.flow.values import Encoded, Tensors

KEPT = 8
"""Graphs for each model; the one that was not used for the longest time goes first."""
AT_ONCE = range(6, 2, -1)
"""How many steps a graph may have. It is launched again before search knows whether the last steps left anything."""


bucket = partial(padded_size, parts=8)


def bucketed(encoded: Encoded) -> Encoded:
    """The same sources, padded to shapes that come again; those that are added are empty, and come last."""
    rows, positions = bucket(encoded.rows, least=1), bucket(encoded.mask.shape[1], least=8)
    level = encoded.segments
    if level is not None:
        weights = None if level.weights is None else _padded(level.weights, rows, positions)
        segments = bucket(level.mask.shape[1], least=4)
        memory, mask = _padded(level.memory, rows, segments), _padded(level.mask, rows, segments)
        level = replace(
            level,
            memory=memory,
            mask=mask,
            segment_of=_padded(level.segment_of, rows, positions),
            weights=weights,
        )
    return replace(
        encoded,
        memory=_padded(encoded.memory, rows, positions),
        mask=_padded(encoded.mask, rows, positions),
        summary=F.pad(encoded.summary, (0, 0, 0, rows - encoded.rows)),
        segments=level,
        copy_ids=None if encoded.copy_ids is None else _padded(encoded.copy_ids, rows, positions),
    )


def _padded(values: Tensor, rows: int, positions: int) -> Tensor:
    """(B, S, …) with zeros added below and to the right."""
    if values.shape[:2] == (rows, positions):
        return values
    rest = (0, 0) * (values.dim() - 2)
    return F.pad(values, (*rest, 0, positions - values.shape[1], 0, rows - values.shape[0]))


def recorded(make: Callable[[], None], pool: Any, device: torch.device) -> Callable[[], None]:
    """The same as one graph, which computes with the same tensors again; on a CPU, what is given."""
    if device.type == "cpu":
        return make
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries allocate what they need at the first call
        make()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    torch.clear_autocast_cache()  # of narrower weights, which will be freed: the graph must make its own
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        make()
    torch.clear_autocast_cache()
    return graph.replay


@final
class Captured:
    """Some steps of one search as a graph. It holds tensors of its own, and no module."""

    def __init__(self, problem: Problem, running: Any, advance: Advance, pool: Any) -> None:
        assert problem.prepared is not None
        self.given = [tensor.clone() for tensor in _given(problem)]
        own = iter(self.given)
        seeds = None if problem.seeds is None else next(own)
        problem = replace(problem, prepared=filled(problem.prepared, own), seeds=seeds)
        # Graph and kernels read the tensors of both, which must not be freed; the problem itself knows a module.
        self.rules = problem.rule, problem.never
        self.running: Any = running.mapped(Tensor.clone)
        self.page: list[Tensor] = []
        self.like: Column
        self.left: Tensor
        self.made = torch.zeros((), dtype=torch.long, device=self.given[0].device)
        steps = next((count for count in AT_ONCE if problem.longest % count == 0), AT_ONCE[2])

        def make() -> None:
            after, columns = self.running, []
            for _ in range(steps):
                after, column = advance(problem, after, self.made)
                columns.append(column.tensors())
                self.made += 1
            self.page = [torch.stack(tensors) for tensors in zip(*columns, strict=True)]
            self.like = column
            _copied(after, self.running)
            self.left = after.going().any()

        self.replay = recorded(make, pool, self.made.device)

    def walked(self, problem: Problem, given: list[Tensor], running: Any) -> list[Part]:
        """All steps until nothing is left to do; what is `given` is that of the problem."""
        torch._foreach_copy_(self.given, given)
        _copied(running, self.running)
        self.made.zero_()
        pages: list[list[Tensor]] = []
        left: list[Callable[[], bool]] = []
        made = 0
        while made < problem.longest:
            self.replay()
            pages.append([tensor.clone() for tensor in self.page])
            made += len(self.page[0])
            left.append(_arriving(self.left))
            if (
                len(left) > 1 and not left[-2]()
            ):  # asked this late, so that the device never waits for the answer
                break
        rows = torch.arange(problem.state.rows)  # nobody reads them on the device
        steps = [torch.cat(tensors)[: problem.longest] for tensors in zip(*pages, strict=True)]
        return [
            Part(rows, [filled(self.like, steps)], self.running.mapped(Tensor.clone), together=True)
        ]


def _arriving(flag: Tensor) -> Callable[[], bool]:
    """A flag on its way from the device; who asks for it waits until it is there."""
    if flag.device.type == "cpu":
        return partial(bool, flag.clone())
    here = torch.empty((), dtype=torch.bool, pin_memory=True)
    here.copy_(flag, non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()

    def arrived() -> bool:
        copied.synchronize()
        return bool(here)

    return arrived


def _given(problem: Problem) -> list[Tensor]:
    """What a graph reads of a problem, besides what is running."""
    assert problem.prepared is not None
    return [*([] if problem.seeds is None else [problem.seeds]), *problem.prepared.tensors()]


def _copied(new: Tensors, into: Tensors) -> None:
    torch._foreach_copy_(into.tensors(), new.tensors())


@final
class Graphs:
    """Those of one model."""

    def __init__(self) -> None:
        self.lock = (
            Lock()
        )  # of all: they share their memory, so what one has made may lie where another computes
        self.pool = torch.cuda.graph_pool_handle() if torch.cuda.is_available() else None
        self.kept: OrderedDict[Hashable, Captured] = OrderedDict()

    def captured(self, key: Hashable, problem: Problem, running: Any, advance: Advance) -> Captured:
        """The graph for such a problem, made where there is none yet."""
        if key not in self.kept:
            while len(self.kept) >= KEPT:
                self.kept.popitem(last=False)
            self.kept[key] = Captured(problem, running, advance, self.pool)
        self.kept.move_to_end(key)
        return self.kept[key]


def addresses(module: nn.Module) -> tuple[int, ...]:
    """Where all its weights are: a graph knows them by that alone. Asked for each batch, so in one pass."""
    each = (
        own
        for one in module.modules()
        for own in (*one._parameters.values(), *one._buffers.values())
    )
    return tuple(weight.data_ptr() for weight in each if weight is not None)


GRAPHS: WeakKeyDictionary[Generator, Graphs] = WeakKeyDictionary()
CAPTURING = Lock()


def can_capture(generator: Generator, problem: Problem) -> bool:
    """Whether a graph computes the same: no shape in a step depends on how many were made, nothing is read back."""
    settings = problem.settings
    return (
        problem.state.device.type == "cuda"
        and generator.grouped
        and not generator.training
        and all(tensor.dtype != torch.float64 for tensor in problem.state.tensors())
        and problem.prefix is None
        and not (settings.no_repeat_ngram or settings.coverage_penalty)
    )


def walked_captured(
    generator: Generator, problem: Problem, running: Running, advance: Advance
) -> list[Part]:
    """As `walked`, by graphs; without them where another thread is using those of this model."""
    given = _given(problem)
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in [*given, *problem.state.tensors()])
    autocast = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    settings = problem.settings.model_copy(
        update={"seed": 0}
    )  # the graph is given seeds as a tensor
    key = (settings, problem.longest, problem.keeps_weights, shapes, addresses(generator), autocast)
    with CAPTURING:
        graphs = GRAPHS.setdefault(generator, Graphs())
    if not graphs.lock.acquire(blocking=False):
        return walked(problem, running, advance)
    try:
        with CAPTURING:
            graph = graphs.captured(key, problem, running, advance)
        return graph.walked(problem, given, running)
    finally:
        graphs.lock.release()
