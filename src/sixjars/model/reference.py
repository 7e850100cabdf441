r"""The reference: every operation as its equation is written, and torch's autograd behind it.

Dims: B batch, R rows open in search, T steps, H state features, G gate features (H times 1, 3 or
      4), N batch times target positions, V vocabulary.

`learning.fast: false` trains by it, exported graphs are traced from it, and the contract of all
backends is that they agree with it.

Cells: Elman 1990; Cho et al. 2014 (https://arxiv.org/abs/1406.1078); Hochreiter & Schmidhuber 1997
with the forget gate of Gers et al. 2000; `equations.recurrence` writes them down. g = U x + b and
r = W h + b' are given. Where we differ: the lecture's GRU has W (o_t ⊙ h_{t-1}), where o_t is the
reset gate; ours multiplies after W, as the fused kernels of every vendor do, which is the same idea
and many times faster. The lecture calls an LSTM's memory cell s_t; here it is m_t, because s_t is a
decoder's state.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.backend import (
    AttendedRecurrence,
    AttentionSources,
    Backend,
    ChoiceRules,
    LayerState,
)
from sixjars.flow.contracts import StateShape
from sixjars.flow.values import Context, LinearLogits, State, StepOutput

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


@final
class Reference(Backend):
    """The equations of the components; recurrences without attention are torch's own modules."""

    def __reduce__(self) -> str:
        """The name of the one there is, for pickle."""
        return "REFERENCE"

    def linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As the interface says."""
        return F.linear(inputs, weight, bias)

    def pack(self, modules: Iterable[nn.Module], precision: str) -> None:
        """Nothing: the reference multiplies by the weights as they are."""

    def recurrences(
        self, stacks: Sequence[nn.RNNBase], inputs: Sequence[Tensor], first: State | None = None
    ) -> list[Tensor]:
        """As the interface says, one call of torch for each stack."""
        return [
            by_torch(stack, values, first) for stack, values in zip(stacks, inputs, strict=True)
        ]

    def cell(self, name: str, given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
        """As the interface says."""
        return STEPS[name](given, recurrent, before)

    def step(self, name: str, stack: nn.RNNBase, inputs: Tensor, before: LayerState) -> LayerState:
        """As the interface says; a GRU by torch's own cell, which exported graphs know."""
        below, bias, weight, bias_hh = layer_weights(stack, 0)
        if name == "gru":
            return torch.gru_cell(inputs, before[0], below, weight, bias, bias_hh), None
        given_BG, recurrent_BG = F.linear(inputs, below, bias), F.linear(before[0], weight, bias_hh)
        return self.cell(name, given_BG, recurrent_BG, before)

    def unroll(self, recurrence: AttendedRecurrence) -> tuple[Tensor, Context] | None:
        """None: the loop over steps is that of `Recurrent.unroll`."""
        return None

    def keys(self, memory: Tensor, weight: Tensor) -> Tensor:
        """As the interface says."""
        return F.linear(memory, weight)

    def key_powers(self, keys: Tensor) -> Tensor | None:
        """None: `attend` has no use for them."""
        return None

    def attend(
        self, query: Tensor, sources: AttentionSources, powers: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """None: the equations are those of `Attention.step`."""
        return None

    def output_loss(
        self, linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """As the interface says, from the logits of all tokens."""
        logits_NV, truth_N = linear.logits().flatten(0, 1), truth.flatten()
        logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
        loss_N = F.cross_entropy(logits_NV, truth_N, reduction="none", label_smoothing=smoothing)
        plain_N = loss_N.detach()
        if smoothing:
            plain_N = F.cross_entropy(logits_NV.detach(), truth_N, reduction="none")
        total = (loss_N.view_as(truth) * factor).sum()
        return total, (plain_N.view_as(truth) * (factor != 0)).sum()

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """As the interface says."""
        dtype = torch.promote_types(logits.dtype, torch.float32)
        return torch.log_softmax(logits, dim=-1, dtype=dtype)

    def choose(
        self, scored: StepOutput, rules: ChoiceRules, opened: Tensor, totals: Tensor, steps: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """None: the operations are those of search."""
        return None


def advanced(
    backend: Backend, name: str, stack: nn.RNNBase, given: Tensor, state: list[LayerState]
) -> list[LayerState]:
    """One step of every layer of a stack, from the first layer's g = U x + b (B, G)."""
    after: list[LayerState] = []
    for layer, before in enumerate(state):
        below, bias, weight, bias_hh = layer_weights(stack, layer)
        if layer > 0:
            output_BH = F.dropout(after[-1][0], stack.dropout, stack.training)
            given = backend.linear(output_BH, below, bias)
        recurrent_BG = backend.linear(before[0], weight, bias_hh)
        after.append(backend.cell(name, given, recurrent_BG, before))
    return after


def by_torch(stack: nn.RNNBase, inputs: Tensor, first: State | None) -> Tensor:
    """The top layer's states (B, T, H) by torch's own stack."""
    state: Tensor | tuple[Tensor, Tensor] | None = None
    if first is not None:
        state = first.hidden.transpose(0, 1).contiguous()
        if first.cell is not None:
            state = (state, first.cell.transpose(0, 1).contiguous())
    outputs: Tensor = stack(inputs, state)[0]
    return outputs


REFERENCE: Final = Reference()
