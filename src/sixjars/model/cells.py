r"""Recurrent cells, stacked: whole sequences at once, or one step at a time with the same weights.

Dims: B batch, T positions, I input features, H state features, G gate features (H times 1, 3 or 4), L layers,
      C context features.

    RNN    s_t = tanh(U x_t + W s_{t-1} + b)
    GRU    o_t = σ(U_o x_t + W_o s_{t-1} + b_o),  i_t = σ(U_i x_t + W_i s_{t-1} + b_i)
           s̃_t = tanh(U x_t + o_t ⊙ (W s_{t-1} + c) + b),  s_t = i_t ⊙ s_{t-1} + (1 - i_t) ⊙ s̃_t
    LSTM   o_t, i_t, f_t = σ(U_· x_t + W_· h_{t-1} + b_·),  s̃_t = tanh(U x_t + W h_{t-1} + b)
           s_t = f_t ⊙ s_{t-1} + i_t ⊙ s̃_t,  h_t = o_t ⊙ tanh(s_t)

Elman 1990; Cho et al. 2014 (https://arxiv.org/abs/1406.1078); Hochreiter & Schmidhuber 1997 with the forget gate of
Gers et al. 2000. Where we differ: the lecture's GRU has W (o_t ⊙ s_{t-1}); ours multiplies after W, as the fused
kernels of every vendor do, which is the same idea and many times faster.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow import Context, FirstShape, State

CellName = Literal["rnn", "gru", "lstm"]
Memory = tuple[Tensor, Tensor | None]
"""What one layer remembers: (hidden (B, H), cell (B, H) or nothing)."""

FUSED: dict[CellName, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

EQUATIONS: dict[CellName, list[str]] = {
    "rnn": ["s_t = tanh(U x_t + W s_{t-1} + b)"],
    "gru": [
        "o_t = σ(U_o x_t + W_o s_{t-1} + b_o),  i_t = σ(U_i x_t + W_i s_{t-1} + b_i)",
        "s̃_t = tanh(U x_t + o_t ⊙ (W s_{t-1} + c) + b)",
        "s_t = i_t ⊙ s_{t-1} + (1 - i_t) ⊙ s̃_t",
    ],
    "lstm": [
        "o_t, i_t, f_t = σ(U_· x_t + W_· h_{t-1} + b_·)",
        "s̃_t = tanh(U x_t + W h_{t-1} + b)",
        "s_t = f_t ⊙ s_{t-1} + i_t ⊙ s̃_t,  h_t = o_t ⊙ tanh(s_t)",
    ],
}

LETTERS = {"weight_ih": "U", "weight_hh": "W", "bias_ih": "b", "bias_hh": "c"}
"""The letters of torch's fused weights; the gates are stacked in one matrix."""


def memories(cell: CellName) -> int:
    """How many vectors a cell remembers: an LSTM has two, the others one."""
    return 2 if cell == "lstm" else 1


def first_shape(settings: Mapping[str, Any]) -> FirstShape:
    """What a recurrent decoder with these settings starts from: a vector for each layer and memory of its cell."""
    return FirstShape(settings["size"], copies=settings["layers"] * memories(settings["cell"]))


def _rnn(given_BG: Tensor, recurrent_BG: Tensor, memory: Memory) -> Memory:
    return torch.tanh(given_BG + recurrent_BG), None


def _gru(given_BG: Tensor, recurrent_BG: Tensor, memory: Memory) -> Memory:
    open_given, keep_given, new_given = given_BG.chunk(3, dim=-1)
    open_recurrent, keep_recurrent, new_recurrent = recurrent_BG.chunk(3, dim=-1)
    new_BH = torch.tanh(new_given + torch.sigmoid(open_given + open_recurrent) * new_recurrent)
    kept_BH = memory[0].to(new_BH.dtype)  # a first state may be 32-bit where the rest is not
    return torch.lerp(new_BH, kept_BH, torch.sigmoid(keep_given + keep_recurrent)), None


def _lstm(given_BG: Tensor, recurrent_BG: Tensor, memory: Memory) -> Memory:
    write, forget, new, show = (given_BG + recurrent_BG).chunk(4, dim=-1)
    assert memory[1] is not None
    cell_BH = torch.sigmoid(forget) * memory[1] + torch.sigmoid(write) * torch.tanh(new)
    return torch.sigmoid(show) * torch.tanh(cell_BH), cell_BH


STEPS: dict[CellName, Callable[[Tensor, Tensor, Memory], Memory]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


@final
class Recurrent(nn.Module):
    """A stack of one kind of cell, with two doors that agree to rounding: `forward` and `project` + `advance`."""

    def __init__(self, *, cell: CellName, input_size: int, size: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.kind: CellName = cell
        self.size = size
        self.layers = layers
        self.dropout = dropout
        between = dropout if layers > 1 else 0.0
        self.stack = FUSED[cell](input_size, size, layers, batch_first=True, dropout=between)

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

    def advance(self, given: Tensor, memory: list[Memory]) -> list[Memory]:
        """One step of every layer from the first layer's projected input (B, G)."""
        after: list[Memory] = []
        for layer, before in enumerate(memory):
            if layer > 0:
                below = F.dropout(after[-1][0], self.dropout, self.training)
                given = F.linear(below, self._weight("weight_ih", layer), self._weight("bias_ih", layer))
            recurrent_BG = F.linear(before[0], self._weight("weight_hh", layer), self._weight("bias_hh", layer))
            after.append(STEPS[self.kind](given, recurrent_BG, before))
        return after

    def followed(self, told: Tensor, state: State, ask: Callable[[Tensor], Context]) -> tuple[Tensor, Context]:
        """All states (B, T, H) and contexts (B, T, C), where each context is asked for with the state before it.

        What each step is told (B, T, I) comes first among the inputs, then the context.
        """
        memory = self.opened(state)
        states, heard = [], []
        for given_BG in self.project(told).unbind(1):
            heard.append(ask(memory[-1][0]))
            memory = self.advance(given_BG + self.project(heard[-1].vector, begin=told.shape[-1]), memory)
            states.append(memory[-1][0])
        weights = [context.weights for context in heard if context.weights is not None]
        vectors_BTC = torch.stack([context.vector for context in heard], dim=1)
        return torch.stack(states, dim=1), Context(vectors_BTC, torch.stack(weights, dim=1) if weights else None)

    def _weight(self, name: str, layer: int) -> Tensor:
        weight: Tensor = getattr(self.stack, f"{name}_l{layer}")
        return weight

    def opened(self, state: State) -> list[Memory]:
        """A state as one memory for each layer."""
        cells = [None] * self.layers if state.cell is None else state.cell.unbind(1)
        return list(zip(state.hidden.unbind(1), cells, strict=True))

    def closed(self, memory: list[Memory]) -> State:
        """The memories of all layers as one state."""
        cells = [cell for _, cell in memory if cell is not None]
        return State(torch.stack([hidden for hidden, _ in memory], 1), torch.stack(cells, 1) if cells else None)

    def first(self, vectors: Tensor) -> State:
        """The state made of (B, L * H * memories): the layers' hidden vectors first, then their cells."""
        parts = vectors.view(vectors.shape[0], memories(self.kind), self.layers, self.size)
        return State(parts[:, 0], parts[:, 1] if self.kind == "lstm" else None)
