r"""Recurrent cells, stacked: whole sequences at once, or one step at a time with the same weights.

Dims: B batch, T positions, I input features, H state features, G gate features (H times 1, 3 or 4),
      L layers, C context features, D output features, K stacks side by side, F input features of
      a layer, S source positions, N batch times positions.

Elman 1990; Cho et al. 2014 (https://arxiv.org/abs/1406.1078); Hochreiter & Schmidhuber 1997 with
the forget gate of Gers et al. 2000; `equations.recurrence` writes them down. Where we differ: the
lecture's GRU has W (o_t ⊙ h_{t-1}), where o_t is the reset gate; ours multiplies after W, as the
fused kernels of every vendor do, which is the same idea and many times faster. The lecture calls an
LSTM's memory cell s_t; here it is m_t, because s_t is a decoder's state.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.contracts import Bridge, StateShape
from sixjars.flow.values import Context, Prepared, State
from sixjars.model.equations import directions, last_states, stacked
from sixjars.model.fast.compiled import compiled_step, used_for
from sixjars.model.fast.contracts import AttentionSources, LayerState, RecurrentCellWeights
from sixjars.model.fast.segments import upper_of
from sixjars.model.fast.unrolled import recurrence as unrolled_over
from sixjars.model.fast.unrolled import unrolled
from sixjars.model.layers import beside, computed_in, last_real, linear, reordered, reversal

CellName = Literal["rnn", "gru", "lstm"]
FUSED: dict[CellName, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
GATES: dict[CellName, tuple[str, ...]] = {
    "rnn": ("",),
    "gru": (",o", ",i", ""),
    "lstm": (",i", ",f", "", ",o"),
}
"""The gates in the order of torch's stacked matrices; the candidate state has no letter."""
LAYER = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
"""How torch names U, b, W and b' of a layer."""
LETTERS = {"weight_ih": "U", "weight_hh": "W", "bias_ih": "b", "bias_hh": "b′"}
Direction = Literal["forward", "backward", "both"]
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("left_to_right",),
    "backward": ("right_to_left",),
    "both": ("left_to_right", "right_to_left"),
}
ARROWS = {"left_to_right": "→", "right_to_left": "←"}
CellStep = Callable[[Tensor, Tensor, LayerState], LayerState]
Scoring = tuple[Tensor | None, ...]  # what `Bridge.scoring` returns


