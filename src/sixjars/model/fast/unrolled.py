r"""Recurrences over all steps, with and without attention, with hand-written backward passes.

Dims: K recurrences, B batch, S source positions, T steps, H state features, G gate features,
      A attention features, D source features, L layers, Q = G + A, N batch times steps. Where …
      stands, K may.

Autograd would keep a graph of a dozen small operations for every step, and add a small gradient of
each weight in every one. Here the loop back over the steps only carries what the step before needs;
the gradient of each weight is one product of all steps after it: δW = Σ_t δr_t h_{t-1}ᵀ.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.model.fast.compiled import compiled_attention, compiled_cell
from sixjars.model.fast.contracts import (
    AttentionSources,
    Back,
    Cell,
    Memory,
    RecurrentCellWeights,
    Saved,
    Summands,
    UpperSources,
)
from sixjars.model.fast.segments import TwoLevelSteps
from sixjars.model.fast.steps import (
    CELLS,
    AdditiveAttention,
    BatchAttention,
    Factor,
    ProductAttention,
    summed,
)
from sixjars.model.layers import beside, outer_products, summed_rows


def has_kernels(like: Tensor) -> bool:
    """Whether Triton kernels can run where a tensor is: on CUDA, with Triton installed."""
    return like.is_cuda and find_spec("triton") is not None


def cell_of(name: str, like: Tensor) -> Cell:
    """A cell by name, as kernels where it has them."""
    if not has_kernels(like):
        return compiled_cell(name, like) or CELLS[name]
    from sixjars.model.fast.cell_kernels import FUSED

    return FUSED.get(name, CELLS[name])


@final
class CellStage:
    """One cell at all steps, or K side by side, and what its backward pass needs of them.

    Its states before and after each step are (…, T, B, H); W, (…, Q, H), may have U_att below it.
    """

    def __init__(
        self, cell: Cell, weight: Tensor, bias: Tensor, before: Tensor, after: Tensor
    ) -> None:
        self.cell, self.factor, self.bias = cell, Factor(weight), bias
        self.gates = bias.shape[-1]
        self.states = before
        self.before, self.after = before.unbind(-3), after.unbind(-3)
        width = weight.shape[-2]
        extra = width - self.gates
        self.whole_bias = F.pad(bias, (0, extra)) if self.factor.packs else None
        self.made = before.new_empty(*before.shape[:-1], width) if extra else None
        self.saved: list[Saved] = []

    def recur(self, at: int) -> Tensor:
        """W h + b' and U_att h of the state before a step; without b' where the cell adds it."""
        room = None if self.made is None else self.made[at]
        return self.factor.times(self.before[at], bias=self.whole_bias, out=room)[..., : self.gates]

    @property
    def queries(self) -> Tensor:
        """Q of attention at all steps, (T, B, A): U_att h; or h, where the score has no U_att."""
        return self.states if self.made is None else self.made[..., self.gates :]

    def forward(self, given: Summands, recurrent: Tensor, at: int, memory: Memory) -> Memory:
        """Write the state after a step, from g and what `recur` returned; give the memory cell."""
        summands = (recurrent,) if self.factor.packs else (recurrent, self.bias)
        memory, saved = self.cell.forward(given, summands, self.before[at], memory, self.after[at])
        self.saved.append(saved)
        return memory

    def open(self) -> None:
        """Make room for the gradients of all steps."""
        width = self.factor.weight.shape[-2]
        self.d_recurrent = self.states.new_empty(*self.states.shape[:-1], width)
        shares = self.d_recurrent[..., : self.gates]
        self.d_given = shares if self.cell.gives_alike else torch.empty_like(shares)
        self.d_steps = list(zip(self.d_given.unbind(-3), shares.unbind(-3), strict=True))

    def backward(self, at: int, d_after: Summands, d_memory: Memory) -> Back:
        """Write δg and δr of a step; return the part of δh that does not pass W, and δm."""
        return self.cell.backward(d_after, d_memory, self.saved[at], *self.d_steps[at])

    def passed(self, at: int, kept: Tensor | None) -> Summands:
        """δh of the state before a step: Wᵀ δr + U_attᵀ δq, and the part beside W."""
        through = self.factor.back(self.d_recurrent.select(-3, at))
        return (through,) if kept is None else (through, kept)

    def weight_gradients(self) -> tuple[Tensor, Tensor]:
        """δW and δb', each one product, or one sum, over all steps and rows."""
        before, d_made = self.states.flatten(-3, -2), self.d_recurrent.flatten(-3, -2)
        if before.dim() == 2:
            return outer_products(d_made, before), summed_rows(d_made[..., : self.gates])
        each = [outer_products(*of) for of in zip(d_made, before, strict=True)]
        return beside(each), summed_rows(d_made)


