r"""The kernels of `cells.c` and `attention.c` for 32-bit floats on a CPU: cells, attention, loss.

Dims: K recurrences, B batch, R rows (K times B, or of search), H state features, S source
      positions, T steps, A attention features, D source features, V vocabulary, N tokens.

`steps` has the equations, `compiling` compiles and loads the kernels.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, final

import torch
from torch import Tensor

from sixjars.flow.backend import AttentionSources, LayerState
from sixjars.kernels.products import key_powers
from sixjars.kernels.steps import (
    Back,
    BatchAttention,
    Cell,
    Made,
    Memory,
    Saved,
    Summands,
    summed,
)

RECORDS = {
    "gru": Struct("4q 18q q"),
    "gru_back": Struct("4q 18q 2q"),
    "lstm": Struct("4q 18q 2q"),
    "lstm_back": Struct("4q 15q 2q"),
    "attend": Struct("7q 9q 5q"),
    "attend_back": Struct("6q 15q 8q"),
    "entropy": Struct("3q d 5q"),
    "log_softmax": Struct("4q"),
}
"""What each kernel reads: sizes, then tensors with two strides each, then tensors without."""
Place = tuple[int, int, int]
NOWHERE: Place = (0, 0, 0)


def dense_sources(sources: AttentionSources) -> AttentionSources:
    """The sources of the additive score as a kernel reads them, the mask as bytes."""
    assert sources.score is not None
    mask = sources.mask.contiguous().view(torch.uint8)
    keys, memory = sources.keys.contiguous(), sources.memory.contiguous()
    return AttentionSources(keys, memory, mask, sources.score.contiguous())


@final
class KernelLibrary:
    """The loaded kernels."""

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        self.calls: dict[str, Any] = {name: getattr(loaded, name) for name in RECORDS}
        for call in self.calls.values():
            call.argtypes, call.restype = [ctypes.c_char_p], None

    def run(self, name: str, *fields: Any) -> None:
        """Run one kernel, with as many threads as torch has."""
        self.calls[name](RECORDS[name].pack(torch.get_num_threads(), *fields))


def fits(like: Tensor) -> bool:
    """Whether the kernels can read such a tensor; a traced one has no data."""
    return like.dtype == torch.float32 and like.device.type == "cpu" and type(like) in _PLAIN


def predicts(like: Tensor) -> bool:
    """Whether they fit, and nothing learns or is traced: they have no backward pass, and no casts."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[no-untyped-call,attr-defined]
    other = torch.is_grad_enabled() or traced or torch.is_autocast_enabled("cpu")
    return not other and fits(like)


_PLAIN = (Tensor, torch.nn.Parameter)


def _place(tensor: Tensor) -> Place:
    """The address of a tensor, (K, B, …) or (B, …), and its strides of K and B."""
    strides = tensor.stride()
    return tensor.data_ptr(), strides[0] if len(strides) > 2 else 0, strides[-2]


