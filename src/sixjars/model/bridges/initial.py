"""Initial-state conditioning (option 1): the decoder's initial state is made of the summary.

Dims: B batch, K summary features, H state features.
"""

from typing import final

from torch import Tensor

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.layers import Start, StateProjection, for_queries
from sixjars.model.reference import REFERENCE


@final
class InitialState(Bridge):
    """s_0 = h_T, s_t = RNN(s_{t-1}, E_dec[y_{t-1}]).

    Sutskever, Vinyals & Le 2014 (https://arxiv.org/abs/1409.3215). `state_count` is the number of
    vectors in the decoder's initial state: its layers, twice that for an LSTM. `start="linear"`
    fits any sizes by tanh(W_0 h_T + b_0).

    >>> import torch
    >>> bridge = InitialState(summary_size=4, state_size=4, start="copy")
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3) > 0, torch.randn(2, 4))
    >>> torch.equal(bridge.start(source).first_state, source.summary)
    True
    """

    context_size = 0
    grouped = True

    def __init__(
        self,
        *,
        summary_size: int,
        state_size: int,
        state_count: int = 1,
        start: Start = "linear",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.first = StateProjection(summary_size, state_size, state_count, start, backend)

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state; the steps do not use the rest."""
        return Prepared(self.first(encoded.summary), encoded.summary, encoded.memory, encoded.mask)

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """A context of no features."""
        return Context(for_queries(prepared.summary[:, :0], query))

    def equations(self) -> list[str]:
        """The initial state."""
        return self.first.equations()
