r"""The equations of a step of each cell, and the weights of a layer as torch keeps them.

Dims: B batch, H state features, G gate features (H times 1, 3 or 4).

Elman 1990; Cho et al. 2014 (https://arxiv.org/abs/1406.1078); Hochreiter & Schmidhuber 1997 with
the forget gate of Gers et al. 2000; `equations.recurrence` writes them down. g = U x + b and
r = W h + b' are given. Where we differ: the lecture's GRU has W (o_t ⊙ h_{t-1}), where o_t is the
reset gate; ours multiplies after W, as the fused kernels of every vendor do, which is the same idea
and many times faster. The lecture calls an LSTM's memory cell s_t; here it is m_t, because s_t is a
decoder's state.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sixjars.flow.backend import LayerState
from sixjars.flow.contracts import StateShape

CellName = Literal["rnn", "gru", "lstm"]
STACKS: dict[CellName, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
"""The modules of torch that hold the weights of a stack."""
GATES: dict[CellName, tuple[str, ...]] = {
    "rnn": ("",),
    "gru": (",o", ",i", ""),
    "lstm": (",i", ",f", "", ",o"),
}
"""The gates in the order of torch's stacked matrices; the candidate state has no letter."""
LAYER = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
"""How torch names U, b, W and b' of a layer."""
CellStep = Callable[[Tensor, Tensor, LayerState], LayerState]


def rnn(given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
    """H' = tanh(g + r)."""
    return torch.tanh(given + recurrent), None


def gru(given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
    """o, i = σ(g + r), n = tanh(g_n + o ⊙ r_n), h' = i ⊙ h + (1 - i) ⊙ n."""
    split = 2 * before[0].shape[-1]
    gates_BG = torch.sigmoid(given[..., :split] + recurrent[..., :split])
    reset_BH, update_BH = gates_BG.chunk(2, dim=-1)
    new_BH = torch.tanh(given[..., split:] + reset_BH * recurrent[..., split:])
    kept_BH = before[0].to(new_BH.dtype)  # an initial state may be 32-bit where the rest is not
    return torch.lerp(new_BH, kept_BH, update_BH), None


def lstm(given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
    """i, f, o = σ(g + r), n = tanh(g_n + r_n), m' = f ⊙ m + i ⊙ n, h' = o ⊙ tanh(m')."""
    enter, forget, new, output = (given + recurrent).chunk(4, dim=-1)
    assert before[1] is not None
    cell_BH = torch.sigmoid(forget) * before[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(output) * torch.tanh(cell_BH), cell_BH


STEPS: dict[str, CellStep] = {"rnn": rnn, "gru": gru, "lstm": lstm}


def layer_weights(stack: nn.RNNBase, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U, b, W and b' of a layer."""
    below, bias, weight, bias_hh = (getattr(stack, f"{name}_l{layer}") for name in LAYER)
    return below, bias, weight, bias_hh


def states_of(cell: CellName) -> int:
    """How many vectors a cell remembers: an LSTM has two, the others one."""
    return 2 if cell == "lstm" else 1


def state_shape(settings: Mapping[str, Any]) -> StateShape:
    """The shape of the initial state of a recurrent decoder with these settings."""
    count = settings["layers"] * states_of(settings["cell"])
    return StateShape(settings["size"], state_count=count)
