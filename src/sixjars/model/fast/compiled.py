r"""The kernels of `cells.c` and `attention.c` as cells, attention and loss: for 32-bit floats on a CPU.

Dims: K recurrences, B batch, R rows (K times B, or of search), H state features, S source positions, T steps,
      A attention features, D source features, V vocabulary, N tokens.

`steps` has the equations. `model.compiling` compiles and loads them; where it did not, nothing here is used.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, final

import torch
from torch import Tensor

from sixjars.model.fast.contracts import (
    Back,
    Cell,
    LayerState,
    Made,
    Memory,
    Saved,
    Sources,
    Summands,
)
from sixjars.model.fast.steps import Attending, summed
from sixjars.model.layers import key_powers

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


@final
class Library:
    """The kernels that are loaded, if they are: `ready` is that of this process."""

    ready: "Library | None" = None

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        self.calls: dict[str, Any] = {name: getattr(loaded, name) for name in RECORDS}
        for call in self.calls.values():
            call.argtypes, call.restype = [ctypes.c_char_p], None

    def run(self, name: str, *fields: Any) -> None:
        """One kernel, by as many threads as torch has."""
        self.calls[name](RECORDS[name].pack(torch.get_num_threads(), *fields))


def kernels_for(like: Tensor) -> Library | None:
    """The kernels, where they are loaded and made for such a tensor; one that is only traced has no numbers."""
    fits = like.dtype == torch.float32 and like.device.type == "cpu" and type(like) in _PLAIN
    return Library.ready if fits else None


def used_for(like: Tensor) -> Library | None:
    """The same in use, when nothing is learned, traced, or cast to fewer bits."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[no-untyped-call,attr-defined]
    other = torch.is_grad_enabled() or traced or torch.is_autocast_enabled("cpu")
    return None if other else kernels_for(like)


_PLAIN = (Tensor, torch.nn.Parameter)


def _place(tensor: Tensor) -> Place:
    """Where a tensor, (K, B, …) or (B, …), begins, and its strides of K and B."""
    strides = tensor.stride()
    return tensor.data_ptr(), strides[0] if len(strides) > 2 else 0, strides[-2]


