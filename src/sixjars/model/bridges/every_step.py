"""Every-step conditioning (option 2): the summary is an input of every step of the decoder.

Dims: B batch, N queries of each source, K summary features, H state features.
"""

from typing import final

from torch import Tensor

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Encoded, Prepared
from sixjars.model.layers import Start, StateProjection, for_queries
from sixjars.model.reference import REFERENCE


@final
class EveryStep(Bridge):
    """s_0 = h_T, s_t = RNN(s_{t-1}, [E_dec[y_{t-1}], h_T]).

    Cho et al. 2014 (https://arxiv.org/abs/1406.1078), section 2.2, with the summary given to the
    cell and not to the output layer.

    >>> import torch
    >>> bridge = EveryStep(summary_size=4, state_size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3) > 0, torch.randn(2, 4))
    >>> torch.equal(bridge.step(torch.randn(2, 6), bridge.start(source)).vector, source.summary)
    True
    """

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
        self.context_size = summary_size
        self.first = StateProjection(summary_size, state_size, state_count, start, backend)

    def start(self, encoded: Encoded) -> Prepared:
        """The initial state, and the summary to repeat."""
        return Prepared(self.first(encoded.summary), encoded.summary, encoded.memory, encoded.mask)

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """The summary, whatever the query."""
        return Context(for_queries(prepared.summary, query))

    def equations(self) -> list[str]:
        """The initial state, and the context of every step."""
        return [*self.first.equations(), "c_t = h_T"]
