r"""Attention: at every step the decoder asks which source positions matter now.

Dims: B batch, S source positions, D source features, K summary features, H decoder features, A attention features.

    e_jt = score(s_{t-1}, h_j),   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j

All three scores ask with the state before the step, s_{t-1}, as in the lecture. Luong, Pham & Manning 2015
(https://arxiv.org/abs/1508.04025), from whom dot and general come, ask with the state after it.
"""

from abc import abstractmethod
from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError
from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.layers import FirstState, Start, masked_softmax
from sixjars.recipe.ranges import Positive

FIRST_LETTERS = {"project.weight": "W_0", "project.bias": "b_0"}
MIXING = ["α_jt = softmax_j(e_jt)", "c_t = Σ_j α_jt h_j"]


class Attention(Bridge):
    """What all attentions share; a score function makes one."""

    follows = True

    def __init__(
        self, *, source_size: int, summary_size: int | None, state_size: int, copies: int, start: Start
    ) -> None:
        super().__init__()
        self.context_size = source_size
        summary_size = source_size if summary_size is None else summary_size
        self.first = FirstState(summary_size=summary_size, state_size=state_size, copies=copies, start=start)

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """The memory (B, S, D) as the score wants it, computed once for each source."""

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """e_jt for one query (B, H) of each row, (B, S)."""

    def start(self, encoded: Encoded) -> Carried:
        """The first state and the keys, returned and never kept on the module."""
        first = self.first(encoded.summary)
        return Carried(first, encoded.summary, encoded.memory, encoded.mask, self.keys(encoded.memory))

    def step(self, query: Tensor, carried: Carried) -> Context:
        """Score every position, make a distribution of the scores, mix the memory by it."""
        assert carried.keys is not None
        weights_BS = masked_softmax(self.scores(query, carried.keys), carried.mask)
        vector_BD = torch.bmm(weights_BS.unsqueeze(1), carried.memory).squeeze(1)
        return Context(vector_BD, weights_BS)


@final
class AdditiveAttention(Attention):
    r"""Scores each source position with a one-hidden-layer network.

    e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j)

    Bahdanau, Cho & Bengio 2015 (https://arxiv.org/abs/1409.0473), section A.1.2. `size` is the number of hidden
    units; W_att h_j is computed once for each source.

    >>> attention = AdditiveAttention(source_size=4, state_size=6, size=5)
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> attention.step(torch.randn(2, 6), attention.start(source)).weights.sum(1).allclose(torch.ones(2))
    True
    """

    letters = {**FIRST_LETTERS, "query.weight": "U_att", "key.weight": "W_att", "score.weight": "V_att"}

    def __init__(
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        size: Positive = 128,
        copies: int = 1,
        start: Start = "linear",
    ) -> None:
        super().__init__(
            source_size=source_size, summary_size=summary_size, state_size=state_size, copies=copies, start=start
        )
        self.query = nn.Linear(state_size, size, bias=False)  # U_att
        self.key = nn.Linear(source_size, size, bias=False)  # W_att
        self.score = nn.Linear(size, 1, bias=False)  # V_att

    def keys(self, memory: Tensor) -> Tensor:
        """W_att h_j."""
        keys_BSA: Tensor = self.key(memory)
        return keys_BSA

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """V_attᵀ tanh(U_att s_{t-1} + W_att h_j)."""
        mixed_BSA = torch.tanh(self.query(query).unsqueeze(1) + keys)
        scores_BS1: Tensor = self.score(mixed_BSA)
        return scores_BS1.squeeze(-1)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.first.equations(), "e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j)", *MIXING]


@final
class DotAttention(Attention):
    """e_jt = s_{t-1}ᵀ h_j: no weights at all, so both must have the same size.

    Luong, Pham & Manning 2015, equation 8, asked with s_{t-1}.

    >>> attention = DotAttention(source_size=2, state_size=2)
    >>> memory = torch.tensor([[[9.0, 0.0], [0.0, 9.0]]])
    >>> source = Encoded(memory, torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2))
    >>> attention.step(torch.tensor([[0.0, 5.0]]), attention.start(source)).weights.argmax(1)
    tensor([1])
    """

    letters = FIRST_LETTERS

    def __init__(
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        copies: int = 1,
        start: Start = "linear",
    ) -> None:
        if source_size != state_size:
            raise ShapeError(
                f"score: dot needs a decoder state as large as the encoder's, but they have {state_size} and "
                f"{source_size} numbers. Make them equal, or use score: general."
            )
        super().__init__(
            source_size=source_size, summary_size=summary_size, state_size=state_size, copies=copies, start=start
        )

    def keys(self, memory: Tensor) -> Tensor:
        """The memory itself."""
        return memory

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """s_{t-1}ᵀ h_j."""
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.first.equations(), "e_jt = s_{t-1}ᵀ h_j", *MIXING]


@final
class GeneralAttention(Attention):
    """e_jt = s_{t-1}ᵀ W_att h_j: one matrix between the two.

    Luong, Pham & Manning 2015, equation 8, asked with s_{t-1}; W_att h_j is computed once for each source.

    >>> attention = GeneralAttention(source_size=4, state_size=6)
    >>> source = Encoded(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> attention.start(source).keys.shape
    torch.Size([2, 3, 6])
    """

    letters = {**FIRST_LETTERS, "key.weight": "W_att"}

    def __init__(
        self,
        *,
        source_size: int,
        summary_size: int | None = None,
        state_size: int,
        copies: int = 1,
        start: Start = "linear",
    ) -> None:
        super().__init__(
            source_size=source_size, summary_size=summary_size, state_size=state_size, copies=copies, start=start
        )
        self.key = nn.Linear(source_size, state_size, bias=False)  # W_att

    def keys(self, memory: Tensor) -> Tensor:
        """W_att h_j."""
        keys_BSH: Tensor = self.key(memory)
        return keys_BSH

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """s_{t-1}ᵀ W_att h_j."""
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.first.equations(), "e_jt = s_{t-1}ᵀ W_att h_j", *MIXING]