@final
class Recurrence(torch.autograd.Function):
    """All states of K recurrences; use `recurrence`."""

    @staticmethod
    def forward(
        ctx: Any,
        name: str,
        given: Tensor,
        hidden: Tensor,
        memory: Tensor | None,
        weight: Tensor,
        bias: Tensor,
    ) -> Tensor:
        """Compute all steps."""
        recurrences, steps, rows, _ = given.shape
        hidden_KTBH = given.new_empty(recurrences, steps + 1, rows, hidden.shape[-1])
        hidden_KTBH[:, 0] = hidden
        ctx.stage = stage = CellStage(
            cell_of(name, given), weight, bias, hidden_KTBH[:, :-1], hidden_KTBH[:, 1:]
        )
        with torch.autocast(given.device.type, enabled=False):
            for at, given_KBG in enumerate(given.unbind(1)):
                memory = stage.forward((given_KBG,), stage.recur(at), at, memory)
        return hidden_KTBH[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> Any:
        """Go back over the steps, then compute each weight's gradient at once."""
        stage = ctx.stage
        d_steps = d_states.contiguous().unbind(1)
        later: Summands = ()
        d_memory: Memory = None
        stage.open()
        with torch.autocast(d_states.device.type, enabled=False):
            for at in reversed(range(len(d_steps))):
                kept, d_memory = stage.backward(at, (d_steps[at], *later), d_memory)
                later = stage.passed(at, kept)
            d_hidden = summed(later) if later else None
            return None, stage.d_given, d_hidden, d_memory, *stage.weight_gradients()


def recurrence(
    cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor
) -> Tensor:
    """The states (K, T, B, H) from g (K, T, B, G), initial states (K, B, H), W and b'."""
    return cast("Tensor", Recurrence.apply(cell, given, hidden, memory, weight, bias))  # type: ignore[no-untyped-call]


def attending(
    sources: AttentionSources, steps: int, upper: UpperSources | None = None
) -> BatchAttention:
    """The attention of a batch: where the score is additive, one kernel for each step."""
    if upper is not None:
        return TwoLevelSteps(sources, upper, steps)
    if sources.score is None:
        return ProductAttention(sources, steps)
    if not has_kernels(sources.keys):
        return compiled_attention(sources, steps) or AdditiveAttention(sources, steps)
    from sixjars.model.fast.attention_kernels import LONGEST, FusedAdditive

    fused = 0 < sources.mask.shape[1] <= LONGEST
    return FusedAdditive(sources, steps) if fused else AdditiveAttention(sources, steps)


def unrolled(
    cell: str,
    given: Tensor,
    first: tuple[Tensor, Tensor | None],
    sources: tuple[AttentionSources, UpperSources | None],
    layers: Sequence[RecurrentCellWeights],
    kept: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """States (T, B, H), contexts (T, B, D) and weights (T, B, S).

    `given`, (T, B, G), is U x + b of the first cell; `first` the states before, (L, B, H); `kept`,
    (T, L - 1, B, H), what dropout multiplies the states between layers by. Where the first of the
    layers has no inputs, it is the middle cell of a conditional decoder, whose states attention
    receives.
    """
    flat = [tensor for layer in layers for tensor in layer]
    attended = [*sources[0], *(sources[1] or [None] * 4)]
    outputs = Unrolled.apply(cell, given, *first, *attended, kept, *flat)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor, Tensor]", outputs)


@final
class Unrolled(torch.autograd.Function):
    """`unrolled` as a function of autograd, with the same arguments, flattened."""

    @staticmethod
    def forward(
        ctx: Any, cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, *rest: Any
    ) -> Any:
        """Compute all steps."""
        layers = [RecurrentCellWeights(*rest[at : at + 4]) for at in range(9, len(rest), 4)]
        upper = None if rest[4] is None else UpperSources(*rest[4:8])
        attends = attending(AttentionSources(*rest[:4]), len(given), upper)
        ctx.loop = loop = StepLoop(cell_of(cell, given), given, attends, layers, rest[8])
        ctx.set_materialize_grads(False)
        with torch.autocast(given.device.type, enabled=False):
            loop.forward(given, hidden, [None] * len(hidden) if memory is None else list(memory))
        return loop.hidden[-1][1:], attends.contexts.view_as(attends.contexts), attends.weights[:]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> Any:
        """Go back over all steps, then compute each weight's gradient at once."""
        loop: StepLoop = ctx.loop
        if d_states is None:
            d_states = torch.zeros_like(loop.hidden[-1][1:])
        d_states = d_states.contiguous()
        with torch.autocast(d_states.device.type, enabled=False):
            d_hidden, d_memory = loop.backward(d_states, d_contexts, d_weights)
            d_keys, d_score = loop.attending.key_gradients(loop.queries)
            d_upper_keys, d_upper_score = loop.attending.upper_gradients(loop.queries)
            d_sources = d_keys, loop.attending.memory_gradient(), None, d_score
            d_upper = d_upper_keys, None, None, d_upper_score
            has_cells = d_memory[0] is not None
            d_cells = torch.stack(cast("list[Tensor]", d_memory)) if has_cells else None
            d_first = (loop.middle or loop.stages[0]).d_given, torch.stack(d_hidden), d_cells
            return None, *d_first, *d_sources, *d_upper, None, *loop.weight_gradients()


@final
class StepLoop:
    """The loop over the steps of one batch and back, with all that it remembers between.

    Each layer is a stage. In a conditional decoder the middle cell comes before them: it leads from
    the lowest layer's s_{t-1} to s'_t, from which that layer continues. The query is the state
    before the lowest layer there, otherwise before the highest.
    """

    def __init__(
        self,
        cell: Cell,
        given: Tensor,
        attends: BatchAttention,
        layers: list[RecurrentCellWeights],
        kept: Tensor | None,
    ) -> None:
        steps, rows, _ = given.shape
        self.attending = attends
        self.kept = kept
        self.middle: CellStage | None = None
        conditional = layers[0].inputs is None
        self.layers = layers[1:] if conditional else layers
        sizes = [layer.recurrent.shape[1] for layer in self.layers]
        self.hidden = [given.new_empty(steps + 1, rows, size) for size in sizes]
        before = [states[:-1] for states in self.hidden]
        after = [states[1:] for states in self.hidden]
        if conditional:
            between_TBH = torch.empty_like(before[0])
            self.middle = CellStage(cell, *layers[0][2:], before[0], between_TBH)
            before[0] = between_TBH
        parts = zip(self.layers, before, after, strict=True)
        self.stages = [CellStage(cell, *layer[2:], *states) for layer, *states in parts]
        self.below = [Factor(layer.inputs) for layer in self.layers if layer.inputs is not None]
        self.asks = 0 if conditional else len(self.layers) - 1

    def forward(self, given: Tensor, hidden: Tensor, memory: list[Memory]) -> None:
        """Fill `hidden`, and the contexts and weights of `attending`."""
        for states, first in zip(self.hidden, hidden, strict=True):
            states[0] = first
        parts = list(zip(self.stages, self.layers, self.below, strict=True))
        for at in range(len(given)):
            if self.middle is not None:
                memory[0] = self.middle.forward((given[at],), self.middle.recur(at), at, memory[0])
            recurrent = [stage.recur(at) for stage in self.stages]
            inputs = self.attending.forward(at, self.queries[at])
            for number, (stage, layer, below) in enumerate(parts):
                inputs = self._inputs(number, at) if number else inputs
                if layer.bias is None:
                    summands: Summands = below.plus(given[at], inputs)
                else:
                    summands = (below.times(inputs, bias=layer.bias),)
                memory[number] = stage.forward(summands, recurrent[number], at, memory[number])

    @property
    def queries(self) -> Tensor:
        """Q of all steps, (T, B, A)."""
        return self.stages[self.asks].queries

    def _inputs(self, number: int, at: int | slice) -> Tensor:
        """The inputs of a layer, at one step or all: contexts, or states below after dropout."""
        if not number:
            return self.attending.contexts[at]
        states = self.hidden[number - 1][1:][at]
        return states if self.kept is None else states * self.kept[at, number - 1]

    def backward(
        self, d_states: Tensor, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> tuple[list[Tensor], list[Memory]]:
        """Fill the gradients of g and r; return those of the initial states of each layer."""
        for stage in self.stages if self.middle is None else [*self.stages, self.middle]:
            stage.open()
        later: list[Summands] = [()] * len(self.stages)
        d_memory: list[Memory] = [None] * len(self.stages)
        for at in reversed(range(len(d_states))):
            d_output = d_states[at]
            d_kept: list[Tensor | None] = [None] * len(self.stages)
            for number, stage in reversed(list(enumerate(self.stages))):
                d_after = d_output, *later[number]
                d_kept[number], d_memory[number] = stage.backward(at, d_after, d_memory[number])
                if number:
                    d_output = self.below[number].back(stage.d_given[at])
                    if self.kept is not None:
                        d_output = d_output * self.kept[at, number - 1]
            d_query = self._through_attention(at, d_contexts, d_weights)
            later = [stage.passed(at, d) for stage, d in zip(self.stages, d_kept, strict=True)]
            if self.stages[self.asks].made is None:
                later[self.asks] = later[self.asks][0] + d_query, *later[self.asks][1:]
            if self.middle is not None:
                d_hidden, d_memory[0] = self.middle.backward(at, later[0], d_memory[0])
                later[0] = self.middle.passed(at, d_hidden)
        return [summed(parts) for parts in later], d_memory

    def _through_attention(
        self, at: int, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> Tensor:
        """Write δc_t; return δq_t, which has a place of its own where it passes through U_att."""
        d_context, stage = self.attending.d_contexts[at], self.stages[self.asks]
        self.below[0].back(self.stages[0].d_given[at], out=d_context)
        if d_contexts is not None:
            d_context += d_contexts[at]
        queries = self.queries
        if stage.made is None:
            d_query = torch.empty_like(queries[at])
        else:
            d_query = stage.d_recurrent[at, :, stage.gates :]
        self.attending.backward(at, queries, None if d_weights is None else d_weights[at], d_query)
        return d_query

    def weight_gradients(self) -> Iterator[Tensor | None]:
        """The gradients of every cell in the order of `RecurrentCellWeights`, one product or sum each."""
        if self.middle is not None:
            yield from (None, None, *self.middle.weight_gradients())
        for number, (stage, layer) in enumerate(zip(self.stages, self.layers, strict=True)):
            d_given_NG = stage.d_given.flatten(0, 1)
            yield outer_products(d_given_NG, self._inputs(number, slice(None)).flatten(0, 1))
            yield None if layer.bias is None else summed_rows(d_given_NG)
            yield from stage.weight_gradients()
