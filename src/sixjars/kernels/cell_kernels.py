"""The cells as Triton kernels: one for each step and direction. Imported only on CUDA.

Dims: R rows (K recurrences times B batch), B batch, H state features, G gate features.

`steps` has the equations. Everything is computed in 32 bits, whatever it is stored in.
"""

from typing import Any, final

import torch
import triton
import triton.language as tl
from torch import Tensor

from sixjars.kernels.steps import Back, Cell, Made, Memory, Saved, Summands


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _at(pointer, row, batch, outer, inner, at):
    """The features `at` of a row of (K, B, …); `outer` and `inner` are the strides of K and B."""
    return pointer + (row // batch) * outer + (row % batch) * inner + at


@triton.jit
def _read(pointer, inside):
    return tl.load(pointer, inside, 0.0).to(tl.float32)


@triton.jit
def _gate(given, extra, recurrent, bias, inside, EXTRA: tl.constexpr):
    total = _read(given, inside) + _read(recurrent, inside) + _read(bias, inside)
    if EXTRA:
        total += _read(extra, inside)
    return total


@triton.jit
def _gradient(output, passed, kept, place, inside, PARTS: tl.constexpr):
    total = _read(output, inside)
    if PARTS > 1:
        total += _read(passed + place, inside)
    if PARTS > 2:
        total += _read(kept + place, inside)
    return total


@triton.jit
def _gru_kernel(
    given, given_k, given_b, extra, bias, recurrent, recurrent_k, recurrent_b,
    hidden, hidden_k, hidden_b, after, after_k, after_b, saved,
    batch, H, EXTRA: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < H
    given = _at(given, row, batch, given_k, given_b, at)
    recurrent = _at(recurrent, row, batch, recurrent_k, recurrent_b, at)
    bias += (row // batch) * 3 * H + at
    extra += row * 3 * H + at
    reset = tl.sigmoid(_gate(given, extra, recurrent, bias, inside, EXTRA))
    update = tl.sigmoid(_gate(given + H, extra + H, recurrent + H, bias + H, inside, EXTRA))
    passed = _read(recurrent + 2 * H, inside) + _read(bias + 2 * H, inside)
    offered = _read(given + 2 * H, inside)
    if EXTRA:
        offered += _read(extra + 2 * H, inside)
    new = _tanh(offered + reset * passed)
    before = _read(_at(hidden, row, batch, hidden_k, hidden_b, at), inside)
    tl.store(_at(after, row, batch, after_k, after_b, at), new + update * (before - new), inside)
    saved += row * 5 * H + at
    tl.store(saved, reset, inside)
    tl.store(saved + H, update, inside)
    tl.store(saved + 2 * H, new, inside)
    tl.store(saved + 3 * H, passed, inside)
    tl.store(saved + 4 * H, before, inside)


@triton.jit
def _gru_back_kernel(
    output, output_k, output_b, passed, kept, given, given_k, given_b,
    recurrent, recurrent_k, recurrent_b, saved, d_hidden,
    batch, H, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < H
    output = _at(output, row, batch, output_k, output_b, at)
    d_after = _gradient(output, passed, kept, row * H + at, inside, PARTS)
    saved += row * 5 * H + at
    reset, update = _read(saved, inside), _read(saved + H, inside)
    new = _read(saved + 2 * H, inside)
    d_new = d_after * (1.0 - update) * (1.0 - new * new)
    d_reset = d_new * _read(saved + 3 * H, inside) * reset * (1.0 - reset)
    d_update = d_after * (_read(saved + 4 * H, inside) - new) * update * (1.0 - update)
    tl.store(d_hidden + row * H + at, d_after * update, inside)
    given = _at(given, row, batch, given_k, given_b, at)
    tl.store(given, d_reset, inside)
    tl.store(given + H, d_update, inside)
    tl.store(given + 2 * H, d_new, inside)
    recurrent = _at(recurrent, row, batch, recurrent_k, recurrent_b, at)
    tl.store(recurrent, d_reset, inside)
    tl.store(recurrent + H, d_update, inside)
    tl.store(recurrent + 2 * H, d_new * reset, inside)


@triton.jit
def _lstm_kernel(
    given, given_k, given_b, extra, bias, recurrent, recurrent_k, recurrent_b,
    memory, memory_k, memory_b, after, after_k, after_b, cell, saved,
    batch, H, EXTRA: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < H
    given = _at(given, row, batch, given_k, given_b, at)
    recurrent = _at(recurrent, row, batch, recurrent_k, recurrent_b, at)
    bias += (row // batch) * 4 * H + at
    extra += row * 4 * H + at
    enter = tl.sigmoid(_gate(given, extra, recurrent, bias, inside, EXTRA))
    forget = tl.sigmoid(_gate(given + H, extra + H, recurrent + H, bias + H, inside, EXTRA))
    new = _tanh(_gate(given + 2 * H, extra + 2 * H, recurrent + 2 * H, bias + 2 * H, inside, EXTRA))
    last = 3 * H
    total = _gate(given + last, extra + last, recurrent + last, bias + last, inside, EXTRA)
    output = tl.sigmoid(total)
    before = _read(_at(memory, row, batch, memory_k, memory_b, at), inside)
    kept = forget * before + enter * new
    shown = _tanh(kept)
    tl.store(_at(after, row, batch, after_k, after_b, at), output * shown, inside)
    tl.store(cell + row * H + at, kept, inside)
    saved += row * 6 * H + at
    tl.store(saved, enter, inside)
    tl.store(saved + H, forget, inside)
    tl.store(saved + 2 * H, new, inside)
    tl.store(saved + 3 * H, output, inside)
    tl.store(saved + 4 * H, shown, inside)
    tl.store(saved + 5 * H, before, inside)


@triton.jit
def _lstm_back_kernel(
    output, output_k, output_b, passed, kept, given, given_k, given_b, saved, d_memory, d_before,
    batch, H, PARTS: tl.constexpr, MEMORY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < H
    output = _at(output, row, batch, output_k, output_b, at)
    d_after = _gradient(output, passed, kept, row * H + at, inside, PARTS)
    d_cell = tl.zeros([BLOCK], tl.float32)
    if MEMORY:
        d_cell += _read(d_memory + row * H + at, inside)
    saved += row * 6 * H + at
    enter, forget = _read(saved, inside), _read(saved + H, inside)
    new, out = _read(saved + 2 * H, inside), _read(saved + 3 * H, inside)
    shown, before = _read(saved + 4 * H, inside), _read(saved + 5 * H, inside)
    d_cell += d_after * out * (1.0 - shown * shown)
    given = _at(given, row, batch, given_k, given_b, at)
    tl.store(given, d_cell * new * enter * (1.0 - enter), inside)
    tl.store(given + H, d_cell * before * forget * (1.0 - forget), inside)
    tl.store(given + 2 * H, d_cell * enter * (1.0 - new * new), inside)
    tl.store(given + 3 * H, d_after * shown * out * (1.0 - out), inside)
    tl.store(d_before + row * H + at, d_cell * forget, inside)


def _placed(*tensors: Tensor) -> list[Tensor | int]:
    """Each tensor, (K, B, …) or (B, …), with its strides of K and B."""
    places: list[Tensor | int] = []
    for tensor in tensors:
        places += [tensor, tensor.stride(0) if tensor.dim() > 2 else 0, tensor.stride(-2)]
    return places


def _given(given: Summands, recurrent: Summands) -> tuple[list[Any], dict[str, bool]]:
    """The arguments of a kernel for its summands: g, another to be added to it if any, and b'."""
    extra = given[1] if len(given) > 1 else given[0]
    return [*_placed(given[0]), extra, recurrent[1].contiguous()], {"EXTRA": len(given) > 1}


def _later(d_after: Summands) -> tuple[list[Any], dict[str, int]]:
    """The arguments of a kernel for a gradient: the first summand with strides, two dense ones."""
    output, *later = d_after
    filled = [*later, output, output][:2]
    return [*_placed(output), *filled], {"PARTS": len(d_after)}


def _launch(kernel: Any, like: Tensor, *arguments: Any, **flags: Any) -> None:
    """Launch a kernel, a program for each row and block of features of a tensor (…, B, H)."""
    batch, size = like.shape[-2:]
    block = min(triton.next_power_of_2(size), 512)
    grid = like.numel() // size, triton.cdiv(size, block)
    kernel[grid](*arguments, batch, size, BLOCK=block, **flags)


@final
class FusedGRU(Cell):
    """A GRU: one kernel for each step."""

    gives_alike = False

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainGRU`."""
        saved = hidden.new_empty(*hidden.shape[:-1], 5 * hidden.shape[-1])
        reads, flags = _given(given, recurrent)
        _launch(_gru_kernel, hidden, *reads, *_placed(recurrent[0], hidden, after), saved, **flags)
        return None, (saved,)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """As `PlainGRU`."""
        d_hidden = d_after[0].new_empty(d_after[0].shape)
        reads, flags = _later(d_after)
        places = _placed(d_given, d_recur)
        _launch(_gru_back_kernel, d_hidden, *reads, *places, *saved, d_hidden, **flags)
        return d_hidden, None


@final
class FusedLSTM(Cell):
    """An LSTM: one kernel for each step; its memory cell has 32 bits."""

    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """As `PlainLSTM`."""
        assert memory is not None
        cell = hidden.new_empty(hidden.shape, dtype=torch.float32)
        saved = hidden.new_empty(*hidden.shape[:-1], 6 * hidden.shape[-1])
        reads, flags = _given(given, recurrent)
        places = _placed(recurrent[0], memory, after)
        _launch(_lstm_kernel, hidden, *reads, *places, cell, saved, **flags)
        return cell, (saved,)

    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """As `PlainLSTM`."""
        d_before = d_after[0].new_empty(d_after[0].shape, dtype=torch.float32)
        d_cell = d_before if d_memory is None else d_memory
        reads, flags = _later(d_after)
        flags["MEMORY"] = d_memory is not None
        written = *saved, d_cell, d_before
        _launch(_lstm_back_kernel, d_before, *reads, *_placed(d_given), *written, **flags)
        return None, d_before


FUSED: dict[str, Cell] = {"gru": FusedGRU(), "lstm": FusedLSTM()}
"""The cells that have kernels; an RNN's step is one tanh, which torch has."""
