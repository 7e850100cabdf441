"""Attention pooling: the summary is a mixture of all positions, asked for with a vector that is learned.

Dims: B batch, S source positions, D source features, H state features, A attention features.
"""

from typing import final

import torch
from torch import Tensor, nn

from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.layers import FirstState, Start, masked_softmax
from sixjars.recipe.ranges import Positive


@final
class AttentionPooling(Bridge):
    r"""u_j = tanh(W_att h_j + b_att), α_j = softmax_j(u_jᵀ u), s_0 from Σ_j α_j h_j: option 1 with another summary.

    Yang et al. 2016 (https://aclanthology.org/N16-1174/), section 2.2: what they do with the words of a sentence, for
    positions of any kind. The question u is the same for every source and every step, so one look is enough.

    >>> bridge = AttentionPooling(source_size=4, state_size=4, start="copy")
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> carried = bridge.start(source)
    >>> weights = bridge.step(carried.first, carried).weights
    >>> torch.allclose(carried.first, (weights.unsqueeze(-1) * source.memory).sum(1))
    True
    """

    letters = {
        "project.weight": "W_0",
        "project.bias": "b_0",
        "key.weight": "W_att",
        "key.bias": "b_att",
        "question.weight": "u",
    }
    context_size = 0
    follows = False

    def __init__(
        self, *, source_size: int, state_size: int, size: Positive = 128, copies: int = 1, start: Start = "linear"
    ) -> None:
        super().__init__()
        self.key = nn.Linear(source_size, size)  # W_att, b_att
        self.question = nn.Linear(size, 1, bias=False)  # u
        self.first = FirstState(summary_size=source_size, state_size=state_size, copies=copies, start=start)

    def start(self, encoded: Encoded) -> Carried:
        """One look at every position; the weights are carried as the keys."""
        scores_BS = self.question(torch.tanh(self.key(encoded.memory))).squeeze(-1)
        weights_BS = masked_softmax(scores_BS, encoded.mask)
        pooled_BD = torch.bmm(weights_BS.unsqueeze(1), encoded.memory).squeeze(1)
        return Carried(self.first(pooled_BD), pooled_BD, encoded.memory, encoded.mask, weights_BS)

    def step(self, query: Tensor, carried: Carried) -> Context:
        """Silence, and where it looked at the start."""
        return Context(carried.summary[:, :0], carried.keys)

    def equations(self) -> list[str]:
        """The lines of the paper."""
        mixed = ["u_j = tanh(W_att h_j + b_att),  α_j = softmax_j(u_jᵀ u)", "h_T = Σ_j α_j h_j"]
        return [*mixed, *self.first.equations()]
