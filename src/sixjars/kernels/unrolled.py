r"""Recurrences over all steps, with and without attention, with hand-written backward passes.

Dims: K recurrences, B batch, S source positions, T steps, I input features, F input features of
      a layer, H state features, G gate features, C context features,
      A attention features, D source features, L layers, Q = G + A, N batch times steps. Where …
      stands, K may.

Autograd would keep a graph of a dozen small operations for every step, and add a small gradient of
each weight in every one. Here the loop back over the steps only carries what the step before needs;
the gradient of each weight is one product of all steps after it: δW = Σ_t δr_t h_{t-1}ᵀ.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere
from torch.utils import _pytree as pytree

from sixjars.flow.backend import AttendedRecurrence, AttentionSources
from sixjars.flow.values import Context, State
from sixjars.kernels.products import (
    Factor,
    beside,
    computed_in,
    linear,
    outer_products,
    summed_rows,
)
from sixjars.kernels.steps import (
    Back,
    BatchAttention,
    Cell,
    Memory,
    ProductAttention,
    Saved,
    Summands,
    TwoLevelSteps,
    UpperSources,
    summed,
    upper_of,
)
from sixjars.model.reference import layer_weights

CellKind = Callable[[Tensor], Cell]
"""Makes the cell for tensors such as the given one."""
AdditiveKind = Callable[[AttentionSources, int], BatchAttention]
"""Makes the additive attention of a batch for so many steps."""


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
    """The states (K, T, B, H) of K recurrences from g (K, T, B, G); use `recurrences`."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
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
        states = hidden_KTBH[:, :-1], hidden_KTBH[:, 1:]
        ctx.stage = stage = CellStage(cell, weight, bias, *states)
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


def recurrences(
    cell: CellKind, stacks: Sequence[nn.RNNBase], inputs: Sequence[Tensor], first: State | None
) -> list[Tensor]:
    """The states (B, T, H) of stacks of one shape, each over its own inputs (B, T, I)."""
    dtype = computed_in(inputs[0])
    rows, steps, _ = inputs[0].shape
    shape = stacks[0]
    begins = [None, None] if first is None else [first.hidden, first.cell]
    values_KTBF = beside([values.transpose(0, 1) for values in inputs]).to(dtype)
    for layer in range(shape.num_layers):
        weights = zip(*(layer_weights(stack, layer) for stack in stacks), strict=True)
        below, bias, weight, bias_hh = (beside(each).to(dtype) for each in weights)
        drops = layer > 0 and shape.training
        values_KNF = F.dropout(values_KTBF, shape.dropout, drops).flatten(1, 2)
        given_KNG = beside([linear(*of) for of in zip(values_KNF, below, bias, strict=True)])
        given_KTBG = given_KNG.view(len(stacks), steps, rows, below.shape[1])
        zeros_KBH = given_KTBG.new_zeros(len(stacks), rows, shape.hidden_size)
        hidden, memory = (
            zeros_KBH if begin is None else begin[None, :, layer].to(dtype) for begin in begins
        )
        kept = memory if isinstance(shape, nn.LSTM) else None
        values_KTBF = Recurrence.apply(cell(given_KTBG), given_KTBG, hidden, kept, weight, bias_hh)  # type: ignore[no-untyped-call]
    return [states_TBH.transpose(0, 1) for states_TBH in values_KTBF]


@final
class RecurrentCellWeights(NamedTuple):
    """The weights of one cell; of the first, U x + b is computed before the steps."""

    inputs: Tensor | None
    """U_c (G, D) of the cell that reads the context, U (G, H) above it; None of a middle cell."""
    bias: Tensor | None
    """b (G,) of all cells but the first."""
    recurrent: Tensor
    """W (G, H); with U_att of the additive score below it where the state is the query, (Q, H)."""
    recurrent_bias: Tensor
    """b' (G,)."""


@final
class LoopTensors(NamedTuple):
    """All that the loop over the steps of a decoder reads; or the gradients of it."""

    given: Tensor
    """U x + b of the first cell, (T, B, G)."""
    hidden: Tensor
    """The states before the first step, (L, B, H)."""
    memory: Tensor | None
    """The memory cells of an LSTM, (L, B, H)."""
    sources: AttentionSources
    upper: UpperSources | None
    """The upper level of attention at two levels."""
    kept: Tensor | None
    """The factors of dropout for the states between layers, (T, L - 1, B, H)."""
    layers: tuple[RecurrentCellWeights, ...]
    """Where the first has no inputs, it is the middle cell of a conditional decoder."""