def _dense(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The same tensors with features side by side."""
    return tuple(tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors)


def _given(given: Summands, recurrent: Summands) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The summands of g and r, to be held while a kernel reads them, and their places.

    b', the second of r, is the same for all rows of a recurrence.
    """
    held = _dense(*given, *recurrent)
    second = _place(held[1]) if len(given) > 1 else NOWHERE
    bias = NOWHERE
    if len(recurrent) > 1:
        bias = held[-1].data_ptr(), held[-1].stride(0) if held[-1].dim() > 1 else 0, 0
    return held, (*_place(held[0]), *second, *_place(held[len(given)]), *bias)


def _sizes(like: Tensor) -> tuple[int, int, int]:
    """R, B and H of states (…, B, H)."""
    *outer, batch, size = like.shape
    return batch * (outer[0] if outer else 1), batch, size


def _later(d_after: Summands, most: int) -> tuple[tuple[Tensor, ...], list[Place]]:
    """The first summands of a gradient and the sum of the others, to be held, and their places."""
    rest = d_after[most - 1 :]
    held = _dense(*d_after[: most - 1], *([summed(rest)] if rest else []))
    return held, [*map(_place, held), *[NOWHERE] * (most - len(held))]


@final
class CompiledGRU(Cell):
    """A GRU: one kernel for each step."""

    gives_alike = False

    def __init__(self, kernels: KernelLibrary) -> None:
        self.run = kernels.run

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainGRU`."""
        hidden = _dense(hidden)[0]
        sizes = _sizes(hidden)
        saved = hidden.new_empty(sizes[0], 4 * sizes[2])
        _held, places = _given(given, recurrent)
        self.run("gru", *sizes, *places, *_place(hidden), *_place(after), saved.data_ptr())
        return None, (saved, hidden)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """As `PlainGRU`."""
        gates, hidden = saved
        d_hidden = hidden.new_empty(hidden.shape)
        _held, (output, passed, own) = _later(d_after, 3)
        places = *output, *passed, *own, *_place(hidden), *_place(d_given), *_place(d_recur)
        self.run("gru_back", *_sizes(hidden), *places, gates.data_ptr(), d_hidden.data_ptr())
        return d_hidden, None


@final
class CompiledLSTM(Cell):
    """An LSTM: one kernel for each step."""

    def __init__(self, kernels: KernelLibrary) -> None:
        self.run = kernels.run

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainLSTM`."""
        assert memory is not None
        memory = _dense(memory)[0]
        sizes = _sizes(hidden)
        cell = hidden.new_empty(hidden.shape)
        saved = hidden.new_empty(sizes[0], 5 * sizes[2])
        _held, places = _given(given, recurrent)
        places = *places, *_place(memory), *_place(after)
        self.run("lstm", *sizes, *places, cell.data_ptr(), saved.data_ptr())
        return cell, (saved, memory)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """As `PlainLSTM`."""
        gates, memory = saved
        d_before = memory.new_empty(memory.shape)
        _held, (output, passed) = _later(d_after, 2)
        others = NOWHERE if d_memory is None else _place(d_memory)
        places = *output, *passed, *_place(memory), *others, *_place(d_given)
        self.run("lstm_back", *_sizes(memory), *places, gates.data_ptr(), d_before.data_ptr())
        return None, d_before


COMPILED: dict[str, Callable[[KernelLibrary], Cell]] = {"gru": CompiledGRU, "lstm": CompiledLSTM}
"""The cells that have kernels; an RNN's step is one tanh, which torch has."""


def step(
    name: str, given: Tensor, recurrent: Tensor, before: LayerState, kernels: KernelLibrary
) -> LayerState | None:
    """The state (B, H) after a step of prediction, from g and r (B, G).

    None without a kernel, and where the tensors do not fit together.
    """
    if name not in COMPILED or given.shape != recurrent.shape:
        return None
    hidden, memory = before
    states = [state for state in before if state is not None]
    if any(state.dtype != torch.float32 or len(state) != len(given) for state in states):
        return None
    given, recurrent, start = _dense(given, recurrent, states[-1])
    after = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    cell = None if memory is None else torch.empty_like(after)
    cells = () if cell is None else (cell.data_ptr(),)
    places = *_place(given), *NOWHERE, *_place(recurrent), *NOWHERE, *_place(start), *_place(after)
    kernels.run(name, *_sizes(after), *places, *cells, 0)
    return after, cell


def _attended(sources: AttentionSources, raised: Tensor | None) -> tuple[AttentionSources, Tensor]:
    """Dense sources, and the powers of the keys, or the keys where these are not exact."""
    read = dense_sources(sources)
    return read, read.keys if raised is None else raised.contiguous()


def attend(
    query: Tensor, sources: AttentionSources, raised: Tensor | None, kernels: KernelLibrary
) -> tuple[Tensor, Tensor] | None:
    """One step of prediction: contexts (R, D) and weights (R, S) of queries U_att s (R, A).

    Each source has R / B of the queries. None where the tensors do not fit together: torch then
    says why.
    """
    read = [query, sources.keys, sources.memory, sources.score]
    are_floats = all(tensor is not None and tensor.dtype == torch.float32 for tensor in read)
    batch = len(sources.mask)
    if not are_floats or sources.mask.dtype != torch.bool or batch == 0:
        return None
    if len(query) % batch or query.shape[1:] != sources.keys.shape[2:]:
        return None
    dense, keys = _attended(sources, raised)
    assert dense.score is not None
    query = _dense(query)[0]
    rows, size = query.shape
    _, positions, width = dense.memory.shape
    context_RD = query.new_empty(rows, width)
    weights_RS = query.new_empty(rows, positions)
    scratch_RA = query.new_empty(rows, size)
    sizes = rows, rows // batch, positions, size, width, raised is not None
    places = *_place(query), *_place(weights_RS), *_place(context_RD)
    others = keys, dense.memory, dense.score, dense.mask, scratch_RA
    kernels.run("attend", *sizes, *places, *(tensor.data_ptr() for tensor in others))
    return context_RD, weights_RS


@final
class CompiledAdditive(BatchAttention):
    """Additive score, softmax and context of a step as one kernel; all gradients as another."""

    def __init__(self, sources: AttentionSources, steps: int, kernels: KernelLibrary) -> None:
        raised = key_powers(sources.keys)
        dense, self.keys = _attended(sources, raised)
        super().__init__(dense, steps)
        assert dense.score is not None
        self.run = kernels.run
        self.score = dense.score
        self.rows, positions, size = self.keys.shape
        self.sizes = positions, size, dense.memory.shape[2], raised is not None
        reads = self.keys, dense.memory, self.score, dense.mask
        self.reads = [tensor.data_ptr() for tensor in reads]
        self.scratch_BA = self.score.new_empty(self.rows, size)
        self.sums: tuple[Tensor, Tensor] | None = None

    def forward(self, at: int, query: Tensor) -> Tensor:
        """The context, (B, D)."""
        context_BD, weights_BS = self.contexts[at], self.weights[at]
        places = *_place(query), *_place(weights_BS), *_place(context_BD)
        sizes = self.rows, 1, *self.sizes
        self.run("attend", *sizes, *places, *self.reads, self.scratch_BA.data_ptr())
        return context_BD

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """The gradient of the query; those of keys and V_att are added to the sums."""
        self.sums = self._sums()
        if d_weights is not None:
            d_weights = _dense(d_weights)[0]
        extra = NOWHERE if d_weights is None else _place(d_weights)
        read = *_place(queries[at]), *_place(self.weights[at]), *_place(self.d_contexts[at])
        places = *read, *extra, *_place(d_query)
        written = (each.data_ptr() for each in (self.scratch_BA, self.d_scores[at], *self.sums))
        self.run("attend_back", self.rows, *self.sizes, *places, *self.reads, *written)

    def _sums(self) -> tuple[Tensor, Tensor]:
        """The sums over the steps so far; zeros where a backward pass begins."""
        return self.sums or (torch.zeros_like(self.keys), torch.zeros_like(self.scratch_BA))

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """The sums over all steps, times the factor that all summands share."""
        d_keys, d_score = self._sums()
        self.sums = None
        return d_keys.mul_(4.0 * self.score), d_score.sum(0).mul_(-2.0)


def loss_gradient(
    logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float, kernels: KernelLibrary
) -> tuple[Tensor, Tensor, Tensor]:
    """As `output_loss.loss_gradient`; the gradient overwrites the logits."""
    logits, truth, factor = logits.contiguous(), truth.contiguous(), factor.contiguous()
    rows, vocabulary = logits.shape
    loss_N, plain_N = logits.new_empty(rows), logits.new_empty(rows)
    places = (each.data_ptr() for each in (logits, truth, factor, loss_N, plain_N))
    kernels.run("entropy", rows, vocabulary, smoothing, *places)
    return loss_N, plain_N, logits


def fits_loss(logits: Tensor, truth: Tensor, factor: Tensor) -> bool:
    """Whether a kernel may read them: 64-bit tokens (N,) of the vocabulary, 32-bit factors."""
    if truth.dtype != torch.int64 or factor.dtype != torch.float32:
        return False
    if not 0 < len(logits) == len(truth) == len(factor):
        return False
    return 0 <= int(truth.amin()) and int(truth.amax()) < logits.shape[1]


def log_softmax(logits: Tensor, kernels: KernelLibrary) -> Tensor:
    """The log softmax of each row (R, V), which overwrites the logits."""
    kernels.run("log_softmax", *logits.shape, logits.data_ptr())
    return logits