def _dense(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The same with features side by side."""
    return tuple(tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors)


def _given(given: Summands, recurrent: Summands) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The summands of g and r, to be held while a kernel reads them, and their places.

    b', the second of r, is the same for all rows of a recurrence.
    """
    kept = _dense(*given, *recurrent)
    first, own = kept[0], kept[len(given)]
    more = _place(kept[1]) if len(given) > 1 else NOWHERE
    bias = NOWHERE
    if len(recurrent) > 1:
        bias = kept[-1].data_ptr(), kept[-1].stride(0) if kept[-1].dim() > 1 else 0, 0
    return kept, (*_place(first), *more, *_place(own), *bias)


def _sizes(like: Tensor) -> tuple[int, int, int]:
    """R, B and H of states (…, B, H)."""
    *outer, batch, size = like.shape
    return batch * (outer[0] if outer else 1), batch, size


def _later(d_after: Summands, most: int) -> tuple[tuple[Tensor, ...], list[Place]]:
    """The summands of a gradient, to be held while a kernel reads them, and as many places; those beyond are added."""
    held = _dense(
        *d_after[: most - 1], *([summed(d_after[most - 1 :])] if len(d_after) >= most else [])
    )
    return held, [*map(_place, held), *[NOWHERE] * (most - len(held))]


@final
class CompiledGRU(Cell):
    """A GRU, one kernel for a step."""

    gives_alike = False

    def __init__(self, kernels: Library) -> None:
        self.run = kernels.run

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainGRU`."""
        (hidden,), sizes = _dense(hidden), _sizes(hidden)
        saved = hidden.new_empty(sizes[0], 4 * sizes[2])
        _held, places = _given(given, recurrent)
        self.run("gru", *sizes, *places, *_place(hidden), *_place(after), saved.data_ptr())
        return None, (saved, hidden)

    def backward(
        self,
        d_after: Summands,
        d_memory: Memory,
        saved: Saved,
        d_given: Tensor,
        d_recurrent: Tensor,
    ) -> Back:
        """As `PlainGRU`."""
        made, hidden = saved
        d_hidden = hidden.new_empty(hidden.shape)
        _held, (output, passed, own) = _later(d_after, 3)
        places = *output, *passed, *own, *_place(hidden), *_place(d_given), *_place(d_recurrent)
        self.run("gru_back", *_sizes(hidden), *places, made.data_ptr(), d_hidden.data_ptr())
        return d_hidden, None


@final
class CompiledLSTM(Cell):
    """An LSTM, one kernel for a step."""

    def __init__(self, kernels: Library) -> None:
        self.run = kernels.run

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainLSTM`."""
        assert memory is not None
        (memory,), sizes = _dense(memory), _sizes(hidden)
        cell, saved = hidden.new_empty(hidden.shape), hidden.new_empty(sizes[0], 5 * sizes[2])
        _held, places = _given(given, recurrent)
        self.run(
            "lstm",
            *sizes,
            *places,
            *_place(memory),
            *_place(after),
            cell.data_ptr(),
            saved.data_ptr(),
        )
        return cell, (saved, memory)

    def backward(
        self,
        d_after: Summands,
        d_memory: Memory,
        saved: Saved,
        d_given: Tensor,
        d_recurrent: Tensor,
    ) -> Back:
        """As `PlainLSTM`."""
        made, memory = saved
        d_before = memory.new_empty(memory.shape)
        _held, (output, passed) = _later(d_after, 2)
        others = NOWHERE if d_memory is None else _place(d_memory)
        places = *output, *passed, *_place(memory), *others, *_place(d_given)
        self.run("lstm_back", *_sizes(memory), *places, made.data_ptr(), d_before.data_ptr())
        return None, d_before


COMPILED: dict[str, Callable[[Library], Cell]] = {"gru": CompiledGRU, "lstm": CompiledLSTM}
"""The cells that have kernels; an RNN's step is one tanh, which torch has."""


def compiled_cell(name: str, like: Tensor) -> Cell | None:
    """A cell by name, where it has kernels for such a tensor."""
    kernels = kernels_for(like)
    return None if kernels is None or name not in COMPILED else COMPILED[name](kernels)


def compiled_step(
    name: str, given: Tensor, recurrent: Tensor, before: LayerState
) -> LayerState | None:
    """The state (B, H) after a step in use, from g and r (B, G); nothing where it has no kernel."""
    kernels, (hidden, memory) = used_for(given), before
    states = [one for one in before if one is not None]
    fits = all(one.dtype == torch.float32 and len(one) == len(given) for one in states)
    if kernels is None or name not in COMPILED or not fits or given.shape != recurrent.shape:
        return None
    held = _dense(given, recurrent, hidden if memory is None else memory)
    after = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    cell = None if memory is None else torch.empty_like(after)
    places = (
        *_place(held[0]),
        *NOWHERE,
        *_place(held[1]),
        *NOWHERE,
        *_place(held[2]),
        *_place(after),
    )
    kernels.run(name, *_sizes(after), *places, *(() if cell is None else (cell.data_ptr(),)), 0)
    return after, cell


def _attended(sources: Sources, raised: Tensor | None) -> tuple[Sources, Tensor]:
    """What a kernel reads, all of it dense, and the powers of the keys, or the keys where those are not exact."""
    keys, memory, mask, score = sources
    assert score is not None
    dense = Sources(
        keys.contiguous(),
        memory.contiguous(),
        mask.contiguous().view(torch.uint8),
        score.contiguous(),
    )
    return dense, dense.keys if raised is None else raised.contiguous()


def attend(
    query: Tensor, sources: Sources, raised: Tensor | None, kernels: Library
) -> tuple[Tensor, Tensor] | None:
    """One step in use: the contexts (R, D) and weights (R, S) of queries U_att s (R, A), R / B for each source.

    Nothing where these do not fit together: torch says why.
    """
    read, batch = [query, sources.keys, sources.memory, sources.score], len(sources.mask)
    wide = (
        all(one is not None and one.dtype == torch.float32 for one in read)
        and sources.mask.dtype == torch.bool
    )
    if not wide or batch == 0 or len(query) % batch or query.shape[1:] != sources.keys.shape[2:]:
        return None
    dense, keys = _attended(sources, raised)
    (query,), (_, positions, width) = _dense(query), dense.memory.shape
    rows, size = query.shape
    context_RD, weights_RS, scratch_RA = (
        query.new_empty(rows, count) for count in (width, positions, size)
    )
    sizes = rows, rows // batch, positions, size, width, raised is not None
    places = *_place(query), *_place(weights_RS), *_place(context_RD)
    others = (keys, dense.memory, dense.score, dense.mask, scratch_RA)
    kernels.run("attend", *sizes, *places, *(one.data_ptr() for one in others if one is not None))
    return context_RD, weights_RS


@final
class CompiledAdditive(Attending):
    """The additive score, the softmax and the context of a step as one kernel, and one more for all their gradients."""

    def __init__(self, sources: Sources, steps: int, kernels: Library) -> None:
        raised = key_powers(sources.keys)
        dense, self.keys = _attended(sources, raised)
        super().__init__(dense, steps)
        assert dense.score is not None
        self.run, self.score, self.is_raised = kernels.run, dense.score, raised is not None
        (rows, positions, size), width = self.keys.shape, dense.memory.shape[2]
        self.sizes, self.rows = (positions, size, width, self.is_raised), rows
        self.reads = [one.data_ptr() for one in (self.keys, dense.memory, self.score, dense.mask)]
        self.scratch_BA = self.score.new_empty(rows, size)
        self.sums: tuple[Tensor, Tensor] | None = None

    def forward(self, at: int, query: Tensor) -> Tensor:
        """One kernel."""
        context_BD, weights_BS = self.contexts[at], self.weights[at]
        places = *_place(query), *_place(weights_BS), *_place(context_BD)
        self.run(
            "attend", self.rows, 1, *self.sizes, *places, *self.reads, self.scratch_BA.data_ptr()
        )
        return context_BD

    def backward(self, at: int, queries: Tensor, d_weights: Tensor | None, d_query: Tensor) -> None:
        """One kernel, which also adds to the gradients of keys and V_att."""
        if self.sums is None:  # another backward pass begins at zero
            self.sums = torch.zeros_like(self.keys), torch.zeros_like(self.scratch_BA)
        (others,) = (None,) if d_weights is None else _dense(d_weights)
        read = *_place(queries[at]), *_place(self.weights[at]), *_place(self.d_contexts[at])
        extra = NOWHERE if others is None else _place(others)
        written = (one.data_ptr() for one in (self.scratch_BA, self.d_scores[at], *self.sums))
        self.run(
            "attend_back",
            self.rows,
            *self.sizes,
            *read,
            *extra,
            *_place(d_query),
            *self.reads,
            *written,
        )

    def key_gradients(self, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """The sums over all steps, times what all their summands have in common."""
        sums, self.sums = self.sums, None
        d_keys, d_score = (
            (torch.zeros_like(self.keys), torch.zeros_like(self.scratch_BA))
            if sums is None
            else sums
        )
        return d_keys.mul_(4.0 * self.score), d_score.sum(0).mul_(-2.0)


def compiled_attention(sources: Sources, steps: int) -> Attending | None:
    """The attention of a batch by the additive score, where there are kernels for its tensors."""
    kernels = kernels_for(sources.keys)
    return None if kernels is None else CompiledAdditive(sources, steps, kernels)


def gradient(
    logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float, kernels: Library
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each token, (N,), smoothed and plain; and the gradient of the logits, (N, V), in their place."""
    logits, truth, factor = logits.contiguous(), truth.contiguous(), factor.contiguous()
    rows, vocabulary = logits.shape
    loss_N, plain_N = logits.new_empty(rows), logits.new_empty(rows)
    places = (one.data_ptr() for one in (logits, truth, factor, loss_N, plain_N))
    kernels.run("entropy", rows, vocabulary, smoothing, *places)
    return loss_N, plain_N, logits


def fits_loss(logits: Tensor, truth: Tensor, factor: Tensor) -> bool:
    """Whether a kernel may read them: tokens (N,) of the vocabulary as 64-bit numbers, and as many 32-bit factors."""
    if (
        truth.dtype != torch.int64
        or factor.dtype != torch.float32
        or not 0 < len(logits) == len(truth) == len(factor)
    ):
        return False
    return 0 <= int(truth.amin()) and int(truth.amax()) < logits.shape[1]


def log_probabilities(logits: Tensor) -> Tensor:
    """The log softmax of each row of logits (R, V), in 32 bits at least; in use a kernel overwrites them."""
    kernels = used_for(logits)
    if kernels is None or not logits.is_contiguous() or logits.dim() != 2:
        return torch.log_softmax(
            logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32)
        )
    kernels.run("log_softmax", *logits.shape, logits.data_ptr())
    return logits
