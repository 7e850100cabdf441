"""Attention pooling: the summary is a mixture of all positions, asked for with a vector that is learned.

Dims: B batch, S source positions, P parts of a row, F features of what is pooled, H state features,
      A attention features.
"""

from typing import final

import torch
from torch import Tensor, nn

from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.bridges.two_level import inhabited, softmax_in_parts
from sixjars.model.layers import FirstState, Start, masked_softmax
from sixjars.recipe.ranges import Positive


@final
class AttentionPooling(Bridge):
    r"""u_j = tanh(W_att h_j + b_att), α_j = softmax_j(u_jᵀ u), s_0 from Σ_j α_j h_j: option 1 with another summary.

    Yang et al. 2016 (https://aclanthology.org/N16-1174/), section 2.2: what they do with the words of a sentence, for
    positions of any kind. The question u is the same for every source and every step, so one look is enough.

    Where the encoder has a level above, its parts are pooled and not the positions, u_i = tanh(W_att g_i + b_att),
    s_0 from Σ_i α_i g_i: the sentences of that paper (there W_s, b_s and u_s). The weight of a position is then that of
    its part times that of the position within it, or an even share where nobody weighed the positions.

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
        self,
        *,
        source_size: int,
        above_size: int = 0,
        state_size: int,
        size: Positive = 128,
        copies: int = 1,
        start: Start = "linear",
    ) -> None:
        super().__init__()
        self.above_size = above_size
        pooled_size = above_size or source_size
        self.key = nn.Linear(pooled_size, size)  # W_att, b_att
        self.question = nn.Linear(size, 1, bias=False)  # u
        self.first = FirstState(summary_size=pooled_size, state_size=state_size, copies=copies, start=start)

    def start(self, encoded: Encoded) -> Carried:
        """One look at every position, or every part; the weights of the positions are carried as the keys."""
        pooled_BF, weights_BS = self._from_parts(encoded) if self.above_size else self._from_positions(encoded)
        return Carried(self.first(pooled_BF), pooled_BF, encoded.memory, encoded.mask, weights_BS)

    def _from_positions(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        return self._pooled(encoded.memory, encoded.mask)

    def _from_parts(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        assert encoded.above is not None
        above = inhabited(encoded.above, encoded.mask)
        pooled_BF, shares_BP = self._pooled(above.memory, above.mask)
        within_BS = above.within
        if within_BS is None:
            within_BS = softmax_in_parts(torch.zeros_like(encoded.memory[..., 0]), encoded.mask, above)
        return pooled_BF, shares_BP.gather(1, above.of) * within_BS * encoded.mask

    def _pooled(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The mixture (B, F) of one vector for each place, and the weight of each."""
        weights_BS = masked_softmax(self.question(torch.tanh(self.key(vectors))).squeeze(-1), mask)
        return torch.bmm(weights_BS.unsqueeze(1), vectors).squeeze(1), weights_BS

    def step(self, query: Tensor, carried: Carried) -> Context:
        """Silence, and where it looked at the start."""
        return Context(carried.summary[:, :0], carried.keys)

    def equations(self) -> list[str]:
        """The lines of the paper."""
        mixed = ["u_j = tanh(W_att h_j + b_att),  α_j = softmax_j(u_jᵀ u)", "h_T = Σ_j α_j h_j"]
        if self.above_size:
            mixed = ["u_i = tanh(W_att g_i + b_att),  α_i = softmax_i(u_iᵀ u)", "h_T = Σ_i α_i g_i"]
        return [*mixed, *self.first.equations()]
