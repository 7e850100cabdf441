r"""Recurrent cells, stacked: whole sequences at once, or one step at a time with the same weights.

Dims: B batch, S or T positions, I input features, H state features, G gate features (H times 1, 3 or 4), L layers,
      C context features, D output features.

    RNN    h_t = tanh(U x_t + W h_{t-1} + b)
    GRU    o_t = σ(U_o x_t + W_o h_{t-1} + b_o), the reset gate;  i_t = σ(U_i x_t + W_i h_{t-1} + b_i), the update gate
           h̃_t = tanh(U x_t + o_t ⊙ (W h_{t-1} + b') + b),  h_t = i_t ⊙ h_{t-1} + (1 - i_t) ⊙ h̃_t
    LSTM   o_t, i_t, f_t = σ(U_· x_t + W_· h_{t-1} + b_·), the output, input and forget gates
           m̃_t = tanh(U x_t + W h_{t-1} + b),  m_t = f_t ⊙ m_{t-1} + i_t ⊙ m̃_t,  h_t = o_t ⊙ tanh(m_t)

Elman 1990; Cho et al. 2014 (https://arxiv.org/abs/1406.1078); Hochreiter & Schmidhuber 1997 with the forget gate of
Gers et al. 2000. Where we differ: the lecture's GRU has W (o_t ⊙ h_{t-1}); ours multiplies after W, as the fused
kernels of every vendor do, which is the same idea and many times faster. The lecture calls an LSTM's memory cell s_t;
here it is m_t, because s_t is a decoder's state.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.contracts import StateShape
from sixjars.flow.values import Context, State
from sixjars.model.layers import last_real, reordered, reversal

CellName = Literal["rnn", "gru", "lstm"]
Direction = Literal["forward", "backward", "both"]
LayerState = tuple[Tensor, Tensor | None]
"""What one layer remembers: (hidden (B, H), memory cell (B, H) or nothing)."""

FUSED: dict[CellName, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
GATES: dict[CellName, tuple[str, ...]] = {"rnn": ("",), "gru": (",o", ",i", ""), "lstm": (",i", ",f", "", ",o")}
"""The gates whose weights torch stacks in one matrix, in its order; the candidate state has no letter of its own."""
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("left_to_right",),
    "backward": ("right_to_left",),
    "both": ("left_to_right", "right_to_left"),
}
ARROWS = {"left_to_right": "→", "right_to_left": "←"}


def states_of(cell: CellName) -> int:
    """How many vectors a cell remembers: an LSTM has two, the others one."""
    return 2 if cell == "lstm" else 1


def state_shape(settings: Mapping[str, Any]) -> StateShape:
    """What a recurrent decoder with these settings starts from: a vector for each layer and state of its cell."""
    return StateShape(settings["size"], state_count=settings["layers"] * states_of(settings["cell"]))


def recurrence(cell: CellName, *, state: str, tag: str, reads: str) -> list[str]:
    """The equations of a cell: `state` is the letter of its state, `tag` that of its weights, `reads` its input.

    >>> recurrence("rnn", state="h", tag="enc", reads="E_enc[x_t]")
    ['h_t = tanh(U_enc E_enc[x_t] + b_enc + W_enc h_{t-1} + b′_enc)']
    """

    def given(gate: str) -> str:
        return f"U_{tag}{gate} {reads} + b_{tag}{gate}"

    def recurrent(gate: str) -> str:
        return f"W_{tag}{gate} {state}_{{t-1}} + b′_{tag}{gate}"

    def gate(letter: str, name: str) -> str:
        return f"{letter}_{tag},t = σ({given(f',{letter}')} + {recurrent(f',{letter}')}): the {name} gate"

    if cell == "rnn":
        return [f"{state}_t = tanh({given('')} + {recurrent('')})"]
    if cell == "gru":
        return [
            gate("o", "reset"),
            gate("i", "update"),
            f"{state}̃_t = tanh({given('')} + o_{tag},t ⊙ ({recurrent('')}))",
            f"{state}_t = i_{tag},t ⊙ {state}_{{t-1}} + (1 - i_{tag},t) ⊙ {state}̃_t",
        ]
    return [
        gate("o", "output"),
        gate("i", "input"),
        gate("f", "forget"),
        f"m̃_{tag},t = tanh({given('')} + {recurrent('')})",
        f"m_{tag},t = f_{tag},t ⊙ m_{tag},t-1 + i_{tag},t ⊙ m̃_{tag},t: the memory cell",
        f"{state}_t = o_{tag},t ⊙ tanh(m_{tag},t)",
    ]


def _rnn(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    return torch.tanh(given_BG + recurrent_BG), None


def _gru(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    reset_given, update_given, new_given = given_BG.chunk(3, dim=-1)
    reset_recurrent, update_recurrent, new_recurrent = recurrent_BG.chunk(3, dim=-1)
    new_BH = torch.tanh(new_given + torch.sigmoid(reset_given + reset_recurrent) * new_recurrent)
    kept_BH = before[0].to(new_BH.dtype)  # an initial state may be 32-bit where the rest is not
    return torch.lerp(new_BH, kept_BH, torch.sigmoid(update_given + update_recurrent)), None


def _lstm(given_BG: Tensor, recurrent_BG: Tensor, before: LayerState) -> LayerState:
    enter, forget, new, output = (given_BG + recurrent_BG).chunk(4, dim=-1)
    assert before[1] is not None
    cell_BH = torch.sigmoid(forget) * before[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(output) * torch.tanh(cell_BH), cell_BH


STEPS: dict[CellName, Callable[[Tensor, Tensor, LayerState], LayerState]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


@final
class Recurrent(nn.Module):
    """A stack of one kind of cell; `forward` over a whole sequence and `project` + `advance` agree to rounding."""

    def __init__(
        self, *, cell: CellName, input_size: int, size: int, layers: int = 1, dropout: float = 0.0, tag: str = "dec"
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.size = size
        self.layers = layers
        self.dropout = dropout
        self.tag = tag
        between = dropout if layers > 1 else 0.0
        self.stack = FUSED[cell](input_size, size, layers, batch_first=True, dropout=between)

    @property
    def letters(self) -> dict[str, str]:
        """The letters of torch's fused weights; the rows of the gates are stacked in one matrix."""
        found = {}
        for layer in range(self.layers):
            tag = self.tag if self.layers == 1 else f"{self.tag}{layer + 1}"
            for name, letter in {"weight_ih": "U", "weight_hh": "W", "bias_ih": "b", "bias_hh": "b′"}.items():
                gates = [f"{letter}_{tag}{gate}" for gate in GATES[self.cell]]
                found[f"stack.{name}_l{layer}"] = " | ".join(gates)
        return found

    def forward(self, inputs: Tensor, first: State | None = None) -> Tensor:
        """The top layer's states, (B, T, H), for a whole sequence of inputs (B, T, I)."""
        state: Tensor | tuple[Tensor, Tensor] | None = None
        if first is not None:
            state = first.hidden.transpose(0, 1).contiguous()
            if first.cell is not None:
                state = (state, first.cell.transpose(0, 1).contiguous())
        outputs: Tensor = self.stack(inputs, state)[0]
        return outputs

    def project(self, inputs: Tensor, *, begin: int = 0) -> Tensor:
        """U x + b of the first layer for the input features from `begin` on; b only where `begin` is 0.

        It does not depend on the state, so a loop over steps can have it computed for all of them beforehand.
        """
        weight = self._weight("weight_ih", 0)[:, begin : begin + inputs.shape[-1]]
        return F.linear(inputs, weight, self._weight("bias_ih", 0) if begin == 0 else None)

    def advance(self, given: Tensor, state: list[LayerState]) -> list[LayerState]:
        """One step of every layer from the first layer's projected input (B, G)."""
        after: list[LayerState] = []
        for layer, before in enumerate(state):
            if layer > 0:
                below = F.dropout(after[-1][0], self.dropout, self.training)
                given = F.linear(below, self._weight("weight_ih", layer), self._weight("bias_ih", layer))
            recurrent_BG = F.linear(before[0], self._weight("weight_hh", layer), self._weight("bias_hh", layer))
            after.append(STEPS[self.cell](given, recurrent_BG, before))
        return after

    def unroll(self, inputs: Tensor, state: State, attend: Callable[[Tensor], Context]) -> tuple[Tensor, Context]:
        """All states (B, T, H) and contexts (B, T, C), where each context is computed from the state before it.

        The inputs (B, T, I) come first among the input features of the cell, then the context.
        """
        layers = self.opened(state)
        states, contexts = [], []
        for given_BG in self.project(inputs).unbind(1):
            contexts.append(attend(layers[-1][0]))
            layers = self.advance(given_BG + self.project(contexts[-1].vector, begin=inputs.shape[-1]), layers)
            states.append(layers[-1][0])
        weights = [context.weights for context in contexts if context.weights is not None]
        vectors_BTC = torch.stack([context.vector for context in contexts], dim=1)
        return torch.stack(states, dim=1), Context(vectors_BTC, torch.stack(weights, dim=1) if weights else None)

    def _weight(self, name: str, layer: int) -> Tensor:
        weight: Tensor = getattr(self.stack, f"{name}_l{layer}")
        return weight

    def opened(self, state: State) -> list[LayerState]:
        """A state layer by layer."""
        cells = [None] * self.layers if state.cell is None else state.cell.unbind(1)
        return list(zip(state.hidden.unbind(1), cells, strict=True))

    def closed(self, layers: list[LayerState]) -> State:
        """The states of all layers as one."""
        cells = [cell for _, cell in layers if cell is not None]
        return State(torch.stack([hidden for hidden, _ in layers], 1), torch.stack(cells, 1) if cells else None)

    def first(self, vectors: Tensor) -> State:
        """The initial state made of (B, L * H * states): the layers' hidden vectors first, then their memory cells."""
        split = vectors.view(vectors.shape[0], states_of(self.cell), self.layers, self.size)
        return State(split[:, 0], split[:, 1] if self.cell == "lstm" else None)

    def equations(self, *, reads: str, state: str = "s") -> list[str]:
        """The cell, and how the layers are stacked."""
        tag = self.tag if self.layers == 1 else f"{self.tag}1"
        lines = recurrence(self.cell, state=state, tag=tag, reads=reads)
        if self.layers == 1:
            return lines
        above = (
            f"{self.layers} layers: layer l = 2..{self.layers} reads {state}_t of the layer below, with U_{self.tag}l,"
        )
        return [*lines, f"{above} W_{self.tag}l, …; {state}_t is the state of the last"]


