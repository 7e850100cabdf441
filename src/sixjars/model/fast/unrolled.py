r"""Recurrences over all steps of a sequence, with and without attention, their backward passes written by hand.

Dims: K recurrences, B batch, S source positions, T steps, H state features, G gate features, A attention features,
      D source features, L layers, Q = G + A, N batch times steps.

Autograd would keep a graph of a dozen small operations for every step, and add a small gradient of each weight in
every one. Here the loop back over the steps only carries what the step before needs; the gradient of each weight is
one product of all steps after it: δW = Σ_t δr_t h_{t-1}ᵀ.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.model.fast.compiled import compiled_attention, compiled_cell
from sixjars.model.fast.steps import CELLS, Additive, Attending, Cell, Product, Saved, Sources, Summands, summed
from sixjars.model.layers import beside, by_onednn, outer_products, product, summed_rows
from sixjars.model.processor import FEWEST_STEPS


def has_kernels(like: Tensor) -> bool:
    """Whether there are kernels where a tensor is: on CUDA, where Triton is installed, as it is with torch for CUDA."""
    return like.is_cuda and find_spec("triton") is not None


def cell_of(name: str, like: Tensor) -> Cell:
    """A cell by name: as kernels, where it has them."""
    if not has_kernels(like):
        return compiled_cell(name, like) or CELLS[name]
    from sixjars.model.fast.cell_kernels import FUSED

    return FUSED.get(name, CELLS[name])


@final
class Factor:
    """W, (O, I) or (K, O, I), by which rows are multiplied step after step, and by its transpose on the way back.

    A product reorders its matrix for the processor first. On a CPU a large one is reordered once, for all steps.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.matrices = weight.view(-1, *weight.shape[-2:])
        self.packs = by_onednn(self.matrices[0], FEWEST_STEPS)

    @cached_property
    def _packed(self) -> list[Any]:
        return [torch.ops.mkldnn._reorder_linear_weight(matrix, None) for matrix in self.matrices]

    @cached_property
    def _turned(self) -> list[Any]:
        return [torch.ops.mkldnn._reorder_linear_weight(matrix.t(), None) for matrix in self.matrices]

    def times(self, rows: Tensor, *, bias: Tensor | None = None, out: Tensor | None = None) -> Tensor:
        """Rows times Wᵀ, plus b, (…, I) -> (…, O), into `out` where it is given."""
        if self.packs:
            return _products(rows, self._packed, bias, out)
        multiply = torch.mm if self.weight.dim() == 2 else torch.bmm
        return multiply(rows, self.weight.mT, out=out) if bias is None else torch.addmm(bias, rows, self.weight.t())

    def back(self, rows: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Rows times W, (…, O) -> (…, I), into `out` where it is given."""
        if self.packs:
            return _products(rows, self._turned, None, out)
        return (torch.mm if self.weight.dim() == 2 else torch.bmm)(rows, self.weight, out=out)

    def plus(self, given: Tensor, rows: Tensor) -> Summands:
        """Given (B, O) and rows times Wᵀ, whose sum is made at once, or by the kernel that reads it."""
        return (product(rows, self._packed[0], total=given),) if self.packs else (given, self.times(rows))


def _products(rows: Tensor, matrices: list[Any], bias: Tensor | None, out: Tensor | None) -> Tensor:
    if len(matrices) == 1:
        made = product(rows, matrices[0], None if bias is None else bias.view(-1))
        return made if out is None else out.copy_(made)
    biases = [None] * len(matrices) if bias is None else bias
    return torch.stack([product(*of) for of in zip(rows, matrices, biases, strict=True)], out=out)


@final
class Recurrence(torch.autograd.Function):
    """All states of K recurrences; use `recurrence`."""

    @staticmethod
    def forward(
        ctx: Any, name: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """Step by step."""
        cell, factor = cell_of(name, given), Factor(weight)
        recurrences, steps, rows, _ = given.shape
        hidden_KTBH = given.new_empty(recurrences, steps + 1, rows, hidden.shape[-1])
        hidden_KTBH[:, 0] = hidden
        ctx.steps = []
        with torch.autocast(given.device.type, enabled=False):
            for at in range(steps):
                before, after = hidden_KTBH[:, at], hidden_KTBH[:, at + 1]
                recurrent = (factor.times(before, bias=bias),) if factor.packs else (factor.times(before), bias)
                memory, saved = cell.forward((given[:, at],), recurrent, before, memory, after)
                ctx.steps.append(saved)
        ctx.cell, ctx.hidden, ctx.factor = cell, hidden_KTBH, factor
        return hidden_KTBH[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> Any:
        """Step by step back, then every weight at once."""
        factor, cell, d_states = ctx.factor, ctx.cell, d_states.contiguous()
        recurrences, steps, rows, _ = d_states.shape
        d_given = d_states.new_empty(recurrences, steps, rows, factor.weight.shape[1])
        d_recurrent = d_given if cell.gives_alike else torch.empty_like(d_given)
        later: Summands = ()
        d_memory: Tensor | None = None
        with torch.autocast(d_states.device.type, enabled=False):
            for at in reversed(range(steps)):
                to = d_given[:, at], d_recurrent[:, at]
                kept, d_memory = cell.backward((d_states[:, at], *later), d_memory, ctx.steps[at], *to)
                passed = factor.back(to[1])
                later = (passed,) if kept is None else (passed, kept)
            before_KNH, d_recurrent_KNG = ctx.hidden[:, :-1].flatten(1, 2), d_recurrent.flatten(1, 2)
            d_weight = beside([outer_products(*of) for of in zip(d_recurrent_KNG, before_KNH, strict=True)])
            d_hidden = summed(later) if later else None
            return None, d_given, d_hidden, d_memory, d_weight, summed_rows(d_recurrent_KNG)


def recurrence(cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor) -> Tensor:
    """The states (K, T, B, H), from g of all positions (K, T, B, G), first ones (K, B, H), W (K, G, H), b' (K, G)."""
    return cast("Tensor", Recurrence.apply(cell, given, hidden, memory, weight, bias))  # type: ignore[no-untyped-call]


@final
class Layer(NamedTuple):
    """The weights of one layer; the first is given U x + b of its inputs, so that only the context is left."""

    inputs: Tensor
    """U_c (G, D) of the first layer, U (G, H) of the others."""
    bias: Tensor | None
    """b (G,), of all but the first."""
    recurrent: Tensor
    """W (G, H); of the last layer with U_att of the additive score below it, (Q, H)."""
    recurrent_bias: Tensor
    """b' (G,)."""


def attending(sources: Sources, steps: int) -> Attending:
    """The attention of a batch: where the score is additive, one kernel for each step."""
    if sources.score is None:
        return Product(sources, steps)
    if not has_kernels(sources.keys):
        return compiled_attention(sources, steps) or Additive(sources, steps)
    from sixjars.model.fast.attention_kernels import LONGEST, FusedAdditive

    return (FusedAdditive if 0 < sources.mask.shape[1] <= LONGEST else Additive)(sources, steps)


def unrolled(
    cell: str,
    given: Tensor,
    first: tuple[Tensor, Tensor | None],
    sources: Sources,
    layers: Sequence[Layer],
    kept: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """States (T, B, H), contexts (T, B, D) and weights (T, B, S).

    `given`, (T, B, G), is U x + b of the first layer; `first` the states before, (L, B, H); `kept`, (T, L - 1, B, H),
    what dropout multiplies the states between layers by.
    """
    flat = [tensor for layer in layers for tensor in layer]
    made = Unrolled.apply(cell, given, *first, *sources, kept, *flat)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor, Tensor]", made)


@final
class Unrolled(torch.autograd.Function):
    """The same as autograd wants it; `unrolled` names the arguments."""

    @staticmethod
    def forward(ctx: Any, cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, *rest: Any) -> Any:
        """All steps."""
        layers = [Layer(*rest[at : at + 4]) for at in range(5, len(rest), 4)]
        ctx.loop = loop = Loop(cell, given, Sources(*rest[:4]), layers, rest[4])
        ctx.set_materialize_grads(False)
        with torch.autocast(given.device.type, enabled=False):
            loop.forward(given, hidden, [None] * len(layers) if memory is None else list(memory))
        return loop.hidden[-1][1:], loop.attending.contexts.view_as(loop.attending.contexts), loop.attending.weights[:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None) -> Any:
        """All steps back, then every weight at once."""
        loop: Loop = ctx.loop
        d_states = torch.zeros_like(loop.hidden[-1][1:]) if d_states is None else d_states.contiguous()
        with torch.autocast(d_states.device.type, enabled=False):
            d_hidden, d_memory = loop.backward(d_states, d_contexts, d_weights)
            d_keys, d_score = loop.attending.key_gradients(loop.queries)
            d_source = loop.attending.memory_gradient()
            first = torch.stack(d_hidden), None if d_memory[0] is None else torch.stack(cast("list[Tensor]", d_memory))
            return None, loop.d_given[0], *first, d_keys, d_source, None, d_score, None, *loop.weight_gradients()


@final
class Loop:
    """The loop over the steps of one batch, forwards and back, and all that it must remember between."""

    def __init__(self, cell: str, given: Tensor, sources: Sources, layers: list[Layer], kept: Tensor | None) -> None:
        steps, rows, self.gates = given.shape
        self.cell = cell_of(cell, given)
        self.layers = layers
        self.kept = kept
        self.attending = attending(sources, steps)
        self.additive = sources.score is not None
        self.below = [Factor(layer.inputs) for layer in layers]
        self.before = [Factor(layer.recurrent) for layer in layers]
        self.biases = [F.pad(of.recurrent_bias, (0, len(of.recurrent) - self.gates)) for of in layers]
        self.hidden = [given.new_empty(steps + 1, rows, layer.recurrent.shape[1]) for layer in layers]
        self.recurrent = [given.new_empty(steps, rows, len(layer.recurrent)) for layer in layers]
        self.saved: list[list[Saved]] = []
        self.d_recurrent: list[Tensor] = []
        self.d_given: list[Tensor] = []

    def forward(self, given: Tensor, hidden: Tensor, memory: list[Tensor | None]) -> None:
        """Fills `hidden`, and the contexts and weights of `attending`."""
        for states, first in zip(self.hidden, hidden, strict=True):
            states[0] = first
        for at in range(len(given)):
            for states, factor, bias, made in zip(self.hidden, self.before, self.biases, self.recurrent, strict=True):
                factor.times(states[at], bias=bias if factor.packs else None, out=made[at])
            context_BD = self.attending.forward(at, self.queries[at])
            now = self.below[0].plus(given[at], context_BD)
            self.saved.append([])
            for number, (states, layer) in enumerate(zip(self.hidden, self.layers, strict=True)):
                if layer.bias is not None:
                    now = (self.below[number].times(self._states_below(number, at), bias=layer.bias),)
                made = self.recurrent[number][at, :, : self.gates]
                recurrent = (made,) if self.before[number].packs else (made, layer.recurrent_bias)
                memory[number], saved = self.cell.forward(now, recurrent, states[at], memory[number], states[at + 1])
                self.saved[-1].append(saved)

    @property
    def queries(self) -> Tensor:
        """Q of all steps, (T, B, A)."""
        return self.recurrent[-1][..., self.gates :] if self.additive else self.hidden[-1][:-1]

    def _states_below(self, number: int, at: int | slice) -> Tensor:
        """The states of the layer below, after their dropout: of one step, or of all."""
        states = self.hidden[number - 1][1:][at]
        return states if self.kept is None else states * self.kept[at, number - 1]

    def backward(
        self, d_states: Tensor, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """Fills all gradients of what was given and recurrent; returns those of the first states of each layer."""
        self.d_recurrent = [torch.empty_like(recurrent) for recurrent in self.recurrent]
        shares = [d_recurrent[..., : self.gates] for d_recurrent in self.d_recurrent]
        self.d_given = shares if self.cell.gives_alike else [torch.empty_like(share) for share in shares]
        later: list[Summands] = [()] * len(self.layers)
        d_memory: list[Tensor | None] = [None] * len(self.layers)
        for at in reversed(range(len(d_states))):
            d_output, kept = d_states[at], []
            for number in reversed(range(len(self.layers))):
                d_after, to = (d_output, *later[number]), (self.d_given[number][at], shares[number][at])
                own, d_memory[number] = self.cell.backward(d_after, d_memory[number], self.saved[at][number], *to)
                kept.append(() if own is None else (own,))
                if number:
                    d_output = self.below[number].back(to[0])
                    d_output = d_output if self.kept is None else d_output * self.kept[at, number - 1]
            d_query = self._through_attention(at, d_contexts, d_weights)
            passed = [factor.back(one[at]) for one, factor in zip(self.d_recurrent, self.before, strict=True)]
            later = [(one, *own) for one, own in zip(passed, reversed(kept), strict=True)]
            if not self.additive:
                later[-1] = summed((later[-1][0], d_query)), *later[-1][1:]
        return [summed(parts) for parts in later], d_memory

    def _through_attention(self, at: int, d_contexts: Tensor | None, d_weights: Tensor | None) -> Tensor:
        """δc_t into its place, and δq_t."""
        into = self.attending.d_contexts[at]
        self.below[0].back(self.d_given[0][at], out=into)
        if d_contexts is not None:
            into += d_contexts[at]
        d_query = self.d_recurrent[-1][at, :, self.gates :] if self.additive else torch.empty_like(self.queries[at])
        self.attending.backward(at, self.queries, None if d_weights is None else d_weights[at], d_query)
        return d_query

    def weight_gradients(self) -> Iterator[Tensor | None]:
        """Of every layer as `Layer` has them: each one product, or one sum, over all steps and rows."""
        for number, (d_given, d_recurrent) in enumerate(zip(self.d_given, self.d_recurrent, strict=True)):
            inputs = self._states_below(number, slice(None)) if number else self.attending.contexts
            yield outer_products(d_given.flatten(0, 1), inputs.flatten(0, 1))
            yield summed_rows(d_given.flatten(0, 1)) if number else None
            yield outer_products(d_recurrent.flatten(0, 1), self.hidden[number][:-1].flatten(0, 1))
            yield summed_rows(d_recurrent[..., : self.gates].flatten(0, 1))