def _rnn(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    return torch.tanh(given_BG + recurrent_BG), None


def _gru(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    split = 2 * before[0].shape[-1]
    gates_BG = torch.sigmoid(given_BG[..., :split] + recurrent_BG[..., :split])
    reset_BH, update_BH = gates_BG.chunk(2, dim=-1)
    new_BH = torch.tanh(given_BG[..., split:] + reset_BH * recurrent_BG[..., split:])
    kept_BH = before[0].to(new_BH.dtype)  # an initial state may be 32-bit where the rest is not
    return torch.lerp(new_BH, kept_BH, update_BH), None


def _lstm(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    enter, forget, new, output = (given_BG + recurrent_BG).chunk(4, dim=-1)
    assert before[1] is not None
    cell_BH = torch.sigmoid(forget) * before[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(output) * torch.tanh(cell_BH), cell_BH


STEPS: dict[str, CellStep] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


def states_of(cell: CellName) -> int:
    """How many vectors a cell remembers: an LSTM has two, the others one."""
    return 2 if cell == "lstm" else 1


def state_shape(settings: Mapping[str, Any]) -> StateShape:
    """The shape of the initial state of a recurrent decoder with these settings."""
    count = settings["layers"] * states_of(settings["cell"])
    return StateShape(settings["size"], state_count=count)


@final
class Recurrent(nn.Module):
    """A stack of cells of one kind; `forward` agrees with `project` and `advance` to rounding."""

    def __init__(
        self, *, cell: CellName, input_size: int, size: int, layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.size = size
        self.layers = layers
        self.dropout = dropout if layers > 1 else 0.0
        self.tag = "dec"
        self.fast = self.by_hand = True
        self.stack = FUSED[cell](input_size, size, layers, batch_first=True, dropout=self.dropout)

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
        return side_by_side([self], [inputs], first)[0]

    def by_torch(self, inputs: Tensor, first: State | None) -> Tensor:
        """As `forward`, by torch's own stack: the reference, and as fast without gradients."""
        state: Tensor | tuple[Tensor, Tensor] | None = None
        if first is not None:
            state = first.hidden.transpose(0, 1).contiguous()
            if first.cell is not None:
                state = (state, first.cell.transpose(0, 1).contiguous())
        outputs: Tensor = self.stack(inputs, state)[0]
        return outputs

    def project(self, inputs: Tensor, *, begin: int = 0) -> Tensor:
        """U x + b of the first layer for the input features from `begin` on; b where it is 0.

        It does not depend on the state, so it can be computed for all steps beforehand.
        """
        weight = self._weight("weight_ih", 0)[:, begin : begin + inputs.shape[-1]]
        return F.linear(inputs, weight, self._weight("bias_ih", 0) if begin == 0 else None)

    def advance(self, given: Tensor, state: list[LayerState]) -> list[LayerState]:
        """One step of every layer from the first layer's projected input (B, G)."""
        after: list[LayerState] = []
        for layer, before in enumerate(state):
            below, bias, weight, bias_hh = (self._weight(name, layer) for name in LAYER)
            if layer > 0:
                output_BH = F.dropout(after[-1][0], self.dropout, self.training)
                given = F.linear(output_BH, below, bias)
            recurrent_BG = F.linear(before[0], weight, bias_hh)
            stepped = compiled_step(self.cell, given, recurrent_BG, before)
            after.append(stepped or STEPS[self.cell](given, recurrent_BG, before))
        return after

    def unroll(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[Tensor, Context]:
        """All states (B, T, H) and contexts (B, T, C); the cell reads [input, context]."""
        if not bridge.follows_state:  # the same context at every step: one fused call
            steps = inputs.shape[1]
            once = bridge.step(state.hidden[:, -1], prepared)
            context = once.mapped(lambda tensor: tensor.unsqueeze(1).expand(-1, steps, -1))
            return self(torch.cat([inputs, context.vector], dim=-1), state), context
        if (scoring := self.scoring_of(bridge, inputs)) is not None:
            return self.unrolled(inputs, state, prepared, scoring)
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

    def scoring_of(self, bridge: Bridge, inputs: Tensor) -> Scoring | None:
        """The weights of the score for the fast path; None on a CPU without gradients."""
        gains = torch.is_grad_enabled() or inputs.is_cuda
        takes_it = self.fast and gains and not torch.compiler.is_compiling()
        return bridge.scoring() if takes_it else None

    def unrolled(
        self,
        inputs: Tensor,
        state: State,
        prepared: Prepared,
        scoring: Scoring,
        middle: "Recurrent | None" = None,
    ) -> tuple[Tensor, Context]:
        """As `unroll`, by the fast path; where there is a middle cell, it reads the inputs."""
        dtype = computed_in(inputs)
        query, *scores = scoring
        width = inputs.shape[-1]
        layers = []
        for number in range(self.layers):
            below, bias, weight, bias_hh = (self._weight(name, number).to(dtype) for name in LAYER)
            if query is not None and number == (self.layers - 1 if middle is None else 0):
                weight = torch.cat([weight, query.to(dtype)])
            if number == 0 and middle is None:  # U x + b is computed for all steps below
                layers.append(RecurrentCellWeights(below[:, width:], None, weight, bias_hh))
            else:
                layers.append(RecurrentCellWeights(below, bias, weight, bias_hh))
        if middle is not None:
            recurrent = (middle._weight(name, 0).to(dtype) for name in LAYER[2:])
            layers.insert(0, RecurrentCellWeights(None, None, *recurrent))
        by_layer = state.mapped(lambda tensor: tensor.transpose(0, 1).to(dtype))
        assert prepared.keys is not None
        score, *upper = (None if each is None else each.to(dtype) for each in scores)
        sources = AttentionSources(
            prepared.keys.to(dtype), prepared.memory.to(dtype), prepared.mask, score
        )
        attended = sources, upper_of(prepared, *upper) if upper else None
        drops = self.training and self.dropout
        kept = self._kept(inputs.shape[1], by_layer.hidden) if drops else None
        weight_ih, bias_ih = ((middle or self)._weight(name, 0) for name in LAYER[:2])
        given_TBG = linear(inputs.transpose(0, 1), weight_ih[:, :width], bias_ih).to(dtype)
        first = by_layer.hidden, by_layer.cell
        outputs = unrolled(self.cell, given_TBG, first, attended, layers, kept)
        states_BTH, vectors_BTC, weights_BTS = (
            each.transpose(0, 1).contiguous() for each in outputs
        )
        return states_BTH, Context(vectors_BTC, weights_BTS)

    def _kept(self, steps: int, hidden_LBH: Tensor) -> Tensor:
        """The dropout factors of the states between layers, (T, L - 1, B, H), drawn by step."""
        ones_BH = torch.ones_like(hidden_LBH[0])
        rows = [[F.dropout(ones_BH, self.dropout) for _ in hidden_LBH[1:]] for _ in range(steps)]
        return torch.stack([torch.stack(row) for row in rows])

    def step(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[State, Context]:
        """One step: inputs (B, I) to the state after them, and the context they came with."""
        context = bridge.step_from(state.hidden[:, -1], prepared, state.attended)
        inputs = torch.cat([inputs, context.vector], dim=-1)
        by_torch = isinstance(self._weight("weight_hh", 0), Tensor) and used_for(inputs) is None
        if self.layers == 1 and self.cell == "gru" and by_torch:
            hidden_BH = torch.gru_cell(inputs, state.hidden[:, 0], *self.stack.all_weights[0])
            return State(hidden_BH.unsqueeze(1), None, context.attended), context
        layers = self.advance(self.project(inputs), self.opened(state))
        return self.closed(layers, context.attended), context

    def _weight(self, name: str, layer: int) -> Tensor:
        return getattr(self.stack, f"{name}_l{layer}")  # type: ignore[no-any-return]

    def opened(self, state: State) -> list[LayerState]:
        """A state layer by layer."""
        cells = [None] * self.layers if state.cell is None else state.cell.unbind(1)
        return list(zip(state.hidden.unbind(1), cells, strict=True))

    def closed(self, layers: list[LayerState], attended: Tensor | None = None) -> State:
        """The states of all layers as one, with where attention was."""
        hidden, cells = (
            [tensor for tensor in kind if tensor is not None] for kind in zip(*layers, strict=True)
        )
        return State(torch.stack(hidden, 1), torch.stack(cells, 1) if cells else None, attended)

    def first(self, vectors: Tensor, attended: Tensor | None = None) -> State:
        """The initial state from (B, L * H * states): all hidden vectors, then memory cells."""
        split = vectors.view(vectors.shape[0], states_of(self.cell), self.layers, self.size)
        return State(split[:, 0], split[:, 1] if self.cell == "lstm" else None, attended)

    def equations(self, *, reads: str) -> list[str]:
        """The initial state where it has several vectors, the cell, and the layers above."""
        return stacked(self.cell, self.layers, self.tag, reads=reads)


def joined(states: list[Tensor], contexts: list[Context]) -> tuple[Tensor, Context]:
    """The states (B, T, H) and contexts (B, T, C) of all steps, from those of each."""
    weights = [context.weights for context in contexts if context.weights is not None]
    weights_BTS = torch.stack(weights, dim=1) if weights else None
    vectors_BTC = torch.stack([context.vector for context in contexts], dim=1)
    return torch.stack(states, dim=1), Context(vectors_BTC, weights_BTS)


def side_by_side(
    stacks: list[Recurrent], inputs: list[Tensor], first: State | None = None
) -> list[Tensor]:
    """The states (B, T, H) of stacks of one shape, each over its own inputs (B, T, I)."""
    if not (stacks[0].by_hand and torch.is_grad_enabled()) or torch.compiler.is_compiling():
        return [stack.by_torch(values, first) for stack, values in zip(stacks, inputs, strict=True)]
    dtype = computed_in(inputs[0])
    rows, steps, _ = inputs[0].shape
    begins = [None, None] if first is None else [first.hidden, first.cell]
    values_KTBF = beside([values.transpose(0, 1) for values in inputs]).to(dtype)
    for layer in range(stacks[0].layers):
        below, bias, weight, bias_hh = (
            beside([stack._weight(name, layer) for stack in stacks]).to(dtype) for name in LAYER
        )
        drops = layer > 0 and stacks[0].training
        values_KNF = F.dropout(values_KTBF, stacks[0].dropout, drops).flatten(1, 2)
        given_KNG = beside([linear(*of) for of in zip(values_KNF, below, bias, strict=True)])
        given_KTBG = given_KNG.view(len(stacks), steps, rows, below.shape[1])
        zeros_KBH = given_KTBG.new_zeros(len(stacks), rows, stacks[0].size)
        hidden, memory = (
            zeros_KBH if begin is None else begin[None, :, layer].to(dtype) for begin in begins
        )
        cell = memory if stacks[0].cell == "lstm" else None
        values_KTBF = unrolled_over(stacks[0].cell, given_KTBG, hidden, cell, weight, bias_hh)
    return [states_TBH.transpose(0, 1) for states_TBH in values_KTBF]


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
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.direction: Direction = direction
        self.dropout = nn.Dropout(dropout)
        reads = READS[direction]
        self.output_size = size * len(reads)
        self.layers = nn.ModuleList()
        for width in [input_size, *[self.output_size] * (layers - 1)]:
            cells = {read: Recurrent(cell=cell, input_size=width, size=size) for read in reads}
            self.layers.append(nn.ModuleDict(cells))
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
            outputs = side_by_side(cast("list[Recurrent]", list(layer.values())), inputs_of)
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
