"""Option 1: the decoder hears its encoder once, before its first word.

Dims: B batch, K summary features, H state features.
"""

from typing import final

from torch import Tensor

from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.layers import FirstState, Start


@final
class InitialState(Bridge):
    """s_0 = h_T, s_t = RNN(s_{t-1}, e(ŷ_{t-1})).

    Sutskever, Vinyals & Le 2014 (https://arxiv.org/abs/1409.3215). `copies` is how many vectors the decoder's first
    state has: its layers, twice that for an LSTM. `start="linear"` fits any sizes by tanh(W_0 h_T + b_0).

    >>> import torch
    >>> bridge = InitialState(summary_size=4, state_size=4, start="copy")
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> torch.equal(bridge.start(source).first, source.summary)
    True
    """

    letters = {"project.weight": "W_0", "project.bias": "b_0"}
    context_size = 0
    follows = False

    def __init__(self, *, summary_size: int, state_size: int, copies: int = 1, start: Start = "linear") -> None:
        super().__init__()
        self.first = FirstState(summary_size=summary_size, state_size=state_size, copies=copies, start=start)

    def start(self, encoded: Encoded) -> Carried:
        """The first state; the rest is carried along unused."""
        return Carried(self.first(encoded.summary), encoded.summary, encoded.memory, encoded.mask)

    def step(self, query: Tensor, carried: Carried) -> Context:
        """Silence: a context of no features."""
        return Context(carried.summary[:, :0])

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return self.first.equations()
