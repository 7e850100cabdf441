"""Steps of search as CUDA graphs: to launch many small kernels takes longer than to run them.

Dims: B sources, N rows of each, R = B * N rows open in search, S source positions, P segments of
      a row.

A graph has fixed shapes and addresses. So a few are kept for each model, sources are padded to a
few shapes, and each search is copied into the tensors that its graph reads.
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

from sixjars.decoding.problem import (
    Advance,
    Running,
    SearchPart,
    SearchProblem,
    SearchStep,
    filled,
    walked,
)
from sixjars.flow.contracts import Generator
from sixjars.flow.limits import padded_size
from sixjars.flow.values import Encoded, Tensors

KEPT = 8
"""Graphs for each model; the one that was not used for the longest time goes first."""
AT_ONCE = range(6, 2, -1)
"""The steps of a graph; it is launched again before the host knows whether any row is open."""


bucket = partial(padded_size, parts=8)


def bucketed(encoded: Encoded) -> Encoded:
    """The sources, padded with empty ones at the end to one of a few shapes."""
    rows, positions = bucket(encoded.rows, least=1), bucket(encoded.mask.shape[1], least=8)
    level = encoded.segments
    if level is not None:
        segments = bucket(level.mask.shape[1], least=4)
        level = replace(
            level,
            memory=_padded(level.memory, rows, segments),
            mask=_padded(level.mask, rows, segments),
            segment_of=_padded(level.segment_of, rows, positions),
            weights=None if level.weights is None else _padded(level.weights, rows, positions),
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
    """The function as one graph over the same tensors; on a CPU, the function itself."""
    if device.type == "cpu":
        return make
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries allocate what they need at the first call
        make()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    torch.clear_autocast_cache()  # its narrower weights will be freed: the graph makes its own
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        make()
    torch.clear_autocast_cache()
    return graph.replay


@final
class CapturedSteps:
    """Some steps of a search as a graph, with tensors of its own and no module."""

    def __init__(self, problem: SearchProblem, running: Any, advance: Advance, pool: Any) -> None:
        assert problem.prepared is not None
        self.given = [tensor.clone() for tensor in _given(problem)]
        copies = iter(self.given)
        seeds = None if problem.seeds is None else next(copies)
        problem = replace(problem, prepared=filled(problem.prepared, copies), seeds=seeds)
        # The graph reads tensors of both, which must stay; the problem itself would keep a module.
        self.rules = problem.rule, problem.choice_rules
        self.running: Any = running.mapped(Tensor.clone)
        self.page: list[Tensor] = []
        self.like: SearchStep
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

    def walked(self, problem: SearchProblem, given: list[Tensor], running: Any) -> list[SearchPart]:
        """Make all steps until nothing is left to do; `given` are the tensors of the problem."""
        torch._foreach_copy_(self.given, given)
        _copied(running, self.running)
        self.made.zero_()
        pages: list[list[Tensor]] = []
        left: list[Callable[[], bool]] = []
        count = 0
        while count < problem.longest:
            self.replay()
            pages.append([tensor.clone() for tensor in self.page])
            count += len(self.page[0])
            left.append(_arriving(self.left))
            if len(left) > 1 and not left[-2]():  # a launch late, so that the device never waits
                break
        rows = torch.arange(problem.state.rows)  # the device does not read them
        steps = [torch.cat(tensors)[: problem.longest] for tensors in zip(*pages, strict=True)]
        columns = [filled(self.like, steps)]
        return [SearchPart(rows, columns, self.running.mapped(Tensor.clone), together=True)]


def _arriving(flag: Tensor) -> Callable[[], bool]:
    """A function that waits for a flag of the device, whose copy is under way."""
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


def _given(problem: SearchProblem) -> list[Tensor]:
    """The tensors of a problem that a graph reads, except those that change."""
    assert problem.prepared is not None
    return [*([] if problem.seeds is None else [problem.seeds]), *problem.prepared.tensors()]


def _copied(new: Tensors, into: Tensors) -> None:
    torch._foreach_copy_(into.tensors(), new.tensors())


@final
class SearchGraphs:
    """The graphs of one model."""

    def __init__(self) -> None:
        self.lock = Lock()  # one for all: they share their memory
        self.pool = torch.cuda.graph_pool_handle() if torch.cuda.is_available() else None
        self.kept: OrderedDict[Hashable, CapturedSteps] = OrderedDict()

    def captured(
        self, key: Hashable, problem: SearchProblem, running: Any, advance: Advance
    ) -> CapturedSteps:
        """The graph of such a problem, recorded where there is none yet."""
        if key not in self.kept:
            while len(self.kept) >= KEPT:
                self.kept.popitem(last=False)
            self.kept[key] = CapturedSteps(problem, running, advance, self.pool)
        self.kept.move_to_end(key)
        return self.kept[key]


def addresses(module: nn.Module) -> tuple[int, ...]:
    """The addresses of all weights, by which a graph knows them; in one pass, for each batch."""
    tables = (table for each in module.modules() for table in (each._parameters, each._buffers))
    weights = (weight for table in tables for weight in table.values())
    return tuple(weight.data_ptr() for weight in weights if weight is not None)


GRAPHS: WeakKeyDictionary[Generator, SearchGraphs] = WeakKeyDictionary()
CAPTURING = Lock()


def can_capture(generator: Generator, problem: SearchProblem) -> bool:
    """Whether a graph computes the same: its shapes are fixed, and the host reads nothing."""
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
    generator: Generator, problem: SearchProblem, running: Running, advance: Advance
) -> list[SearchPart]:
    """As `walked`, by graphs, unless another thread is using those of this model."""
    given = _given(problem)
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in [*given, *problem.state.tensors()])
    autocast = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    settings = problem.settings.model_copy(update={"seed": 0})  # seeds are a tensor of the graph
    fixed = settings, problem.longest, problem.keeps_weights, problem.backend
    key = (*fixed, shapes, addresses(generator), autocast)
    with CAPTURING:
        graphs = GRAPHS.setdefault(generator, SearchGraphs())
    if not graphs.lock.acquire(blocking=False):
        return walked(problem, running, advance)
    try:
        with CAPTURING:
            graph = graphs.captured(key, problem, running, advance)
        return graph.walked(problem, given, running)
    finally:
        graphs.lock.release()
