"""The reference: every operation as its equation is written, and torch's autograd behind it.

Dims: B batch, R rows open in search, T steps, H state features, G gate features (H times 1, 3 or
      4), N batch times target positions, V vocabulary.

`learning.fast: false` trains by it, exported graphs are traced from it, and the contract of all
backends is that they agree with it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

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
from sixjars.flow.values import Context, LinearLogits, State, StepOutput
from sixjars.model.cells import STEPS, layer_weights


@final
class Reference(Backend):
    """The equations of the components; recurrences without attention are torch's own modules."""

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


def backend_of(component: nn.Module) -> Backend:
    """The backend of a component; the reference where it has none."""
    return getattr(component, "backend", REFERENCE)
