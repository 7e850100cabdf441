r"""Recurrent stacks: whole sequences at once, or one step at a time with the same weights.

Dims: B batch, T positions, I input features, H state features, G gate features (H times 1, 3 or 4),
      L layers, C context features, D output features, S source positions.

`cells` has the equations of a step. What is computed in several ways is asked of the backend; the
loops over steps in this file are the reference of all.
"""

from typing import Any, Literal, cast, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import AttendedRecurrence, Backend, LayerState
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Prepared, State
from sixjars.model.equations import directions, last_states, stacked
from sixjars.model.layers import last_real, reordered, reversal
from sixjars.model.reference import (
    GATES,
    REFERENCE,
    STACKS,
    CellName,
    advanced,
    layer_weights,
    states_of,
)

LETTERS = {"weight_ih": "U", "weight_hh": "W", "bias_ih": "b", "bias_hh": "b′"}
Direction = Literal["forward", "backward", "both"]
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("left_to_right",),
    "backward": ("right_to_left",),
    "both": ("left_to_right", "right_to_left"),
}
ARROWS = {"left_to_right": "→", "right_to_left": "←"}


@final
class Recurrent(nn.Module):
    """A stack of cells of one kind; `forward` agrees with `project` and `advance` to rounding."""

    def __init__(
        self,
        *,
        cell: CellName,
        input_size: int,
        size: int,
        layers: int = 1,
        dropout: float = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.size = size
        self.layers = layers
        self.dropout = dropout if layers > 1 else 0.0
        self.tag = "dec"
        self.backend = backend
        self.stack = STACKS[cell](input_size, size, layers, batch_first=True, dropout=self.dropout)

    @property
    def letters(self) -> dict[str, str]:
        """The letters of torch's weight matrices, in which the gates are stacked."""
        letters = {}
        for layer in range(self.layers):
            tag = self.tag if self.layers == 1 else f"{self.tag}{layer + 1}"
            for name, letter in LETTERS.items():
                gates = [f"{letter}_{tag}{gate}" for gate in GATES[self.cell]]
                letters[f"stack.{name}_l{layer}"] = " | ".join(gates)
        return letters

    def forward(self, inputs: Tensor, first: State | None = None) -> Tensor:
        """The top layer's states, (B, T, H), for a whole sequence of inputs (B, T, I)."""
        return self.backend.recurrences([self.stack], [inputs], first)[0]

    def project(self, inputs: Tensor, *, begin: int = 0) -> Tensor:
        """U x + b of the first layer for the input features from `begin` on; b where it is 0.

        It does not depend on the state, so it can be computed for all steps beforehand.
        """
        weight, bias, _, _ = layer_weights(self.stack, 0)
        if inputs.shape[-1] < weight.shape[1]:
            weight = weight[:, begin : begin + inputs.shape[-1]]
        return self.backend.linear(inputs, weight, bias if begin == 0 else None)

    def advance(self, given: Tensor, state: list[LayerState]) -> list[LayerState]:
        """One step of every layer from the first layer's projected input (B, G)."""
        return advanced(self.backend, self.cell, self.stack, given, state)

    def unroll(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[Tensor, Context]:
        """All states (B, T, H) and contexts (B, T, C); the cell reads [input, context]."""
        if not bridge.follows_state:  # the same context at every step: one call for all
            steps = inputs.shape[1]
            once = bridge.step(state.hidden[:, -1], prepared)
            context = once.mapped(lambda tensor: tensor.unsqueeze(1).expand(-1, steps, -1))
            return self(torch.cat([inputs, context.vector], dim=-1), state), context
        unrolled = self.unrolled(inputs, state, bridge, prepared)
        if unrolled is not None:
            return unrolled
        # U [x, c] is U_x x + U_c c: only the second waits for the state.
        layers, attended = self.opened(state), state.attended
        states: list[Tensor] = []
        contexts: list[Context] = []
        for input_BG in self.project(inputs).unbind(1):
            context = bridge.step_from(layers[-1][0], prepared, attended)
            attended = context.attended
            context_BG = self.project(context.vector, begin=inputs.shape[-1])
            layers = self.advance(input_BG + context_BG, layers)
            contexts.append(context)
            states.append(layers[-1][0])
        return joined(states, contexts)

    def unrolled(
        self,
        inputs: Tensor,
        state: State,
        bridge: Bridge,
        prepared: Prepared,
        middle: "Recurrent | None" = None,
    ) -> tuple[Tensor, Context] | None:
        """As `unroll` by the backend, where both it and the bridge have a way for all steps."""
        scoring = bridge.scoring()
        if scoring is None:
            return None
        cell_between = None if middle is None else middle.stack
        return self.backend.unroll(
            AttendedRecurrence(self.stack, cell_between, inputs, state, prepared, scoring)
        )

    def step(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[State, Context]:
        """One step: inputs (B, I) to the state after them, and the context they came with."""
        context = bridge.step_from(state.hidden[:, -1], prepared, state.attended)
        inputs = torch.cat([inputs, context.vector], dim=-1)
        layers = self.opened(state)
        if self.layers == 1:
            layers = [self.backend.step(self.cell, self.stack, inputs, layers[0])]
        else:
            layers = self.advance(self.project(inputs), layers)
        return self.closed(layers, context.attended), context

    def opened(self, state: State) -> list[LayerState]:
        """A state layer by layer."""
        cells = [None] * self.layers if state.cell is None else state.cell.unbind(1)
        return list(zip(state.hidden.unbind(1), cells, strict=True))

    def closed(self, layers: list[LayerState], attended: Tensor | None = None) -> State:
        """The states of all layers as one, with where attention was."""
        hidden, cells = (
            [tensor for tensor in kind if tensor is not None] for kind in zip(*layers, strict=True)
        )
        return State(_stacked(hidden), _stacked(cells) if cells else None, attended)

    def first(self, vectors: Tensor, attended: Tensor | None = None) -> State:
        """The initial state from (B, L * H * states): all hidden vectors, then memory cells."""
        split = vectors.view(vectors.shape[0], states_of(self.cell), self.layers, self.size)
        return State(split[:, 0], split[:, 1] if self.cell == "lstm" else None, attended)

    def equations(self, *, reads: str) -> list[str]:
        """The initial state where it has several vectors, the cell, and the layers above."""
        return stacked(self.cell, self.layers, self.tag, reads=reads)


def _stacked(layers: list[Tensor]) -> Tensor:
    """The layers beside each other, (B, L, H); one alone is not copied."""
    return torch.stack(layers, 1) if len(layers) > 1 else layers[0].unsqueeze(1)


def joined(states: list[Tensor], contexts: list[Context]) -> tuple[Tensor, Context]:
    """The states (B, T, H) and contexts (B, T, C) of all steps, from those of each."""
    weights = [context.weights for context in contexts if context.weights is not None]
    weights_BTS = torch.stack(weights, dim=1) if weights else None
    vectors_BTC = torch.stack([context.vector for context in contexts], dim=1)
    return torch.stack(states, dim=1), Context(vectors_BTC, weights_BTS)


@final
class DirectionalRNN(nn.Module):
    r"""h_j = RNN(h_{j-1}, x_j), x_j the vector of a word, a frame or a segment.

    `direction="backward"` reads in reverse order; the states still stand at the places of what was
    read. With `both`, h_j = [h→_j, h←_j] and the summary joins the last state of each direction
    (Schuster & Paliwal 1997).

    Rows are padded, not packed: the backward direction reads each row reversed within its own
    length, so padding comes last for both and has no influence, and the whole can be exported.
    """

    def __init__(
        self,
        input_size: int,
        cell: CellName,
        size: int,
        layers: int,
        direction: Direction,
        dropout: float,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.backend = backend
        self.direction: Direction = direction
        self.dropout = nn.Dropout(dropout)
        reads = READS[direction]
        self.output_size = size * len(reads)
        self.layers = nn.ModuleList()
        for width in [input_size, *[self.output_size] * (layers - 1)]:
            options: dict[str, Any] = {
                "cell": cell,
                "input_size": width,
                "size": size,
                "backend": backend,
            }
            self.layers.append(nn.ModuleDict({read: Recurrent(**options) for read in reads}))
        self.tag_as("enc")

    def tag_as(self, tag: str) -> None:
        """Name its weights, to distinguish them from other networks': U_enc, or U_enc2→."""
        self.tag = tag
        for depth, layer in enumerate(self.layers, start=1):
            for read, cells in layer.named_children():
                assert isinstance(cells, Recurrent)
                arrow = ARROWS[read] if self.direction == "both" else ""
                cells.tag = f"{tag}{depth if len(self.layers) > 1 else ''}{arrow}"

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From (B, S, I) the states (B, S, D), zero where padded, and the summary (B, D)."""
        states_BSD, real_BS1, order_BS = inputs, mask.unsqueeze(-1), reversal(mask)
        for depth, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleDict)
            if depth > 0:
                states_BSD = self.dropout(states_BSD)
            read = [name == "left_to_right" for name in layer]
            inputs_of = [
                states_BSD if onward else reordered(states_BSD, order_BS) for onward in read
            ]
            stacks = [cells.stack for cells in cast("list[Recurrent]", list(layer.values()))]
            outputs = self.backend.recurrences(stacks, inputs_of)
            in_order = [
                output if onward else reordered(output, order_BS)
                for output, onward in zip(outputs, read, strict=True)
            ]
            # The cells also read the padding behind a row.
            states_BSD = torch.cat(in_order, dim=-1) * real_BS1
        return self.dropout(states_BSD), self.dropout(self._summary(states_BSD, mask))

    def _summary(self, states: Tensor, mask: Tensor) -> Tensor:
        """The last state of each direction: at the last real position, or at the first."""
        reads = READS[self.direction]
        halves = zip(reads, states.chunk(len(reads), dim=-1), strict=True)
        ends = [
            last_real(half, mask) if read == "left_to_right" else half[:, 0]
            for read, half in halves
        ]
        return torch.cat(ends, dim=-1)

    def equations(
        self, *, reads: str, state: str = "h", at: str = "j", summary: str = "h_T"
    ) -> list[str]:
        """The equations; `reads` is the input at index `at`, `summary` the last state or ''."""
        lines = directions(
            self.cell, len(self.layers), self.direction, self.tag, state=state, reads=reads, at=at
        )
        last = f"{summary} = {last_states(self.direction, len(self.layers), state, at)}"
        return [*lines, last] if summary else lines
