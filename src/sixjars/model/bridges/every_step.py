"""Option 2: the decoder hears the summary at every step.

Dims: B batch, K summary features, H state features.
"""

from typing import final

from torch import Tensor

from sixjars.flow import Bridge, Carried, Context, Encoded
from sixjars.model.layers import FirstState, Start


@final
class EveryStep(Bridge):
    """s_0 = h_T, s_t = RNN(s_{t-1}, [e(ŷ_{t-1}), h_T]).

    Cho et al. 2014 (https://arxiv.org/abs/1406.1078), section 2.2, with the summary given to the cell and not to the
    output layer.

    >>> import torch
    >>> bridge = EveryStep(summary_size=4, state_size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> torch.equal(bridge.step(torch.randn(2, 6), bridge.start(source)).vector, source.summary)
    True
    """

    letters = {"project.weight": "W_0", "project.bias": "b_0"}
    follows = False

    def __init__(self, *, summary_size: int, state_size: int, copies: int = 1, start: Start = "linear") -> None:
        super().__init__()
        self.context_size = summary_size
        self.first = FirstState(summary_size=summary_size, state_size=state_size, copies=copies, start=start)

    def start(self, encoded: Encoded) -> Carried:
        """The first state, and the summary to repeat."""
        return Carried(self.first(encoded.summary), encoded.summary, encoded.memory, encoded.mask)

    def step(self, query: Tensor, carried: Carried) -> Context:
        """The summary, whatever was asked."""
        return Context(carried.summary)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.first.equations(), "c_t = h_T"]
