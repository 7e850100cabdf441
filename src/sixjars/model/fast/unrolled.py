r"""Recurrences over all steps of a sequence, with and without attention, their backward passes written by hand.

Dims: K recurrences, B batch, S source positions, T steps, H state features, G gate features, A attention features,
      D source features, L layers, Q = G + A, N batch times steps. Where … stands, K may.

Autograd would keep a graph of a dozen small operations for every step, and add a small gradient of each weight in
every one. Here the loop back over the steps only carries what the step before needs; the gradient of each weight is
one product of all steps after it: δW = Σ_t δr_t h_{t-1}ᵀ.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.model.fast.compiled import compiled_attention, compiled_cell
from sixjars.model.fast.contracts import Back, Cell, Layer, Memory, Saved, Sources, Summands, Upper
from sixjars.model.fast.segments import TwoLevel
from sixjars.model.fast.steps import CELLS, Additive, Attending, Factor, Product, summed
from sixjars.model.layers import beside, outer_products, summed_rows


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
class Stage:
    """One cell at all steps, or K side by side, and what it must remember from its steps for the way back.

    Its states before and after each step are (…, T, B, H); W, (…, Q, H), may have U_att below it.
    """

    def __init__(
        self, cell: Cell, weight: Tensor, bias: Tensor, before: Tensor, after: Tensor
    ) -> None:
        self.cell, self.factor, self.bias, self.gates = cell, Factor(weight), bias, bias.shape[-1]
        self.states, self.before, self.after = before, before.unbind(-3), after.unbind(-3)
        more = weight.shape[-2] - self.gates
        self.whole_bias = F.pad(bias, (0, more)) if self.factor.packs else None
        self.made = before.new_empty(*before.shape[:-1], weight.shape[-2]) if more else None
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
        """The state after a step into its place, from g and what `recur` made; the memory cell."""
        both = (recurrent,) if self.factor.packs else (recurrent, self.bias)
        memory, saved = self.cell.forward(given, both, self.before[at], memory, self.after[at])
        self.saved.append(saved)
        return memory

    def open(self) -> None:
        """Make room for the gradients of all steps."""
        self.d_recurrent = self.states.new_empty(
            *self.states.shape[:-1], self.factor.weight.shape[-2]
        )
        shares = self.d_recurrent[..., : self.gates]
        self.d_given = shares if self.cell.gives_alike else torch.empty_like(shares)
        self.d_steps = list(zip(self.d_given.unbind(-3), shares.unbind(-3), strict=True))

    def backward(self, at: int, d_after: Summands, d_memory: Memory) -> Back:
        """δg and δr of a step into their places; what is kept of δh beside W, and δm."""
        return self.cell.backward(d_after, d_memory, self.saved[at], *self.d_steps[at])

    def passed(self, at: int, own: Tensor | None) -> Summands:
        """δh of the state before a step: Wᵀ δr + U_attᵀ δq, and what was kept."""
        through = self.factor.back(self.d_recurrent.select(-3, at))
        return (through,) if own is None else (through, own)

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
        """Step by step."""
        recurrences, steps, rows, _ = given.shape
        hidden_KTBH = given.new_empty(recurrences, steps + 1, rows, hidden.shape[-1])
        hidden_KTBH[:, 0] = hidden
        ctx.stage = stage = Stage(
            cell_of(name, given), weight, bias, hidden_KTBH[:, :-1], hidden_KTBH[:, 1:]
        )
        with torch.autocast(given.device.type, enabled=False):
            for at, given_KBG in enumerate(given.unbind(1)):
                memory = stage.forward((given_KBG,), stage.recur(at), at, memory)
        return hidden_KTBH[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> Any:
        """Step by step back, then every weight at once."""
        stage, d_steps = ctx.stage, d_states.contiguous().unbind(1)
        later: Summands = ()
        d_memory: Memory = None
        stage.open()
        with torch.autocast(d_states.device.type, enabled=False):
            for at in reversed(range(len(d_steps))):
                own, d_memory = stage.backward(at, (d_steps[at], *later), d_memory)
                later = stage.passed(at, own)
            d_hidden = summed(later) if later else None
            return None, stage.d_given, d_hidden, d_memory, *stage.weight_gradients()


def recurrence(
    cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, weight: Tensor, bias: Tensor
) -> Tensor:
    """The states (K, T, B, H), from g of all positions (K, T, B, G), first ones (K, B, H), W (K, G, H), b' (K, G)."""
    return cast("Tensor", Recurrence.apply(cell, given, hidden, memory, weight, bias))  # type: ignore[no-untyped-call]


