r"""Chooses one label of a closed list, or all that apply.

Dims: B batch, S source positions, T = 1, H features that the label is chosen from, V labels.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, Decoder, ModelPlan, OutputChoice, StateShape
from sixjars.flow.limits import Share, Size
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Context, DecoderOutput, Encoded, Padded, StepOutput
from sixjars.model.layers import Linear, wide
from sixjars.model.reference import REFERENCE

LIKELY = 0.5
"""The least probability of each label with `multi_label`."""


@final
class LabelDecoder(Decoder):
    r"""P(y | x) = softmax(V_out s_0 + b_out), or of s_1 = tanh(W_c [s_0, c_1] + b_c).

    s_1 is for bridges that have a context c_1. With `start: copy` on the bridge, s_0 is the summary
    itself, as in the lecture; with `start: linear` there is a hidden layer between, which a
    question about an image needs: softmax(V_out [q; v] + b_out) alone adds the evidence of question
    and image, and cannot tell 'is it red?' by both together. The query of attention is s_0; the
    context is combined with it as in Luong, Pham & Manning 2015
    (https://arxiv.org/abs/1508.04025), equation 5.

    With `multi_label` each label has a probability of its own, σ in place of the softmax.

    >>> from sixjars import InitialState
    >>> decoder = LabelDecoder(bridge=InitialState(summary_size=4, state_size=6), classes=3, size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3) > 0, torch.randn(2, 4))
    >>> decoder.choose(source).log_probabilities.exp().sum(1).allclose(torch.ones(2))
    True
    """

    produces = "classes"
    searches = False
    letters = {
        "mix.weight": "W_c",
        "mix.bias": "b_c",
        "output.weight": "V_out",
        "output.bias": "b_out",
    }

    def __init__(
        self,
        *,
        bridge: Bridge,
        classes: int,
        multi_label: bool = False,
        size: Size = 128,
        dropout: Share = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.multi_label = multi_label
        self.dropout = nn.Dropout(dropout)
        self.mix: Linear | None = None
        if bridge.context_size:
            self.mix = Linear(size + bridge.context_size, size, backend=backend)  # W_c, b_c
        self.output = Linear(size, classes, backend=backend)  # V_out, b_out

    @staticmethod
    def state_shape(settings: Mapping[str, Any]) -> StateShape:
        """The shape of one vector."""
        return StateShape(settings["size"], state_count=1)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report smoothing of labels with a probability each, which have no distribution."""
        if not (plan.smoothing and plan.output.multi_label):
            return []
        return ["loss.smoothing: with multi_label each label is a yes or no of its own; remove it."]

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A hidden layer of that size."""
        return {"size": size, "dropout": dropout}

    def teach(self, encoded: Encoded, target: Padded) -> DecoderOutput:
        """Logits (B, 1, V): a label is a target of one token."""
        logits_BV, context = self._logits(encoded)
        weights_BTS = context.mapped(lambda tensor: tensor.unsqueeze(1)).weights
        return DecoderOutput(logits_BV.unsqueeze(1), weights_BTS, multi_label=self.multi_label)

    def choose(self, encoded: Encoded) -> StepOutput:
        """The log probability of every label, (B, V)."""
        logits_BV, context = self._logits(encoded)
        logits_BV = wide(logits_BV)
        if self.multi_label:
            return StepOutput(functional.logsigmoid(logits_BV), context.weights)
        return StepOutput(torch.log_softmax(logits_BV, dim=-1), context.weights)

    def _logits(self, encoded: Encoded) -> tuple[Tensor, Context]:
        prepared = self.bridge.start(encoded)
        state_BH = prepared.first_state
        context = self.bridge.step(state_BH, prepared)
        if self.mix is not None:
            state_BH = torch.tanh(self.mix(torch.cat([state_BH, context.vector], dim=-1)))
        return self.output(self.dropout(state_BH)), context

    def answer(
        self, encoded: Encoded, search: OutputChoice, prefix: Padded | None = None
    ) -> list[list[Hypothesis]]:
        """The `nbest` most probable labels of each row; with `multi_label` all that apply."""
        output = self.choose(encoded)
        choose = _all_likely if self.multi_label else partial(_best, nbest=search.settings.nbest)
        weights: list[Any] = [()] * output.rows
        if output.weights is not None:
            weights = [(tuple(row),) for row in output.weights.tolist()]
        rows = zip(output.log_probabilities.cpu(), weights, strict=True)
        return [
            [Hypothesis(labels, total, total, attended) for labels, total in choose(log_V)]
            for log_V, attended in rows
        ]

    def loss_equation(self) -> str:
        """The cross entropy, of all labels together or of each."""
        mean = "divided by the number of true labels"
        if self.multi_label:
            return f"L = -Σ_{{y ∈ ℓ}} log P(y | x) - Σ_{{y ∉ ℓ}} log(1 - P(y | x)), {mean}"
        return f"L = -log P(y = ℓ | x), {mean}"

    def answer_equation(self) -> str:
        """The most probable label, or all that are likely."""
        if self.multi_label:
            return "ŷ: all labels y with P(y | x) ≥ 1/2, the most probable in any case"
        return "ŷ = argmax P(y | x)"

    def equations(self) -> list[str]:
        """The features of the choice, and the probability of a label."""
        lines = [] if self.mix is None else ["s_1 = tanh(W_c [s_0, c_1] + b_c)"]
        logit = f"(V_out s_{len(lines)} + b_out)"
        chance = f"σ{logit}: each label on its own" if self.multi_label else f"softmax{logit}"
        return [*lines, f"P(y | x) = {chance}"]


Chosen = list[tuple[tuple[int, ...], float]]
"""Sets of labels of a row, each with its log probability."""


def _best(log_V: Tensor, nbest: int) -> Chosen:
    best = log_V.topk(min(nbest, len(log_V)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [((label,), value) for label, value in pairs]


def _all_likely(log_V: Tensor) -> Chosen:
    """All labels that are more likely than not, and the most probable one in any case."""
    count = max(1, int((log_V >= math.log(LIKELY)).sum()))
    order_V = log_V.argsort(descending=True)
    chosen, others = order_V[:count], order_V[count:]
    total = log_V[chosen].sum() + torch.log1p(-log_V[others].double().exp()).sum()
    return [(tuple(chosen.tolist()), float(total))]