@final
class DirectionalRNN(nn.Module):
    r"""h_t = RNN(h_{t-1}, x_t), where x_t is a word's embedding, a frame's features, a segment's vector.

    `direction="backward"` reads in reverse order; the states still stand at the places of what was read. With `both`,
    h_j = [h→_j, h←_j] and the summary joins the last state of each direction (Schuster & Paliwal 1997).

    Rows are padded, not packed: the backward direction reads each row reversed within its own length, so padding comes
    last for both and has no influence, and the whole can be exported.
    """

    def __init__(
        self,
        *,
        input_size: int,
        cell: CellName,
        size: int,
        layers: int = 1,
        direction: Direction = "forward",
        dropout: float = 0.0,
        tag: str = "enc",
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.direction: Direction = direction
        self.tag = tag
        self.dropout = nn.Dropout(dropout)
        self.output_size = size * len(READS[direction])
        inputs = [input_size] + [self.output_size] * (layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    read: Recurrent(cell=cell, input_size=width, size=size, tag=self._tag(read, depth, layers))
                    for read in READS[direction]
                }
            )
            for depth, width in enumerate(inputs, start=1)
        )

    def _tag(self, read: str, depth: int, layers: int) -> str:
        arrow = ARROWS[read] if self.direction == "both" else ""
        return f"{self.tag}{depth if layers > 1 else ''}{arrow}"

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From (B, S, I) the states (B, S, D), zero where padded, and the summary (B, D)."""
        states_BSD = inputs
        real_BS1 = mask.unsqueeze(-1)
        order_BS = reversal(mask)
        for depth, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleDict)
            if depth > 0:
                states_BSD = self.dropout(states_BSD)
            read = [self._read(name, cells, states_BSD, order_BS) for name, cells in layer.items()]
            states_BSD = torch.cat(read, dim=-1) * real_BS1
        return self.dropout(states_BSD), self.dropout(self._summary(states_BSD, mask))

    @staticmethod
    def _read(name: str, cells: nn.Module, states: Tensor, order: Tensor) -> Tensor:
        if name == "left_to_right":
            onward: Tensor = cells(states)
            return onward
        return reordered(cells(reordered(states, order)), order)

    def _summary(self, states: Tensor, mask: Tensor) -> Tensor:
        """The last state that each direction reached: at the last real position forwards, at the first backwards."""
        size = self.output_size // len(READS[self.direction])
        if self.direction == "forward":
            return last_real(states, mask)
        first_BD = states[:, 0]
        if self.direction == "backward":
            return first_BD
        return torch.cat([last_real(states[..., :size], mask), first_BD[..., size:]], dim=-1)

    def equations(self, *, reads: str, unit: str, state: str = "h") -> list[str]:
        """The equations: `reads` is the input of each step, `unit` its name, `state` the letter of the states."""
        count, both = len(self.layers), self.direction == "both"
        tag, arrow = f"{self.tag}{1 if count > 1 else ''}", "→" if both else ""
        lines = recurrence(self.cell, state=f"{state}{arrow}", tag=f"{tag}{arrow}", reads=reads)
        if both:
            lines += [
                f"{state}←_t: the same from the last {unit} to the first, with U_{tag}←, W_{tag}←, …",
                f"{state}_t = [{state}→_t, {state}←_t]",
            ]
        if count > 1:
            above = f"{count} layers: layer l = 2..{count} reads {state}_t of the layer below"
            lines.append(f"{above}, with U_{self.tag}l, W_{self.tag}l, …; {state}_t is the state of the last")
        ends = {
            "forward": f"{state}_T is the state after the last {unit}",
            "backward": f"read from the last {unit} to the first; {state}_T is the state after the first {unit}",
            "both": f"{state}_T = [{state}→_S, {state}←_1]",
        }
        return [*lines, ends[self.direction]]