def attending(sources: Sources, steps: int, upper: Upper | None = None) -> Attending:
    """The attention of a batch: where the score is additive, one kernel for each step."""
    if upper is not None:
        return TwoLevel(sources, upper, steps)
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
    sources: tuple[Sources, Upper | None],
    layers: Sequence[Layer],
    kept: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """States (T, B, H), contexts (T, B, D) and weights (T, B, S).

    `given`, (T, B, G), is U x + b of the first cell; `first` the states before, (L, B, H); `kept`, (T, L - 1, B, H),
    what dropout multiplies the states between layers by. Where the first of the layers has no inputs, it is the middle
    cell of a conditional decoder, whose states attention receives.
    """
    flat = [tensor for layer in layers for tensor in layer]
    both = [*sources[0], *(sources[1] or [None] * 4)]
    made = Unrolled.apply(cell, given, *first, *both, kept, *flat)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor, Tensor]", made)


@final
class Unrolled(torch.autograd.Function):
    """The same as autograd wants it; `unrolled` names the arguments."""

    @staticmethod
    def forward(
        ctx: Any, cell: str, given: Tensor, hidden: Tensor, memory: Tensor | None, *rest: Any
    ) -> Any:
        """All steps."""
        layers = [Layer(*rest[at : at + 4]) for at in range(9, len(rest), 4)]
        attends = attending(
            Sources(*rest[:4]), len(given), None if rest[4] is None else Upper(*rest[4:8])
        )
        ctx.loop = loop = Loop(cell_of(cell, given), given, attends, layers, rest[8])
        ctx.set_materialize_grads(False)
        with torch.autocast(given.device.type, enabled=False):
            loop.forward(given, hidden, [None] * len(hidden) if memory is None else list(memory))
        return loop.hidden[-1][1:], attends.contexts.view_as(attends.contexts), attends.weights[:]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> Any:
        """All steps back, then every weight at once."""
        loop: Loop = ctx.loop
        d_states = (
            torch.zeros_like(loop.hidden[-1][1:]) if d_states is None else d_states.contiguous()
        )
        with torch.autocast(d_states.device.type, enabled=False):
            d_hidden, d_memory = loop.backward(d_states, d_contexts, d_weights)
            d_keys, d_score = loop.attending.key_gradients(loop.queries)
            d_upper_keys, d_upper_score = loop.attending.upper_gradients(loop.queries)
            d_sources = (
                d_keys,
                loop.attending.memory_gradient(),
                None,
                d_score,
                d_upper_keys,
                None,
                None,
                d_upper_score,
            )
            first = (
                torch.stack(d_hidden),
                None if d_memory[0] is None else torch.stack(cast("list[Tensor]", d_memory)),
            )
            return (
                None,
                (loop.middle or loop.stages[0]).d_given,
                *first,
                *d_sources,
                None,
                *loop.weight_gradients(),
            )