def loop_tensors(recurrence: AttendedRecurrence) -> LoopTensors:
    """The tensors of a recurrence with attention, in the type that products are computed in."""
    stack, middle, inputs, state, prepared, scoring = recurrence
    dtype = computed_in(inputs)
    query, *scores = scoring
    width = inputs.shape[-1]
    layers = []
    for number in range(stack.num_layers):
        below, bias, weight, bias_hh = (each.to(dtype) for each in layer_weights(stack, number))
        if query is not None and number == (stack.num_layers - 1 if middle is None else 0):
            weight = torch.cat([weight, query.to(dtype)])
        if number == 0 and middle is None:  # U x + b is computed for all steps below
            layers.append(RecurrentCellWeights(below[:, width:], None, weight, bias_hh))
        else:
            layers.append(RecurrentCellWeights(below, bias, weight, bias_hh))
    if middle is not None:
        recurrent = (each.to(dtype) for each in layer_weights(middle, 0)[2:])
        layers.insert(0, RecurrentCellWeights(None, None, *recurrent))
    assert prepared.keys is not None
    score, *upper = (None if each is None else each.to(dtype) for each in scores)
    keys, memory = prepared.keys.to(dtype), prepared.memory.to(dtype)
    weight_ih, bias_ih, _, _ = layer_weights(stack if middle is None else middle, 0)
    by_layer = state.mapped(lambda tensor: tensor.transpose(0, 1).to(dtype))
    drops = stack.training and stack.dropout
    return LoopTensors(
        linear(inputs.transpose(0, 1), weight_ih[:, :width], bias_ih).to(dtype),
        by_layer.hidden,
        by_layer.cell,
        AttentionSources(keys, memory, prepared.mask, score),
        upper_of(prepared, *upper) if upper else None,
        _kept(stack.dropout, inputs.shape[1], by_layer.hidden) if drops else None,
        tuple(layers),
    )


def _kept(dropout: float, steps: int, hidden_LBH: Tensor) -> Tensor:
    """The dropout factors of the states between layers, (T, L - 1, B, H), drawn by step."""
    ones_BH = torch.ones_like(hidden_LBH[0])
    rows = [[F.dropout(ones_BH, dropout) for _ in hidden_LBH[1:]] for _ in range(steps)]
    return torch.stack([torch.stack(row) for row in rows])


def unrolled(
    cell: CellKind, additive: AdditiveKind, recurrence: AttendedRecurrence
) -> tuple[Tensor, Context]:
    """The states (B, T, H), and contexts (B, T, C) with weights (B, T, S), of all steps."""
    tensors = loop_tensors(recurrence)
    leaves, structure = pytree.tree_flatten(tensors)
    outputs = Unrolled.apply(cell(tensors.given), additive, structure, *leaves)  # type: ignore[no-untyped-call]
    states_BTH, vectors_BTC, weights_BTS = (each.transpose(0, 1).contiguous() for each in outputs)
    return states_BTH, Context(vectors_BTC, weights_BTS)


@final
class Unrolled(torch.autograd.Function):
    """`LoopTensors`, flattened, to states (T, B, H), contexts (T, B, D) and weights (T, B, S)."""

    @staticmethod
    def forward(
        ctx: Any, cell: Cell, additive: AdditiveKind, structure: Any, *leaves: Tensor | None
    ) -> Any:
        """Compute all steps."""
        tensors: LoopTensors = pytree.tree_unflatten(leaves, structure)
        given, sources = tensors.given, tensors.sources
        if tensors.upper is not None:
            attends: BatchAttention = TwoLevelSteps(sources, tensors.upper, len(given))
        else:
            kind = ProductAttention if sources.score is None else additive
            attends = kind(sources, len(given))
        ctx.loop = loop = StepLoop(cell, given, attends, list(tensors.layers), tensors.kept)
        ctx.set_materialize_grads(False)
        memory = [None] * len(loop.layers) if tensors.memory is None else list(tensors.memory)
        with torch.autocast(given.device.type, enabled=False):
            loop.forward(given, tensors.hidden, memory)
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
            gradients = loop.gradients(d_states, d_contexts, d_weights)
        return None, None, None, *pytree.tree_leaves(gradients)


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

    def gradients(
        self, d_states: Tensor, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> LoopTensors:
        """The gradients of all that the loop read."""
        d_hidden, d_memory = self.backward(d_states, d_contexts, d_weights)
        d_keys, d_score = self.attending.key_gradients(self.queries)
        d_upper_keys, d_upper_score = self.attending.upper_gradients(self.queries)
        has_cells = d_memory[0] is not None
        has_upper = isinstance(self.attending, TwoLevelSteps)
        d_upper: Any = (d_upper_keys, None, None, d_upper_score) if has_upper else None
        d_sources: Any = d_keys, self.attending.memory_gradient(), None, d_score
        return LoopTensors(
            (self.middle or self.stages[0]).d_given,
            torch.stack(d_hidden),
            torch.stack(cast("list[Tensor]", d_memory)) if has_cells else None,
            AttentionSources(*d_sources),
            None if d_upper is None else UpperSources(*d_upper),
            None,
            tuple(self._weight_gradients()),
        )

    def _weight_gradients(self) -> Iterator[RecurrentCellWeights]:
        """The gradients of every cell, one product or sum each."""
        if self.middle is not None:
            yield RecurrentCellWeights(None, None, *self.middle.weight_gradients())
        for number, (stage, layer) in enumerate(zip(self.stages, self.layers, strict=True)):
            d_given_NG = stage.d_given.flatten(0, 1)
            inputs_NI = self._inputs(number, slice(None)).flatten(0, 1)
            d_bias = None if layer.bias is None else summed_rows(d_given_NG)
            d_inputs = outer_products(d_given_NG, inputs_NI)
            yield RecurrentCellWeights(d_inputs, d_bias, *stage.weight_gradients())
