r"""Attention at two levels: at every step the decoder asks which parts of a text matter now, and which words in each.

Dims: B batch, S source positions, P parts of a row, D source features, U features of the level above,
      F features of either, H decoder features, A attention features.
"""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError
from sixjars.flow import Above, Bridge, Carried, Context, Encoded
from sixjars.model.bridges.attention import FIRST_LETTERS
from sixjars.model.layers import FirstState, Start, masked_softmax
from sixjars.recipe.ranges import Positive


def softmax_in_parts(scores: Tensor, mask: Tensor, above: Above) -> Tensor:
    """Softmax of scores (B, S) among the real positions of each part: adds up to 1 over every part that has some.

    >>> parts = Above(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), of=torch.tensor([[0, 0, 1, 0]]))
    >>> softmax_in_parts(torch.zeros(1, 4), torch.tensor([[True, True, True, False]]), parts)
    tensor([[0.5000, 0.5000, 1.0000, 0.0000]])
    """
    lowest = torch.finfo(scores.dtype).min
    shown_BS = scores.detach().masked_fill(~mask, lowest)
    highest_BP = shown_BS.new_full(above.mask.shape, lowest).scatter_reduce(1, above.of, shown_BS, "amax")
    # What stands in the padding may be higher than all that is real, and must not overflow.
    below_BS = (scores - highest_BP.gather(1, above.of)).masked_fill(~mask, 0)
    raised_BS = torch.exp(below_BS) * mask
    total_BP = raised_BS.new_zeros(above.mask.shape).scatter_add(1, above.of, raised_BS)
    return raised_BS / total_BP.gather(1, above.of).clamp(min=1)  # the highest of each part adds 1 to its total


def inhabited(above: Above, mask: Tensor) -> Above:
    """The level above without the parts that have no real position: attention that fell on them would be lost."""
    positions_BP = torch.zeros_like(above.mask, dtype=torch.long).scatter_add(1, above.of, mask.long())
    return replace(above, mask=above.mask & (positions_BP > 0))


@final
class Score(nn.Module):
    """Vᵀ tanh(U s_{t-1} + W x), for the vectors x of one level."""

    def __init__(self, *, source_size: int, state_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(state_size, size, bias=False)  # U
        self.key = nn.Linear(source_size, size, bias=False)  # W
        self.score = nn.Linear(size, 1, bias=False)  # V

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """One query (B, H) of each row against the keys W x, (B, S, A) -> (B, S)."""
        scores_BS1: Tensor = self.score(torch.tanh(self.query(query).unsqueeze(1) + keys))
        return scores_BS1.squeeze(-1)


@final
class TwoLevelAttention(Bridge):
    r"""β_it = softmax_i(V_sᵀ tanh(U_s s_{t-1} + W_s g_i)), α_ijt = softmax_j(V_wᵀ tanh(U_w s_{t-1} + W_w h_ij)).

    c_t = Σ_i Σ_j β_it α_ijt h_ij: g_i is the vector of part i, h_ij that of its j-th word.

    Nallapati et al. 2016 (https://arxiv.org/abs/1602.06023), section 2.3. Where we differ: their softmax over words
    runs over the whole document, and its product with that of the sentences is divided by its sum. Ours runs over the
    words of each part, so the products add up to 1 as they are, and β_it is all that a part gets. Their vector of a
    sentence also knows its position; ours knows it from the RNN over parts.

    >>> attention = TwoLevelAttention(source_size=4, above_size=3, state_size=6, size=5)
    >>> parts = Above(torch.randn(2, 2, 3), torch.ones(2, 2, dtype=torch.bool), of=torch.tensor([[0, 0, 1]] * 2))
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 3), above=parts)
    >>> attention.step(torch.randn(2, 6), attention.start(source)).weights.sum(1).allclose(torch.ones(2))
    True
    """

    letters = {
        **FIRST_LETTERS,
        "parts.query.weight": "U_s",
        "parts.key.weight": "W_s",
        "parts.score.weight": "V_s",
        "words.query.weight": "U_w",
        "words.key.weight": "W_w",
        "words.score.weight": "V_w",
    }
    follows = True

    def __init__(
        self,
        *,
        source_size: int,
        above_size: int,
        summary_size: int | None = None,
        state_size: int,
        size: Positive = 128,
        copies: int = 1,
        start: Start = "linear",
    ) -> None:
        super().__init__()
        if not above_size:
            raise ShapeError(
                "bridge: two_level looks at the parts of a text and at the words in them, but this encoder has only "
                "one level. Use encoder: hierarchy, or bridge: attention."
            )
        self.context_size = source_size
        summary_size = above_size if summary_size is None else summary_size
        self.first = FirstState(summary_size=summary_size, state_size=state_size, copies=copies, start=start)
        self.parts = Score(source_size=above_size, state_size=state_size, size=size)  # U_s, W_s, V_s
        self.words = Score(source_size=source_size, state_size=state_size, size=size)  # U_w, W_w, V_w

    def start(self, encoded: Encoded) -> Carried:
        """The first state, and the keys of both levels."""
        assert encoded.above is not None
        return Carried(
            self.first(encoded.summary),
            encoded.summary,
            encoded.memory,
            encoded.mask,
            self.words.key(encoded.memory),
            inhabited(encoded.above, encoded.mask),
            self.parts.key(encoded.above.memory),
        )

    def step(self, query: Tensor, carried: Carried) -> Context:
        """Share 1 among the parts and the share of each among its words, then mix the memory by it."""
        assert carried.keys is not None
        assert carried.above is not None
        assert carried.above_keys is not None
        shares_BP = masked_softmax(self.parts(query, carried.above_keys), carried.above.mask)
        within_BS = softmax_in_parts(self.words(query, carried.keys), carried.mask, carried.above)
        weights_BS = shares_BP.gather(1, carried.above.of) * within_BS
        vector_BD = torch.bmm(weights_BS.unsqueeze(1), carried.memory).squeeze(1)
        return Context(vector_BD, weights_BS)

    def equations(self) -> list[str]:
        """The lines of the paper, with a softmax within each part."""
        return [
            *self.first.equations(),
            "β_it = softmax_i(V_sᵀ tanh(U_s s_{t-1} + W_s g_i))",
            "α_ijt = softmax_j(V_wᵀ tanh(U_w s_{t-1} + W_w h_ij)), over the words of part i",
            "c_t = Σ_i Σ_j β_it α_ijt h_ij",
        ]