@final
class Loop:
    """The loop over the steps of one batch, forwards and back, and all that it must remember between.

    Each layer is a stage. In a conditional decoder the middle cell comes before them: it goes from the lowest layer's
    s_{t-1} to s'_t, from which that layer goes on. The query is the state before the lowest layer there, else before
    the highest.
    """

    def __init__(
        self,
        cell: Cell,
        given: Tensor,
        attends: Attending,
        layers: list[Layer],
        kept: Tensor | None,
    ) -> None:
        (steps, rows, _), self.attending, self.kept = given.shape, attends, kept
        self.middle: Stage | None = None
        conditional = layers[0].inputs is None
        self.layers = layers[1:] if conditional else layers
        self.hidden = [
            given.new_empty(steps + 1, rows, layer.recurrent.shape[1]) for layer in self.layers
        ]
        before, after = (
            [states[:-1] for states in self.hidden],
            [states[1:] for states in self.hidden],
        )
        if conditional:
            between_TBH = torch.empty_like(before[0])
            self.middle = Stage(cell, *layers[0][2:], before[0], between_TBH)
            before[0] = between_TBH
        self.stages = [
            Stage(cell, *of[2:], *at) for of, *at in zip(self.layers, before, after, strict=True)
        ]
        self.below = [Factor(layer.inputs) for layer in self.layers if layer.inputs is not None]
        self.asks = 0 if conditional else len(self.layers) - 1

    def forward(self, given: Tensor, hidden: Tensor, memory: list[Memory]) -> None:
        """Fills `hidden`, and the contexts and weights of `attending`."""
        for states, first in zip(self.hidden, hidden, strict=True):
            states[0] = first
        for at in range(len(given)):
            if self.middle is not None:
                memory[0] = self.middle.forward((given[at],), self.middle.recur(at), at, memory[0])
            recurrent = [stage.recur(at) for stage in self.stages]
            inputs = self.attending.forward(at, self.queries[at])
            for number, (stage, layer, below) in enumerate(
                zip(self.stages, self.layers, self.below, strict=True)
            ):
                inputs = self._inputs(number, at) if number else inputs
                now = (
                    below.plus(given[at], inputs)
                    if layer.bias is None
                    else (below.times(inputs, bias=layer.bias),)
                )
                memory[number] = stage.forward(now, recurrent[number], at, memory[number])

    @property
    def queries(self) -> Tensor:
        """Q of all steps, (T, B, A)."""
        return self.stages[self.asks].queries

    def _inputs(self, number: int, at: int | slice) -> Tensor:
        """What a layer reads, of one step or of all: the context, or the states of the layer below after dropout."""
        if not number:
            return self.attending.contexts[at]
        states = self.hidden[number - 1][1:][at]
        return states if self.kept is None else states * self.kept[at, number - 1]

    def backward(
        self, d_states: Tensor, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> tuple[list[Tensor], list[Memory]]:
        """Fills all gradients of what was given and recurrent; returns those of the first states of each layer."""
        for stage in [*self.stages, *([] if self.middle is None else [self.middle])]:
            stage.open()
        later: list[Summands] = [()] * len(self.stages)
        d_memory: list[Memory] = [None] * len(self.stages)
        for at in reversed(range(len(d_states))):
            d_output, own = d_states[at], list[Tensor | None]()
            for number, stage in reversed(list(enumerate(self.stages))):
                kept, d_memory[number] = stage.backward(
                    at, (d_output, *later[number]), d_memory[number]
                )
                own.insert(0, kept)
                if number:
                    d_output = self.below[number].back(stage.d_given[at])
                    d_output = (
                        d_output if self.kept is None else d_output * self.kept[at, number - 1]
                    )
            d_query = self._through_attention(at, d_contexts, d_weights)
            later = [stage.passed(at, kept) for stage, kept in zip(self.stages, own, strict=True)]
            if self.stages[self.asks].made is None:
                later[self.asks] = later[self.asks][0] + d_query, *later[self.asks][1:]
            if self.middle is not None:
                kept, d_memory[0] = self.middle.backward(at, later[0], d_memory[0])
                later[0] = self.middle.passed(at, kept)
        return [summed(parts) for parts in later], d_memory

    def _through_attention(
        self, at: int, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> Tensor:
        """δc_t into its place, and δq_t, which has one where it passes through U_att."""
        into, asking = self.attending.d_contexts[at], self.stages[self.asks]
        self.below[0].back(self.stages[0].d_given[at], out=into)
        if d_contexts is not None:
            into += d_contexts[at]
        queries, through = self.queries, asking.made is not None
        d_query = (
            asking.d_recurrent[at, :, asking.gates :] if through else torch.empty_like(queries[at])
        )
        self.attending.backward(at, queries, None if d_weights is None else d_weights[at], d_query)
        return d_query

    def weight_gradients(self) -> Iterator[Tensor | None]:
        """Of every cell as `Layer` has them: each one product, or one sum, over all steps and rows."""
        if self.middle is not None:
            yield from (None, None, *self.middle.weight_gradients())
        for number, (stage, layer) in enumerate(zip(self.stages, self.layers, strict=True)):
            d_given_NG = stage.d_given.flatten(0, 1)
            yield outer_products(d_given_NG, self._inputs(number, slice(None)).flatten(0, 1))
            yield None if layer.bias is None else summed_rows(d_given_NG)
            yield from stage.weight_gradients()
