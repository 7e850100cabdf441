r"""Chooses one label of a closed list, or all that fit.

Dims: B batch, S source positions, T = 1, H features of what is judged, V labels.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from sixjars.flow import Bridge, Chooser, Encoded, FirstShape, Padded, Scored, Taught
from sixjars.recipe.ranges import Positive, Share


@final
class LabelDecoder(Chooser):
    r"""P(y | x) = softmax(V s + b), s = s_0, or s = tanh(W_c [s_0, c] + b_c) where the bridge also gives a context c.

    With `start: copy` on the bridge, s_0 is the summary itself, as in the lecture; with `start: linear` there is a
    hidden layer between, which a question about a picture needs: softmax(V [q; v] + b) alone adds what the question
    and the picture say, and cannot tell 'is it red?' by both together. Attention asks with s_0; what it finds is mixed
    with what was asked as in Luong, Pham & Manning 2015 (https://arxiv.org/abs/1508.04025), equation 5.

    Where `several` labels may be right, each has a probability of its own, σ in place of the softmax.

    >>> from sixjars import InitialState
    >>> decoder = LabelDecoder(bridge=InitialState(summary_size=4, state_size=6), classes=3, size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> decoder.choose(source).log_probabilities.exp().sum(1).allclose(torch.ones(2))
    True
    """

    letters = {"mix.weight": "W_c", "mix.bias": "b_c", "output.weight": "V", "output.bias": "b"}

    def __init__(
        self, *, bridge: Bridge, classes: int, several: bool = False, size: Positive = 128, dropout: Share = 0.0
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.several = several
        self.dropout = nn.Dropout(dropout)
        self.mix: nn.Linear | None = None
        if bridge.context_size:
            self.mix = nn.Linear(size + bridge.context_size, size)  # W_c, b_c
        self.output = nn.Linear(size, classes)  # V, b

    @staticmethod
    def first_shape(settings: Mapping[str, Any]) -> FirstShape:
        """One vector."""
        return FirstShape(settings["size"], copies=1)

    def teach(self, encoded: Encoded, target: Padded) -> Taught:
        """Scores (B, 1, V): a label is a target of one token, and nothing is told before it."""
        scores_BV, weights_BS = self._judged(encoded)
        looked_BTS = None if weights_BS is None else weights_BS.unsqueeze(1)
        return Taught(scores_BV.unsqueeze(1), looked_BTS, several=self.several)

    def choose(self, encoded: Encoded) -> Scored:
        """The log probability of every label, (B, V)."""
        scores_BV, weights_BS = self._judged(encoded)
        judge = functional.logsigmoid if self.several else partial(torch.log_softmax, dim=-1)
        return Scored(judge(scores_BV.float()), weights_BS)

    def _judged(self, encoded: Encoded) -> tuple[Tensor, Tensor | None]:
        carried = self.bridge.start(encoded)
        context = self.bridge.step(carried.first, carried)
        judged_BH = carried.first
        if self.mix is not None:
            judged_BH = torch.tanh(self.mix(torch.cat([judged_BH, context.vector], dim=-1)))
        scores_BV: Tensor = self.output(self.dropout(judged_BH))
        return scores_BV, context.weights

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        mixed = ["s = tanh(W_c [s_0, c] + b_c)"] if self.mix else ["s = s_0"]
        judged = "P(y_c | x) = σ(V_c s + b_c) for each label c" if self.several else "P(y | x) = softmax(V s + b)"
        return [*mixed, judged]
